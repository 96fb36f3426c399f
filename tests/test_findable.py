"""What search engines and messengers read: descriptions, structured data, a sitemap, cards."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pytest
import yaml
from conftest import ROOT, SITE

sys.path.insert(0, str(ROOT / "book" / "_ext"))
import findable  # noqa: E402

PAGES = sorted(path.stem for path in (ROOT / "book").glob("*.md"))


def head(page: str) -> str:
    return (SITE / "book" / f"{page}.html").read_text("utf-8").split("</head>")[0]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_describes_itself_in_one_line(page):
    found = re.findall(r'<meta [^>]*name="description"[^>]*>', head(page))
    assert len(found) == 1
    text = re.search(r'content="([^"]*)"', found[0])
    assert text and 50 <= len(text[1]) <= 220
    card = re.search(r'<meta property="og:description" content="([^"]*)"', head(page))
    assert card and card[1][:50] == text[1][:50]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_structured_data(page):
    block = re.findall(r'<script type="application/ld\+json">(.*?)</script>', head(page), re.S)
    assert len(block) == 1
    data = json.loads(block[0])
    assert data["@type"] == ("Book" if page == "index" else "Chapter")
    book = data if page == "index" else data["isPartOf"]
    assert book["name"] == "Attention: from the question to the transformer"
    assert "url" not in data  # no address is known here, so none is made up
    assert data["description"]


def test_a_page_says_when_its_source_last_changed(tmp_path):
    def git(*command):
        subprocess.run(["git", "-C", tmp_path, *command], check=True, capture_output=True)

    page = tmp_path / "page.md"
    page.write_text("one")
    assert findable.last_changed(page) == ""  # no repository
    git("init", "-q")
    git("add", ".")
    identity = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    git(*identity, "commit", "-qm", "one", "--date=2026-01-02T03:04:05Z")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", findable.last_changed(page))
    assert findable.last_changed(tmp_path / "other.md") == ""


def test_structured_data_holds_the_address_where_one_is_known():
    config = SimpleNamespace(
        html_title="Book", language="en", author="They", root_doc="book/index",
        attention_site="https://book.example.org",
    )  # fmt: skip
    page = findable.about(config, "book/scaling", "Scaling", "What it tells.", "")
    assert page["url"] == "https://book.example.org/book/scaling.html"
    assert page["isPartOf"]["url"] == "https://book.example.org/"
    assert "dateModified" not in page
    assert findable.about(config, "book/index", "B", "", "")["@type"] == "Book"


def test_the_sitemap_is_valid_and_escaped():
    text = findable.sitemap("https://e.org/a&b", {"book/x": "2026-11-22", "book/y": ""})
    root = ET.fromstring(text)
    space = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    places = [node.findtext(f"{space}loc") for node in root]
    assert places == ["https://e.org/a&b/book/x.html", "https://e.org/a&b/book/y.html"]
    assert [node.findtext(f"{space}lastmod") for node in root] == ["2026-11-22", None]


def test_a_card_has_the_size_that_messengers_ask_for(tmp_path):
    findable.card("scaling", tmp_path / "cards" / "scaling.png")
    data = (tmp_path / "cards" / "scaling.png").read_bytes()
    assert data[:4] == b"\x89PNG"
    assert [int.from_bytes(data[i : i + 4], "big") for i in (16, 20)] == [1200, 630]


def test_the_citation_file_names_the_book_and_its_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    assert cited["title"] == config["title"] and cited["cff-version"] == "1.2.0"
    assert f'version = "{cited["version"]}"' in (ROOT / "pyproject.toml").read_text("utf-8")

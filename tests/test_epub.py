"""A small book for reading devices: what `make epub` writes of the start page and one chapter.

EPUBCheck reads the whole one: `make epubcheck`.
"""

import posixpath
import re
import sys
import zipfile
from xml.etree import ElementTree

import pytest
import yaml
from site_browser import SITE, html

sys.path.insert(0, str(SITE.parent / "scripts"))

import cover  # noqa: E402
import epub  # noqa: E402

pytestmark = pytest.mark.browser
CONFIG = yaml.safe_load((SITE.parent / "_config.yml").read_text("utf-8"))
XHTML = "{http://www.w3.org/1999/xhtml}"
OPF = "{http://www.idpf.org/2007/opf}"


@pytest.fixture(scope="module")
def files():
    return epub.contents(SITE, ["index", "scaling"], CONFIG, b"picture")


@pytest.fixture(scope="module")
def pages(files):
    return {name: ElementTree.fromstring(data) for name, data in files.items()
            if name.endswith(".xhtml")}  # fmt: skip


def test_every_link_and_picture_is_there(files, pages):
    ids = {name: [e.get("id") for e in page.iter() if e.get("id")] for name, page in pages.items()}
    assert all(len(found) == len(set(found)) for found in ids.values())
    count = 0
    for name, page in pages.items():
        for element in page.iter():
            address = element.get("href") or element.get("src") or ""
            if not address or re.match("(https|mailto):", address):
                continue
            file, _, place = address.partition("#")
            file = posixpath.normpath(file) if file else name
            assert file in files, f"{name}: {address}"
            assert not place or place in ids[file], f"{name}: {address}"
            count += 1
    assert count > 50


def test_a_drawing_has_all_that_it_draws_with(pages):
    seen = 0
    for page in pages.values():
        for svg in page.iter(f"{{{epub.SVG}}}svg"):
            assert svg.get("viewBox") and svg.get("aria-label") or svg.get("aria-hidden"), (
                svg.attrib
            )
            own = {e.get("id") for e in svg.iter() if e.get("id")}
            text = ElementTree.tostring(svg, "unicode")
            used = set(re.findall(r"url\(#([^)]+)\)|href=\"#([^\"]+)", text))
            assert {a or b for a, b in used} <= own
            seen += len(used)
    assert seen > 20


def test_formulas_and_figures_are_as_many_as_in_the_site(pages):
    site = html("book/scaling.html").select_one("article")
    for tag, space in (("math", epub.MATHS), ("svg", epub.SVG)):
        here = [e for name in ("scaling", "solutions") for e in pages[f"{name}.xhtml"].iter()
                if e.tag == f"{{{space}}}{tag}"]  # fmt: skip
        there = [e for e in site.select(tag) if not e.find_parent("details", class_="hide")
                 and not e.find_parent(class_="term-note")]  # fmt: skip
        assert len(here) == len(there) > 5, tag


def test_nothing_in_it_runs_or_comes_from_elsewhere(files, pages):
    for name, page in pages.items():
        for element in page.iter():
            assert element.tag.removeprefix(XHTML) not in ("script", "form", "iframe"), name
            assert not [key for key in element.attrib if key.startswith("on")], name
            assert not (element.get("src") or "").startswith("http"), name
    assert b"http" not in files["book.css"]


def test_the_package_names_every_file_and_what_it_holds(files):
    package = ElementTree.fromstring(files["content.opf"])
    items = {item.get("href"): item for item in package.iter(f"{OPF}item")}
    assert set(items) == set(files) - {"content.opf"}
    assert items["nav.xhtml"].get("properties") == "nav"
    assert items["cover.png"].get("properties") == "cover-image"
    assert items["scaling.xhtml"].get("properties") == "svg mathml"
    named = {item.get("id") for item in items.values()}
    order = [item.get("idref") for item in package.iter(f"{OPF}itemref")]
    assert set(order) <= named and order[0] == items["cover.xhtml"].get("id")


def test_the_same_sources_give_the_same_file_which_says_first_what_it_is(files, tmp_path):
    for name in ("one", "two"):
        epub.write(files, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    with zipfile.ZipFile(tmp_path / "one") as book:
        first = book.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
        assert book.read("mimetype") == b"application/epub+zip"


def test_the_cover_shows_what_it_takes(chrome):
    words, rows = cover.weights()
    it, cat = words.index("it"), words.index("cat")
    assert rows[it][cat] > 0.99
    assert all(w == pytest.approx(0.1) for i, row in enumerate(rows) if i != it for w in row)
    widths = [
        float(w) for w in re.findall(r'stroke-width="([\d.]+)" opacity', cover.svg("A: b", "c"))
    ]
    assert len(widths) == 100 and sorted(widths)[-2] < 3 < max(widths) == round(
        26 * rows[it][cat], 2
    )
    picture = epub.painted(chrome, CONFIG)
    assert picture[16:24] == (1600).to_bytes(4, "big") + (2400).to_bytes(4, "big")

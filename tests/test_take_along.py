"""The site as a folder to take along, and what its start page offers."""

import re
import shutil
import sys
import zipfile

import pytest
from bs4 import BeautifulSoup
from site_browser import SITE, Visit

sys.path.insert(0, str(SITE.parent / "scripts"))

import take_along  # noqa: E402

pytestmark = pytest.mark.browser


@pytest.fixture
def site(tmp_path):
    heavy = shutil.ignore_patterns("notebooks", "slides", "figures", "downloads", "sw.js")
    return shutil.copytree(SITE, tmp_path / "site", ignore=heavy)


def test_the_zip_opens_from_a_folder(chrome, site, tmp_path):
    take_along.pack(site, tmp_path / "site.zip")
    with zipfile.ZipFile(tmp_path / "site.zip") as file:
        file.extractall(tmp_path / "here")
    folder = tmp_path / "here" / "attention"
    assert not (folder / "sw.js").exists()
    assert "url=book/index.html" in (folder / "index.html").read_text("utf-8")
    with Visit(chrome, folder.as_uri(), "book/index.html") as visit:
        visit.page.wait_for_selector(".explorer-live")
        assert visit.complaints == []


def test_the_start_page_offers_what_there_is_and_the_zip_does_not(site, tmp_path):
    dist = tmp_path / "dist"
    dist.mkdir()
    (dist / "attention.epub").write_bytes(b"0" * 1_700_000)
    for _ in range(2):  # again changes nothing
        assert take_along.offer(site, dist) == ["attention.epub"]
    page = BeautifulSoup((site / "book" / "index.html").read_text("utf-8"), "html.parser")
    (link,) = page.select(".take-along a")
    assert link.parent.text == "The book for a reading device (EPUB), 1.7 MB"
    assert (site / "book" / link["href"]).resolve().read_bytes() == b"0" * 1_700_000
    version = re.search('VERSION = "(.*)"', (site / "sw.js").read_text("utf-8"))
    assert version and len(version[1]) == 12
    take_along.pack(site, tmp_path / "site.zip")
    with zipfile.ZipFile(tmp_path / "site.zip") as file:
        assert b"take-along" not in file.read("attention/book/index.html")
        assert not [name for name in file.namelist() if "downloads" in name]

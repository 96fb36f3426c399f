"""Figures to take away: each is a file of its own, with its words, its caption and its licence."""

import re
import sys
from xml.etree import ElementTree as ET

import pytest
from pypdf import PdfReader
from site_browser import SITE

sys.path.insert(0, str(SITE.parent / "scripts"))

import figure_files  # noqa: E402
import takeaway  # noqa: E402

FOLDER = SITE / "figures"
PAGES = [page for page in sorted((SITE / "book").glob("*.html"))
         if 'class="figure-svg"' in page.read_text("utf-8")]  # fmt: skip
assert len(PAGES) > 9, "there is no built book in _site: run `make book`"


def test_every_numbered_figure_is_there_once():
    texts = [page.read_text("utf-8") for page in PAGES]
    pattern = r'<figure[^>]* id="fig-([^"]*)"[^>]*>(.*?)</figure>'
    found = [match for text in texts for match in re.findall(pattern, text, re.S)]
    drawn = [name for name, body in found if "<svg" in body]
    assert len(drawn) == len(set(drawn)) > 100
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(drawn)
    index = (FOLDER / "index.html").read_text("utf-8")
    shown = re.findall(r'<img loading="lazy" src="([^"]*)\.svg"', index)
    assert sorted(shown) == sorted(drawn)
    assert f"{len(drawn)} figures" in index
    for link in re.findall(r'href="([^"#]+)', index):
        assert link.startswith("https:") or (FOLDER / link).is_file(), link


def test_a_file_needs_nothing_of_its_page_and_names_its_licence():
    for path in FOLDER.glob("*.svg"):
        text = path.read_text("utf-8")
        root = ET.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(" not in text and "currentColor" not in text, path.name
        licence = root.find(".//{http://creativecommons.org/ns#}license")
        assert list(licence.attrib.values()) == [figure_files.LICENCE]
        said = root.find(".//{http://purl.org/dc/elements/1.1/}description").text
        assert len(said.split()) > 3 and "</" not in said, path.name
        inner = {tag.get("id") for tag in root.iter() if tag.get("id")}
        assert set(re.findall(r'(?:xlink:href="|url\()#([^")]+)', text)) <= inner, path.name


def a_figure(body: str) -> str:
    return (
        '<article><h1>One</h1><figure id="fig-one-dot"><svg class="figure-svg" role="img" '
        'aria-label="A dot &amp; a word" viewBox="0 0 72 36" width="72" height="36" '
        f'fill="currentColor" style="font-family: var(--figure-font)">{body}</svg>'
        '<figcaption><span class="caption-number">Fig. 1.1 </span>'
        '<span class="caption-text">A <em>dot</em> &lt; two.</span></figcaption></figure></article>'
    )


@pytest.fixture
def page(tmp_path):
    (tmp_path / "book").mkdir()
    return tmp_path / "book" / "one.html"


def test_a_drawing_that_needs_the_page_is_refused(page):
    page.write_text(a_figure('<g style="fill: var(--new-colour)"/>'))
    with pytest.raises(ValueError, match="one-dot: the page's var.--new-colour. has no value here"):
        figure_files.figures(page, {"book": "A", "author": "B"})


@pytest.mark.browser
def test_a_pdf_has_the_figures_size_its_words_and_its_licence(chrome, page):
    about = {"book": "A book", "author": "Its authors"}
    page.write_text(
        a_figure('<text x="9" y="20" style="font-family: var(--figure-font)">hi</text>')
    )
    (figure,) = figure_files.figures(page, about)
    assert figure.title == "Fig. 1.1, One" and figure.said == "A dot < two."
    takeaway.pdfs(chrome, [figure, figure], page.parent, about)
    made = PdfReader(page.parent / "one-dot.pdf")
    (sheet,) = made.pages
    assert [round(float(n)) for n in sheet.mediabox[2:]] == [72, 36]
    assert sheet.extract_text().strip() == "hi"
    assert made.metadata.title == "Fig. 1.1, One" and made.metadata.subject == "A dot < two."
    assert figure_files.LICENCE in made.metadata["/Copyright"]
    assert {path.name for path in page.parent.iterdir()} == {"one.html", "one-dot.pdf"}

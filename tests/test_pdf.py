"""A small book on paper: the start page and one chapter, printed as `make pdf` prints them all."""

import re
import sys
import unicodedata

import pytest
import yaml
from bs4 import BeautifulSoup
from pypdf import PdfReader
from site_browser import SITE

sys.path.insert(0, str(SITE.parent / "scripts"))

import pdf  # noqa: E402
import printed  # noqa: E402

pytestmark = pytest.mark.browser
CONFIG = yaml.safe_load((SITE.parent / "_config.yml").read_text("utf-8"))


def letters(text):
    """The text's letters and digits, those of formulas like any others."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text))


def destinations(reader):
    return {name.lstrip("/") for name in reader.named_destinations}


@pytest.fixture(scope="module")
def book(chrome, tmp_path_factory):
    """The document's HTML, the PDF, and what did not fit onto the paper."""
    target = tmp_path_factory.mktemp("paper") / "book.pdf"
    html = pdf.document(SITE, ["index", "scaling"], CONFIG, whole=True)
    wide = pdf.pdf(chrome, html, target)
    return BeautifulSoup(html, "html.parser"), PdfReader(target), wide


@pytest.fixture(scope="module")
def texts(book):
    """What stands on each sheet."""
    return [page.extract_text() for page in book[1].pages]


def outline(entries):
    for entry in entries:
        if isinstance(entry, list):
            yield from outline(entry)
        else:
            yield entry


def test_the_outline_has_every_heading_in_order(book):
    html, reader, _ = book
    wanted = [letters(h.get_text()) for h in html.select("h1, h2, h3, h4")]
    found = [letters(entry.title) for entry in outline(reader.outline)]
    assert found == wanted and len(found) > 20


def test_every_link_leads_to_a_place_that_is_there(book):
    _, reader, _ = book
    there, seen = destinations(reader), []
    for page in reader.pages:
        for note in page.get("/Annots", []):
            note = note.get_object()
            if "/Dest" in note:
                seen.append(str(note["/Dest"]).lstrip("/"))
            else:
                assert str(note["/A"]["/URI"]).startswith("https://"), note
    assert set(seen) <= there
    assert {"scaling", "scaling--sec-scaling-hand", "solutions"} <= set(seen)


def test_the_contents_name_the_page_on_which_a_section_begins(book, texts):
    html, reader, _ = book
    lines = html.select("#contents li.part, #contents li.chapter")
    contents = letters("".join(texts[1:3]))
    pages = pdf.numbers(reader.stream)
    for line in lines:
        target = line.select_one("[data-target]")["data-target"]
        words = letters(line.select_one(".words").get_text())
        assert words in letters(texts[pages[target] - 1])
        assert words + str(pages[target]) in contents, line


def test_every_font_is_in_the_file(book):
    _, reader, _ = book
    fonts = {}
    for page in reader.pages:
        for font in page["/Resources"].get("/Font", {}).values():
            fonts[id(font.get_object())] = font.get_object()
    assert len(fonts) > 3
    for font in fonts.values():
        if font["/Subtype"] == "/Type3":  # is drawn by the file itself
            continue
        inner = font["/DescendantFonts"][0].get_object() if "/DescendantFonts" in font else font
        kept = set(inner["/FontDescriptor"]) & {"/FontFile", "/FontFile2", "/FontFile3"}
        assert kept, font["/BaseFont"]


def test_no_sheet_is_empty_and_nothing_is_cut_off(book, texts):
    assert book[2] == []
    for number, text in enumerate(texts[1:], 2):  # the first is the cover
        assert len(text) > 150, f"page {number}: {text}"


def test_what_is_wider_than_the_paper_is_named(chrome, tmp_path):
    html = '<body class="bd-article"><p id="a" style="width: 900px">w</p><p style="width: 9px">'
    (line,) = pdf.pdf(chrome, html, tmp_path / "wide.pdf")
    assert line.startswith("a: <p")


def test_the_file_is_tagged_and_says_what_it_is(book):
    _, reader, _ = book
    root = reader.trailer["/Root"]
    assert root["/MarkInfo"]["/Marked"] and root["/Lang"] == "en"
    kinds = str(root["/StructTreeRoot"]["/ParentTree"].get_object())
    assert kinds and reader.metadata.title == CONFIG["title"]


def test_solutions_stand_at_the_end_with_a_way_there_and_back(book):
    html, reader, _ = book
    assert not html.select("article .solution")
    solutions = html.select("#solutions .solution")
    exercises = {e["id"] for e in html.select("article .exercise")}
    assert len(solutions) > 5
    for solution in solutions:
        assert solution.select_one(".admonition-title a")["href"][1:] in exercises
    assert len(html.select("article .to-solution a")) == len(solutions)


def test_an_explorer_is_its_picture_with_its_caption(book):
    html, _, _ = book
    stills = html.select("figure.still")
    assert stills and not html.select("script, input, [data-explorer]")
    for still in stills:
        assert len(still.figcaption.get_text()) > 60 and still.img["src"].startswith("file:")


def test_a_book_without_answers_has_no_page_for_them():
    page = printed.read(SITE / "book" / "notation.html")
    printed.settle([page], SITE / "book", "")
    assert printed.solutions([page]) == ""
    assert 'data-target="solutions"' not in printed.contents([page], "")


@pytest.mark.parametrize("site", ["", "https://example.org/book"])
def test_what_is_not_in_the_book_is_a_link_only_where_the_site_has_an_address(site):
    page = printed.read(SITE / "book" / "index.html")
    printed.settle([page], SITE / "book", site)
    review = {a["href"] for a in page.body.select("a") if a.get_text() == "Review"}
    assert review == ({f"{site}/book/review.html#review"} if site else set())
    assert "Review" in page.body.get_text()


def test_what_cannot_be_printed_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["pdf.py", "masks", "--site", str(tmp_path)])
    assert pdf.main() == 1
    assert "names must be each, or among index, motivation" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["pdf.py", "--site", str(tmp_path)])
    with pytest.raises(SystemExit, match=f"no built book in {tmp_path.name}: run `make book`"):
        pdf.main()

"""The bibliography is complete, and names for each work the sections that cite it."""

import re
import sys

import pytest
from conftest import ROOT, SITE
from site_browser import html

sys.path.insert(0, str(ROOT / "book" / "_ext"))
import cited  # noqa: E402
from docutils import nodes  # noqa: E402

BIB = (ROOT / "book" / "references.bib").read_text("utf-8")
WORKS = {
    key: (re.search(r"author = \{+([^,}\s]+)", body)[1], re.search(r"year = \{(\d+)", body)[1])
    for key, body in re.findall(r"^@\w+\{([^,]+),(.*?)^\}", BIB, flags=re.S | re.M)
}
PAGES = {
    path.stem: path.read_text("utf-8")
    for path in (ROOT / "book").glob("*.md")
    if f"book/{path.stem}\n" in (ROOT / "_toc.yml").read_text("utf-8")
}
PREPRINTS = {("Su", "2021"): "2024"}  # a docstring's year, and that of the journal


def keys(text: str) -> set[str]:
    found = re.findall(r"\{cite:\w+\}`([^`]+)`", text)
    return {key.strip() for group in found for key in group.split(",")}


@pytest.fixture(scope="module")
def entries():
    """The works on the page by their key: the element that tells each."""
    page = html("book/bibliography.html")
    by_label = {tag["id"]: tag for tag in page.select(".citation[id]")}
    assert len(by_label) == len(WORKS), "a work is on the page twice or not at all"
    return list(by_label.values())


def test_every_work_is_cited_and_every_citation_is_a_work():
    used = set().union(*map(keys, PAGES.values()))
    assert used == set(WORKS)


def test_every_work_leads_to_each_page_that_cites_it(entries):
    pages = {key: {name for name, text in PAGES.items() if key in keys(text)} for key in WORKS}
    found = []
    for work in entries:
        links = [link["href"] for link in work.select(".cited-in a")]
        assert links, work.get_text()[:80]
        for link in links:
            page, _, anchor = link.partition("#")
            text = (SITE / "book" / (page or "bibliography.html")).read_text("utf-8")
            assert f'id="{anchor}"' in text, link
        found.append({link.partition("#")[0][:-5] or "bibliography" for link in links})
    assert sorted(map(sorted, found)) == sorted(map(sorted, pages.values()))


def test_a_preprint_is_a_link(entries):
    wanted = set(re.findall(r"arXiv:(\d{4}\.\d{4,5})", BIB))
    links = {a["href"] for work in entries for a in work.select("a[href^='https://arxiv.org']")}
    assert {link.rpartition("/")[2] for link in links} >= wanted


def test_a_number_becomes_a_link_and_the_words_around_it_stay():
    work = nodes.citation("", nodes.paragraph("", "A. B. 2020. arXiv:2001.08361. C."))
    cited.link_preprint(work)
    assert work.astext() == "A. B. 2020. arXiv:2001.08361. C."
    assert work.next_node(nodes.reference)["refuri"] == "https://arxiv.org/abs/2001.08361"


def test_a_work_that_a_docstring_names_is_in_the_bibliography():
    known = {(author, year) for author, year in WORKS.values()}
    named = set()
    for path in (ROOT / "src" / "attention").glob("*.py"):
        text = re.sub(r"\s+", " ", path.read_text("utf-8"))
        pattern = r"\b([A-Z][a-zé]+)(?: and [A-Z][a-z]+| et al\.)? ((?:19|20)\d\d)\b"
        named |= set(re.findall(pattern, text))
    named = {(author, PREPRINTS.get((author, year), year)) for author, year in named}
    named -= {("August", "1992"), ("Kaynak", "1998")}  # a day; the second of two authors
    assert len(named) > 15 and not named - known, sorted(named - known)

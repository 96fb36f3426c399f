"""A chapter's words show their sentence from the glossary, and no other words do."""

import re

import pytest
from site_browser import Visit, html

CHAPTERS = ["motivation", "qkv", "scaling", "multi-head", "positions", "masking", "blocks",
            "writing", "relatives", "in-practice"]  # fmt: skip


def glossary() -> dict[str, str]:
    found = {}
    for term in html("book/glossary.html").select("dl.glossary dt"):
        for link in term.select("a.headerlink"):
            link.extract()
        said = re.sub(r"\s+", " ", term.find_next("dd").get_text()).strip()
        found[term.get_text().strip().lower()] = said
    return found


@pytest.mark.parametrize("name", CHAPTERS)
def test_each_hint_is_the_sentence_of_its_term_and_each_term_has_one(name):
    known, page = glossary(), html(f"book/{name}.html")
    hints = page.select("button.term")
    assert len(hints) >= 2
    bold = {strong.get_text().lower() for strong in page.select("article strong")}
    seen = []
    for hint in hints:
        term = hint.get_text().lower()
        term = term if term in known else term.removesuffix("s")
        note = page.find(id=hint["popovertarget"])
        said = re.sub(r"\s+", " ", note.get_text()).strip()
        assert said and known[term].startswith(said[:-1]), term
        assert term not in bold and "See " not in said
        seen.append(term)
    assert len(seen) == len(set(seen))  # at its first use only


def test_every_term_of_the_glossary_is_met_in_a_chapter():
    met = set()
    for name in CHAPTERS + ["questions"]:
        page = html(f"book/{name}.html")
        met |= {word.get_text().lower() for word in page.select("article strong, button.term")}
    assert not {term for term in glossary() if term not in met and f"{term}s" not in met}


@pytest.mark.parametrize("width", (1200, 360))
def test_it_opens_by_mouse_touch_and_keyboard(chrome, address, width):
    with Visit(
        chrome, address["http"], "book/masking.html", width=width, has_touch=width < 400
    ) as visit:
        page, opened = visit.page, "document.querySelectorAll('.term-note:popover-open').length"
        term = page.locator("button.term").nth(1)
        term.scroll_into_view_if_needed()
        if width < 400:
            term.tap()
        else:
            term.hover()
        page.wait_for_function(f"() => {opened} === 1", polling=100)
        note = page.locator(".term-note:popover-open").bounding_box()
        assert note and note["x"] >= 0 and note["x"] + note["width"] <= width
        at = term.bounding_box()
        assert at and min(abs(note["y"] - at["y"] - at["height"]),
                          abs(note["y"] + note["height"] - at["y"])) < 12  # fmt: skip
        page.keyboard.press("Escape")
        page.wait_for_function(f"() => {opened} === 0", polling=100)
        term.focus()
        page.keyboard.press("Enter")
        page.wait_for_function(f"() => {opened} === 1", polling=100)
        assert not visit.complaints

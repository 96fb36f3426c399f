"""Every question of the built book takes its right answer, and knows its usual mistakes."""

import json
import re

import pytest
from site_browser import SITE, Visit, html

pytestmark = pytest.mark.browser
PAGES = [
    page
    for page in sorted(p.relative_to(SITE).as_posix() for p in (SITE / "book").glob("*.html"))
    if html(page).select("[data-question]")
]
assert PAGES, "no page of _site has a question: run `make book`"


def give(place, kind: str, value) -> None:
    """Type or choose an answer, and commit it."""
    if kind == "choice":
        for k, box in enumerate(place.locator("fieldset input").all(), 1):
            if k in value or box.get_attribute("type") == "checkbox":
                box.set_checked(k in value)
    elif kind == "place":
        place.get_by_label("Your mark").evaluate(
            "(line, to) => { line.value = to; line.dispatchEvent(new Event('input')); }", value
        )
    else:
        flat = [value] if kind == "number" else sum(value, [])
        for box, number in zip(place.locator("fieldset input").all(), flat, strict=True):
            box.fill(repr(number))
    place.locator("form").evaluate("form => form.requestSubmit()")  # a guess hides its button


@pytest.mark.parametrize("page", PAGES)
def test_every_question_takes_its_answer_and_knows_its_usual_mistakes(chrome, address, page):
    with Visit(chrome, address["file"], page) as visit:
        for place in visit.page.locator(".bd-article [data-question]").all():
            asked = json.loads(place.get_attribute("data-question"))
            said = place.locator(".question-said")
            if asked["type"] == "open":
                place.locator("summary").first.click()
                place.get_by_role("button", name="Part of it").click()
                assert said.inner_text() == "Noted.", asked
                continue
            for hint in place.locator(".question-hint").all():
                give(place, asked["type"], json.loads(hint.get_attribute("data-wrong")))
                told = "".join(said.text_content().split())
                assert told.startswith("✗"), asked
                words = hint.evaluate(
                    "h => [...h.children].slice(1).map(e => e.textContent).join(' ')"
                )
                assert "".join(words.split()) in told, f"{asked}: {told}"
            give(place, asked["type"], asked["answer"])
            assert said.text_content().startswith("✓ Right."), asked
            assert place.locator("details.question-answer").evaluate("d => d.open"), asked
        assert visit.complaints == []


@pytest.mark.parametrize("page", PAGES)
def test_a_right_answer_is_no_wider_than_what_tells_it_from_a_mistake(page):
    """A tolerance that lets a usual mistake through would call it right."""
    for place in html(page).select("[data-question]"):
        asked = json.loads(place["data-question"])
        if asked["type"] == "number" and asked["answer"]:
            assert asked["tolerance"] < abs(asked["answer"]), asked["name"]


@pytest.mark.parametrize("page", PAGES)
def test_the_cards_of_a_page_are_its_questions(page):
    name = page.removesuffix(".html")
    path = SITE / "_static" / "questions" / f"cards-{name.replace('/', '-')}.js"
    made = json.loads(
        re.sub(r"^[^=]*=\s*\{\}\)\[[^=]*= ", "", path.read_text("utf-8")).rstrip(";\n")
    )
    assert list(made["cards"]) == [q["id"] for q in html(page).select("[data-question]")]

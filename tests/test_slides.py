"""The chapters' decks: what a chapter has is on a slide, it fits, and it works with no network."""

import doctest
import functools
import json
import re
import sys
from pathlib import Path

import axe_playwright_python
import pytest
from site_browser import SITE

sys.path.insert(0, str(SITE.parent / "scripts"))

import excerpts  # noqa: E402
import slides  # noqa: E402


@functools.cache
def ids(page: str) -> set[str]:
    return {tag["id"] for tag in html(page).find_all(id=True)}


@functools.cache
def html(page: str):
    """A page without its drawings' contents, read once: to be looked at, not changed."""
    return excerpts.read((SITE / page).read_text("utf-8"))[0]


pytestmark = pytest.mark.browser
CHAPTERS = sorted(
    path.name for path in (SITE / "book").glob("*.html")
    if html(f"book/{path.name}").select_one("article h1 > .section-number")
)  # fmt: skip
assert len(CHAPTERS) > 9, "there is no built book in _site: run `make book`"


def test_sentences_and_words_are_found():
    assert doctest.testmod(excerpts).failed == 0


def paragraph(text: str):
    return excerpts.BeautifulSoup(f"<p>{text}</p>", "html.parser").p


def test_a_definition_that_points_back_brings_the_sentence_before_it():
    text = "Rows sum to 1. No step has a parameter. This is called <strong>routing</strong>. End."
    wanted = "<p>No step has a parameter. This is called <strong>routing</strong>.</p>"
    assert excerpts.defining([paragraph(text)], 40) == wanted
    assert excerpts.defining([paragraph(text)], 8) == ""


def test_what_does_not_fit_is_left_out_in_whole_sentences():
    text = paragraph("One two three. Four five <em>six. Seven</em> eight. Nine &lt; ten, that is:")
    assert excerpts.first(text, 3) == "<p>One two three.</p>"
    assert excerpts.first(text, 99).endswith("eight.</p>"), "a sentence that leads to nothing"
    assert excerpts.last(text, 9) == "<p>Nine &lt; ten, that is:</p>"
    assert excerpts.last(text, 2) == ""


def taken(chapter: str, selector: str) -> list:
    """What a chapter's deck must hold: not what belongs to its exercises."""
    found = html(f"book/{chapter}").select(f"article {selector}")
    return [tag for tag in found if not tag.find_parent(id="exercises")
            and not tag.find_parent(["details"])]  # fmt: skip


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_deck_has_what_its_chapter_has(chapter):
    deck = html(f"slides/{chapter}")
    pictures = taken(chapter, "figure :is(svg.figure-svg, img)")
    assert len(deck.select(".is-figure figure")) == len(pictures) >= 1
    for old, new in zip(pictures, deck.select(".is-figure figure > :is(svg, img)"), strict=True):
        assert new.get("aria-label", new.get("alt")) == old.get("aria-label", old.get("alt"))
    formulas = [tag.parent for tag in taken(chapter, "div.math .eqno")]
    assert len(deck.select(".is-formula")) == len(formulas)
    explorers = [tag["data-explorer"] for tag in taken(chapter, "[data-explorer]")]
    assert [tag["data-explorer"] for tag in deck.select("[data-explorer]")] == explorers
    assert len(deck.select(".is-mistake")) == len(taken(chapter, "div.mistake.admonition"))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_question_is_followed_by_its_answer(chapter):
    shown = html(f"slides/{chapter}").select(".slide")
    polls = [k for k, slide in enumerate(shown) if "is-answer" not in slide["class"]
             and "is-poll" in slide["class"]]  # fmt: skip
    questions = taken(chapter, ".question")
    assert len(polls) == len(questions) > 5
    for k, question in zip(polls, questions, strict=True):
        asked = json.loads(question["data-question"])
        slide, answer = shown[k], shown[k + 1]
        text = slide.select_one(".question-text").get_text()
        assert text == question.select_one(".question-text").get_text()
        assert "is-answer" in answer["class"] and answer.h2.text == slide.h2.text
        assert len(answer.select_one(".fit").get_text(strip=True)) > 10
        options = answer.select(".options > li")
        assert len(options) == len(question.select(".question-options > ul > li"))
        if asked["type"] == "choice":
            right = [i for i, item in enumerate(options, 1) if item.get("class") == ["right"]]
            assert right == sorted(asked["answer"])
            assert not slide.select(".right"), "the question tells its answer"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_slide_has_few_words(chapter):
    for slide in html(f"slides/{chapter}").select(".slide:not(.is-poll)"):
        said = [t for t in slide.select_one(".fit").children if t.name not in ("figure", "div")]
        count = excerpts.words(said)
        assert count <= slides.WORDS + 8, f"{count} words on slide {slide['aria-label']}"
        caption = slide.figcaption
        assert caption is None or excerpts.words([caption]) <= 45, caption.text


def test_a_deck_names_nothing_twice_and_links_back():
    for chapter in CHAPTERS:
        deck = html(f"slides/{chapter}")
        outside = [tag["id"] for tag in deck.find_all(id=True) if not tag.find_parent("svg")]
        assert outside == []
        for link in deck.select("a[href]"):
            path, _, name = link["href"].partition("#")
            if not re.match("https?:", path):
                target = (SITE / "slides" / path).resolve()
                assert target.is_file(), link
                page = target.relative_to(SITE.resolve()).as_posix()
                assert not name or name in ids(page), link


OVER = """() => [...document.querySelectorAll(".slide")].flatMap((slide) => {
  const box = slide.getBoundingClientRect();
  const foot = slide.querySelector(".slide-foot").getBoundingClientRect();
  const parts = "h1, h2, .fit > *, .fit li, figure > *, math, pre, .inside > *";
  return [...slide.querySelectorAll(parts)]
    .filter((e) => e.getClientRects().length && !e.closest(".visually-hidden"))
    .map((e) => [e.localName, e.getBoundingClientRect()])
    .filter(([, b]) => b.left < box.left - 1 || b.right > box.right + 1 || b.top < box.top - 1
                    || b.bottom > foot.top + 1)
    .map(([name, b]) => `${slide.ariaLabel}: ${name} ${b.left - box.left} ${b.top - box.top} `
                        + `${b.right - box.left} ${b.bottom - box.top}`);
})"""


class Talk:
    """A deck open in the browser, from a folder."""

    def __init__(self, chrome, address, chapter, *, width=1280, height=720, theme="light"):
        self.context = chrome.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme
        )
        self.page = self.context.new_page()
        self.requests, self.complaints = [], []
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("console", lambda m: self.complaints.append(m.text))
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.goto(f"{address}/slides/{chapter}")
        self.page.wait_for_selector(".slide.now")

    def number(self) -> int:
        return int(self.page.evaluate("location.hash.slice(1)"))

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.context.close()


@pytest.mark.parametrize("chapter", ["scaling.html", "multi-head.html"])
def test_nothing_leaves_its_slide_and_nothing_comes_from_elsewhere(chrome, address, chapter):
    with Talk(chrome, address["file"], chapter) as talk:
        count = talk.page.locator(".slide").count()
        for _ in range(count):
            talk.page.keyboard.press("PageDown")
            if talk.page.locator(".slide.now [data-explorer]").count():
                talk.page.wait_for_selector(".slide.now .explorer")
        talk.page.wait_for_timeout(200)
        assert talk.number() == count
        assert talk.page.evaluate(OVER) == []
        assert talk.complaints == []
        assert [u for u in talk.requests if not u.startswith(address["file"])] == []
        talk.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        talk.page.emulate_media(media="print")
        heights = talk.page.evaluate(
            "[...document.querySelectorAll('.slide')].map((s) => s.offsetHeight)"
        )
        assert set(heights) == {720} and len(heights) == count


def test_keys_move_the_slides_and_an_explorer_keeps_its_own(chrome, address):
    with Talk(chrome, address["http"], "scaling.html", theme="dark") as talk:
        press = talk.page.keyboard.press
        for key, where in [("ArrowRight", 2), (" ", 3), ("ArrowLeft", 2), ("Home", 1)]:
            press(key)
            assert talk.number() == where, key
        press("End")
        last = talk.number()
        assert last == talk.page.locator(".slide").count()
        assert talk.page.locator(".slide:visible").count() == 1
        at = talk.page.evaluate(
            "[...document.querySelectorAll('.slide')].findIndex((s) => "
            "s.querySelector('[data-explorer=temperature]')) + 1"
        )
        talk.page.evaluate("k => { location.hash = k; }", at)
        explorer = talk.page.locator(".slide.now .explorer")
        slider = explorer.locator("input[type=range]").first
        before = explorer.locator(".weight").all_inner_texts()
        slider.focus()
        press("End")
        assert talk.number() == at and explorer.locator(".weight").all_inner_texts() != before
        press("PageDown")
        assert talk.number() == at + 1
        assert talk.page.evaluate("document.documentElement.dataset.theme") == "dark"
        press("d")
        assert talk.page.evaluate("document.documentElement.dataset.theme") == "light"
        assert talk.complaints == []


def test_hands_are_counted_beside_the_answer(chrome, address):
    with Talk(chrome, address["http"], "scaling.html") as talk:
        at = talk.page.evaluate(
            "[...document.querySelectorAll('.slide')].findIndex((s) => "
            "s.querySelector('.deck-hands')) + 1"
        )
        talk.page.evaluate("k => { location.hash = k; }", at)
        hands = talk.page.locator(".slide.now .deck-hands")
        for k, count in enumerate(("12", "3", "5")):
            hands.nth(k).fill(count)
        talk.page.keyboard.press("PageDown")
        shown = talk.page.locator(".slide.now .deck-share")
        assert shown.all_inner_texts() == ["12", "3", "5"]
        assert talk.page.locator(".slide.now li.right:visible").count() == 1


@pytest.mark.parametrize("theme, rules", [("light", "{}"), ("dark", "{runOnly: 'color-contrast'}")])
def test_axe_finds_nothing_on_a_deck(chrome, address, theme, rules):
    axe = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text()
    with Talk(chrome, address["file"], "scaling.html", theme=theme) as talk:
        talk.page.evaluate(axe)
        found = talk.page.evaluate(
            f"""async () => (await axe.run(document, {rules})).violations.map((v) =>
                 v.id + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | "))"""
        )
        assert found == []


def test_on_a_phone_the_slides_are_a_page(chrome, address):
    with Talk(chrome, address["file"], "scaling.html", width=360, height=700) as talk:
        assert talk.page.evaluate("document.documentElement.scrollWidth") <= 360
        assert talk.page.locator(".slide:visible").count() == talk.page.locator(".slide").count()
        assert talk.complaints == []

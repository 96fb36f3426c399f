"""Questions in a browser: answers are taken, cards return, and nothing that was said is lost."""

import datetime
import functools
import gzip
import json
import re
import subprocess
from pathlib import Path

import pack
import pytest
import question_book
from bs4 import BeautifulSoup
from playwright.sync_api import TimeoutError
from question_book import words


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return question_book.built(tmp_path_factory)


@pytest.fixture(scope="module")
def page(small):
    return question_book.read(small, "one")


def test_a_page_without_questions_loads_none_of_it(small, page):
    assert page.select('script[src*="questions/questions.js"]')
    other = (small / "out" / "html" / "other.html").read_text("utf-8")
    assert "questions/questions" not in other


@functools.cache
def axe() -> str:
    import axe_playwright_python

    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")


@pytest.fixture
def visit(chrome, small, page):
    """Open the page; count what the questions tell."""
    contexts = []

    def opened(name="one", **more):
        context = chrome.new_context(**{"viewport": {"width": 1200, "height": 900}} | more)
        contexts.append(context)
        shown = context.new_page()
        shown.problems = []
        shown.on("pageerror", lambda error: shown.problems.append(str(error)))
        shown.add_init_script(
            "window.told = []; addEventListener('answered', (e) =>"
            "  told.push([e.detail.name, e.detail.got]));"
        )
        shown.goto((small / "out" / "html" / f"{name}.html").as_uri())
        return shown

    yield opened
    for context in contexts:
        assert all(shown.problems == [] for shown in context.pages)
        context.close()


def told(shown):
    return shown.evaluate("told")


@pytest.mark.browser
def test_a_fraction_among_the_options_is_said_as_one(visit):
    """Not as its digits in a row, 1/8 as 18, neither in its label nor in the truth."""
    shown = visit()
    box = shown.locator("#check-two input").nth(2)
    assert box.get_attribute("aria-label") == "(1)/(8)"
    guess = shown.locator("#guess-self")
    assert guess.locator("input").nth(1).get_attribute("aria-label") == "mat, a times b"
    assert guess.locator("input").nth(0).get_attribute("aria-label") is None


def said(place) -> str:
    return " ".join(place.locator(".question-said").inner_text().split())


AGAIN = "Try once more, or open the answer."


def unfolded(place) -> bool:
    return place.locator("details.question-answer").evaluate("d => d.open")


@pytest.mark.browser
def test_a_guess_gets_the_truth_beside_it_and_the_answer_unfolds(visit):
    shown = visit()
    guess = shown.locator("#guess-self")
    guess.get_by_role("button").click()
    assert said(guess) == "Nothing is chosen yet." and not unfolded(guess) and told(shown) == []
    guess.get_by_label("cat").check()
    guess.get_by_role("button").click()
    says = "✗ Not so. The answer: it itself If you chose “cat”: No other vector is nearer."
    assert said(guess) == says and unfolded(guess)
    marks = guess.locator("label").all_inner_texts()
    assert ["".join(c for c in mark if c in "✗✓") for mark in marks] == ["✗", "", "✓"]
    assert guess.get_by_role("button").count() == 0, "the truth is told: there is no more to guess"
    assert shown.evaluate("document.activeElement.textContent") == "Answer"
    assert told(shown) == [["guess-self", "wrong"]]


@pytest.mark.browser
def test_a_mark_on_a_line_by_keyboard_and_by_hand(visit):
    shown = visit("two")
    place = shown.locator("#guess-place")
    line, button = place.get_by_label("Your mark"), place.get_by_role("button")
    assert line.get_attribute("aria-valuetext") == "no mark yet"
    faint = "line => getComputedStyle(line).opacity < 0.5"
    assert line.evaluate(faint), "it stands in the middle, where nobody has put it"
    button.click()
    assert said(place) == "There is no mark yet: move it along the line." and told(shown) == []
    line.press("ArrowRight")
    assert line.get_attribute("aria-valuetext") == "0.1 m" and not line.evaluate(faint)
    for _ in range(3):
        line.press("ArrowRight")
    truth = place.locator(".question-truth")
    assert not truth.is_visible() and not unfolded(place)
    button.click()
    assert said(place) == "✗ Not so. You said 0.4; it is 0.3 m: 0.1 away."
    assert truth.is_visible() and truth.inner_text().split() == ["▲", "0.3"] and unfolded(place)
    box, arrow = line.bounding_box(), truth.locator("i").bounding_box()
    middle = arrow["x"] + arrow["width"] / 2
    assert abs(middle - (box["x"] + 8 + 0.65 * (box["width"] - 16))) < 1.5
    assert told(shown) == [["guess-place", "wrong"]]


@pytest.mark.browser
def test_a_mark_that_is_put_where_the_line_begins_is_one(visit):
    shown = visit("two")
    place = shown.locator("#guess-place")
    place.get_by_label("Your mark").click()  # in the middle, where it is not moved by it
    place.get_by_role("button").click()
    says = "✗ Not so. You said 0; it is 0.3 m: 0.3 away. If you had 0 : Not in the middle."
    assert said(place) == says


LINES = """figure => ["before", "after"].map((which) => {
  const style = getComputedStyle(figure, ":" + which), box = figure.getBoundingClientRect();
  return style.display === "none" ? null : box.left + parseFloat(style.left);
})"""


@pytest.mark.browser
@pytest.mark.parametrize("width", [1200, 320])
def test_a_place_on_a_figure_is_marked_over_its_axis(visit, width):
    """The tent of question_book.py has its top at 0, on an axis from -2 to 6."""
    shown = visit("two", viewport={"width": width, "height": 800})
    place = shown.locator("#check-tent")
    figure, line = place.locator(".question-figure"), place.get_by_label("Your mark")
    assert figure.evaluate(LINES) == [None, None]
    tick = {
        words: box["x"] + box["width"] / 2
        for words in ("0", "4")
        if (box := figure.locator("text", has_text=re.compile(f"^{words}$")).bounding_box())
    }
    figure.click(position={"x": tick["4"] - figure.bounding_box()["x"], "y": 40})
    assert line.get_attribute("aria-valuetext") == "4"
    for _ in range(4):
        line.press("ArrowLeft")
    mark, truth = figure.evaluate(LINES)
    assert abs(mark - (tick["0"] + tick["4"]) / 2) < 1.5 and truth is None
    place.get_by_role("button").click()
    assert said(place) == f"✗ Not yet. 2 is too large. That is the middle. {AGAIN}"
    assert figure.evaluate(LINES)[1] is None, "the truth is for the second answer"
    line.press("ArrowLeft")
    place.get_by_role("button").click()
    mark, truth = figure.evaluate(LINES)
    arrow = place.locator(".question-truth i").bounding_box()
    assert abs(truth - tick["0"]) < 1.5 > abs(arrow["x"] + arrow["width"] / 2 - truth)
    assert mark > truth and unfolded(place)


@pytest.mark.browser
@pytest.mark.parametrize(
    "typed", ["0.9", "0,9", "+.9", "9/10", "9e-1", " 0.905 ", "0.9001", "90 %"]
)
def test_a_right_number_is_right_however_it_is_written(visit, typed):
    shown = visit()
    place = shown.locator("#check-output")
    place.get_by_label("A number").fill(typed)
    shown.keyboard.press("Enter")
    assert said(place) == "✓ Right." and unfolded(place)
    assert told(shown) == [["check-output", "right"]]


@pytest.mark.browser
@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("2,5", "✗ Not yet. 2,5 is too large. You averaged with equal weights."),
        ("−0.9", "✗ Not yet. −0.9 is too small."),
        ("0.93", "✗ Not yet. 0.93 is too large."),
        ("", "There is no number yet."),
        ("x", "x is not read as a number: write it like 0.5, -3, 1e-3 or 1/9."),
        ("1/2/3", "1/2/3 is not read as a number: write it like 0.5, -3, 1e-3 or 1/9."),
        ("1/0", "1/0 is not a finite number."),
        ("93%", "✗ Not yet. 93% is too large."),
        ("1.0", "✗ Not yet. 1.0 is too large."),
        ("1/9 %", "1/9 % is not read as a number: write it like 0.5, -3, 1e-3 or 1/9."),
        ("1,000", "1,000 can be read in two ways: write it without a comma."),
    ],
)
def test_a_wrong_number_gets_a_sentence_and_the_answer_stays_folded(visit, typed, says):
    shown = visit()
    place = shown.locator("#check-output")
    place.get_by_label("A number").fill(typed)
    shown.keyboard.press("Enter")
    judged = says[0] == "✗"
    assert said(place) == says + f" {AGAIN}" * judged and not unfolded(place)
    assert told(shown) == [["check-output", "wrong"]] * judged


@pytest.mark.browser
def test_a_check_may_be_tried_twice_before_its_answer_unfolds(visit):
    shown = visit()
    place = shown.locator("#check-output")
    hint = "is too large. You averaged with equal weights."
    tried = [("2.5", f"✗ Not yet. 2.5 {hint} {AGAIN}", False),
             ("", "There is no number yet.", False),
             ("2,5", f"✗ Not yet. 2,5 {hint} {AGAIN}", False),
             ("0.2", "✗ Not so. 0.2 is too small.", True),
             ("2.5", f"✗ Not so. 2.5 {hint}", True),
             ("0.9", "✓ Right.", True)]  # fmt: skip
    for typed, says, unfolds in tried:
        place.get_by_label("A number").fill(typed)
        shown.keyboard.press("Enter")
        assert (said(place), unfolded(place)) == (says, unfolds), typed
    assert told(shown) == [["check-output", "wrong"]], "the first answer counts"


@pytest.mark.browser
def test_the_second_try_of_a_choice_marks_the_answer(visit):
    shown = visit()
    place = shown.locator("#check-two")
    yes, too, eighth = place.get_by_role("checkbox").all()
    yes.check()
    eighth.check()
    place.get_by_role("button").click()
    wrong = "Something is missing. Something does not fit."
    assert said(place) == f"✗ Not yet. {wrong} {AGAIN}"
    marks = "".join(place.locator("label").all_inner_texts())
    assert "✓" not in marks and "✗" not in marks, "which one is wrong would be half the answer"
    yes.uncheck()
    too.check()
    place.get_by_role("button").click()
    assert said(place) == f"✗ Not so. {wrong}"
    marks = [label.inner_text() for label in place.locator("label").all()]
    assert ["✓" in mark for mark in marks] == [True, True, False] and "✗" in marks[2]


@pytest.mark.browser
@pytest.mark.parametrize(
    ("typed", "says", "counts"),
    [("7", "✗ Not so. 7 is too large.", "wrong"), ("0.9", "✓ Right.", "partly")],
)
def test_who_has_opened_the_answer_tries_once_and_has_read_it(visit, typed, says, counts):
    shown = visit()
    place = shown.locator("#check-output")
    place.get_by_text("Answer", exact=True).click()
    place.get_by_label("A number").fill(typed)
    shown.keyboard.press("Enter")
    assert said(place) == says and unfolded(place)
    assert told(shown) == [["check-output", counts]]


@pytest.mark.browser
def test_a_matrix_says_which_cells_are_off(visit):
    shown = visit()
    place = shown.locator("#check-rows")
    cells = place.locator("input").all()
    for k, cell in enumerate(cells[:-1]):
        cell.fill(f"{k}/8" if k not in (3, 13) else "7")
    shown.keyboard.press("Enter")
    assert said(place) == "row 2, column 12: There is no number yet."
    cells[-1].fill("23/8")
    shown.keyboard.press("Enter")
    assert said(place) == f"✗ Not yet. Off: row 1, column 4; row 2, column 2. {AGAIN}"
    marked = place.locator("[aria-invalid=true]").evaluate_all("c => c.map(x => x.ariaLabel)")
    assert marked == ["row 1, column 4", "row 2, column 2"]
    cells[3].fill("3/8")
    cells[13].fill("13/8")
    shown.keyboard.press("Enter")
    assert said(place) == "✓ Right." and place.locator("[aria-invalid=true]").count() == 0


@pytest.mark.browser
def test_a_right_number_with_too_few_decimals_is_no_mistake(visit):
    """1.8 for 1.75, which is asked to a thousandth; but 1.7, or 0.1 for 0.125, is wrong."""
    shown = visit()
    place = shown.locator("#check-rows")
    cells = place.locator("input").all()
    for k, cell in enumerate(cells):
        cell.fill(f"{k}/8")
    cells[14].fill("1,8")
    shown.keyboard.press("Enter")
    assert said(place) == "row 2, column 3: 1,8 is rounded too far: write more decimals."
    assert told(shown) == []
    cells[14].fill("1.7")
    cells[1].fill("0.1")
    shown.keyboard.press("Enter")
    assert said(place) == f"✗ Not yet. Off: row 1, column 2; row 2, column 3. {AGAIN}"


@pytest.mark.browser
def test_several_options_are_right_together_only(visit):
    shown = visit()
    place = shown.locator("#check-two")
    for options, says in [
        ([1], f"✗ Not yet. Something is missing. {AGAIN}"),
        ([1, 2, 3], "✗ Not so. Something does not fit."),
        ([1, 2], "✓ Right."),
    ]:
        for k, box in enumerate(place.get_by_role("checkbox").all(), 1):
            box.set_checked(k in options)
        place.get_by_role("button").click()
        assert said(place) == says


@pytest.mark.browser
def test_an_open_question_unfolds_and_the_reader_says_what_they_had(visit):
    shown = visit()
    place = shown.locator("#check-why")
    assert not place.get_by_role("button", name="Part of it").is_visible()
    place.get_by_text("Show a model answer").press("Enter")
    place.get_by_role("button", name="Part of it").press("Enter")
    assert said(place) == "Noted." and told(shown) == [["check-why", "partly"]]
    pressed = place.locator("button[aria-pressed=true]")
    assert pressed.all_inner_texts() == ["Part of it"]
    place.get_by_role("button", name="Not this").click()
    assert pressed.all_inner_texts() == ["Not this"] and told(shown)[1:] == [["check-why", "wrong"]]
    (log,) = [card["log"] for card in shown.evaluate("attentionMemory.read().cards").values()]
    assert [got for _, got in log] == ["wrong"], "who thinks better of it has answered once"


def answer_all(shown):
    for place in shown.locator("[data-question]").all():
        for box in place.locator("input[type=text]").all():
            box.fill("7")
        if place.locator("input[type=radio], input[type=checkbox]").count():
            place.locator("input").first.check()
        for line in place.get_by_label("Your mark").all():
            line.press("ArrowRight")
        for _ in place.locator("form > button:visible").all():
            place.locator("form > button").click()
        place.locator("details").evaluate("d => { d.open = true; }")


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("name", ["one", "two"])
def test_axe_finds_nothing_in_questions(visit, name, theme, answered):
    shown = visit(name, color_scheme=theme)
    shown.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    if answered:
        answer_all(shown)
    shown.evaluate(axe())
    found = shown.evaluate(
        """async () => (await axe.run(".question"))
           .violations.map(v => v.id + ": " + v.nodes.map(n => n.html.slice(0, 160)).join(" | "))"""
    )
    assert found == []


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_the_review_page_and_in_last_time(reader, theme):
    answered = answer(reader.open())
    reader.wait(3)
    review(reader, answered).get_by_role("button", name="Add the 2 terms").click()
    for name in ("review", "two"):
        shown = reader.open(name, "term-mask")
        shown.emulate_media(color_scheme=theme)
        for patience in (8000, 8000, 30000):  # what another page kept may come after this began
            try:
                if name == "two":
                    shown.locator(".last-time summary").click(timeout=patience)
                shown.wait_for_selector(".card-place .question", timeout=patience)
                break
            except TimeoutError:
                shown.reload()
        else:
            raise AssertionError(f"{name} shows no card")
        shown.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        if name == "two":
            shown.get_by_label("done").check()
        shown.evaluate(axe())
        found = shown.evaluate(
            """async () => (await axe.run(".bd-article, .bd-links, .bd-toc-nav", {runOnly: [
                 "wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}))
               .violations.map(v => v.id + ": " + v.nodes.map(n => n.html.slice(0, 99))) """
        )
        assert found == [], name


@pytest.mark.browser
@pytest.mark.parametrize("name", ["one", "two"])
def test_nothing_is_wider_than_a_small_phone(visit, name):
    shown = visit(name, viewport={"width": 320, "height": 700})
    answer_all(shown)
    assert shown.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.browser
def test_every_question_is_reached_and_answered_by_keyboard(visit):
    shown = visit()
    shown.locator("#guess-self input").first.focus()
    shown.keyboard.press("ArrowDown")
    shown.keyboard.press("ArrowDown")
    shown.keyboard.press("Tab")
    shown.keyboard.press("Space")
    assert said(shown.locator("#guess-self")) == "✓ Right."
    assert shown.evaluate("document.activeElement.textContent") == "Answer"
    shown.keyboard.press("Tab")
    shown.keyboard.type("0.9")
    shown.keyboard.press("Enter")
    assert told(shown) == [["guess-self", "right"], ["check-output", "right"]]


@pytest.mark.browser
def test_print_shows_the_answers_and_no_buttons(visit):
    shown = visit()
    shown.emulate_media(media="print")
    shown.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert all(d.is_visible() for d in shown.locator("details.question-answer p").all())
    assert not any(b.is_visible() for b in shown.locator(".question-form button").all())


@pytest.mark.browser
def test_without_scripts_the_answer_unfolds_and_prints(visit):
    shown = visit(java_script_enabled=False)
    guess = shown.locator("#guess-self")
    assert guess.locator("li").count() == 3 and shown.locator("form.question-form").count() == 0
    guess.locator("summary").click()
    assert guess.get_by_text("the largest product").is_visible()
    shown.emulate_media(media="print")
    assert shown.locator("#check-output").get_by_text("Weigh and add.").is_visible()


# what the reader's browser keeps

MINIFY = """const text = require("fs").readFileSync(0, "utf-8");
process.stdout.write(require(process.argv[1]).transformSync(text, { minify: true }).code);"""

NOON = datetime.datetime(2027, 1, 15, 12, tzinfo=datetime.UTC)


@pytest.fixture
def reader(chrome, small, page):
    """A reader with one browser: opens pages in it, and lets days pass."""
    context = chrome.new_context(timezone_id="UTC", accept_downloads=True)
    context.clock.install(time=NOON)
    problems = []

    class Reader:
        def open(self, name="one", has=""):
            """A page; it begins once the browser has brought there what it has kept."""
            shown = context.new_page()
            shown.on("pageerror", lambda error: problems.append(str(error)))
            shown.goto((small / "out" / "html" / f"{name}.html").as_uri())
            if has:
                kept(shown, has)
                shown.reload()
            return shown

        def wait(self, days):
            context.clock.set_fixed_time(NOON + datetime.timedelta(days=days))

    yield Reader()
    assert problems == []
    context.close()


def keys(shown) -> list[str]:
    """The book's own keys: the theme has some, too."""
    return shown.evaluate("Object.keys(localStorage).filter(k => k.startsWith('attention'))")


def kept(shown, has="attention"):
    """The state, once it has this: a browser's windows see each other's a moment later."""
    shown.wait_for_function("has => localStorage.getItem('attention-book')?.includes(has)", arg=has)
    return json.loads(shown.evaluate("localStorage.getItem('attention-book')"))


def answer(shown, typed="0.9", name="check-output"):
    """Give an answer; return its name, once it is kept."""
    shown.locator(f"#{name} input").fill(typed)
    shown.keyboard.press("Enter")
    shown.wait_for_function("name => attentionMemory.read().cards[name]", arg=name)
    return name


def review(reader, has=""):
    shown = reader.open("review", has)
    shown.wait_for_function("() => document.querySelector('.review-status')?.textContent")
    shown.wait_for_timeout(100)
    return shown


def status(shown) -> str:
    return shown.locator(".review-status").inner_text()


def test_scripts_of_a_chapter_are_small_together(small):
    """As the site has them: scripts/pack.py takes comments and long names out."""
    folder = small / "out" / "html" / "_static" / "questions"
    both = "".join((folder / f"{name}.js").read_text("utf-8") for name in ("questions", "memory"))
    made = subprocess.run(
        [pack.NODE, "-e", MINIFY, pack.TOOLS / "esbuild"],
        input=both, capture_output=True, encoding="utf-8", check=True,
    ).stdout  # fmt: skip
    assert "startQuestion" not in made and "attentionMemory" in made
    assert len(gzip.compress(made.encode())) <= 6656


def test_cards_are_the_questions_of_the_page_and_the_terms_of_the_glossary(small, page):
    folder = small / "out" / "html" / "_static" / "questions"
    text = (folder / "cards-one.js").read_text("utf-8")
    made = json.loads(text.partition(" = ")[2].removesuffix(";\n"))
    assert made["title"] == "One"
    assert list(made["cards"]) == [
        q["data-question"].split('"')[3] for q in page.select(".question")
    ]
    card = BeautifulSoup(made["cards"]["guess-self"], "html.parser")
    assert words(card) == words(page.find(id="guess-self")) and card.select("math")
    assert 'href=\\"two.html#a-section\\"' in (folder / "cards-two.js").read_text("utf-8")
    said = (folder / "cards-words.js").read_text("utf-8")
    assert "What is meant by <strong>head</strong>?" in said and "of width" in said
    assert '{"words": ["term-head", "term-mask"]}' in (folder / "cards-index.js").read_text("utf-8")
    assert not (folder / "cards-other.js").exists()


@pytest.mark.browser
def test_an_answered_question_returns_on_its_day(reader):
    shown = reader.open()
    assert keys(shown) == [], "nothing is kept before an answer is given"
    answer(shown)
    state = kept(shown)
    time = state["cards"]["check-output"]["log"][0].pop(0)
    assert time.startswith("2027-01-15T12:00:0")
    assert state == {
        "book": "attention", "version": 1, "read": {}, "exercises": {},
        "cards": {"check-output": {"page": "one", "log": [["right"]]}},
    }  # fmt: skip
    line = shown.locator("#check-output > .card-source")
    assert line.inner_text() == "It returns in Review on 18 January 2027."
    assert shown.locator(".card-source:visible").count() == 1
    page = review(reader, "check-output")
    assert status(page) == "0 of 1 card due today. The next is due on 18 January 2027."
    reader.wait(3)
    page = review(reader, "check-output")
    assert status(page) == "1 of 1 card due today."
    assert not page.get_by_role("button", name="Next card").is_visible()
    assert page.locator(".admonition-title").inner_text() == "Check 1"
    page.get_by_label("A number").fill("2.5")
    page.keyboard.press("Enter")
    assert "You averaged" in page.locator(".question-said").inner_text()
    page.get_by_role("button", name="Next card").click()
    assert status(page) == "0 of 1 card due today. The next is due on 19 January 2027."
    assert kept(page)["cards"]["check-output"]["page"] == "one"


SCHEDULE = [  # the days of the answers, and after how many days from the last the card returns
    ([(0, "right")], 3),
    ([(0, "right"), (3, "right")], 7),
    ([(0, "right"), (3, "right"), (10, "right")], 16),
    ([(0, "right"), (1, "right")], 2),
    ([(0, "right"), (3, "partly")], 3),
    ([(0, "right"), (3, "right"), (4, "partly")], 6),
    ([(0, "right"), (3, "right"), (10, "wrong")], 1),
    ([(0, "right"), (1, "wrong")], 1),
    ([(0, "partly")], 1),
    ([(0, "wrong"), (1, "right")], 3),
    ([(k * 1000, "right") for k in range(9)], 180),
    ([(9.9, "right")], 3),
]


@pytest.mark.browser
def test_the_schedule_is_the_one_that_the_page_states(reader):
    shown = reader.open("review")
    for log, days in SCHEDULE:
        text = [[(NOON.timestamp() + day * 86400) * 1000, got] for day, got in log]
        found = shown.evaluate(
            """log => attentionMemory.due({log: log.map(([at, got]) =>
                 [new Date(at).toISOString(), got])}) - Math.floor(log.at(-1)[0] / 864e5)""",
            text,
        )
        assert found == days, log
    steps = shown.evaluate("attentionMemory.DAYS")
    said = " ".join(shown.locator("article").inner_text().split())
    listed = (
        f"after {steps[1]} days, then after {', '.join(map(str, steps[2:-1]))} and {steps[-1]} days"
    )
    assert listed in said and f"that is {steps[0]} day." in said


@pytest.mark.browser
def test_three_from_last_time_are_folded_and_only_those_of_other_chapters(reader):
    has = answer(reader.open())
    assert reader.open("two", has).locator(".last-time").count() == 0, "not before its day"
    reader.wait(4)
    own = reader.open("one", has)
    assert own.locator(".last-time").count() == 0, "the chapter asks its own itself"
    later = reader.open("two", has)
    box = later.locator(".last-time")
    assert box.locator("summary").inner_text() == "Questions from last time: 1"
    assert box.locator(".question").count() == 0
    box.locator("summary").click()
    box.get_by_label("A number").fill("0.9")
    later.keyboard.press("Enter")
    later.wait_for_function("() => attentionMemory.read().cards['check-output'].log.length > 1")
    card = kept(later)["cards"]["check-output"]
    assert card["page"] == "one" and [got for _, got in card["log"]] == ["right", "right"]


@pytest.mark.browser
def test_who_does_not_know_a_card_sees_its_answer_and_goes_on(reader):
    shown = reader.open()
    shown.locator("#guess-self").get_by_label("it itself").check()
    shown.locator("#guess-self").get_by_role("button").click()
    has = answer(shown)
    reader.wait(3)
    page = review(reader, has)
    assert page.locator(".admonition-title").inner_text() == "Check 1"
    page.get_by_role("button", name="I do not know").click()
    assert page.get_by_text("Weigh and add.").is_visible()
    assert [got for _, got in kept(page)["cards"][has]["log"]] == ["right", "wrong"]
    page.get_by_role("button", name="Next card").click()
    assert page.locator(".admonition-title").inner_text() == "Which word?"
    assert page.get_by_role("button", name="I do not know").is_visible()


@pytest.mark.browser
def test_export_erase_and_import_give_back_the_same(reader, tmp_path):
    page = review(reader, answer(reader.open()))
    before = kept(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as a file").click()
    download.value.save_as(tmp_path / "mine.json")
    assert download.value.suggested_filename == "attention-book.json"
    assert json.loads((tmp_path / "mine.json").read_text("utf-8")) == before
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Erase everything").click()
    assert keys(page) == []
    assert status(page).startswith("There are no cards yet.")
    page.locator("input[type=file]").set_input_files(tmp_path / "mine.json")
    page.wait_for_function("() => localStorage.getItem('attention-book')")
    assert kept(page) == before
    assert page.locator(".review-said").inner_text() == "mine.json was added: 1 new card."


FOREIGN = {
    "cut": ('{"book": "attention", "ver', "It is not JSON: it is cut off or damaged."),
    "other": ('{"book": "another"}', "It is not a state of this book."),
    "list": ("[]", "It is not a state of this book."),
    "null": ("null", "It is not a state of this book."),
    "newer": (
        '{"book": "attention", "version": 2}',
        "It is of version 2; this book reads version 1.",
    ),
    "part": ('{"book": "attention", "version": 1, "cards": 1}', 'Its part "cards" is missing or'),
    "time": (
        '{"book": "attention", "version": 1, "cards": {"check-x": {"page": "one", "log": '
        '[["yesterday", "right"]]}}, "read": {}, "exercises": {}}',
        'Its entry "check-x" in "cards" is damaged.',
    ),
    "address": (
        '{"book": "attention", "version": 1, "cards": {"check-x": {"page": "//x.org/a", '
        '"log": []}}, "read": {}, "exercises": {}}',
        'Its entry "check-x" in "cards" is damaged.',
    ),
}


@pytest.mark.browser
@pytest.mark.parametrize("what", FOREIGN)
def test_a_damaged_or_foreign_state_is_refused_with_a_sentence_and_kept_aside(
    reader, what, tmp_path
):
    text, says = FOREIGN[what]
    page = review(reader)
    (tmp_path / "bad.json").write_text(text, "utf-8")
    page.locator("input[type=file]").set_input_files(tmp_path / "bad.json")
    page.wait_for_function("() => document.querySelector('.review-said').textContent")
    refused = page.locator(".review-said").inner_text()
    assert refused.startswith("bad.json was not read, and nothing was changed. " + says)
    assert keys(page) == []
    page.evaluate("text => localStorage.setItem('attention-book', text)", text)
    page.close()
    again = review(reader)
    again.wait_for_function("() => document.querySelector('.review-said').textContent")
    assert says in again.locator(".review-said").inner_text()
    (aside,) = keys(again)
    assert aside.startswith("attention-book-aside-2027-01-15")
    assert again.evaluate("key => localStorage.getItem(key)", aside) == text
    with again.expect_download() as download:
        again.get_by_role("button", name="Save what was put aside on 2027-01-15").click()
    assert Path(download.value.path()).read_text("utf-8") == text
    assert len(kept(again, answer(reader.open()))["cards"]) == 1, "and the book goes on"


@pytest.mark.browser
def test_two_windows_do_not_overwrite_each_other(reader):
    one, two = reader.open(), reader.open("two")
    answer(one)
    answer(two, "4", "check-far")
    answer(one, "7")  # the second answer of a visit does not count
    assert {n: len(c["log"]) for n, c in kept(one, "check-far")["cards"].items()} == {
        "check-output": 1, "check-far": 1
    }  # fmt: skip
    # a window that wrote in the same instant, from what it had read before
    before = kept(one)
    del before["cards"]["check-output"]
    two.evaluate("text => localStorage.setItem('attention-book', text)", json.dumps(before))
    one.wait_for_function("() => localStorage.getItem('attention-book').includes('check-output')")
    assert set(kept(two, "check-output")["cards"]) == {"check-output", "check-far"}
    two.evaluate("attentionMemory.erase()")
    one.wait_for_function("() => localStorage.getItem('attention-book') === null")
    one.wait_for_timeout(200)
    assert keys(one) == [], "what one window erases, no other brings back"


@pytest.mark.browser
@pytest.mark.parametrize("fails", ["get localStorage() { throw new DOMException('denied') }",
                                   "get localStorage() { return { getItem: () => null, setItem() "
                                   "{ throw Error('full') }, removeItem() {} } }"])  # fmt: skip
def test_where_the_browser_keeps_nothing_the_page_works_and_says_so(chrome, small, page, fails):
    context = chrome.new_context()
    context.add_init_script(
        f"Object.defineProperties(window, Object.getOwnPropertyDescriptors({{ {fails} }}))"
    )
    shown = context.new_page()
    problems = []
    ours = "_static/questions/"  # the theme complains as well
    shown.on("pageerror", lambda e: problems.append(e.stack) if ours in e.stack else None)
    shown.goto((small / "out" / "html" / "one.html").as_uri())
    answer(shown)
    assert said(shown.locator("#check-output")) == "✓ Right."
    assert shown.evaluate("Object.keys(attentionMemory.read().cards)") == ["check-output"]
    assert "so the book forgets your answers" in shown.evaluate("attentionMemory.trouble()")
    assert problems == []
    context.close()


@pytest.mark.browser
def test_the_terms_of_the_glossary_are_added_at_a_press(reader):
    page = review(reader)
    page.get_by_role("button", name="Add the 2 terms of the glossary").click()
    page.wait_for_selector(".card-place")
    assert status(page) == "2 of 2 cards due today."
    card = page.locator(".card-place")
    assert "What is meant by head?" in card.inner_text()
    card.get_by_text("Show a model answer").click()
    card.get_by_role("button", name="All of it").click()
    page.get_by_role("button", name="Next card").click()
    assert "What is meant by mask?" in card.inner_text()
    assert (
        card.get_by_role("link", name="Words")
        .get_attribute("href")
        .endswith("words.html#term-mask")
    )


@pytest.mark.browser
def test_sections_read_and_exercises_done_are_marked_in_the_contents(reader, chrome):
    shown = reader.open("two")
    assert shown.locator(".progress-mark").count() == 0
    shown.get_by_label("done").check()
    entry = shown.locator(".bd-toc-nav a[href='#a-section'] .progress-mark")
    assert entry.inner_text().replace("\n", "") == "✓(1 of 1 exercises done)"
    shown.get_by_text("Another section").last.scroll_into_view_if_needed()
    shown.clock.run_for(2100)
    shown.wait_for_function(
        "() => Object.keys(attentionMemory.read().read.two?.sections ?? {}).length > 1"
    )
    marked = shown.locator(".bd-toc-nav .progress-mark").count()
    assert marked == 2
    other = reader.open("one", "another-section")
    assert other.locator(".bd-links a[href='two.html'] .progress-mark").inner_text().startswith("✓")
    again = reader.open("two", "another-section")
    assert again.get_by_label("done").is_checked()
    again.get_by_label("done").uncheck()
    mark = again.locator(".bd-toc-nav a[href='#a-section'] .progress-mark")
    assert mark.inner_text().replace("\n", "") == "✓(read)"


def year_of_reviews(cards=150, reviews=20) -> str:
    """What a reader's browser holds after a year: 150 cards, reviewed 20 times each."""
    log = [[f"2026-{1 + k // 2:02}-{1 + 14 * (k % 2):02}T10:00:00.000Z",
            ("right", "wrong", "partly")[k % 7 % 3]] for k in range(reviews)]  # fmt: skip
    made = {f"check-a-question-{c}": {"page": "one", "log": log} for c in range(cards)}
    return json.dumps(
        {"book": "attention", "version": 1, "cards": made, "read": {}, "exercises": {}}
    )


@pytest.mark.browser
def test_a_year_of_reviews_costs_little_more_than_reading_its_json(reader):
    """Reading 3,000 reviews and what is due, against JSON.parse of the same text."""
    shown = reader.open("review")
    shown.evaluate("text => localStorage.setItem('attention-book', text)", year_of_reviews())
    ours, plain = shown.evaluate(
        """() => {
          const best = (f) => Math.min(...Array.from({length: 9}, () => {
            const start = window.realNow(); for (let k = 0; k < 20; k++) f();
            return window.realNow() - start; }));
          const text = localStorage.getItem("attention-book");
          return [best(() => attentionMemory.dueCards(attentionMemory.read())),
                  best(() => JSON.parse(text))].map(ms => ms / 20); }""".replace(
            "window.realNow()", "performance.now()"
        )
    )
    print(f"3,000 reviews: {ours:.2f} ms, their JSON alone {plain:.2f} ms")
    assert ours < 40 * plain

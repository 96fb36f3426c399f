"""Questions: what a directive accepts, what it refuses, and what page, notebook and print show."""

import copy
import functools
import gzip
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "book" / "_ext")]

import question_values as values  # noqa: E402
from question_values import BadQuestion  # noqa: E402

HEAD = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
# One

"""
PAGE = (
    HEAD
    + """
```{code-cell} python
:tags: [remove-cell]
import numpy as np
from myst_nb import glue

glue("first", np.float64(0.9) + 0.0001, display=False)
glue("rows", (np.arange(24.0).reshape(2, 12) / 8).tolist(), display=False)
```

See {ref}`check-output` and [the guess](#guess-self).

```{guess} Which *word*?
:name: guess-self
:type: choice
:answer: 3
Which word does *it* match best?

- *cat*
- *mat*, $a \\cdot b$
- *it* itself

=== answer
*it* itself: a vector has the largest product with itself, $x \\cdot x$.

=== hint 1
No other vector is nearer.
```

```{check}
:name: check-output
:type: number
:answer: glue:first
:tolerance: 0.01
:unit: points
The weights are 0.6, 0.3, 0.1. What is the first number?

=== answer
Weigh and add.

=== hint 2.5
You averaged with equal weights.
```

```{check}
:name: check-rows
:type: matrix
:answer: glue:rows
:tolerance: 0.001
The matrix?

=== answer
Divide by 8.
```

```{check} In words
:name: check-why
:type: open
Why?

=== answer
Because **of** this:

- one
- two
```

```{check}
:name: check-two
:type: choice
:answer: 1, 2
Which are true?

- yes
- yes too
- no

=== answer
The first two.
```
"""
)
CONFIG = f"""
import sys
sys.path.insert(0, {str(ROOT / "book" / "_ext")!r})
extensions = [
    "myst_nb", "sphinx_exercise", "maths", "site_address", "exercises", "questions",
    "question_pages", "notebooks", "offline", "accessible",
]
html_title = "A book"
html_theme = "sphinx_book_theme"
root_doc = "other"
html_math_renderer = "temml"
html_static_path = [{str(ROOT / "book" / "_static")!r}]
html_css_files = ["book.css"]
templates_path = [{str(ROOT / "book" / "_templates")!r}]
nb_execution_mode = "force"
nb_execution_raise_on_error = True
myst_enable_extensions = ["dollarmath"]
suppress_warnings = ["myst.domains"]
"""


def sphinx(folder: Path, builder: str) -> tuple[Path, str]:
    """Build the small book; return the folder of what was built, and what Sphinx warned of."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("ATTENTION_", "GITHUB_"))}
    out = folder / "out" / builder
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-b", builder, "-d", folder / "trees"]
        + [folder / "source", out],
        env=plain | {"NO_COLOR": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = [x for x in done.stderr.splitlines() if "[IPKernelApp]" not in x and x.strip()]
    return out, "\n".join(said)


def book(folder: Path, **pages: str) -> Path:
    toctree = "\n".join(pages)
    other = f"# Other\n\n```{{toctree}}\n{toctree}\n```\n"
    source = folder / "source"
    source.mkdir()
    for name, text in {"other": other, **pages}.items():
        (source / f"{name}.md").write_text(text, "utf-8")
    (source / "conf.py").write_text(CONFIG)
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return book(tmp_path_factory.mktemp("questions"), one=PAGE)


@pytest.fixture(scope="module")
def page(small):
    out, warned = sphinx(small, "html")
    assert warned == ""
    return BeautifulSoup((out / "one.html").read_text("utf-8"), "html.parser")


def asked(page, name):
    return json.loads(page.find(id=name)["data-question"])


def words(tag) -> str:
    """The text of a tag, its formulas without spaces."""
    tag = copy.copy(tag)
    for formula in tag.select("math"):
        formula.replace_with(formula.get_text())
    return " ".join(tag.get_text(" ").split())


# the page


def test_a_page_has_question_options_and_a_folded_answer_without_a_script(page):
    guess = page.find(id="guess-self")
    assert words(guess.select_one(".admonition-title")) == "Guess first: Which word ?"
    assert [words(li) for li in guess.select(".question-options > ul > li")][0] == "cat"
    answer = guess.find("details", class_="question-answer")
    assert not answer.has_attr("open") and answer.summary.text == "Answer"
    assert "the largest product" in words(answer)
    assert "largest" not in words(guess.select_one(".question-text"))
    assert words(answer.select_one(".question-hint")).startswith("If you had cat : No other")


def test_checks_are_numbered_and_referred_to(page):
    titles = [words(q.select_one(".admonition-title")) for q in page.select(".check")]
    assert titles == ["Check 1", "Check 2", "Check 3: In words", "Check 4"]
    link = page.find("a", href="#check-output")
    assert words(link) == "Check 1"
    assert words(page.find("a", href="#guess-self")) == "the guess"


def test_right_answers_come_from_the_cells_of_the_chapter(page):
    output = asked(page, "check-output")
    assert output["answer"] == pytest.approx(0.9001)
    assert output | {"answer": 0} == {
        "name": "check-output", "type": "number", "answer": 0, "tolerance": 0.01, "unit": "points"
    }  # fmt: skip
    assert asked(page, "check-rows")["answer"] == [
        [k / 8 for k in range(12)],
        [k / 8 for k in range(12, 24)],
    ]
    assert asked(page, "check-two")["answer"] == [1, 2]
    assert asked(page, "check-why") == {"name": "check-why", "type": "open"}
    assert json.loads(page.select_one("#check-output .question-hint")["data-wrong"]) == 2.5


def test_the_right_answer_is_said_where_the_explanation_does_not_say_it(page):
    assert "Answer: 0.9 points Weigh" in words(page.select_one("#check-output details"))
    rows = page.select("#check-rows details mtr")
    assert [cell.text for cell in rows[0].select("mtd")][:2] == ["0", "0.125"]
    assert (
        words(page.select_one("#check-two details")) == "Answer Answer: yes; yes too The first two."
    )
    assert "Answer:" not in words(page.select_one("#guess-self details"))


# elsewhere


def test_a_notebook_has_question_options_and_a_folded_answer(small, page):
    out, warned = sphinx(small, "ipynb")
    assert warned == ""
    made = nbformat.read(out / "one.ipynb", as_version=4)
    text = "\n\n".join(c.source for c in made.cells if c.cell_type == "markdown")
    for part in [
        "> **Guess first: Which *word*?**\n>\n> Which word does *it* match best?\n>\n> - *cat*\n"
        "> - *mat*, $a \\cdot b$\n> - *it* itself\n\n<details>\n<summary>Answer</summary>\n\n*it* "
        "itself: a vector has the largest product with itself, $x \\cdot x$.\n\nIf you had *cat*:"
        "\n\nNo other vector is nearer.\n\n</details>",
        "Answer: $0.9$ points\n\nWeigh and add.",
        "> **Check 3: In words**\n>\n> Why?\n\n<details>\n<summary>Answer</summary>\n\n"
        "Because **of** this:\n\n- one\n- two\n\n</details>",
        '<a id="check-output"></a>',
        "See [Check 1](#check-output)",
    ]:
        assert part in text, f"{part!r} is not in:\n{text}"
    assert "===" not in text and "data-question" not in text


@pytest.mark.parametrize(("builder", "name"), [("text", "one.txt"), ("latex", "*.tex"),
                                               ("epub", "one.xhtml")])  # fmt: skip
def test_where_nothing_folds_the_answer_follows(small, page, builder, name):
    out, warned = sphinx(small, builder)
    assert ".md" not in warned
    text = " ".join(next(out.glob(name)).read_text("utf-8").split())
    for part in ("Which word does", "If you had", "the largest product", "Weigh and add", "one"):
        assert part in text, text[:3000]
    assert text.index("match best") < text.index("the largest product") < text.rindex("Check 1")
    assert "<details" not in text and "data-question" not in text


# what is refused

GOOD = {
    "choice": ":name: check-x\n:type: choice\n:answer: 1\nWhich?\n\n- a\n- b\n\n=== answer\nA.\n",
    "number": ":name: check-x\n:type: number\n:answer: 2\nHow many?\n\n=== answer\nTwo.\n",
    "matrix": ":name: check-x\n:type: matrix\n:answer: 1, 2\nRow?\n\n=== answer\nIt.\n",
    "open": ":name: check-x\n:type: open\nWhy?\n\n=== answer\nSo.\n",
}
BAD = {  # how a good question is spoilt, and what the warning says of it
    "no name": ("number", ":name: check-x\n", "", "it needs a :name:"),
    "name": ("number", "check-x", "Check X", "small letters, digits and -; got 'Check X'"),
    "type": ("number", "type: number", "type: guess", "choice, number, matrix, open; got 'guess'"),
    "no type": ("number", ":type: number\n", "", ":type: is one of"),
    "no answer": ("number", ":answer: 2\n", "", "it needs an :answer:"),
    "words": ("number", "answer: 2", "answer: two", "a number was wanted; got 'two'"),
    "infinite": ("number", "answer: 2", "answer: 1e999", "a number was wanted"),
    "list": ("number", "answer: 2", "answer: 1, 2", "a number was wanted; got \"['1', '2']\""),
    "not whole": ("number", "answer: 2", "answer: 1/3", "it needs a :tolerance:"),
    "tolerance": ("number", "answer: 2", "answer: 2\n:tolerance: -1", "must not be negative"),
    "out of range": ("choice", "answer: 1", "answer: 3", "no option 3; they are numbered 1 to 2"),
    "zero": ("choice", "answer: 1", "answer: 0", "there is no option 0"),
    "twice": ("choice", "answer: 1", "answer: 1, 1", "an option is named once"),
    "no options": ("choice", "- a\n- b\n", "", "ends with a list of its options"),
    "one option": ("choice", "- b\n", "", "two options at least"),
    "ragged": ("matrix", "answer: 1, 2", "answer: 1, 2; 3", "rows of one length"),
    "open answer": ("open", ":type: open", ":type: open\n:answer: 2", "no :answer: and no hints"),
    "no explanation": ("open", "=== answer\nSo.\n", "", "it has no `=== answer`"),
    "empty": ("open", "So.\n", "", "its part `answer` is empty"),
    "part": ("open", "=== answer", "=== Answer", "got `=== Answer`"),
    "two answers": ("open", "So.", "So.\n\n=== answer\nNo.", "more than one"),
    "hint": ("number", "Two.", "Two.\n\n=== hint x\nNo.", "the hint x: a number was wanted"),
    "right hint": ("number", "Two.", "Two.\n\n=== hint 2\nNo.", "is for the right answer"),
    "choice hint": ("choice", "A.", "A.\n\n=== hint 3\nNo.", "the hint 3: there is no option 3"),
    "glue": ("number", "answer: 2", "answer: glue:none", "nothing is glued as none"),
    "glued array": ("matrix", "1, 2", "glue:array", "array must be glued as a number or a list"),
    "glued range": ("choice", "answer: 1", "answer: glue:seven", "there is no option 7"),
    "option": ("number", ":type:", ":kind: x\n:type:", "kind"),
}  # fmt: skip
CELL = """```{code-cell} python
import numpy as np
from myst_nb import glue
glue("array", np.ones(2), display=False)
glue("seven", 7, display=False)
```

"""


@pytest.fixture(scope="module")
def warnings(tmp_path_factory):
    """What Sphinx says of a page for each bad question, all in one build; by the page's name."""
    pages = {}
    for number, (kind, old, new, _) in enumerate(BAD.values()):
        assert old in GOOD[kind]
        glued = "glue" in new
        head = HEAD + CELL if glued else "# Page\n\n"
        body = GOOD[kind].replace(old, new, 1)
        body = re.sub(r"check-x", f"check-x{number}", body)
        pages[f"bad{number}"] = f"{head}```{{check}}\n{body}```\n"
    again = f"# P\n\n```{{check}}\n{GOOD['open']}```\n"
    pages |= {"twin": again, "twin2": again, "same": again.replace("x", "z") * 2}
    folder = book(tmp_path_factory.mktemp("bad"), **pages)
    said: dict[str, list[str]] = {}
    for line in sphinx(folder, "html")[1].splitlines():
        if m := re.search(r"(\w+)\.md:\d+: (WARNING|ERROR): (.*)", line):
            said.setdefault(m[1], []).append(m[3])
    return said


@pytest.mark.parametrize("what", BAD)
def test_a_bad_question_is_a_warning_that_names_it_and_says_what_was_wanted(warnings, what):
    number = list(BAD).index(what)
    said = warnings.get(f"bad{number}", [])
    assert said and any(BAD[what][3] in one for one in said), said
    if what not in ("no name", "name", "option"):
        assert f"the question check check-x{number}:" in said[0]


def test_a_name_serves_one_question_in_the_book(warnings):
    assert warnings["twin2"] == ["the question check check-x: its name is taken, in twin"]
    assert any(
        "the question check check-z: its name is taken, in same" in w for w in warnings["same"]
    )
    assert "twin" not in warnings


@pytest.mark.parametrize("kind", GOOD)
def test_what_the_bad_ones_were_made_of_is_good(tmp_path, kind):
    folder = book(tmp_path, good=f"# Page\n\n```{{check}}\n{GOOD[kind]}```\n")
    out, warned = sphinx(folder, "html")
    assert warned == "" and 'id="check-x"' in (out / "good.html").read_text("utf-8")


# values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", 2),
        ("-3", -3),
        ("−3", -3),
        ("1e-3", 0.001),
        (".5", 0.5),
        ("1/9", 1 / 9),
        ("-3 / 4", -0.75),
    ],
)
def test_a_number_is_read(text, value):
    assert values.number(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "1/0", "x", "1,5", "nan", "inf", "1 2", "--1", "0x10"])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(BadQuestion, match="a number was wanted"):
        values.number(text)


def test_the_sign_of_a_part_inside_a_code_block_is_code():
    lines = textwrap.dedent("""\
        text
        ```
        === answer
        ```
        === answer
        told""").splitlines()
    assert values.split(lines) == [("text", "", 0, 4), ("answer", "", 5, 6)]


# in a browser

SCRIPTS = ROOT / "book" / "_ext" / "question_scripts"


def test_the_script_of_a_chapter_is_small():
    assert len(gzip.compress((SCRIPTS / "questions.js").read_bytes())) <= 8192


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


def said(place) -> str:
    return " ".join(place.locator(".question-said").inner_text().split())


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
    assert said(guess) == "✗ Not so. The answer is: it itself. No other vector is nearer."
    assert unfolded(guess)
    marks = guess.locator("label").all_inner_texts()
    assert "✗" in marks[0] and "✓ the answer" in marks[2]
    guess.get_by_label("it itself").check()
    guess.get_by_role("button").click()
    assert said(guess) == "✓ Right."
    assert told(shown) == [["guess-self", "wrong"]], "the first answer counts"


@pytest.mark.browser
@pytest.mark.parametrize("typed", ["0.9", "0,9", "+.9", "9/10", "9e-1", " 0.905 ", "0.9001"])
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
        ("1,000", "1,000 can be read in two ways: write it without a comma."),
    ],
)
def test_a_wrong_number_gets_a_sentence_and_the_answer_stays_folded(visit, typed, says):
    shown = visit()
    place = shown.locator("#check-output")
    place.get_by_label("A number").fill(typed)
    shown.keyboard.press("Enter")
    assert said(place) == says and not unfolded(place)
    assert told(shown) == ([["check-output", "wrong"]] if says[0] == "✗" else [])


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
    assert said(place) == "✗ Not yet. Off: row 1, column 4; row 2, column 2."
    marked = place.locator("[aria-invalid=true]").evaluate_all("c => c.map(x => x.ariaLabel)")
    assert marked == ["row 1, column 4", "row 2, column 2"]
    cells[3].fill("3/8")
    cells[13].fill("13/8")
    shown.keyboard.press("Enter")
    assert said(place) == "✓ Right." and place.locator("[aria-invalid=true]").count() == 0


@pytest.mark.browser
def test_several_options_are_right_together_only(visit):
    shown = visit()
    place = shown.locator("#check-two")
    for options, says in [
        (["yes"], "✗ Not yet. Something is missing."),
        (["yes", "yes too", "no"], "✗ Not yet. Something does not fit."),
        (["yes", "yes too"], "✓ Right."),
    ]:
        for option in ("yes", "yes too", "no"):
            box = place.get_by_role("checkbox", name=re.compile(rf"^{option}\b(?! too)"))
            box.set_checked(option in options)
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


def answer_all(shown):
    for place in shown.locator("[data-question]").all():
        for box in place.locator("input[type=text]").all():
            box.fill("7")
        if place.locator("input[type=radio], input[type=checkbox]").count():
            place.locator("input").first.check()
        if place.locator("button[type=submit]").count():
            place.locator("button[type=submit]").click()
        place.locator("details").evaluate("d => { d.open = true; }")


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("answered", [False, True])
def test_axe_finds_nothing_in_questions(visit, theme, answered):
    shown = visit(color_scheme=theme)
    shown.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    if answered:
        answer_all(shown)
    shown.evaluate(axe())
    found = shown.evaluate(
        """async () => (await axe.run(".question-form, .question, .last-time, .review"))
           .violations.map(v => v.id + ": " + v.nodes.map(n => n.html.slice(0, 160)).join(" | "))"""
    )
    assert found == []


@pytest.mark.browser
def test_nothing_is_wider_than_a_small_phone(visit):
    shown = visit(viewport={"width": 320, "height": 700})
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
    shown.keyboard.press("Tab")
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

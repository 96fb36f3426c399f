"""Questions: what a directive accepts, what it refuses, and what page, notebook and print show."""

import io
import json
import re
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import question_book
from matplotlib import pyplot as plt
from question_book import HEAD, book, sphinx, words

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "book" / "_ext")]

import question_figures  # noqa: E402
import question_values as values  # noqa: E402
from question_values import BadQuestion  # noqa: E402

from attention.figures import asked as asked_figures  # noqa: E402
from attention.widgets.question import unseal  # noqa: E402


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return question_book.built(tmp_path_factory)


@pytest.fixture(scope="module")
def page(small):
    return question_book.read(small, "one")


def asked(page, name):
    return json.loads(page.find(id=name)["data-question"])


# the page


def test_a_page_has_question_options_and_a_folded_answer_without_a_script(page):
    guess = page.find(id="guess-self")
    assert words(guess.select_one(".admonition-title")) == "Guess first: Which word ?"
    assert [words(li) for li in guess.select(".question-options > ul > li")][0] == "cat"
    answer = guess.find("details", class_="question-answer")
    assert not answer.has_attr("open") and answer.summary.text == "Answer"
    assert "the largest product" in words(answer)
    assert "largest" not in words(guess.select_one(".question-text"))
    assert words(answer.select_one(".question-hint")).startswith("If you chose “ cat ”: No other")


def test_checks_are_numbered_and_referred_to(page):
    titles = [words(q.select_one(".admonition-title")) for q in page.select(".check")]
    assert titles == ["Check 1", "Check 2", "Question 3: In words", "Check 4"]
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
        words(page.select_one("#check-two details"))
        == "Answer Answer: yes · yes too The first two."
    )
    assert "Answer:" not in words(page.select_one("#guess-self details"))


# elsewhere


def test_a_notebook_has_question_inputs_and_a_folded_answer(small, page):
    made = nbformat.read(small / "out" / "ipynb" / "one.ipynb", as_version=4)
    text = "\n\n".join(c.source for c in made.cells if c.cell_type == "markdown")
    for part in [
        "> **Guess first: Which *word*?**\n>\n> Which word does *it* match best?",
        "<details>\n<summary>Answer</summary>\n\n*it* "
        "itself: a vector has the largest product with itself, $x \\cdot x$.\n\n"
        "If you chose “*cat*”:\n\nNo other vector is nearer.\n\n</details>",
        "Answer: $0.9$ points\n\nWeigh and add.",
        "> **Question 3: In words**\n>\n> Why?\n\n<details>\n<summary>Answer</summary>\n\n"
        "Because **of** this:\n\n- one\n- two\n\n</details>",
        '<a id="check-output"></a>',
        "See [Check 1](#check-output)",
    ]:
        assert part in text, f"{part!r} is not in:\n{text}"
    assert "===" not in text and "data-question" not in text
    at = next(k for k, c in enumerate(made.cells) if "Which *word*" in c.source)
    ask, answer = made.cells[at + 1 : at + 3]
    assert ask.source.startswith("# @title Run this cell to answer: guess-self\n")
    shown = "- *cat*\n- *mat*, $a \\cdot b$\n- *it* itself"
    assert ask.outputs[0].data == {"text/markdown": shown, "text/plain": shown}
    assert answer.source.startswith("<details>")
    assert sum("Question(" in c.source for c in made.cells) == 4, "none for the open one"
    two = nbformat.read(small / "out" / "ipynb" / "two.ipynb", as_version=4).cells
    at = next(k for k, c in enumerate(two) if "answer: check-tent\n" in c.source)
    shown = two[at].outputs[0].data
    assert "<svg" in shown["image/svg+xml"] and shown["text/plain"] == "A tent, from -2 to 6."
    asked = unseal(two[at].source.split('"')[1])
    assert asked["figure"].startswith('<svg class="figure-svg" role="img" aria-label="A tent')
    assert (asked["min"], asked["max"], asked["step"]) == (-2, 6, 0.5)
    assert asked["style"].startswith("--left:") and "A tent" not in two[at - 1].source
    text = (small / "out" / "ipynb" / "questions.json").read_text("utf-8")
    questions = [q for chapter in json.loads(text)["chapters"] for q in chapter["questions"]]
    (tent,) = [q for q in questions if q["name"] == "check-tent"]
    assert tent["type"] == "number" and not {"min", "max", "step"} & set(tent)
    (picture,) = re.findall(r'<img[^>]*src="media:([^"]*)" alt="A tent, from[^>]*/>', tent["text"])
    assert (small / "source" / picture).is_file() or (small / picture).is_file()


@pytest.mark.parametrize(("builder", "name"), [("latex", "*.tex"), ("epub", "one.xhtml")])
def test_where_nothing_folds_the_answer_follows(small, page, builder, name):
    text = " ".join(next((small / "out" / builder).glob(name)).read_text("utf-8").split())
    for part in ("Which word does", "If you had", "the largest product", "Weigh and add", "one"):
        assert part in text, text[:3000]
    assert text.index("match best") < text.index("the largest product") < text.rindex("Check 1")
    assert "<details" not in text and "data-question" not in text
    if builder == "latex":  # which draws no SVG
        assert r"\sphinxstyleemphasis{A tent, from \sphinxhyphen{}2 to 6.}" in text
    else:
        two = (small / "out" / builder / "two.xhtml").read_text("utf-8")
        assert '<svg class="figure-svg" role="img" aria-label="A tent, from -2 to 6."' in two


# what is refused

GOOD = {
    "choice": ":name: check-x\n:type: choice\n:answer: 1\nWhich?\n\n- a\n- b\n\n=== answer\nA.\n",
    "number": ":name: check-x\n:type: number\n:answer: 2\nHow many?\n\n=== answer\nTwo.\n",
    "matrix": ":name: check-x\n:type: matrix\n:answer: 1, 2\nRow?\n\n=== answer\nIt.\n",
    "place": ":name: check-x\n:type: place\n:min: 0\n:max: 4\n:answer: 2\nHm?\n\n=== answer\n2.\n",
    "open": ":name: check-x\n:type: open\nWhy?\n\n=== answer\nSo.\n",
}
BAD = {  # how a good question is spoilt, and what the warning says of it
    "no name": ("number", ":name: check-x\n", "", "it needs a :name:"),
    "name": ("number", "check-x", "Check X", "small letters, digits and -; got 'Check X'"),
    "type": ("number", "type: number", "type: guess", "number, place, matrix, open; got 'guess'"),
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
    "hint's shape": ("matrix", "It.", "It.\n\n=== hint 1; 2\nNo.", "has another shape than"),
    "glue": ("number", "answer: 2", "answer: glue:none", "nothing is glued as none"),
    "glued array": ("matrix", "1, 2", "glue:array", "array must be glued as a number or a list"),
    "glued range": ("choice", "answer: 1", "answer: glue:seven", "there is no option 7"),
    "no end": ("place", ":max: 4\n", "", "a place needs a :max:, an end of its line"),
    "end": ("place", "max: 4", "max: four", ":max: a number was wanted; got 'four'"),
    "ends": ("place", "min: 0", "min: 4", ":min: must be less than :max:; got 4 and 4"),
    "off the line": ("place", "answer: 2", "answer: 5", "its answer 5 is not on its line, 0 to 4"),
    "step": ("place", "min: 0", "min: 0\n:step: 0", ":step: must be from above 0 to 4; got 0"),
    "step nan": ("place", "min: 0", "min: 0\n:step: nan", ":step: a number was wanted"),
    "ends of a number": ("number", ":answer:", ":min: 0\n:answer:", "only a place has a :min:"),
    "option": ("number", ":type:", ":kind: x\n:type:", "kind"),
    "no alt": ("place", ":min: 0\n:max: 4", ":figure: fig", "needs both :figure: and :alt:"),
    "no figure": ("place", ":min:", ":alt: A\n:min:", "needs both :figure: and :alt:"),
    "figure": ("place", ":min: 0\n:max: 4", ":alt: A\n:figure: none", "nothing is glued as none"),
    "figure's ends": ("place", ":min:", ":alt: A\n:figure: none\n:min:", "so it has no :max:"),
    "figure of a number": ("number", ":type:", ":alt: A\n:type:", "only a place has a :alt:"),
}  # fmt: skip
CELL = """```{code-cell} python
import numpy as np
from myst_nb import glue
glue("array", np.ones(2), display=False)
glue("seven", 7, display=False)
```

"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A book with a page for each bad question and each good one; those with glue on one page."""
    pages = {"glued": HEAD + CELL}
    for number, (kind, old, new, _) in enumerate(BAD.values()):
        assert old in GOOD[kind]
        body = GOOD[kind].replace(old, new, 1)
        body = re.sub(r"check-x", f"check-x{number}", body)
        page = "glued" if "glue" in new else f"bad{number}"
        pages[page] = pages.get(page, "# Page\n\n") + f"```{{check}}\n{body}```\n\n"
    for kind, body in GOOD.items():
        body = body.replace("check-x", f"check-{kind}")
        pages[f"good{kind}"] = f"# Page\n\n```{{check}}\n{body}```\n"
    again = f"# P\n\n```{{check}}\n{GOOD['open']}```\n"
    pages |= {"twin": again, "twin2": again, "same": again.replace("x", "z") * 2}
    return book(tmp_path_factory.mktemp("bad"), **pages)


@pytest.fixture(scope="module")
def warnings(folder):
    """What Sphinx says of each page, by its name."""
    said: dict[str, list[str]] = {}
    for line in sphinx(folder, "html")["html"].splitlines():
        if m := re.search(r"(\w+)\.md:\d+: (WARNING|ERROR): (.*)", line):
            said.setdefault(m[1], []).append(m[3])
    return said


@pytest.mark.parametrize("what", BAD)
def test_a_bad_question_is_a_warning_that_names_it_and_says_what_was_wanted(warnings, what):
    number = list(BAD).index(what)
    said = warnings.get(f"bad{number}", [])
    if "glue" in BAD[what][2]:
        said = [one for one in warnings["glued"] if f"check-x{number}:" in one]
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
def test_what_the_bad_ones_were_made_of_is_good(warnings, folder, kind):
    made = folder / "out" / "html" / f"good{kind}.html"
    assert f"good{kind}" not in warnings and f'id="check-{kind}"' in made.read_text("utf-8")


def test_a_figure_that_cannot_be_asked_about_is_refused():
    with pytest.raises(BadQuestion, match=r"an axis that is marked by asked.ask_place\(ax\)"):
        question_figures.line('<svg viewBox="0 0 9 9"><g id="patch_2"><path d="M 1 1"/></g></svg>')
    with pytest.raises(BadQuestion, match="must name a figure that is glued, drawn as SVG"):
        question_figures.image(None, SimpleNamespace(data={"text/plain": "7"}), "Seven.")
    with pytest.raises(ValueError, match="ax must have a linear x-axis; got log"):
        asked_figures.ask_place(plt.subplots(subplot_kw={"xscale": "log"})[1])


def test_a_figure_says_where_its_axis_begins_and_ends():
    file = io.StringIO()
    fig, ax = plt.subplots(figsize=(5, 2))
    ax.set(position=[0.2, 0.25, 0.6, 0.5], xlim=(-1.5, 3))
    with plt.rc_context({"savefig.bbox": "standard"}):  # as it is, whatever a chapter has set
        asked_figures.ask_place(ax).savefig(file, format="svg")
    ends, style = question_figures.line(file.getvalue())
    assert ends == {"min": "-1.5", "max": "3"}
    assert style == "--left:20.00%;--wide:60.00%;--top:25.00%;--tall:50.00%;--width:360px"


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

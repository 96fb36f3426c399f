"""A question in a notebook: what its cell holds, and that page and notebook judge by one rule.

All questions of the built book stand in two pages here, as the site has them and as widgets.
"""

import itertools
import json
import random
import re
import sys
from pathlib import Path

import nbformat
import pytest

from attention.widgets import Question, _base
from attention.widgets.question import seal, unseal

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "book" / "_ext")]

import question_values as values  # noqa: E402

BUILT = ROOT / "_build"
CELL = re.compile(r'# @title Run this cell to answer: (\S+)\n.*\nQuestion\("(.*)"\)', re.S)
TYPED = (
    "0 1 2 3 -1 −1 +1 .5 0.5 0,5 1,5 1/9 1 /9 1/2/3 1/0 0/0 -3/4 1e3 1e-3 1e999 1e 0x10 1.2.3 "
    "1,2,3 1,000 1,234,567 0,125 NaN nan Infinity inf ∞ x --1 1_000 ½ ² 1e+2 - . , / "
    "0.30000000000000004 9007199254740993 12.5% 2π 1;2"
).split() + ["", " ", "1 2", " 0.9 ", "1 / 9", "\t2\n", "1.", "two", "<b>1</b>"]

TRY = """(tries) => Object.fromEntries(Object.entries(tries).map(([name, all]) => {
  const place = [...document.querySelectorAll("[data-question]")]
    .find((one) => JSON.parse(one.dataset.question).name === name);
  const inputs = [...place.querySelectorAll("form input")];
  return [name, all.map((one) => {
    inputs.forEach((input, k) => {
      if (input.type === "text") input.value = one[k];
      else if (input.type === "range") {
        if (one[k] === "") return; // not moved yet
        input.value = one[k];
        input.dispatchEvent(new Event("input"));
      } else input.checked = one.includes(k + 1);
    });
    place.querySelector("form").requestSubmit();
    const marks = inputs.map((input) => input.getAttribute("aria-invalid"));
    const words = [...place.querySelectorAll(".question-mark")].map((mark) => mark.textContent);
    const told = place.querySelector(".question-said").textContent.replace(/\\s+/g, " ").trim();
    return [told, marks, words, place.querySelector("details").open];
  })];
}))"""
WIDGETS = """<!doctype html><html lang=en><meta charset=utf-8><title>Questions</title>
<meta name=viewport content="width=device-width"><style>%s</style>
<body><main><h1>Questions</h1>%s</main><script type=module>%s
window.told = {};
for (const asked of %s) {
  const values = { asked };
  const model = { get: (key) => values[key], set(key, value) { values[key] = value; },
    save_changes() { window.told[asked.name] = values; } };
  render({ model, el: document.getElementById(asked.name) });
}
window.ready = true;
</script>"""


def cells():
    """The sealed text of every question in the built notebooks, by its name, and its notebook."""
    found = {}
    for path in sorted((BUILT / "ipynb" / "book").glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code" and (match := CELL.fullmatch(cell.source)):
                found[match[1]] = (match[2], cell, path.stem)
    assert len(found) > 50, "build the book first (make book)"
    return found


@pytest.fixture(scope="module")
def asked():
    return {name: unseal(sealed) for name, (sealed, _, _) in cells().items()}


def test_every_question_that_can_be_judged_has_its_cell_and_no_answer_to_be_seen(asked):
    exported = json.loads((BUILT / "ipynb" / "questions.json").read_text("utf-8"))
    notebooks = {path for _, _, path in cells().values()}
    judged = {
        q["name"]: q
        for chapter in exported["chapters"]
        for q in chapter["questions"]
        if chapter["name"] in notebooks and q["type"] != "open"
    }
    assert set(judged) == set(asked)
    for name, (_, cell, _) in cells().items():
        assert cell.metadata.jupyter.source_hidden and cell.metadata.cellView == "form"
        assert asked[name]["answer"] == judged[name]["answer"]
        words = re.sub(r"<[^>]*>", "", judged[name]["told"])
        assert words[:30] not in cell.source and '"answer"' not in cell.source
        shown = [output.data for output in cell.outputs]
        assert len(shown) == sum(part in asked[name] for part in ("options", "figure"))
        if "options" in asked[name]:
            assert shown[0]["text/markdown"].count("- ") >= len(asked[name]["options"])
        if "figure" in asked[name]:
            assert "<svg" in shown[0]["image/svg+xml"] and shown[0]["text/plain"]


def page_of_the_site():
    parts = []
    for name in sorted({notebook for _, _, notebook in cells().values()}):
        text = (BUILT / "html" / "_static" / "questions" / f"cards-book-{name}.js").read_text(
            "utf-8"
        )
        parts += json.loads(text.partition(" = ")[2].rstrip(";\n"))["cards"].values()
    return "<!doctype html><meta charset=utf-8><title>Q</title>" + "".join(parts)


def page_of_widgets(asked):
    places = "".join(f'<div id="{name}"></div>' for name in asked)
    module = _base.module_text("question").replace("export default { render };", "")
    states = json.dumps([dict(Question(seal(one)).asked) for one in asked.values()])
    return WIDGETS % (Question._css, places, module, states.replace("<", "\\u003c"))


@pytest.fixture
def opened(chrome, asked):
    contexts = []

    def open_page(text, **options):
        context = chrome.new_context(**options)
        contexts.append(context)
        page, page_problems = context.new_page(), []
        page.on("pageerror", lambda error: page_problems.append(str(error)))
        page.problems = page_problems
        page.set_content(text)
        return page

    yield open_page
    for context in contexts:
        assert all(page.problems == [] for page in context.pages)
        context.close()


def tries(asked):
    """What a reader may answer to each question, right and wrong and no answer at all."""
    draw, made = random.Random(14), {}
    for name, one in asked.items():
        kind = one["type"]
        if kind == "choice":
            options = range(1, len(one["options"]) + 1)
            many = len(one["answer"]) > 1
            sizes = range(len(options) + 1) if many else (1,)
            made[name] = [list(c) for n in sizes for c in itertools.combinations(options, n)]
        elif kind == "number":
            answer, within = one["answer"], one["tolerance"]
            close = [answer + f * within for f in (-2, -1.01, -0.99, 0, 0.5, 0.99, 1.01, 3)]
            hints = [hint["wrong"] for hint in one.get("hints", ())]
            made[name] = [[text] for text in [*TYPED, *map(repr, close), *map(repr, hints)]]
        elif kind == "place":
            steps = round((one["max"] - one["min"]) / one["step"])
            hints = [[repr(hint["wrong"])] for hint in one.get("hints", ())]
            made[name] = [
                [""],
                *hints,
                *([repr(one["min"] + k * one["step"])] for k in range(steps + 1)),
            ]
        elif kind == "matrix":
            cells = [repr(cell) for row in one["answer"] for cell in row]
            made[name] = [cells, *([cells[:-1] + [text] for text in TYPED])]
            made[name] += [[draw.choice([*cells, *TYPED]) for _ in cells] for _ in range(20)]
            made[name] += [
                [repr(c) for row in hint["wrong"] for c in row] for hint in one.get("hints", ())
            ]
    return made


@pytest.mark.browser
def test_page_and_notebook_say_the_same_to_every_answer(opened, asked):
    site = opened(page_of_the_site())
    site.add_script_tag(path=BUILT / "html" / "_static" / "questions" / "questions.js")
    notebook = opened(page_of_widgets(asked))
    notebook.wait_for_function("() => window.ready")
    given = tries(asked)
    there, here = site.evaluate(TRY, given), notebook.evaluate(TRY, given)
    for name in asked:
        for typed, a, b in zip(given[name], there[name], here[name], strict=True):
            assert a == b, f"{name}, {typed}: {a} in the page, {b} in the notebook"
    said = [one[0] for name in asked for one in here[name]]
    assert len(said) > 1000 and sum(s.startswith("✓ Right.") for s in said) > len(asked)
    assert not any("NaN" in s.replace("NaN is not read", "") for s in said)
    assert not any("undefined" in s for s in said)
    assert any(one["type"] == "place" for one in asked.values())
    # what an author may write, a reader may type; both are judged alike
    for name in [name for name in asked if asked[name]["type"] == "number"]:
        for (typed,), (words, *_) in zip(given[name], here[name], strict=True):
            try:
                value = values.number(typed)
            except values.BadQuestion:
                continue
            right = values.same("number", asked[name]["answer"], value, asked[name]["tolerance"])
            assert words.startswith("✓ Right.") == right, f"{name}, {typed}: {words}"
    # the first answer that was one is told to Python
    first = next(name for name in asked if asked[name]["type"] == "choice")
    told = notebook.evaluate("told")[first]
    assert told["given"] in given[first] and told["got"] in ("right", "wrong")


AXE = "async () => (await axe.run()).violations.map((v) => [v.id, v.nodes[0].html])"


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_its_inputs_are_named_and_seen_on_a_phone(opened, asked, scheme):
    import axe_playwright_python

    kinds = {(one["type"], len(one["answer"]) > 1 if one["type"] == "choice" else 0): name
             for name, one in asked.items()}  # fmt: skip
    few = {name: asked[name] for name in kinds.values()}
    page = opened(page_of_widgets(few), color_scheme=scheme, viewport={"width": 320, "height": 700})
    page.wait_for_function("() => window.ready")
    ground = "matchMedia('(prefers-color-scheme: dark)').matches ? '#111' : '#fff'"
    page.evaluate(f"document.body.style.background = {ground}")
    page.evaluate("document.querySelectorAll('h1').forEach((h) => h.hidden = true)")
    page.evaluate(TRY, {name: tries(few)[name][:1] for name in few})
    page.add_script_tag(path=Path(axe_playwright_python.__file__).parent / "axe.min.js")
    found = [one for one in page.evaluate(AXE) if one[0] != "page-has-heading-one"]
    assert found == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.locator("[role=status]").count() == len(few)


# in Python


def test_a_sealed_question_reads_back_and_shows_its_options_without_a_widget():
    asked = {"type": "choice", "answer": [1], "title": "Which – α?", "shown": "- $a$\n- b"}
    question = Question(seal(asked))
    assert "answer" not in seal(asked)
    data, _ = question._repr_mimebundle_()
    assert data["text/markdown"] == "- $a$\n- b"
    assert data["text/plain"] == "Which – α? (not answered yet)"
    assert "application/vnd.jupyter.widget-view+json" in data
    question.set_state({"given": [2], "got": "wrong"})
    assert repr(question) == "Which – α? (wrong: [2])"


@pytest.mark.parametrize("name", ["asked", "given", "got"])
def test_what_was_answered_is_there_to_be_read(name):
    question = Question(seal({"type": "number", "answer": 2}))
    with pytest.raises(Exception, match=name):
        setattr(question, name, "right")


@pytest.mark.parametrize(
    ("sealed", "says"),
    [
        (5, "sealed must be a text; got int"),
        (None, "sealed must be a text; got NoneType"),
        ("", "whole; got 0 characters that are not it"),
        ("guess-self", "got 10 characters that are not it"),
        ("é" * 4, "got 4 characters that are not it"),
        (seal({"type": "number"})[:-8], "characters that are not it"),
        (seal([1, 2]), "characters that are not it"),
    ],
)
def test_what_the_book_did_not_write_is_refused_in_a_sentence(sealed, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        Question(sealed)

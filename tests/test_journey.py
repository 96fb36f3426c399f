"""One sentence's journey: every number in the page against PyTorch's, and every link of it."""

import functools
import json
import math
import random
import re
from pathlib import Path

import numpy as np
import pytest
import test_widgets_math as js
import torch
import yaml
from site_browser import Alone

from attention import pretrained_tales
from attention.widgets import Journey, _base
from attention.widgets.journey import BLOCK, FOLD, STOPS

ROOT = Path(__file__).parents[1]
refused = js.refused
TEXTS = ["One day the young dragon", "", "Clara said, \"I promise, we'll be home!\"",
         "Ж 猫🐕\u00a0\ta", ("Ann, Bo, Cy, Di, Ed " * 5)[:100]]  # fmt: skip


def test_the_stops_are_the_same_in_the_page():
    source = (
        SOURCE + "export const names = () => stops(weights.sizes).map((s) => [s.part, s.layer]);"
    )
    (names,) = js.javascript([["names"]], source)
    assert [tuple(name) for name in names] == list(STOPS)


SOURCE = (
    js.inside("journey", "stops", "working", "happens", "linkOf")
    + """
const at = (text, stop) => [travel(text), stops(weights.sizes)[stop]];
export const values = (text, stop, head) => {
  const [found, place] = at(text, stop);
  const t = tensor(found, place, head);
  return range(t.rows * t.columns).map((k) => {
    const [i, j] = [Math.floor(k / t.columns), k % t.columns];
    return t.open?.(i, j) ? (place.part === "softmax" ? 0 : -Infinity) : t.value(i, j);
  });
};
export const written = (text, stop, head, i, j) => {
  const [found, place] = at(text, stop);
  return [working(found, place, head, i, j), tensor(found, place, head).value(i, j)];
};
export const told = (text, stop, head) => happens(...at(text, stop), head);
export const link = (stop) => linkOf(stops(weights.sizes)[stop].part);
"""
)


@functools.cache
def page(text: str) -> list[np.ndarray]:
    """All tensors of a text as the page computes them; where a stop shows a head, head 2."""
    calls = [["values", text, stop, 2] for stop in range(len(STOPS))]
    return [np.array(x, dtype=float) for x in js.javascript(calls, SOURCE)]


@pytest.mark.parametrize("text", TEXTS)
def test_every_tensor_is_pytorchs(text):
    w = Journey(text=text, head=2)
    for stop, got in enumerate(page(text)):
        w.stop = stop
        wanted = w.tensor.double().numpy().ravel()
        if STOPS[stop][0] in ("logits", "probabilities"):
            assert len(got) == math.ceil(956 / FOLD) * FOLD
            got = got[: len(wanted)]  # the last row of the fold is not full
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-3, err_msg=w.part)
    assert len(w.tokens) == 32 if text == TEXTS[-1] else w.tokens[0] == "\n"


def test_the_heads_are_told_apart():
    calls = [["values", TEXTS[0], STOPS.index(("softmax", 1)), head] for head in range(4)]
    for head, got in enumerate(js.javascript(calls, SOURCE)):
        w = Journey(text=TEXTS[0], head=head, stop=STOPS.index(("softmax", 1)))
        np.testing.assert_allclose(got, w.tensor.numpy().ravel(), atol=1e-4)


CLOSED = {"vectors", "positions", "sum of both", "norm", "first sum", "second norm", "ReLU",
          "second sum", "last norm"}  # fmt: skip


def computed(text: str) -> float:
    """The last formula of a line of arithmetic, computed: its numbers have three decimals."""
    formula = text.split(" = ")[-2]
    for sign, python in (("−", "-"), ("·", "*"), ("√", "math.sqrt"), ("sin", "math.sin"),
                         ("cos", "math.cos")):  # fmt: skip
        formula = formula.replace(sign, python)
    formula = re.sub(r"sqrt(-?[\d.]+)", r"sqrt(\1)", formula)
    return eval(formula, {"math": math, "max": max})  # noqa: S307


def test_the_arithmetic_of_a_cell_ends_in_its_number():
    draw = random.Random(0)
    cases = []
    for text in TEXTS:
        for stop, (part, _) in enumerate(STOPS):
            w = Journey(text=text, stop=stop)
            shape = (1, *w.tensor.shape) if part == "letters" else (*w.tensor.shape, 1)
            for _ in range(3):
                i, j = draw.randrange(shape[0]), draw.randrange(shape[1])
                if part in ("logits", "probabilities"):
                    i, j = divmod(i, FOLD)
                cases.append((text, stop, draw.randrange(4), i, j))
    got = js.javascript([["written", *case] for case in cases], SOURCE)
    seen = set()
    for (_text, stop, _, i, j), (said, value) in zip(cases, got, strict=True):
        part = STOPS[stop][0]
        assert not re.search("NaN|Infinity|undefined|null", said), said
        if part in ("letters", "tokens", "ids"):
            continue
        if part == "mask" and j > i:
            assert said.endswith("becomes minus infinity")
        elif part == "softmax" and j > i:
            assert said.endswith("its weight is 0")
        else:
            last = re.findall(r"−?\d+\.\d+", said)[-1].replace("−", "-")
            assert float(last) == pytest.approx(value, abs=6e-4), said
        if part in CLOSED:
            assert computed(said) == pytest.approx(value, rel=0.02, abs=0.02), said
            seen.add(part)
    assert seen == CLOSED


def test_the_terms_of_a_sum_are_the_models():
    """The first product of Q, of a score and of an average of values, and the score's sum."""
    w = Journey(text=TEXTS[0], head=2)
    tensor = {}
    for name in ("norm", "Q", "K", "V", "softmax", "scores"):
        w.stop = STOPS.index((name, 1))
        tensor[name] = w.tensor
    place = [STOPS.index((name, 1)) for name in ("Q", "scores", "weights × V")]
    calls = [["written", TEXTS[0], stop, 2, 6, 3] for stop in place]
    q, score, mean = (said for said, _ in js.javascript(calls, SOURCE))
    matrix = w.model.layers[1].attention.w_q.weight.detach()
    n = lambda x: f"{float(x):.3f}".replace("-", "−")  # noqa: E731
    p = lambda x: n(x) if x >= 0 else f"({n(x)})"  # noqa: E731
    assert f"[{p(tensor['norm'][6, 0])} · {p(matrix[3, 0])} + " in q and ": 96 products]" in q
    assert f"[{p(tensor['Q'][6, 48])} · {p(tensor['K'][3, 48])} + " in score
    assert f" = {n(tensor['Q'][6, 48:72] @ tensor['K'][3, 48:72])} / 4.899 = " in score
    assert f"= {p(tensor['softmax'][6, 0])} · {p(tensor['V'][0, 51])} + " in mean


def test_tokens_tell_how_they_were_joined():
    got = js.javascript([["written", "One day", 1, 0, i, 0] for i in range(3)], SOURCE)
    tokens = Journey(text="One day").tokens
    assert got[0][0] == "“⏎” is a single byte: 10"
    for said, token in zip([s for s, _ in got[1:]], tokens[1:], strict=False):
        parts = re.findall("“([^”]+)”", said)
        assert parts == [token.replace(" ", "␣")] or "".join(parts[:2]) == parts[2]


def test_each_stop_says_in_a_sentence_what_happens_and_where_it_is_taught():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    chapters = [Path(entry["file"]).name for entry in toc["parts"][0]["chapters"]]
    told = js.javascript([["told", TEXTS[0], stop, 1] for stop in range(len(STOPS))], SOURCE)
    links = js.javascript([["link", stop] for stop in range(len(STOPS))], SOURCE)
    for sentence, (chapter, address, _) in zip(told, links, strict=True):
        assert re.fullmatch(r"[A-Z].{20,220}\.", sentence), sentence
        file, anchor = address.split("#")
        assert chapters[chapter - 1] == file.removesuffix(".html")
        text = (ROOT / "book" / file.replace(".html", ".md")).read_text("utf-8")
        assert f"({anchor})=" in text, address
    assert len({address for _, address, _ in links}) >= 10


def test_journey_in_python():
    w = Journey()
    assert (w.part, w.stop, len(w.tokens)) == ("letters", 0, len(w.ids))
    w.stop = STOPS.index(("scores", 2))
    assert w.part == "block 2, scores" and w.tensor.shape == (len(w.ids), len(w.ids))
    w.stop = len(STOPS) - 1
    assert float(w.tensor[0]) == float(w.tensor.max()) and len(w.tensor) == 10
    with torch.no_grad():
        logits = w.model(torch.tensor([w.ids]))[0, -1]
    assert w.next_token == pretrained_tales()[1].pieces([int(logits.argmax())])[0]
    with refused("text must be at most 100 characters; got 101 of them"):
        w.text = "a" * 101
    with refused("text must be text that can be written as UTF-8; character 1 cannot"):
        w.text = "a\ud800"
    with refused("stop must be a whole number from 0 to 57; got 58"):
        w.stop = 58
    assert len(STOPS) == 6 + 3 * len(BLOCK) + 4


# ------------------------------------------------------------------ in the browser


PAGE = """<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport
content="width=device-width"><title>x</title><style>%s</style><div id=view></div>
<script type=module>%s
const values = %s, all = {};
render({ el: document.getElementById("view"), model: { get: (key) => values[key],
  set(key, value) { values[key] = value; for (const f of all[`change:${key}`] ?? []) f(); },
  save_changes() {}, on(key, f) { (all[key] ??= []).push(f); }, off() {} }%s });
</script>"""


class Opened(Alone):
    """The journey from a state, with what a page gives its module beyond the model."""

    def __init__(self, chrome, state=None, more="", **options):
        w = Journey(**(state or {}))
        state = {k: v for k, v in w.get_state().items() if k[0] != "_" and k != "layout"}
        module = _base.module_text("journey").replace("export default { render };", "")
        super().__init__(chrome, **options)
        css = _base._read("explorer.css")
        self.page.set_content(PAGE % (css, module, json.dumps(state), more))
        self.page.locator(".explorer").wait_for()


@pytest.mark.browser
def test_the_journey_by_keyboard(chrome):
    with Opened(chrome) as journey:
        page, keys = journey.page, journey.page.keyboard
        heading, working = page.locator(".heading"), page.locator(".working")
        assert heading.inner_text() == "letters (24)"
        assert page.locator(".explorer a").count() == 0  # a notebook has no other chapter
        assert "chapter 8, " in page.locator(".explorer").inner_text()
        page.get_by_role("button", name="Step").focus()
        for _ in range(7):
            keys.press("Enter")
        assert heading.inner_text() == "Block 0, Q (9, 96)"
        page.locator(".raster [tabindex='0']").focus()
        keys.press("ArrowUp")
        keys.press("ArrowRight")
        w = Journey(stop=7)
        text = working.inner_text()
        assert text.endswith(f"= {float(w.tensor[7, 1]):.3f}".replace("-", "−"))
        assert "column 1: " in journey.says()
        page.locator(".strip [tabindex='0']").focus()
        for _ in range(3):
            keys.press("ArrowRight")
        assert heading.inner_text() == "Block 0, head 0, scores (9, 9)"
        page.get_by_label("head", exact=True).focus()
        before = working.inner_text()
        keys.press("ArrowDown")
        assert heading.inner_text().startswith("Block 0, head 1") and working.inner_text() != before
        page.get_by_label("stop", exact=True).focus()
        keys.press("End")
        assert f"expects “{w.next_token.replace(' ', '␣')}” most" in journey.says()
        page.get_by_role("button", name="Back").click()
        assert heading.inner_text() == "probabilities (956)"
        page.get_by_label("your words").fill("Once upon a")
        best = Journey(text="Once upon a").next_token.replace(" ", "␣")
        assert f"“{best}”: 0." in journey.says()
        page.get_by_role("button", name="Reset").click()
        assert heading.inner_text() == "letters (24)"


@pytest.mark.browser
def test_play_goes_on_by_itself_and_not_where_motion_is_unwelcome(chrome):
    with Opened(chrome, {"stop": 54}, ", more() {}") as journey:
        page = journey.page
        assert page.locator(".explorer a").get_attribute("href").startswith("blocks.html#sec-")
        page.get_by_role("button", name="Play").click()
        page.get_by_text("next token (the 10").wait_for(timeout=20_000)
        page.get_by_role("button", name="Play").wait_for()  # it has stopped at the end
    with Opened(chrome, reduced_motion="reduce") as journey:
        assert not journey.page.get_by_role("button", name="Play").is_visible()


@pytest.mark.browser
def test_any_words_on_a_phone(chrome):
    phone = {"viewport": {"width": 320, "height": 700}, "has_touch": True}
    with Opened(chrome, **phone) as journey:
        page = journey.page
        for text in TEXTS:
            page.get_by_label("your words").fill(text)
            for stop in (0, 1, 7, 10, 19, 40, 55, 57):
                page.locator(".stop").nth(stop).tap()
                shown = page.locator(".explorer").inner_text()
                assert not re.search(r"NaN|Infinity|∞|undefined|\bnull\b", shown)
                assert page.evaluate("document.documentElement.scrollWidth") <= 320
        page.locator(".raster").tap(position={"x": 20, "y": 30})
        assert "has the probability" in page.locator(".working").inner_text()

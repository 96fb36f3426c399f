"""The numbers in the text of chapter 10, and its measurements, are what the package computes."""

import math
import re

import ablations
import matplotlib
import pages
import pytest
import torch

from attention import Text, cat_sentence, tales
from attention.widgets import OnlineSoftmax

TEXT = (pages.BOOK / "in-practice.md").read_text("utf-8")
SLOW = ("attention_ms", "peak_here", "from attention.widgets")


def says(template, *values):
    pages.printed("in-practice", template, *values)


def cells():
    for cell in re.findall(r"^```\{code-cell\} python\n(.*?)^```$", TEXT, flags=re.S | re.M):
        cell = cell.replace("from myst_nb import glue\n", "")
        cell = re.sub(r"\A---\n.*?^---\n", "", cell, flags=re.S | re.M)
        yield re.sub(r"\A:tags:.*\n", "", cell)


@pytest.fixture(scope="module")
def page():
    """The names that the page's own cells define, without the trained variants (the page checks
    these itself when it is built)."""
    matplotlib.use("Agg")
    glued = {}
    names = {"glue": lambda name, value, display: glued.update({name: value}), "glued": glued}
    threads = torch.get_num_threads()
    for cell in cells():
        cell = cell.replace("for n in (64, 128, 256, 512)}", "for n in (64,)}")
        if not any(word in cell for word in SLOW):
            exec(compile(cell, "in-practice.md", "exec"), names)
            matplotlib.pyplot.close("all")
    torch.set_num_threads(threads)
    return names


def test_the_new_word(page):
    words, X = cat_sentence("tired")
    keys = (X[:, 0] - X[:, 1]).int().tolist()
    says("The nine kept keys are " + "{}, " * 8 + "{}, and its own key is {}.", *[
        str(k).replace("-", "−") for k in keys])  # fmt: skip
    assert page["Q"][-1] == 8 and page["weights"].argmax() == words.index("cat")
    assert 0.997 < page["glued"]["practice-cat"] < 0.998


def test_the_online_softmax(page):
    e1, e2 = math.exp(-1), math.exp(-2)
    (_, _, m, total, o), (_, factor, m2, l2, o2) = page["steps"]
    assert (m, m2) == (2, 4)
    says("$\\ell = e^{{-1}} + 1 = {:.3f}$, and $o = 4 \\cdot {:.3f} = {:.3f}$.", total, e1, o)
    says("multiplied by $e^{{2-4}} = {:.3f}$", factor)
    says("$\\ell = {:.3f} + 1 + {:.3f} = {:.3f}$ and", total * e2, e1, l2)
    says("$o = {:.3f} + 2 + {:.3f} = {:.3f}$. The", o * e2, 6 * e1, o2)
    says("output is ${:.3f}/{:.3f} = {:.3f}$, and", o2, l2, page["out"])


def test_the_counts(page):
    assert page["parameters"](**page["mistral"]) == 7_241_732_096  # as published
    says("a language model with {:.1f} billion parameters", 7_241_732_096 / 1e9)
    projections, network, pair = page["layers_of"]["Mistral 7B"]
    d = page["mistral"]["d_model"]
    says("small key and value matrices save ${:.1f}d^2$, and the gated network costs "
         "${:.1f}d^2$ instead of $8d^2$.", 4 - projections / d**2, network / d**2)  # fmt: skip
    crossing = (projections + network) / pair
    says("at ${:.1f}d = {}$ tokens.", crossing / d, f"{crossing:,.0f}".replace(",", "{,}"))
    for name, (projections, network, pair) in page["layers_of"].items():
        first, all_ = (f"{n / pair:,.0f}" for n in (projections, projections + network))
        assert f"{first} tokens" in TEXT or f"dot is at {first}" in TEXT, name
        assert f"at {all_}" in TEXT, name
    assert page["glued"]["practice-guess-memory"] == 3
    assert page["glued"]["practice-guess-crossing"] == 3
    assert page["glued"]["practice-memory-eight"] < crossing < page["glued"]["practice-memory-one"]
    assert f"- far below {crossing:,.0f} tokens" in TEXT
    says("the parameters take {:.1f} GiB, and each token {:.0f} KiB.", page["parameters_gib"],
         page["cache_bytes"](1, 32, 8, 128) / 2**10)  # fmt: skip
    one = page["one_user"]
    assert one["32 heads"] > page["parameters_gib"] > 3 * one["8 heads"]
    assert 4 * one["8 heads"] > page["parameters_gib"] > 8 * one["1 head"]
    assert "The parameters are a level line at 13.5." in TEXT


def test_the_reading_of_one_token(page):
    """What a token costs if only the reading counts: parameters once, a cache for each user."""
    users, weights, cache = 8, 2 * 7_241_732_096, 2 * 32768 * 32 * 8 * 128 * 2
    glued, reading = page["glued"], page["reading"]
    assert math.isclose(glued["practice-read-one"], 3e12 / (weights + cache))
    assert math.isclose(glued["practice-read-slower"], (weights + 8 * cache) / (weights + cache))
    assert math.isclose(glued["practice-read-more"], users / glued["practice-read-slower"])
    speeds = [users / read for users, read in reading.values()]
    assert min(speeds[2:]) > 1.5 * speeds[1] > 3 * speeds[0]  # "raise this limit"


def test_the_recorded_numbers(page):
    measured = page["measured"]
    with_cache, without = measured.TOKEN_MS[2048]
    says("takes {:.0f} ms without the cache and {:.1f} ms with it", without, with_cache)
    plain = [f"{p:.0f} at {n:,}" for n, (_, p) in measured.PEAK_MIB.items() if p]
    fused = [f"{measured.PEAK_MIB[n][0]} at {n:,}" for n in (1024, 4096, 32768)]
    assert f"Plain: {', '.join(plain)}. Fused: {', '.join(fused)}." in TEXT
    fused, plain = measured.PEAK_MIB[8192]
    says("needs {:.0f} MiB for one head, and the fused kernel {} MiB", plain, fused)


def test_the_kernels(page):
    chosen = page["chosen"]
    assert list(chosen.values()) == ["fused"] * 5 + ["plain"] * 4


def test_the_rotary_model(page):
    glued = page["glued"]
    near, middle, far = (f"practice-{{}}-{where}" for where in ("near", "middle", "far"))
    assert glued[middle.format("base")] < glued[middle.format("plain")] - 0.15
    assert glued[near.format("squeezed")] > glued[near.format("plain")] + 0.2
    assert glued[far.format("tuned")] < glued[far.format("plain")] - 0.2
    control = [glued[where.format("control")] for where in (near, far)]
    assert control[0] < glued[near.format("tuned")] - 0.1  # "better at the first 24 positions"
    assert abs(control[1] - glued[far.format("tuned")]) < 0.02  # "as good there"
    assert glued[far.format("base")] > glued[far.format("plain")]  # "it does not help"
    by_fours = page["far"]["NTK-aware"].view(8, 24).mean(1)  # pieces of the training length
    assert by_fours[3] < page["far"]["as trained"][72:96].mean() - 0.2 and by_fours[4] > 0.8
    says("For example, $d_k = {}$ and $s = {}$ give {} times the base.", 8, 8, round(8 ** (8 / 6)))


def test_the_bits(page):
    glued, by_bits = page["glued"], page["by_bits"]
    rows, whole = by_bits.values()
    assert glued["practice-guess-bits"] == 2
    assert rows[8] < page["full"] + 1e-3 and rows[3] > rows[4] + 0.05 and rows[2] > rows[3] + 1
    assert all(whole[bits] > rows[bits] - 0.01 for bits in (8, 6, 5, 4, 3))
    assert whole[4] > rows[4] + 0.08 and min(rows[2], whole[2]) > 5  # both leave the picture
    says("dot product $128 \\cdot 900 = {}$", f"{128 * 900:,}".replace(",", "{,}"))
    assert torch.tensor(128 * 900.0).half().isinf() and torch.tensor(-1e9).half().isinf()
    says("next number after 1 is {}, and", 1 + torch.finfo(torch.bfloat16).eps)
    row = torch.tensor([0.5, -1.27, 0.024], dtype=torch.float64)
    s = row.abs().max() / 127
    assert (row / s).round().tolist() == [50, -127, 2] and math.isclose(s, 0.01)


def test_sums_that_stop():
    for dtype, stop, add in ((torch.bfloat16, 256, 1), (torch.float16, 2048, 1),
                             (torch.bfloat16, 0.5, 0.001)):  # fmt: skip
        x = torch.tensor(0, dtype=dtype)
        for _ in range(2100):
            x = x + torch.tensor(add, dtype=dtype)
        assert x == stop
    says("1. At {}. bfloat16 has", 256)
    says("2. At {}, with 11 digits.", "2,048")
    says("3. Less: it stops at {}.", 0.5)


def test_the_padding(page):
    lengths = page["lengths_drawn"]
    cells = len(lengths) * max(lengths)
    empty = cells - sum(lengths)
    assert (f"{empty} of {cells} cells are padding, so {100 * empty / cells:.0f} % of the work is "
            "wasted.") in TEXT  # fmt: skip
    texts = [10, 20, 30, 100]
    says("so {:.0f} % is padding.", 100 * (1 - sum(texts) / 400))
    says("$160^2 = {}$. Padded", f"{sum(texts) ** 2:,}".replace(",", "{,}"))
    says("= {}$. 3.", f"{sum(n * n for n in texts):,}".replace(",", "{,}"))


def test_the_norms():
    x = torch.arange(1.0, 5.0, dtype=torch.float64)

    def rms(x):
        return x / x.square().mean().sqrt()

    says("root {:.3f}, so both are [" + ", ".join(["{:.3f}"] * 4) + "].",
         x.square().mean().sqrt(), *rms(x))  # fmt: skip
    centred = [f"{v:.3f}".replace("-", "−") for v in rms(x - 2.5)]
    says("its RMSNorm is [" + ", ".join(centred) + "],")


def test_the_exercise_with_the_card():
    token = 2 * 32 * 8 * 128 * 2
    says("= {}$ bytes, {} KiB.", f"{token:,}".replace(",", "{,}"), token // 1024)
    says("KiB = {:.0f} GiB. 3. Four", 8 * 8192 * token / 2**30)
    says("Four times as much, {:.0f} GiB.", 8 * 8192 * 4 * token / 2**30)
    says("= {}$ tokens. That is about {:.0f} conv", f"{16e9 / token:,.0f}".replace(",", "{,}"),
         16e9 / token / 8192)  # fmt: skip


def test_recall_and_answers(page):
    softmax, state, positive = page["recalled"].values()
    assert min(softmax.values()) == 1 and state[32] == 1 and state[1024] < 0.2
    assert all(n * share == 1 for n, share in positive.items())  # "no more than by chance"
    glued = page["glued"]
    assert glued["practice-recall-divided"] < 95 and 0.6 < glued["practice-recall-cosine"] < 0.8
    assert glued["practice-check-cache"] == 3.125 and glued["practice-check-crossing"] == 6144
    says("$2 \\cdot 0.135 + e^{{3-3}} = {:.3f}$", glued["practice-check-online"])
    assert glued["practice-check-int8"] == [[127, -15, 2]]


def test_the_recorded_ablation_is_that_of_the_script_and_of_the_page(page):
    recorded = page["measured"].ABLATION
    assert tuple(recorded["rows"]) == ablations.VARIANTS
    assert recorded.keys() - {"rows"} == ablations.facts().keys()
    for name, now in ablations.facts().items():
        assert name == "machine" or recorded[name] == now, name
    for name, row in recorded["rows"].items():
        model = page["variant"](name, len(tales().tokens))
        assert row["parameters"] == sum(p.numel() for p in model.parameters()), name
        assert [(run["seed"], run["lr"]) for run in row["tried"]] == [
            (0, lr) for lr in ablations.RATES], name  # fmt: skip
        best = min(row["tried"], key=lambda run: run["held_out"])["lr"]
        assert [(run["seed"], run["lr"]) for run in row["runs"]] == [
            (seed, best) for seed in ablations.SEEDS], name  # fmt: skip


def test_what_the_page_says_of_the_ablation(page):
    rows, glued, means = page["recorded"], page["glued"], page["means_"]
    spread = glued["practice-spread"]
    gains = glued["practice-gain-rotary"], glued["practice-gain-all"]
    assert min(gains) > 3 * spread and 0 < gains[1] - gains[0] < spread  # "hardly more"
    left = {
        name for name, row in page["losses_"].items() if max(row) < min(page["losses_"]["2017"])
    }
    assert left == {"rotary", "all four", "gated network"}  # both dots left of the band
    others = set(rows) - {"rotary", "all four"}
    assert all(abs(means[name] - means["2017"]) < spread for name in others)
    fast = {name: row["tried"][-1] for name, row in rows.items()}
    assert all(run["lr"] == 0.02 for run in fast.values())
    failed = {name for name, run in fast.items() if run["held_out"] > 5.5}  # a unigram has 5.7
    new = {"pre-norm", "all four"}
    assert not failed & new and 2 * len(failed) > len(set(rows) - new)
    assert max(fast[name]["held_out"] for name in new) < 3.4
    assert round(rows["experts"]["parameters"] / rows["2017"]["parameters"], 1) == 1.5
    assert glued["practice-alone-most"] > 34 and glued["practice-alone-least"] < 16
    ranked = {}
    for name in ("experts", "experts, not balanced"):
        shares = 100 * torch.tensor([run["shares"] for run in rows[name]["runs"]])
        ranked[name] = shares.sort(-1, descending=True).values.mean(0)
    assert (ranked["experts"] - 25).abs().max() < 4.5  # "all stay near 25 %"
    first, *_, last = ranked["experts, not balanced"].round().int().T
    ends = first.min(), first.max(), last.min(), last.max()
    assert "the rows begin between {} and {} and end between {} and {}.".format(*ends) in TEXT
    attention = page["variant"]("latent", 956).layers[0].attention
    says("a layer keeps {} numbers a token instead of {},", attention.down.out_features, 2 * 64)


def test_a_variant_trains_as_it_was_recorded(page, monkeypatch):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    text = Text(tales().tokens, tales().train[:20_000], tales().held_out[:5_000])
    losses = {}
    alone = "experts, not balanced"
    for name, balance in (("latent", 0.01), ("experts", 0.01), ("experts", 10.0),
                          (alone, 0.01), (alone, 10.0)):  # fmt: skip
        monkeypatch.setattr(ablations, "BALANCE", balance)
        run = ablations.learn(name, text, seed=1, lr=3e-2, steps=3, progress=False)
        assert run.keys() == page["measured"].ABLATION["rows"][name]["runs"][0].keys()
        losses[name, balance] = run["held_out"]
        assert 6 < run["held_out"] < 8  # ln 956 is 6.9
    torch.set_num_threads(threads)
    assert all(abs(sum(layer) - 1) < 1e-3 and len(layer) == 4 for layer in run["shares"])
    assert losses["experts", 0.01] != losses["experts", 10.0]
    assert losses[alone, 0.01] == losses[alone, 10.0]


def test_the_load_balancing_loss(page):
    torch.manual_seed(0)
    layer = page["Experts"](8, 16)
    x = torch.randn(2, 50, 8)
    out, p = layer(x), layer.router(x).softmax(-1)
    first, second = p.sort(-1, descending=True).indices[..., :2].unbind(-1)
    F = torch.stack([((first == e).sum() + (second == e).sum()) / 200 for e in range(4)])
    torch.testing.assert_close(layer.balance, 4 * (F * p.mean((0, 1))).sum())
    b, n = 1, 7
    parts = [p[b, n, e[b, n]] * layer.experts[e[b, n]](x[b, n]) for e in (first, second)]
    torch.testing.assert_close(out[b, n], sum(parts))
    with torch.no_grad():
        layer.router.weight.zero_()
    layer(x)
    torch.testing.assert_close(layer.balance.item(), 1.0)  # equal P, whatever F
    assert not layer.f.requires_grad and layer.balance.requires_grad  # only P has a gradient


def test_the_window_in_flex_attention(page):
    """The rule of the page, without the compiler, against the mask of the package."""
    code = re.search(r"^~~~python\n(from torch.nn.attention.*?)^~~~$", TEXT, re.S | re.M)[1]
    rule = code[code.index("def rule") : code.index("mask =")]
    names = {}
    exec(rule, names)
    i, j = torch.arange(256)[:, None], torch.arange(256)[None, :]
    window = page["causal_mask"](256) & page["sliding_window_mask"](256, 64)
    assert torch.equal(names["rule"](0, 0, i, j), window)


def test_the_answers_about_the_explorer():
    late = OnlineSoftmax()
    assert late.steps[-1][0] < 0.01 and abs(late.out - late.values[-1]) < 0.05
    falling = OnlineSoftmax(scores=list(range(7, -1, -1)))
    assert [factor for factor, *_ in falling.steps] == [0, 1, 1, 1]
    ends = {block: OnlineSoftmax(block=block).steps[-1][1:] for block in range(1, 13)}
    for end in ends.values():
        torch.testing.assert_close(end, ends[1])

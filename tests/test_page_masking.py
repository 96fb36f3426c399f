"""The numbers in the text of chapter 6, and its experiment, are what the package computes."""

import itertools
import math
import re

import matplotlib
import pages
import pytest
import torch

from attention import (
    Vocabulary,
    attention,
    causal_mask,
    prefix_mask,
    reach,
    sliding_window_mask,
    softmax,
)
from attention.data import weather_sentences

TEXT = (pages.BOOK / "masking.md").read_text("utf-8")


def says(template, *values):
    pages.printed("masking", template, *values)


def soft(*scores):
    return softmax(torch.tensor(scores, dtype=torch.float64)).tolist()


def test_the_mask_by_hand():
    scores = torch.tensor([[1.0, 0.0, 2.0], [2.0, 1.0, 3.0], [0.0, 1.0, 1.0]])
    values = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    # q = scores, k = identity and no scale: the scores are those of the page
    out, weights = attention(scores, torch.eye(3), values, causal_mask(3), scale=1.0)
    assert weights[0].tolist() == [1, 0, 0] and out[0].tolist() == [1, 0]
    says("{:.3f} for *The*, {:.3f} for *cat* and {:.3f} for *sat*", *soft(2, 1, 3))
    says("Then the row would sum to {:.3f}.", sum(soft(2, 1, 3)[:2]))
    says("is $e^{{2-1}} = {:.3f}$ before and after.", weights[1, 0] / weights[1, 1])
    e = math.e
    says("$e^2 = {:.3f}$ and $e^1 = {:.3f}$ sum to {:.3f}. The", e * e, e, e * e + e)
    says(
        "weights are {:.3f} and {:.3f}, the output is $({:.3f}, {:.3f})$", *weights[1, :2], *out[1]
    )
    says("and twice $e^1 = {:.3f}$ sum to {:.3f}, the weights", e, 1 + 2 * e)
    says("are {:.3f}, {:.3f} and {:.3f}, the output is $({:.3f}, {:.3f})$", *weights[2], *out[2])
    before = torch.softmax(scores, -1)
    assert torch.equal(before[0].sort().values, before[1].sort().values)
    assert [f"{x:.3f}" for x in before[0]] == ["0.245", "0.090", "0.665"]
    assert "0.245, 0.090, 0.665; the same three numbers in another order; and 0.155" in TEXT
    assert [f"{x:.2f}" for x in (*weights[1, :2], *weights[2])] == [
        "0.73", "0.27", "0.16", "0.42", "0.42",
    ]  # fmt: skip
    assert "1 0 0; 0.73 0.27 0; 0.16 0.42 0.42" in TEXT


def test_the_counts():
    assert causal_mask(3).sum() == 6
    says("Six of the nine pairs")
    for n in (1, 5, 20):
        assert causal_mask(n).sum() == n * (n + 1) // 2
    says("$20 \\cdot 21/2 = {}$. Each of the 20", int(causal_mask(20).sum()))
    says("Of the {} pairs of different tokens the mask leaves one half, {}.",
         20 * 19, int(causal_mask(20).tril(-1).sum()))  # fmt: skip
    assert "=== hint 190" in TEXT and "$20^2 = 400$" in TEXT and 20**2 == 400
    says("Of 64 open cells {} are left", int(causal_mask(8).sum()))


def test_the_floor():
    sentences = weather_sentences()
    read = len(sentences) - 1
    tokens = sum(len(s.split()) + 1 for s in sentences if s != "the sun sets and the sky turns red")
    floor = math.log(read) / (tokens / read)
    says("There are {} sentences such as", len(sentences))
    assert "the moon rises and the sea turns silver" in sentences
    says("drawn from {} with equal chance", read)
    says("$\\ln {} = {:.3f}$ nats", read, math.log(read))
    says("A sentence has {:.3f} tokens on average", tokens / read)
    says("That makes {:.3f} nats a token, the **entropy rate**", floor)
    says("The masked models stay above {:.3f}. One reason", floor)
    says("The entropy rate of a generated text is {:.2f} nats.", floor)
    vocabulary = Vocabulary(" ".join(sentences).split())
    size = len(vocabulary)
    says("it would be $\\ln {} = {:.2f}$ ({} tokens)", size, math.log(size), size)
    last = [s.split()[-1] for s in sentences]
    says("always says the same colour would be right {} times.", max(map(last.count, last)))


def test_the_soft_mask():
    says("acts like $-10/8 = {:.2f}$, and", -10 / math.sqrt(64))
    says("is multiplied only by $e^{{-1.25}} = {:.3f}$", math.exp(-1.25))
    says("is multiplied by $e^{{-10}} = {:.6f}$ before", math.exp(-10))
    says("together then get {:.1f} % of the weight of one", 100 * 1000 * math.exp(-10))
    assert torch.tensor(-1e9).half() == -math.inf
    assert torch.tensor([0.0, -1e9]).softmax(0)[1] == 0
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        smallest = torch.tensor(torch.finfo(dtype).min, dtype=dtype)
        assert smallest + smallest == -math.inf  # "two of them sum to -inf"
    late = torch.tensor([0.0, 0.0, 200.0]).softmax(0)
    assert (late[:2] / late[:2].sum()).isnan().all()


def test_the_checks():
    says("sum to {:.3f}, so the weights are {:.3f}, {:.3f}, 0 and 0.", 1 + math.e, *soft(0, 1))
    honest = [i for i in range(10) if not prefix_mask(11, 4)[i, i + 1]]
    says("At {}. Positions 0, 1 and 2 see", len(honest))
    assert honest == list(range(3, 10))


def test_the_coins():
    two = 2 * math.log(2) / 3
    says("$2 \\ln 2 / 3 = {:.3f}$. 2.", two)
    says("3. $\\ln 2 = {:.3f}$, at every position.", math.log(2))
    says("${:.3f}/16 = {:.3f}$.", math.log(2), math.log(2) / 16)
    assert two < 0.47 and 0.30 < two


def test_hiding_only_the_answer_leaks_in_two_layers():
    mask = ~torch.eye(8).roll(1, dims=1).bool()
    mask[-1, 0] = True
    assert not reach(mask, 1).diagonal(1).any() and reach(mask, 2).all()
    assert mask[5, 4] and mask[3, 5] and mask[2, 4] and mask[3, 2]  # the two paths
    says("No. With `mask = ~torch.eye(8).roll(1, dims=1).bool()` and `mask[-1, 0] = True`")


def test_the_reach():
    window = causal_mask(8) & sliding_window_mask(8, 3)
    knows = [int(reach(window, layers)[-1].sum()) for layers in (1, 2, 3, 4)]
    says("The last token depends on {}, {}, {} and {} of the 8 tokens.", *knows)
    assert reach(causal_mask(7) & sliding_window_mask(7, 3), 3)[6].all()  # the relay
    wide = causal_mask(40) & sliding_window_mask(40, 3)
    assert [int(reach(wide, layers)[-1].sum()) for layers in (1, 2, 4)] == [3, 5, 9]
    assert "is 3, 5 and 9 cells wide" in TEXT
    for layers, w in itertools.product((1, 2, 3), (1, 2, 5)):
        mask = causal_mask(40) & sliding_window_mask(40, w)
        assert reach(mask, layers)[-1].sum() - 1 == layers * (w - 1)
    says("$32 \\cdot 4095 = {}$", f"{32 * 4095:,}".replace(",", "{,}"))


def test_the_exercise_by_hand():
    scores = torch.tensor(
        [[3.0, 1, 0, 2], [0, 0, 4, 4], [1, 2, 1, 9], [0, 0, 0, 0]], dtype=torch.float64
    )
    causal = softmax(scores.masked_fill(~causal_mask(4), -math.inf))
    narrow = causal_mask(4) & sliding_window_mask(4, 2)
    window = softmax(scores.masked_fill(~narrow, -math.inf))
    assert causal[0].tolist() == window[0].tolist() == [1, 0, 0, 0]
    assert torch.equal(causal[1], window[1])
    says("two equal scores, $({:.3f}, {:.3f}, 0, 0)$", *causal[1, :2])
    says("over ${:.3f}$: $({:.3f}, {:.3f}, {:.3f}, 0)$", 1 + 2 / math.e, *causal[2, :3])
    says("Row 3: $({:.3f}, {:.3f}, {:.3f}, {:.3f})$.", *causal[3])
    says("Row 2 keeps the scores 2 and 1: $(0, {:.3f}, {:.3f}, 0)$", *window[2, 1:3])
    says("Row 3: $(0, 0, {:.3f}, {:.3f})$.", *window[3, 2:])


def test_the_bridge():
    at = torch.arange(8) // 4
    blocks = causal_mask(8) & (at[:, None] == at)
    assert not reach(blocks, 8)[7, 1]

    def bridges(aim):
        found = []
        for i, j in itertools.product(range(8), range(8)):
            if j <= i and not blocks[i, j]:
                mask = blocks.clone()
                mask[i, j] = True
                if aim(reach(mask, 2)[7]):
                    found.append((i, j))
        return found

    two = bridges(lambda knows: bool(knows[1]))
    assert two == [(4, 1), (5, 1), (6, 1), (7, 1), (7, 2), (7, 3)]
    says("Six cells.")
    says("at token 1 or at one that knows of it: {}, {}, {}.", *two[3:])
    says("and token 7 looks at that token: {}, {}, {}.", *two[:3])
    assert bridges(lambda knows: bool(knows.all())) == [(7, 3)]
    says("3. (7, 3), and no other")


@pytest.fixture(scope="module")
def page():
    """The names that the page's own code cells define: the page, not a copy of it."""
    matplotlib.use("Agg")
    glued = {}
    names = {"glue": lambda name, value, display: glued.update({name: value}), "glued": glued}
    for cell in re.findall(r"^```\{code-cell\} python\n(.*?)^```$", TEXT, flags=re.S | re.M):
        if "from attention.widgets" in cell:
            continue
        cell = cell.replace("from myst_nb import glue\n", "")
        cell = re.sub(r"\A---\n.*?^---\n", "", cell, flags=re.S | re.M)
        cell = re.sub(r"\A:tags:.*\n", "", cell)
        exec(compile(cell, "masking.md", "exec"), names)
    return names


def test_the_model_that_cheats(page):
    """Three seeds: a loss far under the masked one, and generation that fails."""
    seeds = {seed for _, seed in page["measured"]}
    assert len(seeds) >= 3
    for seed in seeds:
        honest, writes, colours = page["measured"]["masked", seed]
        cheat, broken, guesses = page["measured"]["unmasked", seed]
        assert cheat < honest / 6  # "less than a sixth"
        assert cheat < page["floor"] / 2 and page["floor"] < honest < 1.3 * page["floor"]
        assert writes >= 60 and broken <= 10
        assert colours >= 470 and 81 < guesses <= 243
        model, _ = page["runs"]["masked", seed]
        assert page["next_word"](model, "the sun sets and the sky turns") == "red"
        last, before = (page["places"]["unmasked", seed][i] for i in (-1, slice(0, 15)))
        assert max(before) < 0.25 and 0.6 < last < 1.2  # far below ln 35 = 3.56
        assert last > page["places"]["masked", seed][-1]  # it does worse where nothing is to copy
        assert page["share_right"](page["runs"]["unmasked", seed][0])[:-1].mean() > 0.99
    assert page["kept_back"] not in page["read"]
    assert "<end>" in page["vocabulary"].words and len(page["vocabulary"]) == 35


def test_why_it_cannot_write(page):
    """It is right nearly as often as the masked model after any length, and far too sure."""
    for seed in range(3):
        for n in (4, 8, 12):
            (cheat, high), (honest, low) = (
                page["ends"][name, seed][n - 1] for name in ("unmasked", "masked")
            )
            assert 0.5 < cheat < honest < 0.75
            assert 1.75 < high / low < 3.5  # "two to three times as high"
            assert 1.3 < high < 2.1  # the alternative text
        assert page["ends"]["unmasked", seed][15][1] < 1  # as in training, it comes near
    said = re.search(
        r"from about (\d+) % up to about (\d+) %\. Unmasked: from about (\d+) % with one token "
        r"to about (\d+) % with four and about (\d+) % with sixteen", TEXT,
    ).groups()  # fmt: skip
    at = (("masked", 1), ("masked", 16), ("unmasked", 1), ("unmasked", 4), ("unmasked", 16))
    for number, (name, n) in zip(said, at, strict=True):
        shares = [page["ends"][name, seed][n - 1][0] for seed in range(3)]
        assert abs(100 * sum(shares) / 3 - int(number)) < 2
    commonest = page["fresh"][:, 16].bincount().max() / 512
    assert f"marks the commonest token at {100 * commonest:.0f} %" in TEXT
    glued = page["glued"]
    low, high = (
        {key: int(glued[f"masking-{key}"].rstrip("\u00a0%").split(" to ")[i]) for key in (
            "sure-unmasked", "sure-masked", "possible-unmasked", "possible-masked")}
        for i in (0, 1)
    )  # fmt: skip
    assert low["sure-unmasked"] > 65 and high["sure-masked"] < 45  # far too sure
    assert high["possible-unmasked"] < 85 and low["possible-masked"] > 94
    assert glued["masking-possible-eleven"] < 12
    assert 67 < glued["masking-right"] < 71 < 97 < glued["masking-right-cheat"]


def test_dividing_by_the_sum_repairs_a_late_mask(page):
    assert page["moved"](page["divided"])[:4].max() < 1e-6 < page["moved"](page["divided"])[4]


def test_only_the_answer_matters(page):
    floor, hidden = page["floor"], page["hidden"]
    for seed in range(3):
        everything, rest, answer, past = (values[seed] for values in hidden.values())
        assert everything < 0.1 and 0.115 < rest < 0.245 < floor  # hiding the rest hardly matters
        assert 2.5 * floor < past and 2.5 * floor < answer < 3.6 * floor  # "about three times"
        assert 1.65 < answer < 1.995 and 1.495 < past < 1.755
    on_next = [page["looks"][name].diagonal(1).mean() for name in page["names"]]
    assert on_next[0] == 0 and on_next[1] > 0.2


def test_the_weight_of_the_head_that_cheats_by_hand():
    weight = [math.exp(10) / (math.exp(10) + n - 1) for n in range(1, 300)]
    says("which is {:.3f} for $n = 200$", weight[199])
    last = max(n for n, w in enumerate(weight, 1) if w >= 0.99)
    says("From $n = {}$ on it would be below 0.99", last + 1)


def test_what_it_may_see(page):
    shares, words = page["shares"], page["cat_sentence"]("tired")[0]
    cat, mat = words.index("cat"), words.index("mat")
    assert f"{shares['all, tired'][cat]:.3f}" == f"{shares['all, warm'][mat]:.3f}" == "0.997"
    assert torch.equal(shares["causal, tired"], shares["causal, warm"])
    assert shares["causal, tired"].tolist() == [0.125] * 8 + [0.0] * 2
    says("All eight visible words get the weight")


def test_the_five_lines_and_the_late_mask(page):
    q, k, v = page["q"], page["k"], page["v"]
    moved = page["moved"](lambda q, k, v: page["masked_attention"](q, k, v, causal_mask(5)))
    assert moved[:4].tolist() == [0, 0, 0, 0] and moved[4] > 0
    for t in range(1, 5):  # "the other tokens": the page's own loop sees a mask that leaks
        leaky = causal_mask(5)
        leaky[t - 1, t] = True
        moved = page["moved"](lambda q, k, v, m=leaky: page["masked_attention"](q, k, v, m), t)
        assert moved[t - 1] > 0.01 and not moved[: t - 1].any()
    out, _ = attention(q, k, v, causal_mask(5))
    torch.testing.assert_close(page["masked_attention"](q, k, v, causal_mask(5)), out)
    assert (page["moved"](page["masked_too_late"]) > 0.01).all()


def test_reading_a_prompt_without_the_mask(page):
    off = page["off"]
    assert off[0].max() == 0  # the embeddings, and with them the keys and values of layer 1
    assert (off[1, :6] > 0.01).all() and off[1, 6] < 1e-5
    assert (off[2] > 0.02).all()
    model, text = page["model"], page["fresh"]
    losses = []
    for model.is_causal in (False, True):  # as the cell with the glue does
        losses.append(page["next_token_loss"](model, text).item())
    assert losses[0] > 1.3 * losses[1]


def test_a_row_with_nothing(page):
    fills = page["fills"]
    assert fills["-inf"].isnan().all() and not fills["this book"].any()
    assert torch.allclose(fills["-1e9"], torch.full((1, 3), 1 / 3))
    assert page["s"].grad.isnan().all() and not page["mended"].any()
    nothing = torch.tensor([[True, False], [False, False]])  # the second row is empty
    v = torch.ones(2, 1, requires_grad=True)
    out = torch.zeros(2, 2).masked_fill(~nothing, -math.inf).softmax(-1) @ v
    out[0].sum().backward()  # nobody uses the second output
    assert v.grad.isnan().all()


def test_the_answers_to_the_questions(page):
    glued = page["glued"]
    assert glued["masking-guess-writers"] == 2 and glued["masking-guess-it"] == 3
    assert glued["masking-check-pairs"] == 210 and glued["masking-check-prefix"] == 7
    assert f"{glued['masking-it-all']:.3f}" == "0.997"
    ratio = glued["masking-loss-without"] / glued["masking-loss-with"]
    assert ratio > 1.3

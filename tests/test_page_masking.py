"""The numbers in the text of chapter 6, and its experiment, are what the package computes."""

import itertools
import math
import re

import matplotlib
import pages
import pytest
import torch

from attention import attention, causal_mask, reach, sliding_window_mask, softmax
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
    says("$e^{{2-1}} = {:.3f}$.", weights[1, 0] / weights[1, 1])
    e = math.e
    says("$e^2 = {:.3f}$ and $e^1 = {:.3f}$ sum to {:.3f}. The", e * e, e, e * e + e)
    says(
        "weights are {:.3f} and {:.3f}, the output is $({:.3f}, {:.3f})$", *weights[1, :2], *out[1]
    )
    says("twice $e^1 = {:.3f}$ sum to {:.3f}, the weights", e, 1 + 2 * e)
    says("are {:.3f}, {:.3f} and {:.3f}, the output is $({:.3f}, {:.3f})$", *weights[2], *out[2])
    before = torch.softmax(scores, -1)
    assert torch.equal(before[0].sort().values, before[1].sort().values)
    assert [f"{x:.3f}" for x in before[0]] == ["0.245", "0.090", "0.665"]
    assert "0.245, 0.090, 0.665; the same again; and 0.155, 0.422, 0.422" in TEXT


def test_the_counts():
    assert causal_mask(3).sum() == 6
    says("Six of the nine pairs")
    for n in (1, 5, 20):
        assert causal_mask(n).sum() == n * (n + 1) // 2
    says("$20^2 = 400$ without, $20 \\cdot 21/2 = {}$ with", int(causal_mask(20).sum()))
    says("the ${}$ pairs of different tokens", int(causal_mask(20).tril(-1).sum()))
    says("Of 64 open cells {} are left", int(causal_mask(8).sum()))


def test_the_floor():
    sentences = weather_sentences()
    read = len(sentences) - 1
    tokens = sum(len(s.split()) + 1 for s in sentences if s != "the sun sets and the sky turns red")
    says("drawn from {} with equal chance", read)
    says("$\\ln {} = {:.3f}$ nats", read, math.log(read))
    says("The masked models stay above {:.3f}:", math.log(read) / (tokens / read))


def test_the_soft_mask():
    says("$-10/8 = {:.2f}$: it shrinks", -10 / 8)
    says("factor $e^{{-1.25}} = {:.3f}$ and not by", math.exp(-1.25))
    says("and not by $e^{{-10}} = {:.6f}$.", math.exp(-10))
    inside = math.exp(-20 / 4)
    says("effective value is $-20/4 = {:g}$ and", -20 / math.sqrt(16))
    says("the weight $e^{{-5}}/(1 + e^{{-5}}) = {:.4f}$", soft(0, -5)[1])
    assert f"{soft(0, -20)[1]:.0e}" == "2e-09"
    says("$e^{{-20}}/(1 + e^{{-20}})$, about $2 \\cdot 10^{{-9}}$")
    many = 1000 * inside
    says("$1000\\,e^{{-5}}/(1 + 1000\\,e^{{-5}}) = {:.3f}/{:.3f} = {:.3f}$", many, 1 + many,
         sum(soft(0, *[-5] * 1000)[1:]))  # fmt: skip


def test_the_reach():
    window = causal_mask(8) & sliding_window_mask(8, 3)
    knows = [int(reach(window, layers)[-1].sum()) for layers in (1, 2, 3, 4)]
    says("The last token knows of {}, {}, {} and {} of the 8 tokens", *knows)
    wide = causal_mask(40) & sliding_window_mask(40, 3)
    five = causal_mask(40) & sliding_window_mask(40, 5)
    said = "{}. One layer reaches 4 tokens back, and each further layer reaches 4 further"
    says(said, int(reach(five, 6)[-1].sum()) - 1)
    assert [int(reach(wide, layers)[-1].sum()) for layers in (1, 2, 4)] == [3, 5, 9]
    assert "is 3, 5 and 9 cells wide" in TEXT
    for layers, w in itertools.product((1, 2, 3), (1, 2, 5)):
        mask = causal_mask(40) & sliding_window_mask(40, w)
        assert reach(mask, layers)[-1].sum() - 1 == layers * (w - 1)
    says("$32 \\cdot 4095 = {}$", f"{32 * 4095:,}".replace(",", "{,}"))
    past = torch.ones(8, 8).tril(-1).bool()
    assert reach(past, 1)[:, 0].all()  # without itself, all still know of the first word


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
    names = {}
    for cell in re.findall(r"^```\{code-cell\} python\n(.*?)^```$", TEXT, flags=re.S | re.M):
        if "from attention.widgets" in cell or "glue(" in cell:
            continue
        cell = re.sub(r"\A---\n.*?^---\n", "", cell, flags=re.S | re.M)
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
        assert colours >= 470 and 81 < guesses < 400
        model, _ = page["runs"]["masked", seed]
        assert page["next_word"](model, "the sun sets and the sky turns") == "red"
        last, before = (page["places"]["unmasked", seed][i] for i in (-1, slice(0, 15)))
        assert max(before) < 0.25 and 0.6 < last < 1.2  # far below ln 35 = 3.56
        assert last > page["places"]["masked", seed][-1]  # it does worse where nothing is to copy
        assert page["correct"]["unmasked", seed][-1] < 0.85
        assert page["correct"]["unmasked", seed][:-1].mean() > 0.99
    assert page["kept_back"] not in page["read"]
    assert "<end>" in page["vocabulary"].words and len(page["vocabulary"]) == 35


def test_what_the_future_does(page):
    assert set(page["answers"]["masked"]) == {"red"}
    repeated = [a == b for a, b in zip(page["answers"]["unmasked"], page["words"], strict=True)]
    assert sum(repeated) >= 9, page["answers"]["unmasked"]


def test_the_five_lines_and_the_late_mask(page):
    q, k, v = page["q"], page["k"], page["v"]
    moved = page["moved"](lambda q, k, v: page["masked_attention"](q, k, v, causal_mask(5)))
    assert moved[:4].tolist() == [0, 0, 0, 0] and moved[4] > 0
    out, _ = attention(q, k, v, causal_mask(5))
    torch.testing.assert_close(page["masked_attention"](q, k, v, causal_mask(5)), out)
    assert (page["moved"](page["masked_too_late"]) > 0.01).all()


def test_reading_a_prompt_without_the_mask(page):
    torch.testing.assert_close(page["one_by_one"], page["with_mask"], atol=1e-4, rtol=0)
    off = (page["without"] - page["with_mask"]).abs().amax(-1)[0]
    assert (off > 0.05).all()  # every place differs, the last one included
    assert page["loss_without"] > 1.3 * page["loss_with"]
    chances = [float(x) for x in page["chances"]]
    assert min(chances) > 0.5 and abs(chances[0] - chances[1]) < 0.05  # red, either way

"""Chapter 4 as printed: its own code is run, and its prose compared with what comes out."""

import re

import matplotlib
import pages
import pytest
import torch

from attention import data

PAGE = "multi-head"


@pytest.fixture(scope="module")
def page():
    """What the names of the chapter's cells hold after all of them have run."""
    matplotlib.use("Agg")
    text = (pages.BOOK / f"{PAGE}.md").read_text("utf-8")
    names: dict = {}
    for cell in re.findall(r"^```\{code-cell\} python\n(.*?)^```$", text, flags=re.S | re.M):
        if "remove-cell" not in cell:
            cell = re.sub(r"\A---\n.*?^---\n", "", cell, flags=re.S | re.M)
            exec(compile(cell, f"book/{PAGE}.md", "exec"), names)
    matplotlib.pyplot.close("all")
    return names


def says(template, *values):
    pages.printed(PAGE, template, *values)


def test_by_hand(page):
    scores = torch.tensor([3.0, 0.0, 0.0])
    parts = (scores / 2**0.5).exp()
    says("Divided by $\\sqrt{{d_k}} = \\sqrt 2$ they are {:.3f}, 0 and 0", scores[0] / 2**0.5)
    says("The exponentials are {:.3f}, 1 and 1, with the sum {:.3f}", parts[0], parts.sum())
    weights = torch.softmax(scores / 2**0.5, 0)
    says("so the weights are {:.3f}, {:.3f} and {:.3f}", *weights)
    says("In head 1 the {:.3f} stands on *tired*", weights[0])
    says("row of *it* after concatenation is $[{:.3f}, {:.3f}, {:.3f}, {:.3f}]$", *by_hand_row())
    one = torch.softmax(torch.tensor([3.0, 3.0, 0.0]) / 2, 0)
    says("{:.3f} for each, where two heads gave {:.3f} to each", one[0], weights[0])
    a, b = torch.tensor([0.5, -0.3]), torch.tensor([0.8, 0.1])
    says("Their concatenation is $[{:.1f}, {:.1f}, {:.1f}, {:.1f}]$", *torch.cat([a, b]))
    says("give $[{:.1f}, {:.1f}]$, the sum of the heads", *(a + b))


def by_hand_row():
    """The row of "it" from scratch: nouns and adjectives found, how living they are."""
    top, rest = torch.softmax(torch.tensor([3.0, 0.0, 0.0]) / 2**0.5, 0)[:2]
    return [top, top * 1 + rest * 0.5, top, rest * 1 + top * 0.5]


def test_shapes_and_counts(page):
    assert sum(p.numel() for p in page["ours"].parameters()) == 4 * 64**2 + 4 * 64 == 16640
    says("$4 \\cdot 64^2 = 16{{,}}384$ for the matrices and $4 \\cdot 64 = {}$", 4 * 64)
    says("the formulas leave out: {:,}", 16640)
    with pytest.raises(AssertionError):
        torch.nn.MultiheadAttention(16, 3)
    x = torch.zeros(5, 12)
    x[4] = 1.0
    moved = [r.nonzero().flatten().tolist() for r in x.view(3, 5, 4).any(-1)]
    assert moved == [[], [], [2, 3, 4]]
    says(
        "head 0 and head 1 never see the last token, and head {} has its pieces at three places", 2
    )
    assert page["reach"] == 512


def test_price():
    n, d, row = 100, 512, {}
    for h in (1, 8):
        d_k = d // h
        row[h] = [
            3 * h * d * d_k + d * d, 3 * h * (d + 1) * d_k + d * d + d,
            n * (3 * h * d * d_k + d * d), 2 * h * n * n * d_k, h * n * n,
        ]  # fmt: skip
    table = pages.table(PAGE, "(multi-head-price)=")
    for line, one, eight in zip(table[1:6], row[1], row[8], strict=True):
        assert line[1:] == [f"{one:,}", f"{eight:,}"], line
    assert table[6][1:] == ["100 (512 for long inputs)", "64"]


def test_the_head_is_found_and_not_needed(page):
    task, without, model = page["task"], page["without"], page["model"]
    assert page["clearest"] == (1, 0)
    assert without(model) == pytest.approx((0.0006, 1.0), abs=1e-4)
    assert without(model, (1, 0))[1] == 1.0, "the page says: all are left"
    assert max(page["losses"], key=page["losses"].get) == (0, 3)
    counts = [len(x) for x in (data.ANIMALS, data.PLACES, data.VERBS)]
    assert counts == [10, 10, 6] and len(data.FEELINGS + data.FEATURES) == 8
    assert len(task.test_ids) == 960 and len(task.train_ids) == 3840
    assert page["on_place"][0, 3] < 0.0005, "the page says: does not look at the place"
    assert (page["on_animal"][0, 3] + page["on_place"][0, 3]) / 2 == pytest.approx(0.2, abs=0.02)
    assert page["weight"][4] == pytest.approx(0.90, abs=0.005) and max(page["weight"]) < 0.905
    with torch.no_grad():
        rows = model(task.test_ids, return_weights=True)[1][1][:, 0, task.it]
    referent = torch.where(page["animal_meant"], task.animal, task.place)
    looks = (rows.argmax(-1) == referent).double().mean()
    assert looks > 0.95, "looks where the answer is, on nearly every sentence"
    others = [loss for head, loss in page["losses"].items() if head != (0, 3)]
    assert page["losses"][0, 3] == pytest.approx(3.7, abs=0.05) and max(others) < 0.1


def test_the_figure_of_the_rows(page):
    stem, read = page["stem"], page["read"]
    for adjective, wanted in (
        ("tired", {(0, 1): 11, (0, 2): 11, (0, 3): 2, (1, 0): 1, (1, 1): 9, (1, 2): 1, (1, 3): 1}),
        ("wide", {(0, 1): 6, (0, 2): 6, (0, 3): 11, (1, 0): 6, (1, 1): 6, (1, 2): 6, (1, 3): 6}),
    ):
        rows = read(f"{stem} {adjective}")[2]
        for head, place in wanted.items():
            assert rows[head].argmax() == place and rows[head][place] > 0.5, (adjective, head)
    tired, wide = (read(f"{stem} {adjective}")[2] for adjective in ("tired", "wide"))
    ratio = tired[0, :, 1] / tired[0, :, 6], wide[0, :, 1] / wide[0, :, 6]
    assert torch.allclose(*ratio, rtol=1e-3), "in layer 0 the ratios of weights stay the same"
    assert read(f"{stem} wide", [(0, 3)])[0] == "animal"


def test_forced_rows(page):
    change, task = page["change"], page["task"]
    for place in range(12):
        assert change(1, [0], place) == (1.0, 1.0, 0.0), "every forgery leaves every answer"
    assert change(0, [3], task.animal)[2] > 0.8
    assert change(1, range(4), task.place)[0] < 0.4
    words = page["answers"](page["forced"](page["ids"], 0, {3: page["all_on"](task.animal)}))
    assert words == ["animal", "animal"]


def test_pairs(page):
    without, model, losses, base = (page[k] for k in ("without", "model", "losses", "base"))
    pairs = [((1, a), (1, b)) for a in range(4) for b in range(a + 1, 4)]
    both = {pair: without(model, *pair)[0] - base for pair in pairs}
    single = {pair: sum(losses[head] - base for head in pair) for pair in pairs}
    assert [p for p in pairs if both[p] < single[p]] == [((1, 1), (1, 3))]
    assert (min(both, key=both.get), max(both, key=both.get)) == (
        ((1, 0), (1, 2)), ((1, 1), (1, 2)),
    ), "heads 0 and 2 least, 1 and 2 most"  # fmt: skip
    twins = ((1, 2), (1, 3))
    says("heads 2 and 3 together cost {:.0f} times as much", both[twins] / single[twins])


def test_the_biases_that_nobody_would_miss(page):
    torch.manual_seed(1)
    full = page["MultiHead"](64, 8)
    x = torch.randn(2, 10, 64)
    before = full(x)[0]
    with torch.no_grad():
        full.w_o.bias += full.w_o.weight @ full.w_v.bias  # b^V W^O, the layer stores W^O transposed
        full.w_v.bias.zero_()
        full.w_k.bias.zero_()
    torch.testing.assert_close(full(x)[0], before, atol=1e-6, rtol=1e-5)
    with torch.no_grad():
        full.w_q.bias.zero_()
    assert not torch.allclose(full(x)[0], before, atol=1e-4)
    says("the new $b^O$, {} of {}.", 2 * 64, 4 * 64)


def test_other_seeds(page):
    for seed, free in ((1, True), (2, False), (3, True)):
        model = page["grow"](seed)
        animal, place = page["weight_on_referent"](model)
        clear = page["clearest_head"](animal, place)
        right = {head: page["without"](model, head)[1] for head in page["every_head"]}
        assert page["without"](model)[1] == 1.0
        assert (right[clear] == 1.0) == free and min(right.values()) < 0.7
        assert torch.minimum(animal, place)[clear] < 0.7, "less clear than with the page's seed"
        if seed == 2:
            assert animal[clear] < 0.15 and right[clear] == min(right.values())
    assert page["task"].accuracy(page["small"]) == 1.0, "one head a layer is enough"


def test_cache(page):
    sizes = [2 * 80 * g * 128 * 2 for g in (64, 8, 1)]
    each = sizes[0] / 2**20, sizes[1] / 2**10, sizes[2] / 2**10
    says("A token costs {:g} MiB, {:g} KiB or {:g} KiB.", *each)
    says("that is {:g} GiB, {:g} GiB or {:g} GiB", *(s * 131_072 / 2**30 for s in sizes))
    says("in proportion: {:g} MiB, {:g} KiB and {:g} KiB a token", *each)
    says("24 GiB hold {:,} tokens with 64 heads of keys and values, {:,} with 8, and {:,} with 1",
         *(24 * 2**30 // s for s in sizes))  # fmt: skip
    says("$d_k = 8$) there are {};", 12 - 8 - 1)
    says("$d_k = 64$ there are {}", 1000 - 64 - 1)

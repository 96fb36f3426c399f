"""Chapter 4 as printed: its own code is run, and its prose compared with what comes out."""

import copy
import math
import re

import matplotlib
import pages
import pytest
import torch

from attention import KVCache, MultiHeadAttention, data, patch_heads

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


def test_one_head_cannot(page):
    """The ratio does not see the last word, and the weights do; with a bias, too."""
    torch.manual_seed(0)
    draws = torch.randn(200, 2, 6, 3).double()
    rows = {
        last: torch.stack([page["cat_and_mat"](last, *w) for w in draws])
        for last in ("tired", "warm")
    }
    a, b = rows["tired"], rows["warm"]
    torch.testing.assert_close(a[:, 0] / a[:, 1], b[:, 0] / b[:, 1], rtol=1e-9, atol=0)
    assert ((a - b).abs().max(1).values > 1e-6).all(), "but the weights change"
    assert [f"{x:.6f}" for x in (a[:3, 0] / a[:3, 1])] == [
        f"{x:.6f}" for x in (b[:3, 0] / b[:3, 1])
    ]
    says("make *it* give {:.4f} to *cat* and {:.3f} to *mat*. So *cat* gets {:.3f} times as much",
         *a[0], a[0, 0] / a[0, 1])  # fmt: skip
    says("What happens to their ratio, {:.3f}?", a[0, 0] / a[0, 1])
    says("as much as *mat*, about 1/{:.0f}.", a[0, 1] / a[0, 0])


def test_two_heads_by_hand(page):
    it, e8 = page["it"], math.exp(8)
    says("$e^8 = {:.0f}$ and nine times 1, so *tired* gets ${:.0f}/{:.0f} = {:.3f}$",
         e8, e8, e8 + 9, e8 / (e8 + 9))  # fmt: skip
    assert page["a_0"][it, 9].item() == pytest.approx(e8 / (e8 + 9), abs=1e-6)
    says("They get {:.3f} each", page["a_1"][it, 1])
    assert torch.equal(page["a_1"][it, [1, 5, 7]], page["a_1"][it, [1, 1, 1]])
    says("And of the state only a quarter arrives: {:.3f} instead of {:.3f}.",
         page["one"][it, 0], page["joined"][it, 0])  # fmt: skip
    assert page["one"][it, 0].item() == pytest.approx(0.25, abs=0.001)
    without = page["without_last"]
    assert torch.equal(without[:-1], page["X"][:-1]) and not without[-1].any()
    two = [page["two_heads"](x)[0][it, 1].item() for x in (page["X"], without)]
    one = [page["one_head"](x)[0][it, 1].item() for x in (page["X"], without)]
    says("*alive* is {:.3f} in both sentences.", two[0])
    assert two[0] == pytest.approx(two[1], abs=1e-6)
    says("*Alive* is {:.3f} with *tired* and {:.3f} without an adjective,", *one)
    a, b = torch.tensor([0.5, -0.3]), torch.tensor([0.8, 0.1])
    says("Joined they are $[{:.1f}, {:.1f}, {:.1f}, {:.1f}]$", *torch.cat([a, b]))
    says("the output is $[{:.1f}, {:.1f}]$, the sum of the heads", *(a + b))


def test_two_layers_by_hand(page):
    it = page["it"]
    wanted = math.exp(8) / (math.exp(8) + 9)
    says("so with *tired* its *wanted* becomes {:.3f}", wanted)
    says("$8 \\cdot {:.3f} = {:.3f}$", wanted, 8 * wanted)
    up, down = math.exp(8 * wanted), math.exp(-8 * wanted)
    says("$e^{{{:.3f}}} = {:.0f}$ for *cat*, $e^{{-{:.3f}}} = {:.4f}$ for *mat* and eight times 1",
         8 * wanted, up, 8 * wanted, down)  # fmt: skip
    says("So *cat* gets ${:.0f}/{:.0f} = {:.3f}$", up, up + down + 8, up / (up + down + 8))
    for last, noun in (("tired", 1), ("warm", 5)):
        state, _, a_1 = page["found"][last]
        assert a_1[it, noun].item() == pytest.approx(up / (up + down + 8), abs=1e-6)
        sign = 1 if last == "tired" else -1
        want = [0.5 + sign, 0.5 - sign, 1, 0, 0, sign]
        torch.testing.assert_close(state[it], torch.tensor(want).float(), atol=0.01, rtol=0)
    for _, a_0, a_1 in page["found"].values():  # the figure draws one arrow a layer
        assert ((a_0[it] > 0.99) | (a_0[it] < 0.001)).all()
        assert ((a_1[it] > 0.99) | (a_1[it] < 0.001)).all()
    added = page["found"]["tired"][0] - page["cat_sentence"]("tired")[1]
    says("layer 0 gives each of them {:.1f} in *wanted*. Layer 1 then adds only {:.2f} to "
         "*alive* and takes {:.2f} from *place*",
         added[1, 5], added[1, 0], -added[1, 1])  # fmt: skip
    others = added[[i for i in range(10) if i != it]]
    torch.testing.assert_close(others, others[:1].expand(9, 6))
    torch.testing.assert_close(page["alone"][it], torch.full((10,), 0.1))
    says("all ten words get {:.3f}", page["alone"][it, 0])


def test_code_and_counts(page):
    assert sum(p.numel() for p in page["ours"].parameters()) == 4 * 64**2 + 4 * 64
    with pytest.raises(AssertionError):
        torch.nn.MultiheadAttention(16, 3)
    with pytest.raises(ValueError, match="3 must divide 16"):
        page["MultiHead"](16, 3)
    x = torch.arange(2 * 3 * 6).reshape(2, 3, 6)
    assert x.view(2, 2, 3, 3)[0].tolist() == [
        [[0, 1, 2], [3, 4, 5], [6, 7, 8]], [[9, 10, 11], [12, 13, 14], [15, 16, 17]],
    ], "head 0 never sees token 2"  # fmt: skip
    with pytest.raises(RuntimeError):
        torch.zeros(1, 2, 3, 4).transpose(1, 2).view(1, 3, 8)
    reach = torch.randn(1, 512, requires_grad=True)
    MultiHeadAttention(512, 8).w_q(reach)[:, 192:256].sum().backward()
    assert (reach.grad != 0).all(), "all 512 numbers enter the query of head 3"


def test_price():
    n, d, row = 100, 512, {}
    for h in (1, 8):
        d_k = d // h
        row[h] = [
            3 * h * d * d_k + d * d,
            2 * n * (3 * h * d * d_k + d * d), 4 * h * n * n * d_k, h * n * n,
        ]  # fmt: skip
    table = pages.table(PAGE, "(multi-head-price)=")
    for line, one, eight in zip(table[1:5], row[1], row[8], strict=True):
        assert line[1:] == [f"{one:,}", f"{eight:,}"], line
    assert table[5][1:] == [str(min(n, d // h)) for h in (1, 8)]


def test_ranks(page):
    scores = page["scores"]
    weights = torch.softmax(scores, -1)
    rank = torch.linalg.matrix_rank
    assert rank(scores) == 8 and rank(weights.log()) == 9 and rank(weights) == 200
    text = (pages.BOOK / f"{PAGE}.md").read_text("utf-8")
    counted = (
        "The scores have 8 singular values that are not 0, the logarithm of the weights has 9."
    )
    assert counted in " ".join(text.split())


def test_the_head_is_found_and_not_needed(page):
    task, without, model = page["task"], page["without"], page["model"]
    assert page["clearest_head"](page["on_animal"], page["on_place"]) == (1, 0)
    assert without(model) == pytest.approx((0.0006, 1.0), abs=1e-4)
    assert without(model, (1, 0))[1] == 1.0, "the page says: all answers stay right"
    assert max(page["losses"], key=page["losses"].get) == (0, 3)
    counts = [len(x) for x in (data.ANIMALS, data.PLACES, data.VERBS)]
    assert counts == [10, 10, 6] and len(data.FEELINGS + data.FEATURES) == 8
    assert len(task.test_ids) == 960 and len(task.train_ids) == 3840
    assert (page["on_animal"][0, 3] + page["on_place"][0, 3]) / 2 == pytest.approx(0.2, abs=0.02)
    assert page["weight"][4] == pytest.approx(0.90, abs=0.005) and max(page["weight"]) < 0.905
    others = [loss for head, loss in page["losses"].items() if head != (0, 3)]
    assert page["losses"][0, 3] == pytest.approx(3.7, abs=0.05) and max(others) < 0.1


def test_the_figure_of_the_rows(page):
    tired, wide = page["tired"], page["wide"]
    for rows, wanted in (
        (tired, {(0, 1): 11, (0, 2): 11, (0, 3): 2, (1, 0): 1, (1, 1): 9, (1, 2): 1, (1, 3): 1}),
        (wide, {(0, 1): 6, (0, 2): 6, (0, 3): 11, (1, 0): 6, (1, 1): 6, (1, 2): 6, (1, 3): 6}),
    ):
        for head, place in wanted.items():
            assert rows[head].argmax() == place and rows[head][place] > 0.5, head
    ratio = tired[0, :, 1] / tired[0, :, 6], wide[0, :, 1] / wide[0, :, 6]
    assert torch.allclose(*ratio, rtol=1e-3), "in layer 0 the ratios of weights stay the same"
    assert page["ratios"][0][:4] == page["ratios"][1][:4], "and the table shows it"
    for row, turned in zip(page["ratios"], (False, True), strict=True):
        assert all((float(x) < 1) == turned for x in row[4:]), "in layer 1 they turn around"
    assert [page["plain"](x) for x in (3.14e-5, 361.0, 2.04)] == ["0.000031", "360", "2"]
    assert wide[0, 3, 11] > 0.99, "all its weight on wide"
    assert 1.9 <= float(page["ratios"][0][0]) < 2.1, "twice as much, in the check"


def test_swaps(page):
    """L0H3 carries the difference; the rest of its layer does not."""
    swaps = page["swaps"]
    assert swaps["L0H3"][0] == pytest.approx([0, 0.78125, 0.21875])
    assert swaps["L0H3"][1] == pytest.approx([0.9875, 0, 0.0125])
    assert swaps["L0H0–2"] == [[1, 0, 0], [0, 1, 0]]
    for name in ("L0H0", "L0H1", "L0H2"):
        assert swaps[name] == [[1, 0, 0], [0, 1, 0]]
    for r in range(4):
        animal, place = swaps[f"L1H{r}"]
        assert animal[1] == 0 and place[0] <= 0.0501 and animal[2] <= 0.1001
    measured = page["measured"]
    (_, never, neither), (turned, _, lost) = measured["layer 1"]
    assert never == 0 and measured["L0H3 and layer 1"] == [[0, 1, 0], [1, 0, 0]]
    says("becomes the place, and {:.0f} % become neither. When the place is meant, {:.0f} % become "
         "the animal and {:.0f} % neither.", 100 * neither, 100 * turned, 100 * lost)  # fmt: skip


def test_the_alarm(page):
    """Three heads of layer 0 tell the kinds of adjectives apart; only L0H3's output is used."""
    by_kind = [
        page["on_adjective"][meant] for meant in (page["animal_meant"], ~page["animal_meant"])
    ]
    animal, place = (weights.mean(0).tolist() for weights in by_kind)
    said = " ".join((pages.BOOK / f"{PAGE}.md").read_text("utf-8").split())
    said = said.split("Pairs of bars for the four heads of layer 0")[1]
    for r, pair in enumerate(zip(animal, place, strict=True)):
        assert "L0H{} {:.2f} and {:.2f}.".format(r, *pair) in said[:300]
    low, high = (weights.amin(0) for weights in by_kind), (weights.amax(0) for weights in by_kind)
    (least_animal, least_place), (most_animal, most_place) = low, high
    assert (least_animal[1:3] > most_place[1:3]).all() and least_place[3] > most_animal[3]
    assert page["swaps"]["L0H0–2"] == [[1, 0, 0], [0, 1, 0]], "and the others are not used"


def test_the_plan_that_training_found(page):
    """The figure shows the weights of the trained model: alarm and place, or animal."""
    task, maps = page["task"], page["maps"]
    for meant, noun, other in (
        (page["animal_meant"], task.animal, task.place),
        (~page["animal_meant"], task.place, task.animal),
    ):
        assert page["mean_row"].shape == (960, 12)
        row = maps[1][meant][:, :, task.it].mean((0, 1))
        torch.testing.assert_close(page["mean_row"][meant].mean(0), row)
        by_head = maps[1][meant][:, :, task.it].mean(0)  # (h, 12), for the table of jobs
        assert (by_head.argmax(1) == noun).all(), by_head
        assert row.argmax() == noun and row[noun] > 0.6 and row[other] < 0.02


def test_forced_rows(page):
    task, force, forced = page["task"], page["force"], page["forced"]
    assert forced["layer 1 → place"][0] == pytest.approx([0.335, 0, 0.665], abs=0.001)
    assert forced["layer 1 → place"][1] == [0, 1, 0]
    assert forced["layer 1 → animal"][0] == [1, 0, 0]
    assert forced["layer 1 → animal"][1] == pytest.approx([0.3, 0.298, 0.402], abs=0.001)
    assert forced["L0H3 → 2nd the"][0] == pytest.approx([0.9, 0, 0.1], abs=0.001)
    assert forced["L0H3 → animal"][1][0] == pytest.approx(0.827, abs=0.001)
    assert forced["L0H3 → 2nd the"][1][0] == pytest.approx(0.802, abs=0.001)
    words = task.vocabulary.decode(task.test_ids[0]).split()
    assert [i for i, word in enumerate(words) if word == "the"][1] == 5, "the second the"
    # a forged row and its value are the same thing: one-hot weights times the values
    values, outputs = page["head_parts"](page["model"], task.test_ids)
    _, weights = page["model"](task.test_ids, return_weights=True)
    torch.testing.assert_close(torch.stack(weights) @ values, outputs)
    logits = patch_heads(page["model"], task.test_ids, task.it, {(1, 0): values[1, :, 0, 6]})
    torch.testing.assert_close(logits[:, task.it], force([(1, 0)], 6))


def test_the_table_of_interventions(page):
    """What the sentences under it say: L1H0 hardly matters, L0H3 in every test, unequally."""
    clear, alarm = page["tested"][1, 0], page["tested"][0, 3]
    assert len(page["tests"]) == len(clear) == len(alarm) == 6
    assert clear == pytest.approx([1, 1, 1, 0.975, 1, 1], abs=1e-3)
    assert max(alarm) < 0.75 and alarm[3] == 0, "the page says: no answer stays right"
    assert alarm == pytest.approx([0.4625, 0.4875, 0.732, 0, 0.519, 0.45], abs=1e-3)
    forced = page["forced"]["L0H3 → animal"]
    assert alarm[4] == pytest.approx((forced[0][0] + forced[1][1]) / 2, abs=1e-3)


def test_one_layer_one_head_and_other_seeds(page):
    task, grown = page["task"], page["grown"]
    ids = torch.stack([task.vocabulary.encode(s) for s in page["sentences"]])
    assert all(page["task"].accuracy(other) == 1 for heads in (1, 4) for other in grown[2, heads])
    for heads in (1, 4):
        for model in grown[1, heads]:
            assert len(model.layers) == 1 and task.accuracy(model) > 0.8
            _, (rows,) = model(ids, return_weights=True)
            assert rows.shape[1] == heads
            ratio = rows[:, :, task.it, task.animal] / rows[:, :, task.it, task.place]
            torch.testing.assert_close(ratio[0], ratio[1], rtol=1e-3, atol=0)
    # one head in one layer, with seed 3: its weights do not choose, the small network does
    small = copy.deepcopy(grown[1, 1][2])  # it is changed below
    assert task.accuracy(small) == 1
    row = page["rows_of_test"](small)[0, :, 0]
    for meant in (page["animal_meant"], ~page["animal_meant"]):
        animal, place = row[meant][:, [task.animal, task.place]].mean(0)
        assert 1 < animal / place < 1.2, "nearly the same for both nouns, whichever is meant"
    assert page["bare"][0][0] == pytest.approx(0.8) and page["bare"][1][1] < 0.4
    network = small.layers[0].feed_forward.narrow
    network.weight.data.zero_(), network.bias.data.zero_()
    assert task.accuracy(small) < 0.6
    by_seed = dict(zip((1, 2, 3), page["lines"], strict=True))
    for seed, (_, animal, place, without, _, least) in by_seed.items():
        assert (without == "100.0%") == (seed != 2) and float(least[:-1]) < 70
        assert min(float(animal), float(place)) < 0.7, "less clear than with the page's seed"
    assert by_seed[2][0] == by_seed[2][4] and float(by_seed[2][1]) < 0.15


def test_the_other_way_past_layer_1(page):
    """Without layer 1 most answers stay right; the places then hang on two heads of layer 0."""
    task, shares, model = page["task"], page["shares"], page["model"]
    upper, nouns = page["layer_1"], [(0, 1), (0, 2)]

    def right(*heads):
        mask = torch.ones(2, 4)
        for head in heads:
            mask[head] = 0
        (animal, _, _), (_, place, _) = shares(model(task.test_ids, head_mask=mask)[:, task.it])
        return animal, place

    assert right(*upper) == pytest.approx((0.677, 0.802), abs=1e-3)
    assert right(*upper, *nouns)[1] == pytest.approx(0.2, abs=1e-3)
    assert right(*nouns, (0, 0)) == (1, 1), "each way backs up the other"
    assert min(page["on_place"][0, 1:3]) > 0.7, "both look at the place"


def test_where_the_alarm_head_looks_without_an_alarm(page):
    """At the noun itself in sentences with a cat or a dog, at *did* with *animal*."""
    task, meant = page["task"], page["animal_meant"]
    row = page["rows_of_test"](page["model"])[0, :, 3][meant]
    nouns = task.test_ids[meant, task.animal]
    for word, position in (("animal", 2), ("cat", task.animal), ("dog", task.animal)):
        mine = row[nouns == task.vocabulary.encode(word)[0]].mean(0)
        assert mine.argmax() == position and mine[position] > 0.85, word
    assert row[:, -1].max() < 0.1, "and hardly ever at the adjective"


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


def test_one_layer_after_all(page):
    says("With *warm*, the key of the last word in head 0 is {}, so its score is {}", 2, 16)
    (q, k), _ = page["my_two_heads"]()
    X = torch.eye(6)
    warm = torch.tensor([0, 0, 0, 1.0, -1, 0])
    assert (warm @ k).item() == 2 and (X[2] @ q).item() * 2 == 16


def test_cache():
    sizes = [2 * 80 * g * 128 * 2 for g in (64, 8, 1)]
    rows = pages.table(PAGE, "(multi-head-cache)=")[1:]
    for row, size in zip(rows, sizes, strict=True):
        unit = (2**20, "MiB") if size >= 2**20 else (2**10, "KiB")
        assert row[2] == f"{size / unit[0]:g} {unit[1]}"
        assert row[3] == f"{size * 131_072 / 2**30:g} GiB"
    cache = KVCache()
    MultiHeadAttention(32 * 4, 32, 8)(torch.zeros(1, 1, 128), is_causal=True, cache=cache)
    assert 32 * cache.nbytes // 4 * 2 // 4 * 128 == 2 * 32 * 8 * 128 * 2, "32 layers, 2 bytes"
    says("$2 \\cdot 32 \\cdot 8 \\cdot 128 \\cdot 2 = 131{{,}}072$ bytes, {} KiB",
         2 * 32 * 8 * 128 * 2 // 1024)  # fmt: skip
    says("$4 \\cdot 768^2 = 2{{,}}359{{,}}296$")
    exercises = (pages.BOOK / f"{PAGE}.md").read_text("utf-8").count("\n:label: ex-")
    assert exercises == 12, "the page says: twelve exercises"
    assert 4 * 768**2 == 2359296
    says("$d_k = 8$) there are {};", 12 - 8 - 1)
    says("$d_k = 64$ there are {}", 1000 - 64 - 1)


@pytest.mark.parametrize("heads", [1, 8])
def test_parameters_with_biases(heads):
    count = sum(p.numel() for p in MultiHeadAttention(512, heads).parameters())
    says("With biases, a layer of width 512 has {:,} parameters, with one head or", count)

"""Chapter 7 says what its own code computes; its claims about training hold for several seeds."""

import math
import re
from collections import Counter

import pages
import pytest
import torch
import torch.nn.functional as F

from attention import EncoderBlock
from attention.widgets import BlockTour

NAME = "blocks"


def minus(numbers, digits=3):
    """Numbers as the prose prints them, with a true minus sign."""
    return ", ".join(f"{float(x):.{digits}f}" for x in numbers).replace("-", "−")


def says(phrase):
    pages.printed(NAME, phrase.replace("{", "{{").replace("}", "}}"))


def code_cells(name):
    text = (pages.BOOK / f"{name}.md").read_text("utf-8")
    for cell in re.findall(r"^```\{code-cell\} python\n(.*?)^```$", text, flags=re.S | re.M):
        options = re.match(r"(---\n.*?^---\n|(?::[^\n]*\n)+)", cell, flags=re.S | re.M)
        if "remove-cell" not in (options[0] if options else ""):
            yield cell[options.end() :] if options else cell


@pytest.fixture(scope="module")
def ran():
    """The names that the chapter's cells define, all run in order."""
    import matplotlib
    import matplotlib.pyplot as plt

    matplotlib.use("Agg")
    names = {}
    for cell in code_cells(NAME):
        exec(compile(cell, NAME, "exec"), names)
    plt.close("all")
    return names


def test_the_norm_by_hand():
    x = torch.tensor([1.0, 2, 3, 4], dtype=torch.float64)
    normed = F.layer_norm(x, (4,), eps=0.0)
    says(
        f"The mean is {x.mean():.1f} and the variance {x.var(unbiased=False):.2f}, so the standard "
        f"deviation is {x.std(unbiased=False):.3f}. The result is [{minus(normed)}]."
    )
    says(f"$x = [1, 2, 3, 4]$ into $\\operatorname{{LN}}(x + 0)$ = [{minus(normed)}].")
    says(f"The same as of $[1, 2, 3, 4]$: [{minus(F.layer_norm(10 * x, (4,), eps=0.0))}].")


def test_a_silent_block_is_the_identity_only_with_pre_norm():
    x = torch.tensor([[[1.0, 2, 3, 4]]])
    for norm_first in (False, True):
        block = EncoderBlock(4, 1, norm_first=norm_first)
        for part in (block.attention, block.feed_forward):
            for parameter in part.parameters():
                torch.nn.init.zeros_(parameter)
        with torch.no_grad():
            assert torch.allclose(block(x)[0], x) == norm_first


def test_the_memory_by_hand(ran):
    X, hidden, out = ran["X"], ran["hidden"], ran["out_by_hand"]
    first = X @ ran["W_1"][:, 0]
    says(
        f"For *cat, tired* this is {first[0] - 1:g}. For the other three cases it is "
        f"{minus(first[1:2] - 1, 0)}, {first[2] - 1:g} and {minus(first[3:] - 1, 0)}."
    )
    assert hidden.tolist() == [[1, 0], [0, 0], [0, 0], [0, 1]]
    says(f"for *cat, tired*: $[{minus(out[0], 0)}]$.")
    # the proof: the vectors of opposite cases have equal sums, so no linear map can tell
    assert torch.equal(X[0] + X[3], X[1] + X[2])
    assert (X[0] + X[3])[:3].tolist() == [1, 1, 0]
    assert ran["changed"]["attention"].all()
    assert ran["changed"]["feed-forward"].tolist() == [False, False, True, False, False]


def test_the_printed_example():
    x, one = torch.tensor([0.5, -0.3, 0.8, 0.1]), torch.eye(4)
    w_1, w_2 = torch.cat([one, -one], 1), torch.cat([one, one], 0)
    says(f"The network computes $|x|$ = [{minus((x @ w_1).clamp(min=0) @ w_2, 1)}].")
    d, f = w_1.shape
    says(f"have {d * f + f + f * d + d} parameters: {d * f} + {f} + {f * d} + {d}.")


def test_cross_entropy_by_hand():
    z = torch.tensor([2.0, 1.0, 0.1], requires_grad=True)
    loss = F.cross_entropy(z, torch.tensor(0))
    loss.backward()
    p = z.detach().softmax(-1)
    smooth = F.cross_entropy(z, torch.tensor(0), label_smoothing=0.1)
    says(
        f"The softmax is [{minus(p)}]. If *red* comes, the loss is {loss:.3f}; if *grey* comes, "
        f"it is {-p[2].log():.3f}."
    )
    says(f"here [{minus(z.grad)}]. A step")
    each = -p.log()
    says(
        f"are {each[0]:.3f}, {each[1]:.3f} and {each[2]:.3f}, with the mean {each.mean():.3f}. So "
        f"$0.9 \\cdot {loss:.3f} + 0.1 \\cdot {each.mean():.3f} = {smooth:.3f}$"
    )
    says(f"$W$ has {512 * 50000 / 1e6:.1f} million entries")
    says(f"$(512 \\cdot 4000)^{{-1/2}} = {(512 * 4000) ** -0.5:.6f}$")
    says(f"$e^{{{math.log(8):.3f}}} \\approx 8$")


def test_the_corpus(ran):
    n = len(ran["sentences"])
    says(f"$\\ln {n}$ = {math.log(n):.3f} nats per sentence")
    lengths = [len(sentence.split()) for sentence in ran["sentences"]]
    assert sum(lengths) / n == 10  # "about ten words"
    assert "the great sun sets slowly and the quiet sky turns red" in ran["sentences"]


def test_decoding_by_hand(ran):
    p = torch.tensor([0.5, 0.3, 0.15, 0.05])
    wanted = {
        "as given": p,
        "top-k, k = 2": torch.tensor([0.625, 0.375, 0, 0]),
        "top-p, p = 0.9": torch.cat([p[:3] / 0.95, p[:1] * 0]),
        "T = 2": p.sqrt() / p.sqrt().sum(),
    }
    alt = (pages.BOOK / f"{NAME}.md").read_text("utf-8")
    for name, q in wanted.items():
        assert torch.allclose(ran["drawn_from"][name], q), name
        numbers = ", ".join(f"{x:.3f}" if x else "0" for x in q.tolist())
        assert numbers in alt, numbers  # the alternative text of the figure


def test_fifty_blocks_for_three_seeds(ran):
    for seed in range(3):
        probe = {k: ran["depth_probe"](k, seed=seed) for k in ran["kinds"]}
        assert probe["neither"][1][0] < 1e-45
        assert 0.001 < probe["norm only"][1][0] < 2  # it varies with the seed, and does not vanish
        assert probe["neither"][2][50] < 1e-15 and probe["norm only"][2][50] < 1e-15
        assert probe["sum only"][1][0] > 50 and probe["sum only"][0][-1] > 10
        assert probe["sum only"][2][50] > 0.05 and probe["sum and norm"][2][50] > 0.3
        for sizes in probe["sum and norm"][:2]:
            assert max(sizes) / min(sizes) < 5.5
        # a share of what is there at every block, against about the same amount
        grown = {kind: [x / probe[kind][0][0] for x in probe[kind][0]] for kind in probe}
        assert grown["sum only"][50] > 3 * grown["sum only"][25]
        assert grown["sum and norm"][50] < 1.5 * grown["sum and norm"][25]


def test_adam_cannot_use_the_gradient_of_the_trained_stack(ran):
    for seed in range(3):
        torch.manual_seed(seed)
        stack = ran["Stack"](12, "neither")
        ran["three_back"](stack, ran["data_of_symbols"][0]).backward()
        assert 0 < stack.tokens.weight.grad.abs().max() < 1e-8 / 1e5  # Adam's epsilon is 1e-8


def last(ran, blocks, kind, seed, **options):
    loss = ran["runs"].get(f"{blocks}, {kind}") if seed == 0 and not options else None
    loss = loss or ran["learn"](blocks, kind, seed, **options)  # the page's own runs have seed 0
    return sum(loss[-10:]) / 10


def test_sum_and_norm_for_three_seeds(ran):
    """The two by two of the page, and that the norm alone never helps."""
    assert last(ran, 2, "neither", 1) < 0.1
    for seed in range(3):
        ends = {kind: last(ran, 12, kind, seed) for kind in ran["kinds"]}
        assert min(ends["neither"], ends["norm only"]) > 2.05, (seed, ends)
        assert ends["sum only"] < 0.1 and ends["sum and norm"] < 0.01, (seed, ends)
    page = (pages.BOOK / "blocks.md").read_text("utf-8")
    assert f"the blind guess, $\\ln 8 = {math.log(8):.3f}$" in page  # in a caption


def test_tokens_of_the_trained_stack_are_alike_from_the_start(ran, monkeypatch):
    for seed in range(3):
        torch.manual_seed(seed)
        *_, x = ran["Stack"](12, "norm only").stream(ran["data_of_symbols"][0])
        assert 1e-5 < ran["difference"](x) < 1e-3
        # it is the mask that makes the collapse slow: without it, five blocks leave rounding
        attend = ran["MultiHeadAttention"].forward
        with monkeypatch.context() as patch, torch.no_grad():
            patch.setattr(ran["MultiHeadAttention"], "forward",
                          lambda *a, f=attend, **k: f(*a, **k | {"is_causal": False}))  # fmt: skip
            torch.manual_seed(seed)
            stack = ran["Stack"](12, "norm only").double()
            *_, x = list(stack.stream(ran["data_of_symbols"][0]))[:6]
            assert ran["difference"](x) < 1e-15
        torch.manual_seed(seed)
        *_, x = ran["Stack"](12, "sum and norm").stream(ran["data_of_symbols"][0])
        assert ran["difference"](x) > 0.3


def test_the_sum_alone_fails_with_36_blocks(ran):
    assert end(ran["deep"]["36, sum only"]) > 10
    assert end(ran["deep"]["36, sum and norm"]) < 0.1
    try:
        loss = last(ran, 36, "sum only", 1)
    except FloatingPointError:  # it can overflow as well
        loss = math.inf
    assert loss > 2.1  # "with other seeds they explode, too"
    assert last(ran, 36, "sum and norm", 1) < 0.1


def end(loss):
    return sum(loss[-10:]) / 10


def test_post_norm_needs_the_warm_up(ran):
    curves = ran["post_or_pre"]
    assert end(curves["24, post-norm"]) > 2.05
    assert end(curves["24, post, warm-up"]) < 0.2 and end(curves["24, pre-norm"]) < 0.05
    watched = ran["watched"] = {"24, post-norm, 1": [], "24, post-norm, 1, warm-up": []}
    cold, warm = (lambda x, seen=seen: seen.append(ran["difference"](x)) for seen in
                  watched.values())  # fmt: skip
    assert last(ran, 24, "post-norm", 1, watch=cold) > 2.05
    assert last(ran, 24, "post-norm", 1, warmup=50, watch=warm) < 0.2


def test_post_norm_collapses_while_it_trains(ran):
    """The lower picture, and that it is the same for another seed."""
    cold, warm, pre = ran["unlike_at"].values()
    assert cold[0] > 0.3 and cold[10] < 2e-4 and max(cold[10:]) < 2e-4
    assert min(warm) < 0.1 and warm[-1] > 0.9 and min(pre) > 0.4
    seen = ran["watched"]["24, post-norm, 1"]
    assert seen[0] > 0.3 and max(seen[10:]) < 2e-4
    seen = ran["watched"]["24, post-norm, 1, warm-up"]
    assert seen[-1] > 0.9


def test_the_exponent_triples(ran):
    alike = ran["probes"]["norm only"][2]
    assert 2.5 < math.log(alike[2]) / math.log(alike[1]) < 5
    assert 2.5 < math.log(alike[3]) / math.log(alike[2]) < 5


def test_only_one_sum(ran):
    text = (pages.BOOK / f"{NAME}.md").read_text("utf-8")
    code = re.search(r"```python\n(.*?)```", text[text.index(":label: sol-blocks-one-sum") :], re.S)
    names = dict(ran)
    exec(code[1], names)
    for (kind, _), (unlike, ten, loss) in names["found"].items():
        assert loss > 2.05 and ten < 1e-5
        assert 0.2 < unlike < 0.35 if kind == "sum at the attention" else unlike < 0.002
    torch.manual_seed(1)  # other settings: lr 0.001, a warm-up of 20 steps
    model, seen = names["OneSum"](12, "sum at the attention"), []
    model.out.register_forward_pre_hook(lambda m, x: seen.append(ran["difference"](x[0])))
    batches, loss_fn = ran["data_of_symbols"], ran["three_back"]
    loss = ran["train"](model, batches, loss_fn, steps=100, lr=1e-3, warmup=20, progress=False)
    assert seen[-1] > 0.3 and end(loss.loss) < 2.02


def test_the_stream_of_it(ran):
    tired, wide = ran["shares"].values()  # (5, 2): animal and street after each sub-layer
    assert torch.equal(tired[0], wide[0])
    task, reader = ran["task"], ran["reader"]
    x = ran["stream_of_it"](task.test_ids)[1]
    with torch.no_grad():
        z = reader.embedding.logits(reader.norm(x)[:, None])[:, 0]
    nouns = z.gather(1, task.test_ids[:, [task.animal, task.place]])
    right = task.test_ids[:, task.animal] == task.test_referents
    assert ((nouns[:, 0] > nouns[:, 1]) == right).all()  # the right noun is ahead in every one
    assert 0.3 < (z.argmax(-1) == task.test_referents).double().mean() < 0.6
    block = reader.layers[0]  # each adjective takes the weight of other heads
    for adjective, head, least in (("tired", 1, 0.9), ("wide", 3, 0.999)):
        said = reader.embedding(task.vocabulary.encode(f"{ran['stem']} {adjective}")[None])
        with torch.no_grad():
            looks = block.attention(block.add_attention.norm(said))[1]
        assert looks[0, head, task.it, -1] > least, adjective
    assert tired[1, 0] > 0.4 and wide[1, 1] > 0.4
    assert tired[-1, 0] > 0.99 and wide[-1, 1] > 0.99
    assert len(ran["asked"]) == 960 and ran["asked"].shape[1] == 128
    on = ran["asked"][:, ran["chosen"]] > 0
    assert torch.equal(on, ~ran["animal_meant"])


def test_what_is_left_without_a_part(ran):
    right = ran["still_right"]
    assert 90 < right["first"] < right["both"] < 99 < right["second"]
    bills = ran["bills"]
    assert sorted(bills, key=lambda name: bills[name]) == [
        "nothing", "the second network", "attention", "the first network", "a blind guess",
        "both networks",
    ]  # fmt: skip
    assert bills["a blind guess"] == pytest.approx(11 * math.log(35))
    # counting pairs of neighbours is better than the model without its attention
    pad = ran["vocabulary"].pad
    before, after = (
        [[x for row in ran[name].tolist() for x in row[cut]] for name in ("training", "ids")]
        for cut in (slice(None, -1), slice(1, None))
    )
    seen = Counter(zip(before[0], after[0], strict=True))
    first = Counter(a for a, b in zip(before[0], after[0], strict=True) if b != pad)
    nats = -sum(
        math.log(seen[a, b] / first[a])
        for a, b in zip(before[1], after[1], strict=True) if b != pad
    )  # fmt: skip
    assert bills["nothing"] < nats / len(ran["ids"]) < 12 < bills["attention"]
    assert bills["nothing"] == ran["nats_per_sentence"](ran["ids"])  # the hooks are gone


def test_the_language_model(ran):
    training, held_out = (ran["nats_per_sentence"](ran[x]) for x in ("training", "held_out"))
    assert math.log(486) < held_out < 7 and training < held_out < training + 0.6
    assert ran["nats_per_sentence"](ran["ids"]) > math.log(486)
    counts = ran["counts"]
    assert counts["greedy"][:2] == (300, 1)
    for name, texts in ran["written"].items():
        right = [text for text in texts if text in ran["sentences"]]
        new = {text for text in right if text not in ran["known"]}
        assert counts[name] == (len(right), len(set(texts)), len(new)), name
    assert counts["T = 1"][0] > 280 and counts["T = 1"][1] > 150 and counts["T = 1"][2] > 10
    assert counts["T = 2"][0] < 150
    assert min(counts["T = 2, top-k 3"][0], counts["T = 2, top-p 0.9"][0]) > 200


def block_sizes(d):
    return 12 * d * d + 13 * d, 16 * d * d + 19 * d


def test_counting(ran):
    encoder, decoder = block_sizes(512)
    assert encoder == ran["count"](ran["base"].encoder.layers[0])
    assert decoder == ran["count"](ran["base"].layers[0])
    says(f"an encoder block has {encoder:,} parameters and a decoder block {decoder:,}.")
    base = 6 * (encoder + decoder) + 37_000 * 512
    assert base == ran["count"](ran["base"])
    says(f"of about 37,000 tokens make {base / 1e6:.1f} million.")
    says(f"it must give {ran['count'](ran['gpt2']):,}.")
    rows = {row[0]: row for row in pages.table(NAME, "| Part | Weights | Biases, norms |")}
    assert rows["encoder block (one attention, two norms)"][1:] == ["$12d^2$", "$13d$"]
    assert rows["decoder block (two attentions, three norms)"][1:] == ["$16d^2$", "$19d$"]


def llama(layers, d, kv, d_ff, vocab=128_256):
    return layers * (2 * d * d + 2 * d * kv + 3 * d * d_ff + 2 * d) + 2 * vocab * d + d


def gpt(vocab, d, layers, places):
    return (vocab + places) * d + layers * block_sizes(d)[0] + 2 * d


def brief(number):
    size, letter = (1e9, "B") if number >= 1e9 else (1e6, "M")
    digits = 0 if number / size >= 10 else 1
    digits = 2 if number / size < 0.1 else digits
    return f"{number / size:.{digits}f} {letter}"


def test_the_table_from_mini_to_modern(ran):
    exact = {
        "ours": gpt(35, 32, 2, 0),
        "GPT-2, 2019": gpt(50_257, 1600, 48, 1024),
        "Llama 3 8B, 2024": llama(32, 4096, 1024, 14_336),
    }
    published = {"base, 2017": "65 M", "GPT-3, 2020": "175 B",
                 "Llama 3 405B, 2024": "405 B"}  # fmt: skip
    header, *rows = pages.table(NAME, "tab-blocks-scale")
    assert len(rows) == 6
    for name, layers, d, heads, estimate, parameters, _ in rows:
        d, heads = int(d.replace(",", "")), int(heads)
        assert d % heads == 0
        if name == "base, 2017":
            assert layers == "6 + 6" and estimate == brief(6 * 28 * d * d)
        else:
            assert estimate == brief(12 * int(layers) * d * d), name
        assert parameters == published.get(name, brief(exact.get(name, 0))), name
        if name != "ours":
            assert d // heads in (64, 128)
    assert llama(126, 16_384, 1024, 53_248) / 405e9 == pytest.approx(1, rel=0.005)
    for d, d_ff in ((4096, 14_336), (16_384, 53_248)):  # Llama's parts are not 4 and 8 d²
        assert 2 * d * d + 2 * d * 1024 < 4 * d * d and 3 * d * d_ff > 8 * d * d
    assert 405e9 / exact["ours"] > 1e7  # "more than ten million times"


def test_costs_and_scaling():
    says(f"the cost is ${6 * 405e9 * 15.6e12 / 1e25:.1f} \\cdot 10^{{25}}$")
    assert 300 / 175 < 2 and round(15e12 / 8.03e9, -2) == 1900  # "almost 1,900"
    for layers, d, words in (
        (96, 4096, "is {:.1f} billion: too many"),
        (32, 4096, "With 32 blocks it is {:.1f} billion"),
        (80, 8192, "(b) gives {:.1f} billion"), (32, 16_384, "(c) gives {:.1f} billion"),
        (32, 8192, "it would be {:.1f} billion"),
    ):  # fmt: skip
        pages.printed(NAME, words, 12 * layers * d * d / 1e9)


def test_the_explorer_shows_what_the_text_says():
    tour = BlockTour(preset="2017 base")
    decoder = next(rows for name, _, rows in tour.parts if name == "decoder layer")
    bare = [row[0] for row in decoder if row[2] == 0]
    assert len(bare) == 4 and all("scores" in x or "weighted values" in x for x in bare)

    def bill(tour):
        rows = next(rows for name, _, rows in tour.parts if name == "layer")
        scores = sum(r[3] for r in rows if "scores" in r[0] or "weighted" in r[0])
        feed = sum(r[3] for r in rows if r[0].startswith("feed-forward"))
        return scores, feed, sum(r[3] for r in rows) - scores - feed

    for n, equal in ((1024, -1), (2048, 1), (1536, 0)):
        scores, _, projections = bill(BlockTour(**{"preset": "GPT-2 small", "n": n}))
        assert (scores > projections) - (scores < projections) == equal
    scores, feed, projections = bill(BlockTour(preset="GPT-2 small", n=4608))
    assert scores == feed + projections
    says("Both cost the same at $n = 2d$ = 1,536.")
    says("the feed-forward network to the projections, this happens at $n = 6d$ = 4,608.")
    for n, equal in ((16_384, -1), (32_768, 1), (26_624, 0)):
        scores, *others = bill(BlockTour(preset="Llama 3 8B", n=n))
        assert (scores > sum(others)) - (scores < sum(others)) == equal
    says("$n = d + 1024 + \\tfrac{3}{2} \\cdot 14336$ = 26,624")

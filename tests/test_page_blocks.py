"""Chapter 7 says what its own code computes; its claims about training hold for several seeds."""

import math
import re

import pages
import pytest
import torch
import torch.nn.functional as F

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
        options = re.match(r"(---\n.*?^---\n|(?::.*\n)+)", cell, flags=re.S | re.M)
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
    says(f"$\\operatorname{{LN}}([2, 4, 6, 8])$ = [{minus(normed)}], exactly")
    says(f"and gives [{minus(x + normed.abs())}].")
    says(f"up to ε: [{minus(F.layer_norm(10 * x, (4,), eps=0.0))}]")


def test_the_feed_forward_network_by_hand(ran):
    x = torch.tensor([0.5, -0.3, 0.8, 0.1])
    out = (x @ ran["w_1"]).clamp(min=0) @ ran["w_2"]
    says(f"The network computed $|x|$ = [{minus(out, 1)}].")
    d, f = ran["w_1"].shape
    says(f"have {d * f + f + f * d + d} parameters: {d * f} + {f} + {f * d} + {d}.")


def test_cross_attention_by_hand():
    q, k = torch.eye(2), torch.tensor([[1.0, 0], [0, 1], [1, 1]])
    w = (q @ k.T / math.sqrt(2)).softmax(-1)
    assert w[0, 0] == w[0, 2]
    says(f"draws {w[0, 0]:.3f} from each of the source tokens 0 and 2, and {w[0, 1]:.3f} from")


def test_cross_entropy_by_hand():
    z = torch.tensor([2.0, 1.0, 0.1], requires_grad=True)
    loss = F.cross_entropy(z, torch.tensor(0))
    loss.backward()
    p = z.detach().softmax(-1)
    smooth = F.cross_entropy(z, torch.tensor(0), label_smoothing=0.1)
    says(
        f'The softmax is [{minus(p)}]. If "red" comes, the loss is {loss:.3f}; if "grey" comes, '
        f"it is {-p[2].log():.3f}."
    )
    says(f"here [{minus(z.grad)}]:")
    says(f'the loss for "red" becomes {smooth:.3f}')
    says(f"$\\ln 50000$ = {math.log(50000):.3f}")
    says(f"$W$ has {512 * 50000 / 1e6:.1f} million entries")
    says(f"which peaks at {512**-0.5 * 4000**-0.5:.6f} for")
    says(f"$e^{{{math.log(8):.3f}}} \\approx 8$")


def test_the_corpus(ran):
    n, training = len(ran["sentences"]), len(ran["training"])
    says(f"$\\ln {n}$ = {math.log(n):.3f} nats per sentence")
    says(f"$\\ln {training}$ = {math.log(training):.3f} there")
    lengths = [len(sentence.split()) for sentence in ran["sentences"]]
    assert sum(lengths) / n == 10  # "about ten words"
    assert "the great sun sets slowly and the quiet sky turns red" in ran["sentences"]
    second = [sentence.split()[1] for sentence in ran["sentences"]]
    shares = [second.count(word) / n for word in ("old", "great", "sun")]
    assert shares == pytest.approx([1 / 3, 1 / 3, 1 / 9])
    third = [s.split()[2] for s in ran["sentences"] if s.startswith("the sun ")]
    assert third.count("sets") == third.count("rises") == len(third) / 2


def test_decoding_by_hand():
    p = torch.tensor([0.5, 0.3, 0.15, 0.05])
    says(f"which gives [{p[0] / 0.8:.3f}, {p[1] / 0.8:.3f}, 0, 0].")
    says(f"because two reach only 0.8: [{minus(p[:3] / 0.95)}, 0].")
    says(f"square roots and rescales: [{minus(p.sqrt() / p.sqrt().sum())}].")
    says(f"probability 0.5 · 0.25 = {0.5 * 0.25}. The likeliest pair is \"b x\" with 0.4 · 0.9 = "
         f"{0.4 * 0.9:.2f}.")  # fmt: skip


def test_fifty_layers_for_three_seeds(ran):
    for seed in range(3):
        probe = {k: ran["depth_probe"](k, seed=seed) for k in ran["kinds"]}
        assert probe["neither"][1][0] < 1e-45
        assert probe["sum only"][1][0] > 50 and probe["sum only"][0][-1] > 10
        for kind in ("post-norm", "pre-norm"):
            for sizes in probe[kind]:
                assert max(sizes) / min(sizes) < 5.5  # "within a factor of about five"


def steps_to_learn(ran, layers, order, seed):
    torch.manual_seed(seed)
    model = ran["Stack"](layers, order)
    data = torch.randint(8, (100, 32, 12))
    loss = ran["train"](model, data, ran["three_back"], steps=100, lr=3e-3, progress=False).loss
    return next((i for i, value in enumerate(loss) if value < 0.1), math.inf), loss[-1]


def test_deeper_is_worse_without_sum_and_norm(ran):
    for seed in range(3):
        assert steps_to_learn(ran, 2, "neither", seed)[1] < 0.1
        assert steps_to_learn(ran, 12, "neither", seed)[1] > 2.0


def test_pre_norm_learns_soonest_for_four_seeds(ran):
    pre, post = (
        [steps_to_learn(ran, 12, order, seed)[0] for seed in range(4)]
        for order in ("pre-norm", "post-norm")
    )
    assert math.inf not in pre
    assert math.inf in post  # "sometimes needed more than the 100 steps"
    assert all(b == math.inf or 0.4 * b < a < 0.7 * b for a, b in zip(pre, post, strict=True))


def test_the_language_model(ran):
    training, held_out = (ran["nats_per_sentence"](ran[x]) for x in ("training", "held_out"))
    assert math.log(486) < held_out < 7 and training < held_out < training + 0.6
    assert ran["nats_per_sentence"](ran["ids"]) > math.log(486)
    counts = ran["counts"]
    assert counts["greedy"][:2] == (300, 1)
    assert counts["T = 1"][0] > 280 and counts["T = 1"][1] > 150 and counts["T = 1"][2] > 10
    assert counts["T = 2"][0] < 150
    assert min(counts["T = 2, top-k 3"][0], counts["T = 2, top-p 0.9"][0]) > 200


def test_the_translator(ran):
    assert ran["exact"] >= 295
    reads, writes = (ran[x].split() for x in ("reads", "writes"))
    for french, english in (("chat", "cat"), ("gris", "grey"), ("voit", "sees"),
                            ("chien", "dog"), ("calme", "calm")):  # fmt: skip
        assert ran["cross"][writes.index(french), reads.index(english)] > 0.9
    # the figure's alternative text: the rows that match no word
    first, second, end = (ran["cross"][i] for i in (0, 4, 7))
    assert first[reads.index("dog")] > 0.8 and end[0] > 0.8
    assert min(second[reads.index("cat")], second[reads.index("dog")]) > 0.3


def test_the_translator_without_positions(ran):
    text = (pages.BOOK / f"{NAME}.md").read_text("utf-8")
    solution = text[text.index(":label: sol-blocks-positions") :]
    code = re.search(r"```python\n(.*?)```", solution, flags=re.S)
    assert code and code[1].startswith("torch.manual_seed(0)\n")
    found = []
    for seed in (0, 1, 2):
        names = dict(ran)
        exec(code[1].replace("manual_seed(0)", f"manual_seed({seed})"), names)
        pairs = names["pairs_"]
        exact = sum(w == t for w, t in pairs) / len(pairs)
        words = sum(sorted(w.split()) == sorted(t.split()) for w, t in pairs) / len(pairs)
        found.append((exact, words))
        assert seed or ("le chien trouve le chat", "le chat trouve le chien") in pairs
    assert all(0.15 < exact < 0.4 and words > 0.45 for exact, words in found), found
    assert max(words for _, words in found) > 0.9


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
    rows = {row[0]: row for row in pages.table(NAME, "| Part | Weights | Offsets |")}
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
        "Llama 3 70B, 2024": llama(80, 8192, 1024, 28_672),
    }
    published = {"base, 2017": "65 M", "BERT base, 2018": "110 M", "GPT-3, 2020": "175 B",
                 "Llama 3 405B, 2024": "405 B"}  # fmt: skip
    header, *rows = pages.table(NAME, "tab-blocks-scale")
    assert len(rows) == 8
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


def test_costs_and_scaling():
    says(f"that is ${6 * 405e9 * 15.6e12 / 1e25:.1f} \\cdot 10^{{25}}$")
    assert 300 / 175 < 2
    says(f"{384 // 16} · {384 // 16} + 1 = {(384 // 16) ** 2 + 1} places instead of "
         f"{(224 // 16) ** 2 + 1}.")  # fmt: skip
    says(f"577² / 197² = {577**2 / 197**2:.2f} times")
    says(f"14 × 14 = {(224 // 16) ** 2} tokens. Each holds 16 · 16 · 3 = {16 * 16 * 3} numbers")
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
    says(
        "equal at $n = 2d$ = 1,536, and together with the feed-forward network at $n = 6d$ = 4,608."
    )
    grouped = BlockTour(preset="Llama 3 8B", n=8192)
    plain = BlockTour(preset="Llama 3 8B", n=8192, num_kv_heads=32)
    says(
        f"from {grouped.parameters / 1e9:.2f} to {plain.parameters / 1e9:.2f} billion. The cache "
        f"for 8,192 tokens grows fourfold, from {grouped.cache_bytes / 1e9:.2f} to "
        f"{plain.cache_bytes / 1e9:.2f} GB."
    )
    for n, equal in ((16_384, -1), (32_768, 1), (26_624, 0)):
        scores, *others = bill(BlockTour(preset="Llama 3 8B", n=n))
        assert (scores > sum(others)) - (scores < sum(others)) == equal
    says("$n = d + 1024 + \\tfrac{3}{2} \\cdot 14336$ = 26,624")

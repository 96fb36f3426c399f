"""The numbers in the text of chapter 2 are those that the package computes."""

import math
import re
from collections import Counter

import pages
import pytest
import torch
import torch.nn.functional as F

from attention import FEATURES, attention, cat_sentence, softmax
from attention.figures import qkv as figures
from attention.figures import qkv_party

X_MAT = torch.tensor([1.0, 0.5, -0.3, 0.8], dtype=torch.float64)
X_CAT = torch.tensor([0.5, 0.4, 0.1, 0.9], dtype=torch.float64)
W_Q = torch.tensor([[0.2, 0.1], [0.4, -0.3], [0.1, 0.5], [-0.2, 0.3]], dtype=torch.float64)
W_K = torch.tensor([[0.1, 0.2], [0.3, -0.1], [0.1, 0.4], [0.0, 0.0]], dtype=torch.float64)
KEYS = torch.stack([X_CAT, X_MAT]) @ W_K
CAT, MAT, IT = 1, 5, 7
FIXED = ("0.8", "0.1", "0.1")  # of *it* for cat, it and the last word, chosen by hand


def says(template, *values):
    pages.printed("qkv", template, *values)


def source():
    return (pages.BOOK / "qkv.md").read_text("utf-8")


def cells():
    return re.findall(r"^```\{code-cell\} python\n(.*?)^```$", source(), flags=re.S | re.M)


def cell(sign):
    """The one cell of the page that holds `sign`."""
    (code,) = [code for code in cells() if sign in code]
    return code


def matrix(x, fmt):
    """A matrix as the page writes it in LaTeX."""
    return " \\\\ ".join(" & ".join(format(v, fmt) for v in row) for row in x.tolist())


def thread(ending="tired"):
    """The page's own three matrices, made by its own cell, and X in double precision."""
    words, x = cat_sentence(ending)
    space = {"torch": torch, "FEATURES": FEATURES}
    exec(cell('W_Q[FEATURES.index("pronoun")]'), space)
    return words, x.double(), [space[name].double() for name in ("W_Q", "W_K", "W_V")]


def test_the_mean_and_the_fixed_weights():
    words, x, _ = thread()
    assert (words.index("cat"), words.index("mat"), words.index("it")) == (CAT, MAT, IT)
    mean = x.mean(0)
    assert mean[0] == mean[1]  # "and so is its *place*"
    says("*It* stands in position {}, *cat* in position {} and *tired* in position {} (we",
         IT, CAT, words.index("tired"))  # fmt: skip
    moved = "on the mat the cat sat because it was tired".split()
    assert sorted(moved) == sorted(word.lower() for word in words) and moved[IT] == "it"
    vector = dict(zip(words, x, strict=True))
    says("now *{}* is in position 1:", moved[1])
    row = dict(zip((CAT, IT, 9), map(float, FIXED), strict=True))
    says("takes {} from *cat*, {} from itself and {} from *tired*.", *FIXED)
    code = cell("moved = ").split("\nmoved")[0]
    space = {"torch": torch, "cat_sentence": cat_sentence}
    exec(code, space)
    assert space["A"][IT].tolist() == pytest.approx([row.get(i, 0) for i in range(10)])
    pages.printed(
        "motivation", "takes {} from *cat*, {} from itself and {} from the last word", *FIXED
    )
    says("the new vector has *alive* {:.2f}. The cat is gone",
         sum(w * vector[moved[i]][0] for i, w in row.items()))  # fmt: skip


def test_the_dot_products():
    words, x, _ = thread()
    scores = x @ x.T
    says("the dot product is $0.5^2 + 0.5^2 + 1^2 = {}$. With *cat* and with *mat* it is only {}.",
         scores[IT, IT].item(), scores[IT, CAT].item())  # fmt: skip
    assert scores[IT, CAT] == scores[IT, MAT]
    says("the scores are {} with itself, {} with *cat*, {} with *mat* and 0 with the seven other",
         *scores[IT, [IT, CAT, MAT]].tolist())  # fmt: skip
    assert (scores[IT] == 0).sum() == 7
    says("exponentials are {:.3f}, twice {:.3f}, and seven times 1; their sum is {:.3f}.",
         *scores[IT, [IT, CAT]].exp(), scores[IT].exp().sum())  # fmt: skip
    weights = softmax(scores)[IT]
    says("*it* gives itself {:.3f}, *cat* {:.3f}, *mat* {:.3f}, and every other word {:.3f}.",
         *weights[[IT, CAT, MAT, 0]])  # fmt: skip
    torch.testing.assert_close(scores, scores.T)
    for i, j in ((CAT, CAT), (9, 9), (IT, IT), (IT, MAT)):
        name, value = f"{words[i]} with {words[j]}", scores[i, j]
        assert f"{name} {value:g}" in source(), name  # the alternative text


def test_a_vector_matches_itself_best_among_vectors_of_one_length():
    generator = torch.Generator().manual_seed(7)
    x = F.normalize(torch.randn(200, 8, generator=generator, dtype=torch.float64), dim=-1)
    assert ((x @ x.T).argmax(-1) == torch.arange(200)).all()


@pytest.mark.parametrize("ending", ["tired", "warm"])
def test_queries_and_keys_by_hand(ending):
    words, x, (w_q, w_k, w_v) = thread(ending)
    q, k = (x @ w_q)[:, 0], (x @ w_k)[:, 0]
    says("So the query of *it* is {:.0f}, and every other word has the query 0.", q[IT])
    assert (q != 0).sum() == 1
    says("the key of *cat* is {:.0f} and the key of *mat* is −{:.0f}.", k[CAT], -k[MAT])
    assert k[IT] == 0 and (k != 0).sum() == 2
    scores = q[IT] * k
    says("The score with *cat* is $8 \\cdot 1 = {:.0f}$, with *mat* $8 \\cdot (-1) = {:.0f}$,",
         scores[CAT], scores[MAT])  # fmt: skip
    assert (scores == 0).sum() == 8
    top = scores[CAT].exp()
    says("\\frac{{{:.1f}}}{{{:.1f} + {:.4f} + 8}} = {:.3f} .", top, top, scores[MAT].exp(),
         softmax(scores)[CAT])  # fmt: skip
    out, weights = attention(x @ w_q, x @ w_k, x @ w_v)
    says("This output has *alive* {:.3f} and *place* {:.3f}.", *out[IT])
    says("*It* gives itself only {:.4f}, because", weights[IT, IT])
    others = [i for i in range(10) if i != IT]
    says("and each gives every word the weight {}.", round(weights[CAT, 0].item(), 6))
    torch.testing.assert_close(weights[others], torch.full((9, 10), 0.1, dtype=torch.float64))
    assert torch.equal(out[CAT], out[MAT])  # "get the same output"
    says("*It* scores *cat* with {:.0f}, but *cat* scores *it* with {:.0f}.",
         scores[CAT], q[CAT] * k[IT])  # fmt: skip
    dog = torch.zeros(6, dtype=torch.float64)
    dog[FEATURES.index("alive")] = 1.0  # "would find any living thing"
    assert dog @ w_k == k[CAT]
    says("*Cat*, with exactly the same weight, {:.3f}.", weights[IT, CAT])  # of either ending
    tired = thread("tired")
    assert torch.equal(
        weights[IT], attention(tired[1] @ w_q, tired[1] @ w_k, tired[1] @ w_v)[1][IT]
    )


def test_the_figures():
    weights = figures.slept_weights()
    assert "The {:.2f}, cat {:.2f}, slept {:.2f}.".format(*weights) in source()
    assert max(weights) == weights[1]
    _, x, (w_q, w_k, w_v) = thread()
    v = x @ w_v
    says_alt = source()
    fixed = torch.zeros(10).double()
    fixed[[CAT, IT, 9]] = torch.tensor([float(w) for w in FIXED]).double()
    for name, a in (("The plain mean lies at", torch.full((10,), 0.1).double()),
                    ("the dot products' output at", softmax(x @ x.T)[IT]),
                    ("the fixed weights' output at", fixed)):  # fmt: skip
        assert "{} ({:.2f}, {:.2f})".format(name, *(a @ v).tolist()) in says_alt
    assert (v.sum(-1) <= 1).all() and sum((0.7, 0.5)) > 1  # the question mark is impossible
    says("The point (0.7, 0.5) has the sum {:.1f}, so", 0.7 + 0.5)
    says("needs {} of *cat*, {} of *mat* and −{:.1f} of the other words.", 0.7, 0.5, 1.2 - 1)


def test_the_merges():
    words = {"cat": 5, "cats": 2, "mat": 4, "sat": 3}
    pieces = {word: list(word) for word in words}
    merges = []
    for _ in range(4):
        count = Counter()
        for word, times in words.items():
            for pair in zip(pieces[word], pieces[word][1:], strict=False):
                count[pair] += times
        (pair, times), (_, second) = count.most_common(2)
        assert times > second
        merges.append((*pair, times))
        for old in pieces.values():
            i = 0
            while i < len(old) - 1:
                if (old[i], old[i + 1]) == pair:
                    old[i : i + 2] = ["".join(pair)]
                i += 1
    says("*cat* {cat} times, *cats* {cats}, *mat* {mat} and *sat* {sat} times."
         .format(**words))  # fmt: skip
    says("The pair *{}, {}* occurs {} times,", *merges[0])
    says("Next, *{}, {}* leads with {}, so", *merges[1])
    assert [a + b for a, b, _ in merges[2:]] == ["mat", "sat"]  # "two merges later"


def test_the_embedding():
    code = cell("nn.Embedding")
    space = {"torch": torch, "nn": torch.nn, "table": lambda *args, **kwargs: None}
    exec(code, space)
    x, embedding = space["x"], space["embedding"]
    assert [round(v, 4) for v in x[0, :4].tolist()] == [0.3374, -0.1778, -0.3035, -0.588]
    assert [round(v, 4) for v in x[3, -2:].tolist()] == [0.1838, 0.2293]
    says("has $6 \\cdot 16 = {}$ parameters; the rows 4 and 5", embedding.weight.numel())
    one_hot = torch.tensor([0.0, 1, 0, 0, 0, 0])
    torch.testing.assert_close(one_hot @ embedding.weight, x[1])  # "by the table it gives row 1"
    embedding(space["ids"]).pow(2).sum().backward()
    moved = embedding.weight.grad.abs().sum(-1) > 0
    assert moved.tolist() == [True] * 4 + [False] * 2  # "the rows that the text uses"
    says("*mat* has {mat} and *cat* has {cat}, but".format(**space["vocabulary"]))


def test_widths_of_heads():
    assert 512 // 8 == 64
    says("$d_\\text{{model}} = {}$ and $d_k = {}$, because it shares its width among {} heads",
         512, 64, 8)  # fmt: skip


def test_mat_by_hand():
    says("x_\\text{{mat}} &= \\begin{{bmatrix}} " + matrix(X_MAT[None], ".1f") + " \\end")
    says("x_\\text{{cat}} &= \\begin{{bmatrix}} " + matrix(X_CAT[None], ".1f") + " \\end")
    says("W^Q = \\begin{{bmatrix}} " + matrix(W_Q, ".1f") + " \\end{{bmatrix}}")
    says("W^K = \\begin{{bmatrix}} " + matrix(W_K, ".1f") + " \\end{{bmatrix}}")
    q = X_MAT @ W_Q
    for i, (terms, value) in enumerate(zip((X_MAT[:, None] * W_Q).T, q, strict=True)):
        line = " ".join(f"{t:.2f}" if j == 0 else f"{'+' if t > 0 else '-'} {abs(t):.2f}"
                        for j, t in enumerate(terms.tolist()))  # fmt: skip
        says("&= " + line + " \\\\ &= {:.2f}", value)
        products = source().split(f"q_{i + 1} &= ")[1].split(" \\\\\n&= ")[0]
        products = products.replace(" \\\\\n&\\quad", "")
        signed = re.sub(r"- ", "+ -", products).split("+ ")
        computed = [math.prod(float(f) for f in s.split("\\cdot")) for s in signed]
        torch.testing.assert_close(torch.tensor(computed, dtype=torch.float64), terms)
    says("So $q_\\text{{mat}} = [{:.2f}, {:.2f}]$.", *q)
    says("$k_\\text{{cat}} = [{:.2f}, {:.2f}]$ and", *KEYS[0])
    says("and $k_\\text{{mat}} = [{:.2f}, {:.2f}]$.", *KEYS[1])
    says("- k_\\text{{cat}} = [{:.2f}, {:.2f}]$.", *(KEYS[1] - KEYS[0]))
    more = KEYS[1, 0] - KEYS[0, 0], KEYS[0, 1] - KEYS[1, 1]
    says("if ${:.2f}\\,q_1 + {:.2f}\\,q_2 > {:.2f}\\,q_1 + {:.2f}\\,q_2$, that is, if "
         "${:.2f}\\,q_1 > {:.2f}\\,q_2$.", *KEYS[1], *KEYS[0], *more)  # fmt: skip
    scores = KEYS @ q
    says("The scores are {:.4f} with *cat* and {:.4f} with *mat*.", *scores)
    says("The weights are {:.3f} and {:.3f}: almost", *softmax(scores / math.sqrt(2)))
    assert "line through the origin with slope 4/7" in source()
    assert math.isclose(more[0] / more[1], 4 / 7)


def answer_of(name):
    """What a question of the page takes as right and as the usual mistakes."""
    text = source()
    block = text[text.index(f":name: {name}\n") :].split("\n```\n")[0]
    return [float(x) for x in re.findall(r"^=== hint (\S+)$", block, flags=re.M)]


def test_the_questions():
    scores = torch.tensor([4.0, -4.0] + [0.0] * 8, dtype=torch.float64)
    e = scores.exp()
    says("$e^4/(e^4 + e^{{-4}} + 8) = {:.2f}/{:.2f} = {:.3f}$.", e[0], e.sum(), e[0] / e.sum())
    one_zero, none, shares = answer_of("check-qkv-half")
    assert one_zero == pytest.approx((e[0] / (e[0] + e[1] + 1)).item(), abs=5e-4)
    assert none == pytest.approx((e[0] / (e[0] + e[1])).item(), abs=5e-4)
    assert 0.45 < shares < 0.55
    scores = torch.tensor([24.0, 16.0], dtype=torch.float64)
    weights = softmax(scores / 8)
    says("$24/8 = {:.0f}$ and $16/8 = {:.0f}$.", *(scores / 8))
    says("is {:.2f} and {:.2f}, so the output is $o_1 = {:.2f}\\, v_1 + {:.2f}\\, v_2$.",
         *weights, *weights)  # fmt: skip
    says("{:.0f} % of the way from $v_1$ to $v_2$", 100 * weights[1])
    assert answer_of("check-qkv-thinking") == [round(24 / 40, 3), 1.0]
    layer = torch.nn.Linear(64, 8, bias=False)
    rows = torch.nn.Embedding(100, 64)(torch.arange(10))
    says("- {}, {}, {}", *(tuple(t.shape) for t in (rows, layer(rows), layer.weight)))


def test_what_the_explorer_is_said_to_show():
    from attention.widgets import QKVPlane

    w = QKVPlane(q=[2, 0], k=[[2, 0], [-2, 0], [0, 0]])
    cat, mat, was = w.weights.tolist()
    says("gets the weight {:.3f}, the key at the origin {:.3f}, and the key in the opposite "
         "direction {:.3f}.",
         cat, was, mat)  # fmt: skip
    start = QKVPlane()
    centre = torch.tensor(start.v, dtype=torch.float64).mean(0)
    torch.testing.assert_close(QKVPlane(q=[0, 0]).out, centre)
    turns = [math.radians(a) for a in range(0, 360, 5)]
    won = {QKVPlane(q=[3 * math.cos(a), 3 * math.sin(a)]).weights.argmax().item() for a in turns}
    assert won == {0, 1, 2}  # each of the three keys wins for some directions
    far = [QKVPlane(q=q).weights.argmax().item() for q in ([4, 3], [-4, -3])]
    assert far[0] != far[1]


def test_the_key_that_cannot_win():
    from attention.widgets import QKVPlane

    cat, mat, _ = QKVPlane().k
    assert (cat, mat) == ([2, 1], [-1, 2])
    says("half way between *cat* at $(2, 1)$ and *mat* at $(-1, 2)$")
    k = [cat, mat, [0.5, 1.5]]
    for angle in range(0, 360, 5):
        q = [4 * math.cos(math.radians(angle)), 4 * math.sin(math.radians(angle))]
        weights = QKVPlane(q=q, k=k).weights
        assert weights[2] <= weights[:2].max() + 1e-12
    tie = QKVPlane(q=[1, 3], k=k).weights
    torch.testing.assert_close(tie, torch.full((3,), 1 / 3, dtype=torch.float64))
    scores = [q1 * 1 + q2 * 3 for q1, q2 in ([1, 3], cat, mat)]
    assert scores[1] == scores[2]
    says("it scores {:.0f}, and the others {:.0f} each.", *scores[:2])


def played():
    """The page's own party, its cells run without the table."""
    space = {"torch": torch, "F": F, "nn": torch.nn, "attention": attention,
             "table": lambda *args, **kwargs: None}  # fmt: skip
    exec(cell("def party"), space)
    exec(cell("class Guest"), space)
    return space


def test_the_party_solved_by_hand():
    space = played()
    match = 20 / math.sqrt(8)
    top = math.exp(match)
    says("the 20 becomes {:.3f}, and Ben", match)
    says("\\frac{{e^{{{:.3f}}}}}{{e^{{{:.3f}}} + 7}} = \\frac{{{:.0f}}}{{{:.0f}}} = {:.3f} .",
         match, match, top, top + 7, top / (top + 7))  # fmt: skip
    i = torch.arange(8)
    weights = space["by_hand"][:, i, (i + 1) % 8]
    torch.testing.assert_close(weights, torch.full_like(weights, top / (top + 7)))
    assert space["error"] < 1e-4  # "almost exactly Ben's card"
    x, answer = space["x"], space["answer"]
    assert answer.pow(2).mean().item() == pytest.approx(1, abs=0.05)  # "always answers 0"
    swapped = attention(20 * x @ space["P_K"], x @ space["P_Q"] / 20, x)[1]
    assert (swapped.argmax(-1) == (i - 1) % 8).all()  # the question about exchanged matrices
    cards = answer.roll(1, 1)
    torch.testing.assert_close(cards, x[..., 16:])  # guest i looks for guest i + 1


def test_what_shared_projections_cost():
    """What the text says of the experiment, on a second seed and fewer steps."""
    space = played()
    error, looks, guests = {}, {}, {}
    i = torch.arange(8)
    for name, how in (("three", {}), ("QK", {"share": "QK"}), ("KV", {"share": "KV"}),
                      ("QV", {"share": "QV"}), ("QKV", {"share": "QKV"}),
                      ("KV 5", {"share": "KV", "width": 5}),
                      ("KV 6", {"share": "KV", "width": 6}),
                      ("QV 6", {"share": "QV", "width": 6}),
                      ("QV 7", {"share": "QV", "width": 7}), ("flat", {"d_k": 2, "seed": 0}),
                      ("QK wide", {"share": "QK", "width": 8})):  # fmt: skip
        guest, errors = space["trained"](**{"steps": 250, "seed": 5} | how)
        assert len(errors) == 250
        guests[name] = guest
        torch.manual_seed(6)
        x, answer = space["party"](300)
        with torch.no_grad():
            told, weights = guest(x)
        error[name] = (told - answer).pow(2).mean().item()
        looks[name] = [weights[:, i, (i + step) % 8].mean().item() for step in range(8)]
    assert max(error[name] for name in ("three", "flat", "QV 7")) < 0.02
    assert error["KV 6"] < 0.08  # 0.003 after the page's 400 steps
    assert error["QV"] > 0.4 and error["KV 5"] > 0.2 and error["QV 6"] > 0.1  # too narrow
    assert error["KV"] > 0.4 and error["QK"] > 0.7 and error["QK wide"] > 0.6  # "at any width"
    assert error["QKV"] > 0.8
    three, two = (sum(m.weight.numel() for m in {guest.q, guest.k, guest.v})
                  for guest in (space["Guest"](d_k=2), space["Guest"]("KV", 6)))  # fmt: skip
    says("have $2 \\cdot 20 \\cdot 2 + 20 \\cdot 4 = {}$ numbers.", three)
    says("width 6 have $2 \\cdot 20 \\cdot 6 = {}$.", two)
    says("in the party {} numbers instead of {}.", two, three)
    guest = guests["flat"]  # the directions of the picture
    key, query = guest.k.weight.detach()[:, 8:16], guest.q.weight.detach()[:, :8]
    assert (F.cosine_similarity(key, query, dim=0) > 0.95).all()
    turns = torch.atan2(key[1], key[0]).sort()
    names = [qkv_party.GUESTS[i] for i in turns.indices]
    names = names[names.index("Fei") :] + names[: names.index("Fei")]
    assert (turns.values.diff() * 180 / math.pi - 45).abs().max() < 15
    assert "Fei at the right, then counter-clockwise " + ", ".join(names[1:]) in source()
    assert looks["three"][1] > 0.9
    own, want, *others, wanted = looks["QK"]
    assert abs(want - wanted) < 0.02 and own > max(want, wanted)
    assert 0.01 < min(others) and max(others) < min(want, wanted)  # as in the picture
    own, *others = looks["QKV"]
    assert own > 2 * max(others) and min(others) > 0.01
    assert max(looks["three"][2:]) < 0.01


def test_the_exercises_by_hand():
    s = torch.tensor([[1.0], [3.0]]) @ torch.tensor([[1.0, 3.0]])
    says("$s_{{11}} = {:.0f}$ and $s_{{12}} = {:.0f}$.", s[0, 0], s[0, 1])
    two, one = f"{2 * 512 * 64:,}", f"{512**2:,}"
    says("= {}$ against $512^2 = {}$.", two.replace(",", "{,}"), one.replace(",", "{,}"))
    for last, noun in (("tired", CAT), ("warm", MAT)):
        _, x, (_, w_k, _) = thread(last)
        w_q = torch.zeros(6, 1, dtype=torch.float64)
        w_q[FEATURES.index("state")] = 8
        weight = attention(x @ w_q, x @ w_k, x)[1][9, noun]
        says("the weight is {:.3f} in both sentences.", weight)


def test_the_claims_about_biases_and_equal_scores():
    generator = torch.Generator().manual_seed(3)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    q, k, v, b = draw(5, 4), draw(5, 4), draw(5, 3), draw(4)
    out, weights = attention(q, k, v)
    torch.testing.assert_close(attention(q, k + b, v)[1], weights)
    torch.testing.assert_close(attention(q, k, v + b[:3])[0], out + b[:3])
    assert not torch.allclose(attention(q + b, k, v)[1], weights)
    r = draw(4, 4)
    torch.testing.assert_close((q @ r) @ (k @ torch.linalg.inv(r).T).T, q @ k.T)


def test_shuffled_words_keep_their_new_vectors():
    generator = torch.Generator().manual_seed(4)
    x, w = (torch.randn(*shape, generator=generator, dtype=torch.float64)
            for shape in ((10, 6), (3, 6, 4)))  # fmt: skip
    order = torch.randperm(10, generator=generator)

    def layer(x):
        return attention(*(x @ m for m in w))[0]

    torch.testing.assert_close(layer(x[order]), layer(x)[order])

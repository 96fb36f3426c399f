"""The numbers in the text of chapter 2 are those that the package computes."""

import math
import re
from collections import Counter

import pages
import torch
import torch.nn.functional as F

from attention import attention, softmax
from attention.figures import qkv as figures

X_MAT = torch.tensor([1.0, 0.5, -0.3, 0.8], dtype=torch.float64)
X_CAT = torch.tensor([0.5, 0.4, 0.1, 0.9], dtype=torch.float64)
W_Q = torch.tensor([[0.2, 0.1], [0.4, -0.3], [0.1, 0.5], [-0.2, 0.3]], dtype=torch.float64)
W_K = torch.tensor([[0.1, 0.2], [0.3, -0.1], [0.1, 0.4], [0.0, 0.0]], dtype=torch.float64)
KEYS = torch.stack([X_CAT, X_MAT]) @ W_K
A = torch.tensor([[0.3, 0.4, 0.3], [0.2, 0.5, 0.3], [0.4, 0.3, 0.3]], dtype=torch.float64)
V = torch.tensor([[1.0, 0.0, 0.5], [0.0, 1.0, 0.3], [1.0, 1.0, 0.2]], dtype=torch.float64)


def says(template, *values):
    pages.printed("qkv", template, *values)


def source():
    return (pages.BOOK / "qkv.md").read_text("utf-8")


def matrix(x, fmt):
    """A matrix as the page writes it in LaTeX."""
    return " \\\\ ".join(" & ".join(format(v, fmt) for v in row) for row in x.tolist())


def test_the_opening():
    """Among vectors of one length none beats the vector itself, and the scores are symmetric."""
    generator = torch.Generator().manual_seed(7)
    x = F.normalize(torch.randn(200, 8, generator=generator, dtype=torch.float64), dim=-1)
    scores = x @ x.T
    assert (scores.argmax(-1) == torch.arange(200)).all()
    torch.testing.assert_close(scores, scores.T)


def test_the_figures():
    weights = figures.slept_weights()
    alt = "The {:.2f}, cat {:.2f}, slept {:.2f}.".format(*weights)
    assert alt in source()
    assert max(weights) == weights[1]


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
    says("Then *{}, {}* leads with {}, and *cat* is one.", *merges[1])
    assert [a + b for a, b, _ in merges[2:]] == ["mat", "sat"]  # "two merges later"


def test_the_embedding():
    torch.manual_seed(123)
    embedding = torch.nn.Embedding(6, 16)
    x = embedding(torch.tensor([0, 1, 2, 3]))
    assert [round(v, 4) for v in x[0, :4].tolist()] == [0.3374, -0.1778, -0.3035, -0.588]
    assert [round(v, 4) for v in x[3, -2:].tolist()] == [0.1838, 0.2293]
    assert embedding.weight.numel() == 96
    says("picks out row {}. So", torch.tensor([0, 1, 0, 0, 0, 0]).argmax().item())


def test_mat_by_hand():
    says("x_\\text{{mat}} = \\begin{{bmatrix}} " + matrix(X_MAT[None], ".1f") + " \\end{{bmatrix}}")
    says("x_\\text{{cat}} = \\begin{{bmatrix}} " + matrix(X_CAT[None], ".1f") + " \\end{{bmatrix}}")
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
    says("$k_\\text{{mat}} = [{:.2f}, {:.2f}]$ (do", *KEYS[1])
    says("- k_\\text{{cat}} = [{:.2f}, {:.2f}]$, for", *(KEYS[1] - KEYS[0]))
    says("larger, ${:.2f}\\,q_1 + {:.2f}\\,q_2 > {:.2f}\\,q_1 + {:.2f}\\,q_2$, that",
         *KEYS[1], *KEYS[0])  # fmt: skip
    more = KEYS[1, 0] - KEYS[0, 0], KEYS[0, 1] - KEYS[1, 1]
    says("```{{math}} {:.2f}\\,q_1 > {:.2f}\\,q_2", *more)
    scores = KEYS @ q
    says("scores {:.4f} with the key of *cat* and {:.4f} with its own", *scores)
    says("normalised, that is {:.3f} and {:.3f}: the right", *softmax(scores / math.sqrt(2)))
    torch.testing.assert_close(KEYS @ torch.tensor([7.0, 4.0]).double(),
                               torch.full((2,), 1.66).double())  # fmt: skip
    assert "line through the origin with slope 4/7" in source()
    assert math.isclose((KEYS[1, 0] - KEYS[0, 0]) / (KEYS[0, 1] - KEYS[1, 1]), 4 / 7)


def test_thinking_machines():
    scores = torch.tensor([112.0, 96.0], dtype=torch.float64)
    scaled = scores / math.sqrt(64)
    weights = softmax(scaled)
    rows = {row[0]: row[1:] for row in pages.table("qkv", "tab-qkv-thinking")}
    assert rows["score of $q_1$"] == [
        f"$q_1 \\cdot k_{j + 1} = {s:.0f}$" for j, s in enumerate(scores.tolist())
    ]
    assert rows["divided by $\\sqrt{64} = 8$"] == [f"{s:.0f}" for s in scaled.tolist()]
    assert rows["softmax"] == [f"{w:.2f}" for w in weights.tolist()]
    assert rows["weighted value"] == [
        f"${w:.2f}\\, v_{j + 1}$" for j, w in enumerate(weights.tolist())
    ]
    says("$o_1 = {:.2f}\\, v_1 + {:.2f}\\, v_2$. Query and keys", *weights)
    says("lies {:.0f} % of the way", 100 * weights[1])


def test_the_hull():
    out = A @ V
    says("the weights ```{{math}} A = \\begin{{bmatrix}} " + matrix(A, ".1f") + " \\end{{bmatrix}}")
    says("AV = \\begin{{bmatrix}} " + matrix(out, ".2f") + " \\end{{bmatrix}}")
    for row in V.tolist():
        assert "[" + ", ".join(f"{v:.1f}" for v in row) + "]" in pages.prose("qkv")
    x, y = out[0, :2].tolist()
    says("The first output, $({:.2f}, {:.2f})$, has the weights {:.2f}, {:.2f} and {:.2f}.",
         x, y, 1 - y, 1 - x, x + y - 1)  # fmt: skip
    torch.testing.assert_close(
        torch.stack([1 - out[:, 1], 1 - out[:, 0], out[:, 0] + out[:, 1] - 1], -1), A
    )
    says("would need $c = {:.1f}$.", 0.3 + 0.5 - 1)
    says("which for the first row is {:.2f}.", 0.6 - 0.1 * x - 0.3 * y)
    torch.testing.assert_close(0.6 - 0.1 * out[:, 0] - 0.3 * out[:, 1], out[:, 2])
    says("gives {:.1f}, {:.1f} and −{:.1f}.", 1 - 0.5, 1 - 0.3, abs(0.3 + 0.5 - 1))


def test_what_the_explorer_is_said_to_show():
    from attention.widgets import QKVPlane

    w = QKVPlane(q=[2, 0], k=[[2, 0], [-2, 0], [0, 0]])
    cat, mat, was = w.weights.tolist()
    says("gets {:.3f} of the weight, the key at the origin {:.3f}, the key against it {:.3f}:",
         cat, was, mat)  # fmt: skip
    start = QKVPlane()
    centre = torch.tensor(start.v, dtype=torch.float64).mean(0)
    torch.testing.assert_close(QKVPlane(q=[0, 0]).out, centre)
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
        assert weights[2] <= weights.max() and weights[2] <= weights[:2].max() + 1e-12
    tie = QKVPlane(q=[1, 3], k=k).weights
    torch.testing.assert_close(tie, torch.full((3,), 1 / 3, dtype=torch.float64))
    scores = [q1 * 1 + q2 * 3 for q1, q2 in (([1, 3]), cat, mat)]
    says("it scores {:.0f} against {:.0f} and {:.0f}.", *scores)


def test_what_shared_projections_cost():
    """What the text says of the experiment, on a second seed and fewer steps."""
    text = source()
    cells = re.findall(r"^```\{code-cell\} python\n(.*?)^```$", text, flags=re.S | re.M)
    code = next(c for c in cells if "class Guest" in c)
    space = {"torch": torch, "F": F, "nn": torch.nn, "attention": attention}
    exec(code.replace("manual_seed(0)", "manual_seed(5)"), space)  # the page's own cell
    error, weights = {}, {}
    for name, how in (("three", {}), ("QK", {"share": "QK"}), ("KV", {"share": "KV"}),
                      ("QKV", {"share": "QKV"}), ("wide", {"share": "KV", "width": 8}),
                      ("QK wide", {"share": "QK", "width": 8})):  # fmt: skip
        guest = space["trained"](steps=250, **how)
        torch.manual_seed(6)
        x, answer = space["party"](300)
        with torch.no_grad():
            told, weights[name] = guest(x)
        error[name] = (told - answer).pow(2).mean().item()
    assert error["three"] < 0.02 and error["wide"] < 0.02
    assert error["KV"] > 0.4 and error["QK"] > 0.7 and error["QK wide"] > 0.6  # "at any width"
    assert error["QKV"] > 0.8
    looks = space["looks"]
    assert looks(weights["three"], 1) > 0.9
    want, wanted, own = (looks(weights["QK"], step) for step in (1, -1, 0))
    assert abs(want - wanted) < 0.02 and own > max(want, wanted)
    assert all(looks(weights["QKV"], 0) > 2 * looks(weights["QKV"], step) for step in range(1, 8))


def test_the_exercises_by_hand():
    k = torch.tensor([[1.0, 2.0], [3.0, 1.0]])
    assert (k @ torch.tensor([1.0, 2.0])).tolist() == [5, 5]
    says("Both scores are {:.0f}, so", 5)
    difference = k[1] - k[0]
    assert difference.tolist() == [2, -1]  # 2 q_1 > q_2
    s = torch.tensor([[1.0], [3.0]]) @ torch.tensor([[1.0, 3.0]])
    says("$s_{{11}} = {:.0f}$ and $s_{{12}} = {:.0f}$.", s[0, 0], s[0, 1])
    two, one = f"{2 * 512 * 64:,}", f"{512**2:,}"
    says("= {}$ against $512^2 = {}$.", two.replace(",", "{,}"), one.replace(",", "{,}"))


def test_the_claims_about_offsets_and_equal_scores():
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

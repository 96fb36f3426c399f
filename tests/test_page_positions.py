"""The numbers that the text of chapter 5 states are those that the package computes."""

import math

import torch
from pages import BOOK, printed, table

from attention import attention, causal_mask, shift_matrix, sinusoidal_encoding, t5_buckets

Q = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
K = torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
V = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def signed(x, digits=3):
    return f"{x:.{digits}f}".replace("-", "−")


def test_weights_of_the_opening_answer():
    weights = attention(Q, K, V)[1]
    printed("positions", '"I" gives "math" the weight {:.3f} in both orders', weights[0, 2])


def rows(matrix):
    return r"\\ ".join(" & ".join(f"{x:.3f}" for x in row) for row in matrix.tolist())


def test_matrices_of_the_exercise_on_order():
    weights = attention(Q, K, V)[1]
    printed("positions", "A = \\begin{{pmatrix}} " + rows(weights) + " \\end{{pmatrix}}")
    order = [0, 2, 1]  # I, math, love
    moved = attention(Q[order], K[order], V[order])[1]
    printed("positions", "A' = \\begin{{pmatrix}} " + rows(moved) + " \\end{{pmatrix}}")
    masked = attention(Q[order], K[order], V[order], causal_mask(3))[1]
    assert masked[0].tolist() == [1, 0, 0]
    torch.testing.assert_close(masked[2], weights[1, order])  # "love", now last, sees all
    a, b = (round(weight, 3) for weight in moved[1, :2].tolist())
    printed(
        "positions",
        "becomes ${:.3f}/({:.3f} + {:.3f}) = {:.3f}$ and ${:.3f}$, then 0",
        a, a, b, masked[1, 0], masked[1, 1],
    )  # fmt: skip
    assert round(a / (a + b), 3) == round(masked[1, 0].item(), 3)


def test_alternative_text_of_the_two_orders():
    weights = attention(Q, K, V)[1]
    text = (page := open_page())[page.index("Two tables of attention weights") :]
    for row in (*weights, *weights.flip(0, 1)):
        assert " ".join(f"{x:.3f}" for x in row.tolist()) in text.split('"')[0]


def open_page():
    return (BOOK / "positions.md").read_text("utf-8")


def test_steps_of_normalised_integers():
    printed("positions", "498/499 and 499/499 differ by {:.3f}", 1 / 499)
    printed("positions", "5 tokens the next token is {:g} further on", 1 / 4)
    printed("positions", "in one of 101 tokens {:g}.", 1 / 100)


def test_encodings_by_hand():
    pe = sinusoidal_encoding(4, 4)
    found = table("positions", "(table-positions-hand)=")
    assert [row[1:] for row in found[1:]] == [
        [signed(x) for x in pe[p].tolist()] for p in (0, 1, 3)
    ]
    printed(
        "positions",
        r"\sin 3 &= {:.3f}, & \sin 0.03 &= {:.3f},\\ \cos 3 &= {:.3f}, & \cos 0.03 &= {:.3f}",
        pe[3, 0], pe[3, 2], pe[3, 1], pe[3, 3],
    )  # fmt: skip
    total = torch.tensor([0.5, 0.3, -0.1, 0.8]) + pe[3]
    printed("positions", r"=\, & [{:.3f}, {:.3f}, {:.3f}, {:.3f}]", *total.tolist())
    printed("positions", r"+\, & [{:.3f}, {:.3f}, {:.3f}, {:.3f}]", *pe[3].tolist())
    printed("positions", "column 0 moves by {:.3f}, column 2 by {:.3f}", pe[1, 0], pe[1, 2])


def test_periods():
    printed("positions", r"$2\pi \approx {:.3f}$", 2 * math.pi)
    for pair in range(4):
        turn = 2 * math.pi * 10000 ** (2 * pair / 8)
        assert f"{turn:,.1f}" in open_page().split("Four dials")[1].split('"')[0]


def test_divisors_of_the_two_bases():
    printed("positions", "their divisor is $100^{{2/4}} = {:g}$ in one table and", 100 ** (2 / 4))
    printed("positions", "in one table and {:g} in the other", 10000 ** (2 / 4))


def test_positions_that_nearly_coincide():
    turns = round(710 / (2 * math.pi))
    gap = 710 - turns * 2 * math.pi
    printed("positions", "710 is {} turns but for {:.5f}", turns, gap)


def test_squared_length():
    printed(
        "positions",
        "{:.0f} for $d_{{\\text{{model}}}} = 512$",
        (sinusoidal_encoding(9, 512)[8] ** 2).sum(),
    )


def test_dot_products_named_in_the_alternative_text():
    pe = sinusoidal_encoding(121, 64)
    text = open_page().split("Two curves, symmetric")[1].split('"')[0]
    product = pe @ pe[60]
    assert f"both reach {product[60]:.0f}" in text
    assert abs(product[63] - 25) < 1 and "about 25 at offset 3" in text
    assert abs(product[100] - 15) < 1 and "about 15 at offset 40" in text
    pe = sinusoidal_encoding(121, 64, 100.0)
    product = pe @ pe[60]
    assert abs(product[70] - 11) < 0.5 and "about 11 at offset 10" in text
    assert product[100:].abs().max() < 5 and "from offset 40 on goes up and down near 0" in text


def test_first_bucket_that_training_never_met():
    unmet = (t5_buckets(-torch.arange(200), bidirectional=False) > 21).nonzero().min().item()
    printed("positions", "The buckets for offsets of {} and more were never met", unmet)


def test_hands_of_the_exercise():
    turns = [2 * math.pi * 1000 ** (2 * pair / 6) for pair in range(3)]
    printed("positions", "so ${:.3f}$, ${:.3f}$ and ${:.3f}$ positions", *turns)
    printed("positions", "round after {:.3f} positions, columns 4 and 5", turns[0])
    printed("positions", "columns 4 and 5 after {:.3f}.", turns[2])
    pe = sinusoidal_encoding(3, 6, 1000.0)[2].tolist()
    printed("positions", "= [{:.3f}, {:.3f}, {:.3f}, {:.3f}, {:.3f}, {:.3f}]$.", *pe)


def test_similarities_of_the_explorer_exercise():
    similar = {}
    for base in (10000.0, 100.0):
        pe = sinusoidal_encoding(64, 64, base).double()
        similar[base] = (pe @ pe[0] / 32).tolist()
    first = {b: next(d for d, x in enumerate(s) if x < 0.5) for b, s in similar.items()}
    at = {b: similar[b][d] for b, d in first.items()}
    printed("positions", r"(a) At $\Delta = {}$, with {:.3f}", first[10000.0], at[10000.0])
    printed("positions", r"(b) At $\Delta = {}$, with {:.3f}", first[100.0], at[100.0])
    assert all(x < 0.5 for x in similar[100.0][first[100.0] :])
    again = [d for d, x in enumerate(similar[10000.0]) if x > 0.5 and d > first[10000.0]]
    stretch = [d for d in again if d < 37]
    printed("positions", "at {} to {} it is above 0.5 again", stretch[0], stretch[-1])
    assert stretch == list(range(stretch[0], stretch[-1] + 1))


def test_scores_of_the_leak_exercise():
    needed = [math.log(9 * (n - 1)) for n in (32, 128)]
    printed("positions", "${:.3f}$ at 32 and ${:.3f}$ at 128", *needed)
    printed("positions", "$1/(1 + 96) = {:.3f}$", 1 / 97)


def test_solution_of_the_four_terms_puts_the_peak_three_back():
    pe = sinusoidal_encoding(40, 16)
    score = pe @ shift_matrix(3, 16) @ pe.T
    assert (score[3:].argmax(-1) == torch.arange(37)).all()

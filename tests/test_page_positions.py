"""The numbers that the text of chapter 5 states are those that the package computes."""

import math

import pytest
import torch
from pages import BOOK, printed, table

from attention import (
    alibi_bias,
    attention,
    cat_sentence,
    causal_mask,
    rotary,
    shift_matrix,
    sinusoidal_encoding,
    softmax,
    t5_buckets,
)

Q = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
K = torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
V = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def signed(x, digits=3):
    return f"{x:.{digits}f}".replace("-", "−")


def open_page():
    return (BOOK / "positions.md").read_text("utf-8")


def alternative(start):
    """The alternative text that begins like this."""
    return (text := open_page())[text.index(start) :].split('"\n')[0]


def test_it_finds_the_cat_in_both_orders():
    words, x = cat_sentence("tired")
    for order in (range(10), [0, 5, 2, 3, 4, 1, 6, 7, 8, 9]):
        names, moved = [words[i] for i in order], x[list(order)]
        weights = softmax(8 * moved[names.index("it"), 2] * (moved[:, 0] - moved[:, 1]))
        assert f"{weights[names.index('cat')]:.3f}" == "0.997"
    printed("positions", "*it* gave *cat* the weight {}", "0.997")
    assert open_page().count("0.997, as before") == 2  # the option and the answer


def test_the_number_of_exercises():
    assert open_page().count("\n:label: ex-") == 12, "the page says: twelve exercises"


def test_weights_of_i_love_math():
    weights = attention(Q, K, V)[1]
    assert f"*I* looking at *math*: its number is {weights[0, 2]:.3f} in both" in open_page()


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
    text = alternative("Two tables of attention weights")
    for row in (*weights, *weights.flip(0, 1)):
        assert " ".join(f"{x:.3f}" for x in row.tolist()) in text


def causal_layers(x, layers, seed=0):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(layers):
        w_q, w_k, w_v = torch.randn(3, 4, 4, generator=generator)
        x = x + attention(x @ w_q, x @ w_k, x @ w_v, causal_mask(len(x)))[0]
    return x


@pytest.mark.parametrize("seed", range(5))
def test_one_causal_layer_sees_its_past_as_a_bag_and_two_do_not(seed):
    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(100 + seed))
    order = [2, 1, 0, 3]  # dog bites man . and man bites dog .
    one, moved = causal_layers(x, 1, seed), causal_layers(x[order], 1, seed)
    torch.testing.assert_close(one[3], moved[3])
    for word, place in ((0, 2), (1, 1), (2, 0)):  # each of the words sees another bag
        assert (one[word] - moved[place]).abs().max() > 1e-3
    two, moved = causal_layers(x, 2, seed), causal_layers(x[order], 2, seed)
    assert (two[3] - moved[3]).abs().max() > 1e-3


def test_steps_of_normalised_integers():
    printed("positions", "498/499 and 499/499 differ by only {:.3f}", 1 / 499)
    assert "is 0.25 away in a text of 5 tokens and 0.01 away in one of 101" in open_page()
    assert (1 / (5 - 1), 1 / (101 - 1)) == (0.25, 0.01)


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


def test_the_clock_of_the_guess():
    pe = sinusoidal_encoding(5000, 8)[427].tolist()
    pairs = "$[{:.3f}, {:.3f}]$, $[{:.3f}, {:.3f}]$, $[{:.3f}, {:.3f}]$ and $[{:.3f}, {:.3f}]$"
    printed("positions", "Four clocks show " + pairs, *pe)
    printed("positions", "its sine would be {:.3f}", math.sin(0.042))


def test_periods():
    printed("positions", r"$2\pi \approx {:.3f}$", 2 * math.pi)
    for pair in range(4):
        turn = 2 * math.pi * 10000 ** (2 * pair / 8)
        assert f"{turn:,.1f}" in alternative("Four dials. On the first")
    text = alternative("Three rising lines over the pair of columns")
    for base in (100, 10000):
        assert f"{2 * math.pi * base ** (62 / 64):,.0f}" in text
    assert 2 * math.pi * 5e5 ** (62 / 64) > 2e6 and "ends above two million" in text


def test_hands_that_hardly_move():
    slow = []
    for base in (1e4, 5e5):
        speed = base ** (-torch.arange(0, 64, 2).double() / 64)
        slow.append(int((512 * speed < 0.1).sum()))
    printed("positions", "{} of the 32 hands turn by less than 0.1 radians", slow[0])
    printed("positions", "with base 10,000, but {} with base 500,000", slow[1])


def test_the_slowest_hands_of_the_bases():
    slowest = [2 * math.pi * base ** (62 / 64) for base in (10000, 100)]
    printed(
        "positions", "needs {:,.0f} positions for a full turn, with base 100 only {:.0f}", *slowest
    )
    begins = "With the usual `max_distance` {} its last bucket begins at the distance {}, and with "
    begins += "`max_distance` {} it begins at {}"
    numbers = []
    for max_distance in (128, 24):
        bucket = t5_buckets(torch.arange(200), max_distance=max_distance, bidirectional=False)
        at = int((bucket == 31).nonzero().min())
        numbers += [max_distance, at]
        formula = [16 + math.floor(16 * math.log(d / 16) / math.log(max_distance / 16))
                   for d in range(16, 200)]  # fmt: skip
        assert bucket[16:].tolist() == [min(b, 31) for b in formula]
    printed("positions", begins, *numbers)


def test_means_of_the_far_dot_products():
    products = {b: (pe := sinusoidal_encoding(512, 64, b)) @ pe[0] for b in (1e2, 1e4)}
    near, far = (products[1e4][d : d + 40].mean() for d in (20, 200))
    said = "its mean is {:.1f} over the distances 20 to 59, and {:.1f} over 200 to 239"
    printed("positions", said, near, far)
    means = [products[1e2][d : d + 40].mean() for d in range(40, 460, 20)]
    assert max(means) > means[0] > min(means) and abs(means[0]) < 3, "no trend from 40 on"
    text = alternative("Two panels. Above, two curves")
    low, high = products[1e2][40:501].aminmax()
    assert f"between about minus {-low:.0f} and {high:.0f}" in text
    assert (
        abs(products[1e4][40:81].mean() - 16) < 1.5 and abs(products[1e4][480:501].mean() - 6) < 1.5
    )
    assert "in waves from about 16 to about 6" in text


def test_columns_that_look_the_same_in_the_explorer():
    slow = [2 * pair for pair in range(32) if 63 * 1e6 ** (-2 * pair / 64) < 0.1]
    printed("positions", "Roughly those from column {} on", slow[0])


def test_t5_counts_as_the_text_does():
    """One sign for the offset: of two keys beside the query, the earlier has the offset 1."""
    assert alibi_bias(1, 3)[0, 2, 0] == alibi_bias(1, 3)[0, 0, 2]
    near = t5_buckets(torch.tensor([1, -1]), bidirectional=False)
    assert near.tolist() == [1, 0], "a key after the query falls into bucket 0"
    text = open_page()
    assert text.count("torch.arange(n)[:, None] - torch.arange(n)  # i - j") == 2
    assert "j - i" not in text


def test_the_sentence_with_base_100():
    assert 100 ** (2 / 4) == 10 and 10000 ** (2 / 4) == 100
    assert "the divisor of columns 2 and 3 is 10 instead of 100" in open_page()


def test_positions_that_nearly_coincide():
    turns = round(710 / (2 * math.pi))
    gap = 710 - turns * 2 * math.pi
    printed("positions", "710 radians are {} full turns and only {:.5f} radians more", turns, gap)


def test_squared_length():
    printed(
        "positions",
        "{:.0f} for $d_{{\\text{{model}}}} = 512$",
        (sinusoidal_encoding(9, 512)[8] ** 2).sum(),
    )


def test_dot_products_named_in_the_alternative_text():
    pe = sinusoidal_encoding(121, 64)
    text = alternative("Two panels. Above, two curves")
    product = pe @ pe[60]
    assert f"both reach {product[60]:.0f}" in text
    assert abs(product[63] - 25) < 1 and "about 25 at offset 3" in text
    assert abs(product[100] - 15) < 1 and "about 15 at offset 40" in text
    pe = sinusoidal_encoding(121, 64, 100.0)
    product = pe @ pe[60]
    assert abs(product[70] - 11) < 0.5 and "about 11 at offset 10" in text
    assert product[100:].abs().max() < 5 and "from offset 40 on goes up and down near 0" in text


def test_rotary_by_hand():
    arrow = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    (q, k), (later_q, later_k) = (
        rotary(arrow, torch.tensor(pair).double()) for pair in ((5, 2), (8, 5))
    )
    hand = r"q' &= [\cos 5, \sin 5] = [{:.3f}, {:.3f}]\\ k' &= [\cos 2, \sin 2] = [{:.3f}, {:.3f}]"
    printed("positions", hand, *q.tolist(), *k.tolist())
    first, second = (q * k).tolist()
    printed("positions", r"q'\cdot k' &= {:.3f} - {:.3f} = {:.3f} = \cos 3", first, -second, q @ k)
    assert abs(later_q @ later_k - q @ k) < 1e-6
    different = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
    scores = []
    for pair in ((5, 2), (2, 5)):  # q = k cannot tell them apart, q != k can
        q, k = rotary(arrow, torch.tensor(pair).double())
        assert abs(q @ k - math.cos(3)) < 1e-6
        q, k = rotary(different, torch.tensor(pair).double())
        scores.append((q @ k).item())
    printed("positions", "the score is ${:.3f}$ at the offset 3", scores[0])
    printed("positions", "and ${:.3f}$ at the offset $-3$", scores[1])
    text = alternative("Four dials with two arrows")
    assert text.count(f"cos 3 = {signed(math.cos(3))}") == 2
    assert f"cos 2 = {signed(math.cos(2))}" in text
    assert f"falls slowly from 1 to {math.cos(0.6):.2f}" in alternative("Three cosine curves")


def test_turns_of_the_four_hands_of_the_experiment():
    speeds = [10000 ** (-2 * pair / 8) for pair in range(4)]  # d_k = 8
    assert 4.5 < 31 * speeds[0] / (2 * math.pi) < 5
    printed("positions", "hand 1 makes half a turn ({:.1f} radians)", 31 * speeds[1])
    printed("positions", "hardly move ({:.2f} and {:.3f} radians)", 31 * speeds[2], 31 * speeds[3])
    assert 2 <= 127 * speeds[1] / (2 * math.pi) < 2.1 and "127 it goes round twice" in open_page()
    assert abs(47 - 3 - 7 * 2 * math.pi) < 0.02 and "44 radians are seven full turns" in open_page()


def test_one_hand_confuses_offsets_that_the_explorer_shows():
    from attention.widgets import RotaryArrows

    w = RotaryArrows()
    alike = [d - 40 for d, s in enumerate(w.scores.tolist()) if s > 0.99 and d != 40]
    assert alike == [-25, 25] and w.scores[40] == 1
    printed("positions", "{} (and −25 on the curve) with {:.3f}", alike[1], w.scores[65])
    three = RotaryArrows(i=8, j=5, omega=0.5, content=-86)
    assert three.scores.argmax() == 43 and "starts 86° behind" in open_page()


def test_buckets():
    distance = torch.arange(200)
    bucket = t5_buckets(distance, bidirectional=False)
    assert bucket[:16].tolist() == list(range(16)) and bucket[16] == bucket[17] == 16
    last = int((bucket == 31).nonzero().min())
    assert f"stays at 31 from distance {last} on" in open_page()
    assert f"each is about {100 * (8 ** (1 / 16) - 1):.0f} % wider" in open_page()
    unmet = int((bucket > 21).nonzero().min())
    printed("positions", "the buckets for distances of {} and more were never used", unmet)
    assert f"Up to {unmet - 1} their buckets were met" in open_page()
    assert f"all distances from {last} on share the last bucket" in open_page()


def test_answers_about_the_explorer_of_the_schemes():
    from attention.widgets import Positions

    stay: dict[str, list[str]] = {"shift": [], "reversed": []}
    for scheme in ("none", "sinusoidal", "t5", "alibi", "rotary"):
        plain = Positions(scheme=scheme).scores
        if torch.allclose(Positions(scheme=scheme, shift=7).scores, plain):
            stay["shift"].append(scheme)
        if abs(Positions(scheme=scheme, reversed=True).scores[4, 3] - plain[1, 2]) < 1e-9:
            stay["reversed"].append(scheme)
    assert stay == {"shift": ["none", "t5", "alibi", "rotary"], "reversed": ["none", "alibi"]}
    assert "Shifted, they stay under T5, ALiBi and rotary positions. Reversed, under" in open_page()


def test_biases_of_the_alibi_figure():
    bias = alibi_bias(8, 5)
    text = alternative("Two tables for five queries")
    assert f"by {-bias[0, 1, 0]:.2f} per step to minus {-bias[0, 4, 0]:.2f}" in text
    assert f"by {-bias[3, 1, 0]:.2f} per step to minus {-bias[3, 4, 0]:.2f}" in text


def test_hands_of_the_exercise():
    turns = [2 * math.pi * 1000 ** (2 * pair / 6) for pair in range(3)]
    printed("positions", "so ${:.3f}$, ${:.3f}$ and ${:.3f}$ positions", *turns)
    printed("positions", "round after {:.3f} positions, columns 4 and 5", turns[0])
    printed("positions", "columns 4 and 5 after {:.3f}.", turns[2])
    pe = sinusoidal_encoding(3, 6, 1000.0)[2].tolist()
    each = [rf"$\{f} {x} = {{:.3f}}$" for x in ("2", "0.2", "0.02") for f in ("sin", "cos")]
    printed("positions", ", ".join(each) + ".", *pe)


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
    score = pe @ shift_matrix(-3, 16) @ pe.T
    assert (score[3:].argmax(-1) == torch.arange(37)).all()

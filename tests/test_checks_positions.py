"""Each check of chapter 5 accepts a right answer written differently and names six faults."""

import math

import pytest
import torch

from attention import rotary, shift_matrix, sinusoidal_encoding
from attention.checks import positions as check
from attention.checks._base import NotYet


def encode(p, column, d, base):
    angle = p / base ** (2 * (column // 2) / d)
    return math.sin(angle) if column % 2 == 0 else math.cos(angle)


def table(n, d, entry):
    return torch.tensor([[entry(p, c) for c in range(d)] for p in range(n)])


def trig(column, angle):
    return math.sin(angle) if column % 2 == 0 else math.cos(angle)


def wave(n, d, angle, shift=0):
    """The encoding with another angle for position p, column c; shift 1 swaps sine and cosine."""
    return table(n, d, lambda p, c: trig(c + shift, angle(p, c)))


def test_sinusoids_accepts_loops(capsys):
    check.sinusoids(lambda n, d, base: table(n, d, lambda p, c: encode(p, c, d, base)))
    assert capsys.readouterr().out.startswith("Right: ")


def test_sinusoids_accepts_exp_of_a_logarithm():
    def mine(n, d, base=10000.0):
        rate = torch.exp(-math.log(base) * torch.arange(0, d, 2) / d)
        out = torch.zeros(n, d)
        out[:, 0::2] = torch.sin(torch.arange(n)[:, None] * rate)
        out[:, 1::2] = torch.cos(torch.arange(n)[:, None] * rate)
        return out

    check.sinusoids(mine)


SINUSOIDS = {
    "changed places": lambda n, d, b: wave(n, d, lambda p, c: p / b ** (c // 2 * 2 / d), shift=1),
    "all sines come first": lambda n, d, b: torch.cat(
        [
            wave(n, d, lambda p, c: p / b ** (c // 2 * 2 / d))[:, 0::2],
            wave(n, d, lambda p, c: p / b ** (c // 2 * 2 / d))[:, 1::2],
        ],
        -1,
    ),
    "number of the column": lambda n, d, b: wave(n, d, lambda p, c: p / b ** (2 * c / d)),
    "do not share their angle": lambda n, d, b: wave(n, d, lambda p, c: p / b ** (c / d)),
    "seem to use ℓ/d_model": lambda n, d, b: wave(n, d, lambda p, c: p / b ** (c // 2 / d)),
    "count from 0": lambda n, d, b: table(n, d, lambda p, c: encode(p + 1, c, d, b)),
    "10000 whatever": lambda n, d, b: table(n, d, lambda p, c: encode(p, c, d, 10000.0)),
    "slow pairs come first": lambda n, d, b: table(
        n, d, lambda p, c: trig(c, p / b ** (2 * (d // 2 - 1 - c // 2) / d))
    ),
    "is multiplied by": lambda n, d, b: wave(n, d, lambda p, c: p * b ** (c // 2 * 2 / d)),
    "must have shape": lambda n, d, b: table(n, d, lambda p, c: encode(p, c, d, b)).T[:, :1],
    "returned None": lambda n, d, b: None,
    "compare it with sin": lambda n, d, b: torch.zeros(n, d),
}


@pytest.mark.parametrize("phrase", SINUSOIDS)
def test_sinusoids_names_the_fault(phrase):
    wrong = SINUSOIDS[phrase]
    with pytest.raises(NotYet, match=phrase):
        check.sinusoids(lambda n, d, b: wrong(n, d, b))


def test_the_reference_itself_is_no_answer():
    with pytest.raises(NotYet, match="you call the finished"):
        check.sinusoids(sinusoidal_encoding)
    with pytest.raises(NotYet, match="you call the finished"):
        check.sinusoids(lambda n, d, b: sinusoidal_encoding(n, d, b))
    with pytest.raises(NotYet, match="you call the finished"):
        check.shift(lambda delta, d, b: shift_matrix(delta, d, b))
    with pytest.raises(NotYet, match="you call the finished"):
        check.rotary_turn(lambda x, b: rotary(x, base=b))


def turn(delta, d, base, same_speed=False, sign=1.0, swap=False):
    out = torch.zeros(d, d)
    for pair in range(d // 2):
        angle = sign * delta / (1.0 if same_speed else base ** (2 * pair / d))
        a, b = math.cos(angle), math.sin(angle)
        a, b = (b, a) if swap else (a, b)
        k = 2 * pair
        out[k, k], out[k, k + 1], out[k + 1, k], out[k + 1, k + 1] = a, -b, b, a
    return out


def halved(matrix):
    d = len(matrix)
    order = list(range(0, d, 2)) + list(range(1, d, 2))
    return matrix[order][:, order]


def least_squares(delta, d, base):
    p = torch.arange(-50, 50).double()
    rate = base ** (-torch.arange(0, d, 2).double() / d)

    def rows(q):
        angle = q[:, None] * rate
        return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)

    return torch.linalg.lstsq(rows(p), rows(p + delta)).solution


def test_shift_accepts_loops_and_least_squares():
    check.shift(turn)
    check.shift(least_squares)


SHIFT = {
    "turns the hands back": lambda delta, d, b: turn(delta, d, b, sign=-1.0),
    "same angle": lambda delta, d, b: turn(delta, d, b, same_speed=True),
    "shift by 1 whatever": lambda delta, d, b: turn(1, d, b),
    "10000 whatever": lambda delta, d, b: turn(delta, d, 10000.0),
    "pair column ℓ with column": lambda delta, d, b: halved(turn(delta, d, b)),
    "identity": lambda delta, d, b: torch.eye(d),
    "changed places": lambda delta, d, b: turn(delta, d, b, swap=True),
    "it fails at p = 10": lambda delta, d, b: turn(2 * delta, d, b),
    "holds at p = 10 only": lambda delta, d, b: (
        torch.outer(
            torch.tensor([encode(10, c, d, b) for c in range(d)]),
            torch.tensor([encode(10 + delta, c, d, b) for c in range(d)]),
        )
        / (d / 2)
    ),
    "must have shape": lambda delta, d, b: torch.zeros(d),
}


@pytest.mark.parametrize("phrase", SHIFT)
def test_shift_names_the_fault(phrase):
    wrong = SHIFT[phrase]
    with pytest.raises(NotYet, match=phrase):
        check.shift(lambda delta, d, b: wrong(delta, d, b))


def spin(x, base, first=0, sign=1.0, same_speed=False, half=False):
    out = x.clone()
    n, d = x.shape
    for p in range(n):
        for pair in range(d // 2):
            a, b = (pair, pair + d // 2) if half else (2 * pair, 2 * pair + 1)
            angle = sign * (p + first) / (1.0 if same_speed else base ** (2 * pair / d))
            z = complex(x[p, a], x[p, b]) * complex(math.cos(angle), math.sin(angle))
            out[p, a], out[p, b] = z.real, z.imag
    return out


def only_even(x, base):
    out = spin(x, base)
    out[:, 1::2] = x[:, 1::2]
    return out


def test_rotary_accepts_complex_numbers():
    check.rotary_turn(spin)


ROTARY = {
    "turn backwards": lambda x, b: spin(x, b, sign=-1.0),
    "row 0 stays as it is": lambda x, b: spin(x, b, first=1),
    "as some released models do": lambda x, b: spin(x, b, half=True),
    "adds nothing, it turns": lambda x, b: x + sinusoidal_encoding(*x.shape, b),
    "same angle": lambda x, b: spin(x, b, same_speed=True),
    "10000 whatever": lambda x, b: spin(x, 10000.0),
    "only the even columns": only_even,
    "nothing turns": lambda x, b: x,
    "change their length": lambda x, b: spin(x, b) * 2,
    "with d = 4 and base = 100": lambda x, b: -spin(x, b),
}


@pytest.mark.parametrize("phrase", ROTARY)
def test_rotary_names_the_fault(phrase):
    wrong = ROTARY[phrase]
    with pytest.raises(NotYet, match=phrase):
        check.rotary_turn(lambda x, b: wrong(x, b))


def turned(key, by, base, **options):
    """key (d,) turned by `by` positions, with the faults of `spin`."""
    return spin(key[None], base, first=by, **options)[0]


def test_looks_back_accepts_complex_numbers():
    check.looks_back(lambda key, back, b: turned(key, -back, b))


def test_looks_back_accepts_the_turn_as_a_matrix():
    check.looks_back(lambda key, back, b: key @ turn(back, len(key), b))  # clockwise


LOOKS_BACK = {
    "positions after it": lambda k, back, b: turned(k, back, b),
    "the key itself": lambda k, back, b: k,
    "points away": lambda k, back, b: -turned(k, -back, b),
    "3 back whatever": lambda k, back, b: turned(k, -3, b),
    "10000 whatever": lambda k, back, b: turned(k, -back, 10000.0),
    "same angle": lambda k, back, b: turned(k, -back, b, same_speed=True),
    "pair column ℓ with column": lambda k, back, b: turned(k, -back, b, half=True),
    "as long as the key": lambda k, back, b: 8 * turned(k, -back, b),
    "must have shape": lambda k, back, b: turned(k, -back, b)[None],
    "returned None": lambda k, back, b: None,
    "is not largest": lambda k, back, b: k.flip(0),
}


@pytest.mark.parametrize("phrase", LOOKS_BACK)
def test_looks_back_names_the_fault(phrase):
    with pytest.raises(NotYet, match=phrase):
        check.looks_back(LOOKS_BACK[phrase])


def offsets(n):
    return (torch.arange(n)[:, None] - torch.arange(n)).float()


def relative(b, n, index):
    w = len(b) // 2
    return torch.stack([torch.stack([b[index(i, j, w)] for j in range(n)]) for i in range(n)])


def clip(x, low, high):
    return max(low, min(high, x))


def test_relative_bias_accepts_loops():
    check.relative_bias(lambda b, n: relative(b, n, lambda i, j, w: w + clip(i - j, -w, w)))


RELATIVE = {
    "before and after have changed places": lambda i, j, w: w + clip(j - i, -w, w),
    "before and after look alike": lambda i, j, w: w + clip(abs(i - j), -w, w),
    "middle of the table": lambda i, j, w: clip(i - j, -w, w),
    "must be clipped": lambda i, j, w: (w + i - j) % (2 * w + 1),
    "but not at −w": lambda i, j, w: (w + min(i - j, w)) % (2 * w + 1),
    "place alone": lambda i, j, w: min(j, 2 * w),
    "constant along each diagonal": lambda i, j, w: min(i, 2 * w),
}


@pytest.mark.parametrize("phrase", RELATIVE)
def test_relative_bias_names_the_fault(phrase):
    with pytest.raises(NotYet, match=phrase):
        check.relative_bias(lambda b, n: relative(b, n, RELATIVE[phrase]))


def test_relative_bias_wants_the_outermost_entries_reused():
    def cut(b, n):
        w = len(b) // 2
        full = relative(b, n, lambda i, j, w: w + clip(i - j, -w, w))
        return full * (offsets(n).abs() <= w)

    with pytest.raises(NotYet, match="outermost entries"):
        check.relative_bias(cut)


def test_relative_bias_reports_an_index_out_of_range():
    with pytest.raises(NotYet, match="raised IndexError"):
        check.relative_bias(lambda b, n: relative(b, n, lambda i, j, w: w + i - j))


def test_a_helper_of_ones_own_may_be_named_like_the_packages(capsys):
    def rotary(x, base):
        angle = torch.arange(len(x))[:, None] / base ** (
            torch.arange(0, x.shape[1], 2) / x.shape[1]
        )
        turned = torch.view_as_complex(x.reshape(len(x), -1, 2)) * torch.polar(
            torch.ones_like(angle), angle
        )
        return torch.view_as_real(turned).flatten(1)

    check.rotary_turn(lambda x, base: rotary(x, base))
    assert "Right" in capsys.readouterr().out

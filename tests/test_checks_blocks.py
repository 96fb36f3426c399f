"""The checks of chapter 7 accept right answers and name the fault of wrong ones."""

import pytest
import torch
import torch.nn.functional as F

from attention import next_token_probabilities
from attention.checks import blocks as check
from attention.checks._base import NotYet


def _count(v, d, n, f, m):
    return (v + m) * d + n * (4 * (d * d + d) + 2 * d * f + f + d + 4 * d) + 2 * d


def _wide_norm(x, gain, bias, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    size = (centred.norm(dim=-1, keepdim=True) ** 2 / x.shape[-1] + eps).rsqrt()
    return torch.addcmul(bias, centred * size, gain)


def _block_in_one(x, attend, feed_forward, norm_1, norm_2):
    for f, norm in ((attend, norm_1), (feed_forward, norm_2)):
        x = f(norm(x)) + x
    return x


def _one_of_three():
    return 2 * torch.ones(3, 3), torch.tensor([0.0, -2, -4]), torch.tensor([[0.5], [-1], [0.5]])


def _pad_shift(target, start, end):
    return F.pad(target, (1, 0), value=start), F.pad(target, (0, 1), value=end)


def _nucleus_by_loop(probabilities, p):
    out, total = torch.zeros_like(probabilities), 0.0
    for i in probabilities.argsort(descending=True):
        if total < p:
            out[i] = probabilities[i]
            total += float(probabilities[i])
    return out / out.sum()


@pytest.mark.parametrize(
    "name, answer",
    [
        ("layer_norm", _wide_norm),
        ("pre_norm_block", _block_in_one),
        ("exactly_one", _one_of_three),
        ("teacher_forcing", _pad_shift),
        ("top_p", _nucleus_by_loop),
        ("parameters", _count),
    ],
)
def test_a_right_answer_written_differently_passes(name, answer, capsys):
    getattr(check, name)(answer)
    assert capsys.readouterr().out.startswith("Right")


# ---- wrong answers: (check, answer, a phrase of what must be said)


def _stats(x, dim=-1, unbiased=False):
    return x.mean(dim, keepdim=True), x.var(dim, keepdim=True, unbiased=unbiased)


def _norm_unbiased(x, g, o, eps=1e-5):
    m, v = _stats(x, unbiased=True)
    return g * (x - m) / torch.sqrt(v + eps) + o


def _norm_variance(x, g, o, eps=1e-5):
    m, v = _stats(x)
    return g * (x - m) / (v + eps) + o


def _norm_uncentred(x, g, o, eps=1e-5):
    return g * x / torch.sqrt(_stats(x)[1] + eps) + o


def _norm_unscaled(x, g, o, eps=1e-5):
    return g * (x - _stats(x)[0]) + o


def _norm_rms(x, g, o, eps=1e-5):
    return g * x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps) + o


def _norm_bare(x, g, o, eps=1e-5):
    m, v = _stats(x)
    return (x - m) / torch.sqrt(v + eps)


def _norm_order(x, g, o, eps=1e-5):
    return g * (_norm_bare(x, g, o, eps) + o)


def _norm_tokens(x, g, o, eps=1e-5):
    m, v = _stats(x, -2)
    return g * (x - m) / torch.sqrt(v + eps) + o


def _norm_everything(x, g, o, eps=1e-5):
    m, v = _stats(x, tuple(range(x.ndim)))
    return g * (x - m) / torch.sqrt(v + eps) + o


def _norm_no_eps(x, g, o, eps=1e-5):
    m, v = _stats(x)
    return g * (x - m) / torch.sqrt(v) + o


def _norm_eps_outside(x, g, o, eps=1e-5):
    m, v = _stats(x)
    return g * (x - m) / (torch.sqrt(v) + eps) + o


def _norm_fixed_eps(x, g, o, eps=1e-5):
    m, v = _stats(x)
    return g * (x - m) / torch.sqrt(v + 1e-5) + o


def _norm_finished(x, g, o, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], g, o, eps)


def _post(x, a, f, m, n):
    x = m(x + a(x))
    return n(x + f(x))


def _normed_path(x, a, f, m, n):
    x = m(x)
    x = n(x + a(x))
    return x + f(x)


def _second_adds_x(x, a, f, m, n):
    return x + f(n(x + a(m(x))))


def _twice_norm_1(x, a, f, m, n):
    x = x + a(m(x))
    return x + f(m(x))


def _feed_first(x, a, f, m, n):
    x = x + f(m(x))
    return x + a(n(x))


def _no_second_path(x, a, f, m, n):
    return f(n(x + a(m(x))))


def _no_second_norm(x, a, f, m, n):
    x = x + a(m(x))
    return x + f(x)


def _exchanged(x, a, f, m, n):
    x = x + a(n(x))
    return x + f(m(x))


def _in_place(x, a, f, m, n):
    x += a(m(x))
    return x + f(n(x))


def _sums(biases, answers):
    """A network whose questions all look at the sum of the three inputs."""
    f = len(biases)
    return torch.ones(3, f), torch.tensor(biases), torch.tensor(answers)[:, None]


def _start(t, value):
    return torch.full_like(t[:, :1], value)


def _kept(probabilities, keep):
    kept = probabilities * keep
    return kept / kept.sum()


def _ranked(probabilities):
    ranked, order = probabilities.sort(descending=True)
    return ranked, order, ranked.cumsum(0)


def _drop_crossing(probabilities, p):
    ranked, order, sums = _ranked(probabilities)
    out = torch.zeros_like(probabilities).scatter(0, order, ranked * (sums <= p))
    return out / out.sum() if out.sum() > 0 else out


def _unscaled(probabilities, p):
    ranked, order, sums = _ranked(probabilities)
    return torch.zeros_like(probabilities).scatter(0, order, ranked * (sums - ranked < p))


def _one_more(probabilities, p):
    ranked, order, sums = _ranked(probabilities)
    keep = torch.cat([torch.tensor([True]), (sums - ranked < p)[:-1]])
    out = torch.zeros_like(probabilities).scatter(0, order, ranked * keep)
    return out / out.sum()


def _sorted_out(probabilities, p):
    ranked, _, sums = _ranked(probabilities)
    return _kept(ranked, sums - ranked < p)


def _below(probabilities, p):
    out, total = torch.zeros_like(probabilities), 0.0
    for i in probabilities.argsort():
        if total < p:
            out[i] = probabilities[i]
            total += float(probabilities[i])
    return out / out.sum()


WRONG = [
    ("layer_norm", _norm_finished, "you call the finished layer_norm"),
    ("layer_norm", _norm_unbiased, "divides by d - 1"),
    ("layer_norm", _norm_variance, "divided by the variance"),
    ("layer_norm", _norm_uncentred, "mean is not subtracted"),
    ("layer_norm", _norm_unscaled, "nothing is divided"),
    ("layer_norm", _norm_rms, "RMSNorm"),
    ("layer_norm", _norm_bare, "gain and the bias are not used"),
    ("layer_norm", _norm_order, "multiply first, then add"),
    ("layer_norm", _norm_tokens, "over the tokens"),
    ("layer_norm", _norm_everything, "whole tensor"),
    ("layer_norm", _norm_no_eps, "NaN"),
    ("layer_norm", _norm_eps_outside, "inside the root"),
    ("layer_norm", _norm_fixed_eps, "eps"),
    ("pre_norm_block", _post, "post-norm order"),
    ("pre_norm_block", lambda x, a, f, m, n: f(n(a(m(x)))), "residual paths are missing"),
    ("pre_norm_block", _normed_path, "adds the normalised input"),
    ("pre_norm_block", _second_adds_x, "second sum adds x again"),
    ("pre_norm_block", _twice_norm_1, "norm_1 is used twice"),
    ("pre_norm_block", _feed_first, "attention comes first"),
    ("pre_norm_block", _no_second_path, "second residual path is missing"),
    ("pre_norm_block", _no_second_norm, "second norm is missing"),
    ("pre_norm_block", _exchanged, "exchanged"),
    ("pre_norm_block", lambda x, a, f, m, n: x + a(m(x)) + f(n(x)), "both sub-layers read x"),
    ("pre_norm_block", lambda x, a, f, m, n: x + a(m(x)), "used once each"),
    ("pre_norm_block", _in_place, "in place"),
    ("exactly_one", lambda: _sums([0.0, -1], [1.0, -1]), "one or more are on"),
    ("exactly_one", lambda: _sums([0.0, -1, -2], [1.0, -2, 2]), "parity"),
    ("exactly_one", lambda: _sums([0.0], [1.0]), "counts how many"),
    ("exactly_one", lambda: _sums([0.0, -1, -2], [-1.0, 2, -1]), "sign is wrong"),
    ("exactly_one", lambda: _sums([0.0, -1], [1.0, -2]), "not taken back far enough, or too far"),
    ("exactly_one", lambda: _sums([-1.0, -2], [1.0, -2]), "exactly two"),
    ("exactly_one", lambda: _sums([-3.0], [1.0]), "0 for all inputs"),
    ("exactly_one", lambda: _sums([1.0, 0, -1, -2], [1.0, -2, 2, -1]), "says no where"),
    ("exactly_one", lambda: _sums([0.0, -1, -2], [2.0, -4, 2]), "for the input"),
    ("exactly_one", lambda: _sums([0.0] * 5, [1.0] * 5), "f is at most 4"),
    ("exactly_one", lambda: _sums([0.0, -1, -2], [1.0, -2, 1])[:2], "three tensors"),
    ("exactly_one", lambda: (torch.ones(2, 3), torch.zeros(3), torch.ones(3, 1)), "shapes"),
    ("exactly_one", lambda: ([[1.0]], [0.0], [[1.0]]), "must be tensors"),
    ("teacher_forcing", lambda t, s, e: _pad_shift(t, s, e)[::-1], "exchanged"),
    ("teacher_forcing", lambda t, s, e: (t, t), "bare target"),
    ("teacher_forcing", lambda t, s, e: (_pad_shift(t, s, e)[0],) * 2, "equal"),
    ("teacher_forcing", lambda t, s, e: _pad_shift(t, e, s), "begins with the end mark"),
    ("teacher_forcing", lambda t, s, e: _pad_shift(t, s, s), "ends with the start mark"),
    (
        "teacher_forcing",
        lambda t, s, e: (F.pad(_pad_shift(t, s, e)[0], (0, 1), value=e), _pad_shift(t, s, e)[1]),
        "both marks",
    ),
    (
        "teacher_forcing",
        lambda t, s, e: (torch.cat([t, _start(t, s)], 1), _pad_shift(t, s, e)[1]),
        "shifted right",
    ),
    ("teacher_forcing", lambda t, s, e: _pad_shift(t.flip(1), s, e), "reversed"),
    ("teacher_forcing", lambda t, s, e: _pad_shift(t, s, e)[0], "return two tensors"),
    ("teacher_forcing", lambda t, s, e: (_start(t, s), _start(t, e)), "must have shape"),
    ("top_p", _unscaled, "does not sum to 1"),
    ("top_p", _drop_crossing, "crosses p is dropped"),
    (
        "top_p",
        lambda q, p: next_token_probabilities(q.log(), top_p=p),
        "you call the finished next_token_probabilities",
    ),
    (
        "layer_norm",
        lambda x, g, o, eps=1e-5: torch.layer_norm(x, x.shape[-1:], g, o, eps),
        "you call the finished layer_norm",
    ),
    ("top_p", _one_more, "one token too many"),
    ("top_p", lambda q, p: _kept(q, q.cumsum(0) - q < p), "in the order given"),
    ("top_p", _below, "least likely tokens are taken first"),
    ("top_p", _sorted_out, "put each probability back"),
    ("top_p", lambda q, p: _kept(q, q >= 1 - p), "0/0"),
    ("top_p", lambda q, p: q, "nothing was cut off"),
    ("top_p", lambda q, p: q * (q >= p), "add the probabilities up"),
    ("top_p", lambda q, p: torch.full_like(q, 1 / len(q)), "not the fewest"),
    ("parameters", lambda v, d, n, f, m: _count(v, d, n, f, m) + v * d, "count it once"),
    ("parameters", lambda v, d, n, f, m: _count(v, d, n, f, m) - m * d, "positions is missing"),
    ("parameters", lambda v, d, n, f, m: _count(v, d, n, f, m) - 2 * d, "last norm is missing"),
    ("parameters", lambda v, d, n, f, m: _count(v, d, n, f, m) - 4 * d * n, "or the two norms"),
    ("parameters", lambda v, d, n, f, m: _count(v, d, n, f, m) - n * (d * d + d), "W^O"),
    ("parameters", lambda v, d, n, f, m: _count(v, d, n, f, m) - n * (5 * d + f), "biases of the"),
    ("parameters", lambda v, d, n, f, m: _count(v, d, n, 4 * d, m), "d_ff is an argument"),
    ("parameters", lambda v, d, n, f, m: _count(v, d, 1, f, m), "single block"),
    ("parameters", lambda v, d, n, f, m: 124_439_808, "there are 27,"),
    ("parameters", lambda v, d, n, f, m: 12 * n * d * d, "fewer"),
    ("parameters", lambda v, d, n, f, m: "many", "return a number"),
]


@pytest.mark.parametrize("name, answer, phrase", WRONG)
def test_a_wrong_answer_is_told_its_fault(name, answer, phrase):
    with pytest.raises(NotYet) as error:
        getattr(check, name)(answer)
    assert phrase in str(error.value)


@pytest.mark.parametrize("name", check.__all__)
def test_six_wrong_answers_or_more(name):
    assert sum(wrong[0] == name for wrong in WRONG) >= 6


def cut(keep):
    def my_top_p(probabilities, p):
        ranked, order = probabilities.sort(descending=True)
        kept = torch.zeros_like(ranked).scatter(0, order, ranked * keep(ranked, p))
        return kept / kept.sum()

    return my_top_p


@pytest.mark.parametrize(
    "wrong",
    [
        cut(lambda r, p: r.cumsum(0) - r <= p),  # one too many where p is met exactly
        cut(lambda r, p: r >= r[(r.cumsum(0) - r < p).sum() - 1]),  # all that tie with the last
    ],
)
def test_top_p_sees_a_sum_that_is_p_exactly_and_ties(wrong):
    with pytest.raises(NotYet):
        check.top_p(wrong)


def test_top_p_lets_any_of_equal_tokens_stay(capsys):
    def from_behind(probabilities, p):
        return cut(lambda r, p: r.cumsum(0) - r < p)(probabilities.flip(0), p).flip(0)

    check.top_p(from_behind)
    assert "Right" in capsys.readouterr().out


def test_missing_biases_are_not_called_missing_norms():
    def without_biases(vocab_size, d, layers, d_ff, max_len):
        block = 4 * d * d + 2 * d * d_ff + d_ff + d + 4 * d
        return (vocab_size + max_len) * d + layers * block + 2 * d

    with pytest.raises(NotYet, match="the four biases of the attention, or the two norms"):
        check.parameters(without_biases)

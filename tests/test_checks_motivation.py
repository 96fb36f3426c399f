"""The checks of chapter 1 accept right answers and name the fault of wrong ones."""

import math

import pytest
import torch

from attention.checks import motivation as check
from attention.checks._base import NotYet


def averages_by_loop(shares, X):
    weights = torch.stack([row / row.sum() for row in shares])
    return torch.stack(
        [sum(w * x for w, x in zip(row, X, strict=True)) for row in weights]
    ), weights


def layers_by_formula(distance, kernel, causal=False, dilated=False):
    step = kernel - 1 if causal else kernel // 2
    if dilated:  # 1 + 2 + ... + 2^(m-1) = 2^m - 1 steps
        return math.ceil(math.log2(math.ceil(distance / step) + 1))
    return -(-distance // step)


def recurrence_by_cell(x, W_x, W_h, b):
    cell = torch.nn.RNNCell(W_x.shape[0], W_x.shape[1])
    with torch.no_grad():
        cell.weight_ih.copy_(W_x.T)
        cell.weight_hh.copy_(W_h.T)
        cell.bias_ih.copy_(b)
        cell.bias_hh.zero_()
        h, out = torch.zeros(1, len(b)), []
        for row in x:
            h = cell(row[None], h)
            out.append(h[0])
    return torch.stack(out)


def additive_by_loop(s, H, W, U, v):
    scores = torch.stack([v @ torch.tanh(W.T @ s + U.T @ h) for h in H])
    a = scores.exp() / scores.exp().sum()
    return sum(w * h for w, h in zip(a, H, strict=True)), a


@pytest.mark.parametrize(
    "name, answer",
    [
        ("averages", averages_by_loop),
        ("layers_needed", layers_by_formula),
        ("recurrence", recurrence_by_cell),
        ("additive_attention", additive_by_loop),
    ],
)
def test_a_right_answer_written_differently_passes(name, answer, capsys):
    getattr(check, name)(answer)
    assert "Right" in capsys.readouterr().out


def layers(step_of, gap_of, extra=0, floor=False):
    def answer(distance, kernel, causal=False, dilated=False):
        step, reach, count = step_of(kernel, causal), 0, 0
        while reach < distance:
            reach += step * gap_of(count, dilated)
            count += 1
        return count + extra - (1 if floor and reach > distance else 0)

    return answer


def half(kernel, causal):
    return kernel - 1 if causal else (kernel - 1) // 2


def doubling(count, dilated):
    return 2**count if dilated else 1


def states(x, W_x, W_h, b, start=0.0, squash=torch.tanh, keep=True, bias=True):
    h, rows = torch.full_like(b, start), []
    for row in x:
        h = squash(row @ W_x + (h @ W_h if keep else 0) + (b if bias else 0))
        rows.append(h)
    return torch.stack(rows)


def additive(scores, order=False, context=None):
    def answer(s, H, W, U, v):
        a = scores(s, H, W, U, v)
        c = a @ H if context is None else context(a, H)
        return (a, c) if order else (c, a)

    return answer


def share(x):
    return torch.softmax(x, 0)


def no_tanh(s, H, W, U, v):
    return share((s @ W + H @ U) @ v)


def no_softmax(s, H, W, U, v):
    return torch.tanh(s @ W + H @ U) @ v


def no_state(s, H, W, U, v):
    return share(torch.tanh(H @ U) @ v)


def swapped(s, H, W, U, v):
    return share(torch.tanh(s @ U + H @ W) @ v)


def tanh_outside(s, H, W, U, v):
    return share(torch.tanh((s @ W + H @ U) @ v))


def dot_product(s, H, W, U, v):
    return share(H @ s)


def right_share(s, H, W, U, v):
    return share(torch.tanh(s @ W + H @ U) @ v)


def mixed(weigh, product=lambda w, s, X: w @ X, order=False):
    def answer(shares, X):
        w = weigh(shares)
        out = product(w, shares, X)
        return (w, out) if order else (out, w)

    return answer


def by_rows(s):
    return s / s.sum(1, keepdim=True)


WRONG = [
    ("averages", mixed(by_rows, order=True), "new vectors come first"),
    ("averages", mixed(lambda s: s / s.sum(0)), "scaled the columns"),
    ("averages", mixed(lambda s: s / s.sum(1)), "keepdim=True"),
    ("averages", mixed(lambda s: s), "these are the shares"),
    ("averages", mixed(lambda s: s / s.sum()), "all weights together"),
    ("averages", mixed(lambda s: s.softmax(1)), "softmax of the shares"),
    ("averages", mixed(lambda s: s / len(s)), "divided by n"),
    ("averages", mixed(by_rows, lambda w, s, X: w.T @ X), "transposed the weights"),
    ("averages", mixed(by_rows, lambda w, s, X: X.mean(0).expand_as(X)), "plain mean"),
    ("averages", mixed(by_rows, lambda w, s, X: s @ X), "before they are scaled"),
    ("averages", mixed(by_rows, lambda w, s, X: X), "X itself"),
    ("averages", lambda s, X: by_rows(s) @ X, "return two tensors"),
    ("averages", lambda s, X: (s / s.sum(0), (s / s.sum(0)).T @ X), "new vectors come first"),
    ("layers_needed", layers(lambda k, c: (k - 1) // 2, doubling), "looking back, one layer"),
    ("layers_needed", layers(lambda k, c: k - 1, doubling), "half of it"),
    ("layers_needed", layers(half, lambda m, g: 1), "gap doubles"),
    ("layers_needed", layers(half, lambda m, g: 2**m), "without dilation"),
    ("layers_needed", layers(half, doubling, floor=True), "round up"),
    ("layers_needed", layers(half, doubling, extra=1), "one layer too many"),
    ("layers_needed", lambda d, k, causal=False, dilated=False: d / (k - 1), "whole number"),
    ("recurrence", lambda x, a, w, b: states(x, a, w, b)[-1], "last state only"),
    ("recurrence", lambda x, a, w, b: states(x, a, w, b, bias=False), "bias b is missing"),
    ("recurrence", lambda x, a, w, b: states(x, a, w, b, keep=False), "state before is not used"),
    ("recurrence", lambda x, a, w, b: states(x, a, w, b, squash=lambda z: z), "tanh is missing"),
    ("recurrence", lambda x, a, w, b: states(x, a, w, b, start=1.0), "zeros, not ones"),
    ("recurrence", lambda x, a, w, b: states(x, a, w.T, b), "transpose of W_h"),
    ("recurrence", lambda x, a, w, b: states(x, a, w, b).flip(0), "reverse order"),
    ("additive_attention", additive(no_tanh), "tanh is missing"),
    ("additive_attention", additive(no_softmax), "these are the scores"),
    ("additive_attention", additive(no_state), "s is not used"),
    ("additive_attention", additive(swapped), "changed them round"),
    ("additive_attention", additive(tanh_outside), "tanh goes inside"),
    ("additive_attention", additive(dot_product), "dot product"),
    ("additive_attention", additive(right_share, order=True), "context comes first"),
    ("additive_attention", additive(right_share, context=lambda a, H: H.mean(0)), "plain mean"),
]  # fmt: skip


@pytest.mark.parametrize("name, answer, phrase", WRONG)
def test_a_wrong_answer_is_rejected_with_its_fault_named(name, answer, phrase):
    with pytest.raises(NotYet) as error:
        getattr(check, name)(answer)
    assert phrase in str(error.value)


def test_every_check_has_at_least_six_wrong_answers():
    for name in check.__all__:
        assert sum(wrong[0] == name for wrong in WRONG) >= 6

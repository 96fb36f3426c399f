"""The checks of chapter 10 accept right answers and name the fault of wrong ones."""

import math

import pytest
import torch
import torch.nn.functional as F

from attention.checks import in_practice as check
from attention.checks._base import NotYet


def rejected(name, answer, phrase):
    with pytest.raises(NotYet) as error:
        getattr(check, name)(answer)
    assert phrase in str(error.value)


# ---- the bytes of a cache


def test_cache_bytes_accepts_another_way(capsys):
    def by_shapes(tokens, layers, kv_heads, d_k, bytes_each=2, window=None):
        held = sum(1 for p in range(tokens) if window is None or p >= tokens - window)
        return float(math.prod((layers, 2, kv_heads, held, d_k)) * bytes_each)

    check.cache_bytes(by_shapes)
    assert capsys.readouterr().out.startswith("Right:")


def held(tokens, window):
    return tokens if window is None else min(tokens, window)


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda n, L, g, d, b=2, w=None: n * L * g * d * b, "keys and values"),
        (lambda n, L, g, d, b=2, w=None: 2 * n * g * d * b, "every layer"),
        (lambda n, L, g, d, b=2, w=None: 2 * n * L * d * b, "every head"),
        (lambda n, L, g, d, b=2, w=None: 2 * n * L * g * d, "count numbers"),
        (lambda n, L, g, d, b=2, w=None: 16 * n * L * g * d * b, "count bits"),
        (lambda n, L, g, d, b=2, w=None: 2 * n * L * g * d * b, "no more than `window`"),
        (lambda n, L, g, d, b=2, w=None: 2 * (w or n) * L * g * d * b, "a short text"),
        (lambda n, L, g, d, b=2, w=None: 2 * n * L * g * b, "d_k numbers"),
        (lambda n, L, g, d, b=2, w=None: 2 * n * L * g * d * b + 1, "wrong for tokens"),
    ],
)
def test_cache_bytes_rejects(answer, phrase):
    rejected(
        "cache_bytes",
        lambda n, L, g, d, bytes_each=2, window=None: answer(n, L, g, d, bytes_each, window),
        phrase,
    )


# ---- two halves of a text


def test_merge_accepts_another_way(capsys):
    def by_concatenation(a, b):
        m = torch.stack([a[0], b[0]])
        f = torch.exp(m - m.amax())
        return m.amax(), f @ torch.stack([a[1], b[1]]), f @ torch.stack([a[2], b[2]])

    check.merge(by_concatenation)
    assert capsys.readouterr().out.startswith("Right:")


def factors(a, b):
    m = torch.maximum(a[0], b[0])
    return m, (a[0] - m).exp(), (b[0] - m).exp()


def right(a, b):
    m, f, g = factors(a, b)
    return m, f * a[1] + g * b[1], f * a[2] + g * b[2]


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda a, b: (factors(a, b)[0], a[1] + b[1], right(a, b)[2]), "added as they are"),
        (lambda a, b: (b[0], *right(a, b)[1:]), "larger of the two"),
        (lambda a, b: (*right(a, b)[:2], a[2] + b[2]), "o must be rescaled"),
        (lambda a, b: (*right(a, b)[:2], right(a, b)[2] / right(a, b)[1]), "not divided by l"),
        (lambda a, b: (right(a, b)[0], a[1] + factors(a, b)[2] * b[1], right(a, b)[2]),
         "either of the two"),
        (lambda a, b: (right(a, b)[0], factors(a, b)[1] * a[1] + b[1], right(a, b)[2]),
         "either of the two"),
        (lambda a, b: (right(a, b)[0], *(x * (a[0] - b[0]).exp() for x in right(a, b)[1:])),
         "l must be the sum"),
        (lambda a, b: (right(a, b)[0], right(a, b)[1], right(a, b)[2] + (a[0] - a[0])), "nan"),
        (lambda a, b: right(a, b)[:2], "return a triple"),
    ],
)  # fmt: skip
def test_merge_rejects(answer, phrase):
    rejected("merge", answer, phrase)


# ---- a window with sinks


def grid(n):
    return torch.arange(n)[:, None], torch.arange(n)[None, :]


def test_sink_mask_accepts_another_way(capsys):
    def by_rows(n, window, sinks):
        mask = torch.zeros(n, n, dtype=torch.bool)
        for i in range(n):
            mask[i, max(0, i - window + 1) : i + 1] = True
            mask[i, : min(sinks, i + 1)] = True
        return mask

    check.sink_mask(by_rows)
    assert capsys.readouterr().out.startswith("Right:")


def sinks_of(rule):
    return lambda n, w, s: rule(*grid(n), w, s)


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (sinks_of(lambda i, j, w, s: ~((j <= i) & ((i - j < w) | (j < s)))), "polarity"),
        (sinks_of(lambda i, j, w, s: (j <= i) & (i - j < w)), "first tokens are missing"),
        (sinks_of(lambda i, j, w, s: (j <= i) & ((i - j <= w) | (j < s))), "too wide"),
        (sinks_of(lambda i, j, w, s: ((j <= i) & (i - j < w)) | (j < s)), "in their future"),
        (sinks_of(lambda i, j, w, s: ((i - j).abs() < w) | (j < s)), "both sides"),
        (sinks_of(lambda i, j, w, s: (j <= i) & (i - j < w) & (j < s)), "join window and sinks"),
        (sinks_of(lambda i, j, w, s: j <= i), "window is missing"),
        (sinks_of(lambda i, j, w, s: (i <= j) & ((j - i < w) | (i < s))), "other way round"),
        (sinks_of(lambda i, j, w, s: ((j <= i) & ((i - j < w) | (j < s))).int()), "boolean"),
    ],
)
def test_sink_mask_rejects(answer, phrase):
    rejected("sink_mask", answer, phrase)


# ---- whole numbers for weights


def quantise(w, s):
    s = torch.where(s == 0, 1.0, s)
    return (w / s).round().to(torch.int8), s


def test_int8_accepts_another_way(capsys):
    def by_rows(w):
        q, s = [], []
        for row in w:
            step = max(row.max().item(), -row.min().item()) / 127
            s.append([step or 7.0])
            q.append([round(x / step) if step else 0 for x in row.tolist()])
        return torch.tensor(q, dtype=torch.int8), torch.tensor(s)

    check.int8(by_rows)
    assert capsys.readouterr().out.startswith("Right:")


def size(w):
    return w.abs().amax(-1, keepdim=True)


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda w: quantise(w, (w.abs().max() / 127).expand(len(w), 1)), "whole matrix"),
        (lambda w: quantise(w, size(w) / 128), "127, not 128"),
        (lambda w: quantise(w, w.amax(-1, keepdim=True) / 127), "negative numbers too"),
        (lambda w: ((w / size(w) * 127).to(torch.int8), size(w) / 127), "cuts the digits off"),
        (lambda w: (quantise(w, size(w) / 127)[0], 127 / size(w)), "step and not its inverse"),
        (lambda w: (quantise(w, size(w) / 127)[0].float(), size(w) / 127), "torch.int8"),
        (lambda w: (quantise(w, size(w) / 127)[0], (size(w) / 127)[:, 0]), "keepdim"),
        (lambda w: (torch.zeros_like(w).to(torch.int8), size(w) / 127), "off by"),
        (lambda w: (quantise(w, size(w) / 127)[0] + (size(w) == 0).to(torch.int8),
                    size(w) / 127), "row of zeros"),
        (lambda w: quantise(w, size(w) / 127)[0], "two tensors"),
    ],
)  # fmt: skip
def test_int8_rejects(answer, phrase):
    rejected("int8", answer, phrase)


# ---- linear attention


def phi(x):
    return F.elu(x) + 1


def step(phi_q=phi, phi_k=phi, divide=lambda q, z: q @ z, late=False, carry=True):
    def answer(state, q, k, v):
        S, z = state
        new = S * carry + torch.outer(phi_k(k), v), z * carry + phi_k(k)
        used, q = (S if late else new[0]), phi_q(q)
        return new, q @ used / divide(q, new[1])

    return answer


def test_linear_step_accepts_another_way(capsys):
    def by_einsum(state, q, k, v):
        q, k = (torch.where(x > 0, x + 1, x.exp()) for x in (q, k))
        S = state[0] + torch.einsum("k,v->kv", k, v)
        z = state[1] + k
        return [S, z], torch.einsum("k,kv->v", q, S) / (q * z).sum()

    check.linear_step(by_einsum)
    assert capsys.readouterr().out.startswith("Right:")


def in_place(state, q, k, v):
    state[0].add_(torch.outer(phi(k), v))
    state[1].add_(phi(k))
    return state, phi(q) @ state[0] / (phi(q) @ state[1])


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (step(divide=lambda q, z: 1.0), "divide by phi"),
        (step(lambda x: x, lambda x: x), "phi is missing"),
        (step(F.elu, F.elu), "the + 1 is missing"),
        (step(phi_q=lambda x: x), "belongs to the query"),
        (step(phi_k=lambda x: x), "belongs to the key"),
        (step(late=True), "add this token to the state first"),
        (step(carry=False), "carried on"),
        (in_place, "in place"),
        (lambda state, q, k, v: state[0], "return (state, out)"),
        (lambda state, q, k, v: (state[0], v), "the pair (S, z)"),
    ],
)
def test_linear_step_rejects(answer, phrase):
    rejected("linear_step", answer, phrase)

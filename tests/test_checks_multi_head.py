"""Each check of chapter 4 accepts a right answer and names the fault of wrong ones."""

import math

import pytest
import torch

from attention.checks import _base
from attention.checks import multi_head as check


def rejects(checker, answer, phrase):
    with pytest.raises(_base.NotYet) as error:
        checker(answer)
    assert phrase in str(error.value), str(error.value)


# multi_head


def one_by_one(x, w_q, w_k, w_v, w_o, num_heads, scale=None, dim=-1, join=torch.cat, use_v=True):
    d_k = x.shape[-1] // num_heads
    scale = d_k**-0.5 if scale is None else scale
    heads = []
    for r in range(num_heads):
        own = slice(r * d_k, (r + 1) * d_k)
        q, k, v = x @ w_q[:, own], x @ w_k[:, own], (x @ w_v if use_v else x)[..., own]
        heads.append(torch.softmax(q @ k.mT * scale, dim) @ v)
    out = join(heads, -1)
    return out if w_o is None else out @ w_o


def mean_of_heads(heads, dim):
    return torch.cat([torch.stack(heads).mean(0)] * len(heads), dim)


def joined_wrongly(heads, dim):
    stacked = torch.stack(heads, 1)  # (B, h, n, d_k)
    return stacked.reshape(stacked.shape[0], stacked.shape[2], -1)


def test_multi_head_right():
    check.multi_head(one_by_one)


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda x, q, k, v, o, h: one_by_one(x, q, k, v, None, h), "W^O has not been applied"),
        (lambda *a: one_by_one(*a, scale=1.0), "not scaled"),
        (lambda *a: one_by_one(*a, scale=a[0].shape[-1] ** -0.5), "root of d_model"),
        (lambda *a: one_by_one(*a, scale=a[-1] / a[0].shape[-1]), "not by its root"),
        (lambda *a: one_by_one(*a, dim=-2), "runs over the queries"),
        (lambda *a: one_by_one(*a[:-1], 1), "one head of full width"),
        (lambda *a: one_by_one(*a, join=joined_wrongly), "without transposing back"),
        (lambda *a: one_by_one(*a, join=mean_of_heads), "heads are averaged"),
        (lambda *a: one_by_one(*a, use_v=False), "w_v is not used"),
        (lambda x, q, k, v, o, h: one_by_one(x, q.T, k.T, v.T, o.T, h), "nn.Linear multiplies"),
        (lambda x, *a: x, "is not Concat"),
        (lambda x, *a: torch.zeros(3), "must have shape"),
    ],
)
def test_multi_head_wrong(answer, phrase):
    rejects(check.multi_head, answer, phrase)


# count_parameters


def count(d, h, g, bias):
    from attention import MultiHeadAttention

    return sum(p.numel() for p in MultiHeadAttention(d, h, g, bias=bias).parameters())


def test_count_right():
    check.count_parameters(count)


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda d, h, g, b: h * count(d, h, g, b), "multiplied by the number of heads"),
        (lambda d, h, g, b: count(d, h, g, b) - d * d - d * b, "W^O is missing"),
        (lambda d, h, g, b: count(d, h, h, b), "with d_model columns"),
        (lambda d, h, g, b: count(d, h, g, False), "biases are missing"),
        (lambda d, h, g, b: count(d, h, g, True), "although bias is False"),
        (lambda d, h, g, b: count(d, h, g, b) - (d // h * g) * (d + b), "one of keys and values"),
        (lambda d, h, g, b: 4 * (d + b) * (d // h * g), "W^O keep d_model columns"),
        (lambda d, h, g, b: 12, "the count is not 12"),
        (lambda d, h, g, b: "1048576", "return one whole number"),
    ],
)
def test_count_wrong(answer, phrase):
    rejects(check.count_parameters, answer, phrase)


# head_contributions


def contributions(heads, w_o):
    return torch.einsum("bhnk,hkd->bhnd", heads, w_o.unflatten(0, (heads.shape[1], -1)))


def test_contributions_right():
    check.head_contributions(contributions)


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda z, w: contributions(z, w).sum(1), "sum over the heads"),
        (lambda z, w: contributions(z, w).sum(1, True).expand(-1, z.shape[1], -1, -1),
         "each head has the whole output"),
        (lambda z, w: contributions(z, w).mean(1, True).expand(-1, z.shape[1], -1, -1),
         "equal share"),
        (lambda z, w: z @ w[: z.shape[-1]], "the first rows of W^O"),
        (lambda z, w: contributions(z.flip(1), w).flip(1), "reversed order"),
        (lambda z, w: torch.einsum("bhnk,khd->bhnd", z, w.unflatten(0, (z.shape[-1], -1))),
         "dealt out in turn"),
        (lambda z, w: contributions(z, w).flip(1), "add up to the output"),
        (lambda z, w: contributions(z, w.T) if w.shape[0] == w.shape[1] else z, "columns of W^O"),
        (lambda z, w: z, "heads' width d_k"),
        (lambda z, w: 2 * contributions(z, w), "do not add up"),
    ],
)  # fmt: skip
def test_contributions_wrong(answer, phrase):
    rejects(check.head_contributions, answer, phrase)


# grouped_attention


def grouped(q, k, v, scale=None, dim=-1):
    h, g = q.shape[1], k.shape[1]
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    heads = []
    for r in range(h):
        group = r // (h // g)
        heads.append(torch.softmax(q[:, r] @ k[:, group].mT * scale, dim) @ v[:, group])
    return torch.stack(heads, 1)


def expand(x, q):
    return x.repeat(1, q.shape[1] // x.shape[1], 1, 1)


def test_grouped_right():
    check.grouped_attention(grouped)


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda q, k, v: grouped(q, expand(k, q), expand(v, q)), "dealt out in turn"),
        (lambda q, k, v: grouped(q, k[:, :1], v[:, :1]), "use the first head"),
        (lambda q, k, v: grouped(q, k.mean(1, True), v.mean(1, True)), "averaged into one"),
        (lambda q, k, v: grouped(q, k, v, scale=1.0), "not scaled"),
        (lambda q, k, v: grouped(q, k, v, scale=1 / q.shape[-1]), "not by its root"),
        (lambda q, k, v: grouped(q, k, v, dim=-2), "runs over the queries"),
        (lambda q, k, v: grouped(q[:, : k.shape[1]], k, v), "h of them, not g"),
        (lambda q, k, v: grouped(q, k.repeat_interleave(q.shape[1] // k.shape[1], 1),
                                 expand(v, q)), "values are dealt out"),
        (lambda q, k, v: (grouped(q, k, v), None), "the output alone"),
        (lambda q, k, v: torch.zeros_like(q), "differs from plain attention"),
        (lambda q, k, v: q @ k.mT @ v, "raised"),
    ],
)  # fmt: skip
def test_grouped_wrong(answer, phrase):
    rejects(check.grouped_attention, answer, phrase)


# other_weights


def other(weights, v, reach=1.0):
    columns = torch.cat([v, torch.ones(len(v), 1)], 1)
    direction = torch.linalg.qr(columns, "complete")[0][:, -1]
    down = direction < 0
    step = (weights[down] / -direction[down]).min()
    return weights + reach * step * direction


def test_other_weights_right():
    check.other_weights(other)


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda w, v: w, "the old weights"),
        (lambda w, v: other(w, v, 0.5), "go further"),
        (lambda w, v: other(w, v, 1.5), "negative"),
        (lambda w, v: torch.full_like(w, 1 / len(w)), "the output has changed"),
        (lambda w, v: w.flip(0), "the output has changed"),
        (lambda w, v: 2 * w, "must sum to 1"),
        (lambda w, v: w + torch.linalg.qr(v, "complete")[0][:, -1] / 50, "must sum to 1"),
        (lambda w, v: w[:-1], "must have shape"),
        (lambda w, v: w @ v, "must have shape"),
    ],
)
def test_other_weights_wrong(answer, phrase):
    rejects(check.other_weights, answer, phrase)


# mean_pool


def pooled(w, h, g):
    parts = w.chunk(h, -1)
    size = h // g
    return torch.cat([sum(parts[i * size : i * size + size]) / size for i in range(g)], -1)


def test_mean_pool_right():
    check.mean_pool(pooled)


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda w, h, g: pooled(w, h, g) * h / g, "the sum of each group"),
        (lambda w, h, g: torch.cat(w.chunk(h, -1)[:: h // g], -1), "the first head of each group"),
        (lambda w, h, g: torch.cat(w.chunk(h, -1)[:g], -1), "the first heads"),
        (lambda w, h, g: torch.cat([sum(w.chunk(h, -1)[i::g]) * g / h for i in range(g)], -1),
         "dealt them out in turn"),
        (lambda w, h, g: torch.cat([sum(w.chunk(h, -1)) / h] * g, -1), "the mean of all heads"),
        (lambda w, h, g: w.unflatten(1, (-1, h // g)).mean(2), "neighbouring columns"),
        (lambda w, h, g: sum(w.chunk(h, -1)) / h, "that is one head"),
        (lambda w, h, g: w.reshape(g, h // g, len(w), -1).mean(1).transpose(0, 1).flatten(1),
         "you cut its rows"),
        (lambda w, h, g: w, "must have shape"),
        (lambda w, h, g: torch.zeros(len(w), w.shape[1] // h * g), "column c of group i"),
    ],
)  # fmt: skip
def test_mean_pool_wrong(answer, phrase):
    rejects(check.mean_pool, answer, phrase)


# two_heads

ALIVE, PLACE, PRONOUN, ADJECTIVE, STATE, WANTED = torch.eye(6)


def test_two_heads_right():
    check.two_heads(lambda: [(5 * PRONOUN, 2 * ALIVE - PLACE - 6 * STATE),
                             (20 * PRONOUN, PLACE + 3 * STATE - ADJECTIVE)])  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda: [(8 * PRONOUN, ALIVE), (8 * PRONOUN, PLACE)], "let 'tired' take the weight"),
        (lambda: [(8 * PRONOUN, ALIVE + 2 * STATE), (8 * PRONOUN, PLACE - 2 * STATE)],
         "must be more than 0.9; with 'warm' it is"),
        (lambda: [(8 * PRONOUN, PLACE + 2 * STATE), (8 * PRONOUN, ALIVE - 2 * STATE)],
         "must be more than 0.9"),
        (lambda: [(PRONOUN, ALIVE - 2 * STATE), (PRONOUN, PLACE + 2 * STATE)],
         "must be more than 0.9"),
        (lambda: [(8 * WANTED, ALIVE - PLACE)] * 2, "does not use the last word's state"),
        (lambda: [(8 * PRONOUN, ALIVE - 2 * STATE), (8 * PRONOUN, PLACE)],
         "let 'tired' take the weight"),
        (lambda: [(8 * PRONOUN, ALIVE), (8 * PRONOUN, PLACE + 2 * STATE)],
         "let 'warm' take the weight"),
        (lambda: [(8 * PRONOUN, ALIVE - 2 * STATE)], "two pairs"),
        (lambda: [(8 * PRONOUN,), (8 * PRONOUN,)], "must be a pair"),
        (lambda: [(8 * PRONOUN[:, None], ALIVE[:, None])] * 2, "must have shape"),
        (lambda: None, "forget"),
    ],
)  # fmt: skip
def test_two_heads_wrong(answer, phrase):
    rejects(check.two_heads, answer, phrase)

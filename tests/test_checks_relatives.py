"""The checks of chapter 9 accept right answers and name the fault of wrong ones."""

import heapq
import math

import pytest
import torch
import torch.nn.functional as F

import attention
from attention.checks import relatives as check
from attention.checks._base import NotYet


def head(x, memory, w_q, w_k, w_v, real, **change):
    q, k, v = x @ w_q, memory @ w_k, memory @ w_v
    scores = torch.einsum("bqd,bkd->bqk", q, k) * change.get("scale", 1) / k.shape[-1] ** 0.5
    mask = real[:, None].expand(scores.shape)
    weights = F.softmax(scores + torch.where(mask, 0.0, -torch.inf), change.get("dim", -1))
    return torch.einsum("bqk,bkd->bqd", weights.nan_to_num(), change.get("v", v)), weights


def late(x, memory, w_q, w_k, w_v, real):
    _, weights = head(x, memory, w_q, w_k, w_v, torch.ones_like(real))
    weights = weights * real[:, None]
    return weights @ (memory @ w_v), weights


def zeroed(x, memory, w_q, w_k, w_v, real):
    scores = (x @ w_q) @ (memory @ w_k).mT / math.sqrt(w_k.shape[1]) * real[:, None]
    return scores.softmax(-1) @ (memory @ w_v), scores.softmax(-1)


def finished(x, memory, w_q, w_k, w_v, real):
    return attention.attention(x @ w_q, memory @ w_k, memory @ w_v, real[:, None])


def search(log_p, width, score=lambda x: x, start=0, pick=None):
    beam = [(0.0, [])]
    for step in log_p:
        row = [(total + score(step[text[-1] if text else start, j]).item(), [*text, j])
               for total, text in beam for j in range(log_p.shape[-1])]  # fmt: skip
        beam = heapq.nlargest(width, row) if pick is None else pick(row, width)
    return torch.tensor(max(beam)[1])


def everything(log_p, width):
    return search(log_p, log_p.shape[-1] ** len(log_p))


def own_best(row, width):
    best = {}
    for total, text in row:
        best[tuple(text[:-1])] = max(best.get(tuple(text[:-1]), (-math.inf, [])), (total, text))
    return heapq.nlargest(width, best.values())


def unfolded(images, size):
    return F.unfold(images[:, None], size, stride=size).mT


def strided(images, size):
    rows, columns = images.shape[1] // size, images.shape[2] // size
    return torch.stack([images[:, i::rows, j::columns].flatten(1)
                        for i in range(rows) for j in range(columns)], 1)  # fmt: skip


def pooled(states, real):
    return torch.stack([s[r].mean(0) for s, r in zip(states, real, strict=True)])


@pytest.mark.parametrize(
    ("name", "answer"),
    [("cross_attention", head), ("beam", search), ("patches", unfolded), ("pool", pooled)],
)
def test_a_right_answer_written_differently_passes(name, answer, capsys):
    getattr(check, name)(answer)
    assert capsys.readouterr().out.startswith("Right:")


WRONG = [
    ("cross_attention", lambda *a: head(a[1], a[0], *a[2:5], a[0][..., 0] < 99),
     "queries must come from x"),
    ("cross_attention", lambda x, m, q, k, v, r: head(x, x, q, k, v, x[..., 0] < 99),
     "self-attention"),
    ("cross_attention", lambda *a: head(*a[:5], torch.ones_like(a[5])), "no effect"),
    ("cross_attention", lambda *a: [y.nan_to_num() for y in head(*a[:5], ~a[5])],
     "wrong way round"),
    ("cross_attention", late, "after the softmax"),
    ("cross_attention", zeroed, "a score of 0 is not a weight of 0"),
    ("cross_attention", lambda *a: head(*a, scale=a[3].shape[1] ** 0.5), "not divided"),
    ("cross_attention", lambda *a: head(*a, scale=a[3].shape[1] ** -0.5), "not by its root"),
    ("cross_attention", lambda *a: [y.nan_to_num() for y in head(*a, dim=-2)], "over the queries"),
    ("cross_attention", lambda *a: head(*a, v=a[1] @ a[3]), "averages the keys"),
    ("cross_attention", lambda *a: head(*a)[0], "return two tensors"),
    ("cross_attention", finished, "call the finished attention"),
    ("beam", lambda p, w: search(p, 1), "greedy"),
    ("beam", everything, "best of all texts"),
    ("beam", lambda p, w: search(p, w, pick=own_best), "greedy's text"),
    ("beam", lambda p, w: search(p, w, score=lambda x: -x), "least likely"),
    ("beam", lambda p, w: search(p, w, score=torch.exp), "add up as logarithms"),
    ("beam", lambda p, w: search(p.mT, w), "rows are the word before"),
    ("beam", lambda p, w: search(p.flip(0), w), "run backwards"),
    ("beam", lambda p, w: search(p, w).flip(0), "reversed"),
    ("beam", lambda p, w: search(p, w, start=1), "the text must be"),
    ("beam", lambda p, w: search(p, w).double(), "must hold ids"),
    ("beam", lambda p, w: search(p, w)[:-1], "must have shape"),
    ("patches", lambda x, s: x.reshape(len(x), -1, s * s), "stretches of the image's rows"),
    ("patches", lambda x, s: unfolded(x, s).unflatten(1, (-1, x.shape[2] // s)).transpose(1, 2)
     .flatten(1, 2), "column by column; go row by row"),
    ("patches", lambda x, s: unfolded(x, s).unflatten(2, (s, s)).mT.flatten(2), "inside a patch"),
    ("patches", strided, "from far apart"),
    ("patches", lambda x, s: unfolded(x, s).flip(1), "reversed order"),
    ("patches", lambda x, s: unfolded(x.mT, s), "turned over"),
    ("patches", lambda x, s: attention.patches(x, s), "call the finished patches"),
    ("patches", lambda x, s: unfolded(x, s).flatten(1), "must have shape"),
    ("pool", lambda x, r: x.mean(1), "the padding counts"),
    ("pool", lambda x, r: (x * r[..., None]).mean(1), "divided by n"),
    ("pool", lambda x, r: (x * r[..., None]).sum(1), "this is the sum"),
    ("pool", lambda x, r: x.sum(1) / r.sum(1, keepdim=True), "in the sum but not in the number"),
    ("pool", lambda x, r: x[:, 0], "first token"),
    ("pool", lambda x, r: x.masked_fill(~r[..., None], -1e9).amax(1), "largest value"),
    ("pool", lambda x, r: pooled(x, r).mean(0), "must have shape"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "answer", "phrase"), WRONG)
def test_a_wrong_answer_is_told_why(name, answer, phrase):
    with pytest.raises(NotYet) as error:
        getattr(check, name)(answer)
    assert phrase in str(error.value)


def right_only(real):
    return torch.arange(real.shape[1]) < real.sum(1, keepdim=True)


@pytest.mark.parametrize("read", [right_only, lambda real: right_only(real).flip(1)])
def test_padding_may_stand_anywhere(read):
    with pytest.raises(NotYet, match="real source tokens"):
        check.cross_attention(lambda *args: head(*args[:5], read(args[5])))

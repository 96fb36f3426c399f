"""The checks of chapter 10: memory of a cache, merged softmaxes, sinks, int8, a recurrence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ._base import NotYet, call, close, diagnose, draw, passed, sized, want_tensor, want_whole

__all__ = ["cache_bytes", "int8", "linear_step", "merge", "sink_mask"]


def cache_bytes(function: Callable[..., Any]) -> None:
    """`my_cache_bytes(tokens, layers, kv_heads, d_k, bytes_each, window)`: a whole number."""
    cases = [
        (5, 3, 11, 7, 4, None), (1, 80, 64, 128, 2, None), (9, 2, 3, 4, 1, None),
        (100, 2, 3, 4, 2, 10), (6, 2, 3, 4, 4, 10),
    ]  # fmt: skip
    cases += draw(0, 3, (1, 50), (2, 9), (2, 9), (3, 9), (1, 4), (5, 20))
    for tokens, layers, heads, d_k, each, window in cases:
        own = {} if (each, window) == (2, None) else {"bytes_each": each, "window": window}
        got = want_whole(call(function, tokens, layers, heads, d_k, **own), "return whole bytes")
        held = tokens if window is None else min(tokens, window)
        right = 2 * held * layers * heads * d_k * each
        if got == right:
            continue
        wrong = {
            right // 2: "there are keys and values: twice as much",
            right // layers: "every layer has a cache of its own",
            right // heads: "every head of keys and values has a cache of its own",
            right // each: "you count numbers; a number takes bytes_each bytes",
            right * 8: "you count bits; a byte has 8 of them",
            right // held * tokens: "with a window, no more than `window` tokens are kept",
            right // held * (window or 1): "a short text fills only a part of the window",
            right // d_k: "a key has d_k numbers",
        }
        raise NotYet(
            wrong.get(
                got,
                f"wrong for tokens = {tokens}, layers = {layers}, kv_heads = {heads}, "
                f"d_k = {d_k}, bytes_each = {each}, window = {window}: wanted {right}, got "
                f"{got}",
            )  # fmt: skip
        )
    passed("keys and values of every layer and head, and never more than the window")


def _triple(scores: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    if not len(scores):
        return torch.tensor(-math.inf), torch.tensor(0.0), torch.zeros(values.shape[-1])
    top = scores.max()
    e = (scores - top).exp()
    return top, e.sum(), e @ values


def merge(function: Callable[..., Any]) -> None:
    """`my_merge(a, b)`: the (m, l, o) of two sets of keys together."""
    n, d = sized((7, 3))[0]
    scores, values = _random((n,)) * 2, _random((n, d), seed=1)
    orders = [scores, scores.flip(0), scores.sort().values, scores.sort(descending=True).values,
              scores + 200, scores - 200]  # fmt: skip
    for s in orders:
        for cut in (3, 1, n - 1, 0, n):
            a, b = _triple(s[:cut], values[:cut]), _triple(s[cut:], values[cut:])
            result = call(function, a, b)
            if not isinstance(result, (tuple, list)) or len(result) != 3:
                raise NotYet(f"return a triple (m, l, o); got {type(result).__name__}")
            if any(isinstance(x, Tensor) and x.isnan().any() for x in result):
                raise NotYet(
                    "nan comes out: e^(-inf) is 0, but inf - inf and inf times 0 are nan; subtract "
                    "the larger maximum, and divide by nothing"
                )
            m = want_tensor(result[0], (), "m")
            total = want_tensor(result[1], (), "l")
            o = want_tensor(result[2], (d,), "o")
            right = _triple(s, values)
            if not close(m, right[0]):
                raise NotYet("m must be the larger of the two maxima")
            diagnose(
                total,
                right[1],
                {
                    "the sums are added as they are; each was computed with its own maximum, and "
                    "either of the two may be the smaller one": a[1] + b[1],
                },
                "l must be the sum of e^(s - m) over all keys, with the new m",
            )
            diagnose(
                o,
                right[2],
                {
                    "o must be rescaled as l is": a[2] + b[2],
                    "o is not divided by l here: the division comes once, at the end": (
                        right[2] / right[1]
                    ),
                    "o is not the mean of two outputs: the two sets weigh differently": (
                        (a[2] + b[2]) / 2
                    ),
                },
                "o must be the sum of e^(s - m) v over all keys, with the new m",
            )
    passed("two halves give what all keys together give, in either order")


def sink_mask(function: Callable[..., Any]) -> None:
    """`my_sink_mask(n, window, sinks)`: causal, the window, and the first tokens: bool (n, n)."""
    for n, window, sinks in ((8, 3, 2), (6, 1, 1), (5, 9, 2), (7, 2, 0), (4, 1, 6),
                             *draw(0, 3, (3, 12), (1, 5), (0, 4))):  # fmt: skip
        result = want_tensor(call(function, n, window, sinks), (n, n), "the mask")
        if result.dtype != torch.bool:
            raise NotYet(f"the mask must be boolean, True = may attend; got {result.dtype}")
        i, j = torch.arange(n)[:, None], torch.arange(n)[None, :]
        past = j <= i
        right = past & ((i - j < window) | (j < sinks))
        diagnose(
            result,
            right,
            {
                "the polarity is reversed: True must mean that the query may attend": ~right,
                "the first tokens are missing: they stay visible for ever": past & (i - j < window),
                "the window is one token too wide: it counts the token itself": (
                    past & ((i - j <= window) | (j < sinks))
                ),
                "early queries see sinks that lie in their future; the causal rule holds for "
                "sinks too": (past & (i - j < window)) | (j < sinks),
                "both sides are open: nothing later than the query may be seen": (
                    ((i - j).abs() < window) | (j < sinks)
                ),
                "join window and sinks with |: a token in either may be seen": (
                    past & (i - j < window) & (j < sinks)
                ),
                "the window is missing: old tokens that are no sinks must be hidden": past,
                "rows are queries, columns are keys; you have them the other way round": right.T,
            },
            f"for n = {n}, window = {window}, sinks = {sinks} the mask must be "
            f"{right.int().tolist()}; got {result.int().tolist()}",
        )
    passed("the window, the first tokens, and nothing later than the query")


def int8(function: Callable[..., Any]) -> None:
    """`my_int8(w)`: whole numbers (rows, columns) of type int8 and a factor (rows, 1)."""
    zeros = torch.cat([torch.zeros(1, 5), _random((2, 5))])
    one, two, three = sized((4, 6), (3, 50), (2, 3))
    for w in (_random(one), _random(two, seed=1) * 1e-3, _random(three) * 90, zeros):
        result = call(function, w)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise NotYet(f"return two tensors, (q, s); got {type(result).__name__}")
        rows, columns = w.shape
        q = want_tensor(result[0], (rows, columns), "q")
        if q.dtype != torch.int8:
            raise NotYet(f"q must be of type torch.int8; got {q.dtype}")
        if not isinstance(result[1], Tensor) or result[1].shape != (rows, 1):
            raise NotYet("s must have shape (rows, 1): one factor for each row; use keepdim=True")
        s = want_tensor(result[1], (rows, 1), "s")
        best = w.abs().amax(-1, keepdim=True) / 127
        live = best[:, 0] > 0
        if not q[~live].eq(0).all():
            raise NotYet("a row of zeros must come back as zeros; what is 0/0 as a whole number?")
        diagnose(
            s[live],
            best[live],
            {
                "one factor for the whole matrix; each row must have its own": (
                    (w.abs().max() / 127).expand(rows, 1)[live]
                ),
                "the largest weight must become 127, not 128 or 255": best[live] * 127 / 128,
                "take the largest size of the row, negative numbers too": (
                    w.amax(-1, keepdim=True)[live] / 127
                ),
                "q * s must give w back, so s is the step and not its inverse": 1 / best[live],
            },
            "s must be the largest size in the row divided by 127",
        )
        if (q == -128).any():
            raise NotYet("the whole numbers go from -127 to 127; -128 comes from an overflow")
        exact = (w[live] / best[live]).double()
        off = (q[live].double() - exact).abs().max()
        if off > 0.5 + 1e-3:
            raise NotYet(
                "round to the nearest whole number; a change of type alone cuts the digits off"
                if off < 1.01
                else f"a whole number is off by {off:.2f}; it may be off by half at most"
            )
    passed("no weight is off by more than half a step of its row")


def linear_step(function: Callable[..., Any]) -> None:
    """`my_step(state, q, k, v)`: one token of causal linear attention, phi(x) = elu(x) + 1."""
    for n, d_k, d_v in sized((6, 4, 3), (5, 2, 5), (1, 3, 3)):
        q, k = _random((n, d_k)), _random((n, d_k), seed=1)
        v = _random((n, d_v), seed=2)
        f = [F.elu(x) + 1 for x in (q, k)]
        pairs = f[0] @ f[1].T
        past = pairs.tril()
        right = past @ v / past.sum(-1, keepdim=True)
        state = torch.zeros(d_k, d_v), torch.zeros(d_k)
        rows = []
        for t in range(n):
            before = tuple(x.clone() for x in state)
            result = call(function, state, q[t], k[t], v[t])
            if not all(torch.equal(x, y) for x, y in zip(before, state, strict=True)):
                raise NotYet("the old state was changed in place; make new tensors")
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise NotYet(f"return (state, out); got {type(result).__name__}")
            if not isinstance(result[0], (tuple, list)) or len(result[0]) != 2:
                raise NotYet("the state must be the pair (S, z)")
            big = want_tensor(result[0][0], (d_k, d_v), "S")
            small = want_tensor(result[0][1], (d_k,), "z")
            rows.append(want_tensor(result[1], (d_v,), "the output"))
            state = big.float(), small.float()
        out = torch.stack(rows)
        raw = (q @ k.T).tril()
        sums = torch.einsum("td,tv->tdv", f[1], v).cumsum(0).roll(1, 0)
        sums[0] = 0.0
        late = torch.einsum("td,tdv->tv", f[0], sums)
        diagnose(
            out,
            right,
            {
                "divide by phi(q) . z: the weights must sum to 1": past @ v,
                "phi is missing: it is elu(x) + 1, of q and of k": (
                    raw @ v / raw.sum(-1, keepdim=True)
                ),
                "phi is elu(x) + 1; the + 1 is missing": _plain(F.elu(q), F.elu(k), v),
                "phi belongs to the query too": _plain(q, f[1], v),
                "phi belongs to the key too": _plain(f[0], k, v),
                "add this token to the state first: a token sees itself too": (
                    late / past.sum(-1, keepdim=True)
                ),
                "z is the sum of phi(k) over all tokens so far, not the number of tokens": (
                    past @ v / torch.arange(1, n + 1)[:, None]
                ),
                "the state must be carried on: only the newest token counts": v,
            },
            "some outputs are wrong: S adds phi(k)^T v, z adds phi(k), and the output is "
            "phi(q) S / (phi(q) . z)",
        )
    passed("the recurrence gives what the n x n form gives, token by token")


def _plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    pairs = (q @ k.T).tril()
    return pairs @ v / pairs.sum(-1, keepdim=True)


def _random(shape: tuple[int, ...], seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))

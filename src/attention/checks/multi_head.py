"""The checks of chapter 4: mending, counting, designing and sharing heads."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..example import FEATURES, cat_sentence
from ..functional import attention
from ._base import NotYet, call, close, diagnose, draw, passed, sized, want_tensor, want_whole

__all__ = [
    "count_parameters",
    "grouped_attention",
    "head_contributions",
    "mean_pool",
    "multi_head",
    "other_weights",
    "two_heads",
]


def _random(*shapes: tuple[int, ...], seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=generator) for shape in shapes]


def multi_head(function: Callable[..., Any]) -> None:
    """`my_multi_head(x, w_q, w_k, w_v, w_o, num_heads)`: x (B, n, d_model) to the same shape."""

    def ours(
        x: Tensor,
        projections: Sequence[Tensor],
        w_o: Tensor | None,
        heads: int,
        *,
        scale: float | None = None,
        dim: int = -1,
        transpose_back: bool = True,
        average: bool = False,
        use_values: bool = True,
    ) -> Tensor:
        batch, n, d = x.shape
        w_q, w_k, w_v = projections
        q, k, v = (
            (x @ w).reshape(batch, n, heads, d // heads).transpose(1, 2)
            for w in (w_q, w_k, w_v if use_values else torch.eye(d))
        )
        factor = (d // heads) ** -0.5 if scale is None else scale
        out = torch.softmax(q @ k.transpose(-1, -2) * factor, dim) @ v
        if average:
            joined = out.mean(1, keepdim=True).expand_as(out).transpose(1, 2).reshape(batch, n, d)
        else:
            joined = (out.transpose(1, 2) if transpose_back else out).reshape(batch, n, d)
        return joined if w_o is None else joined @ w_o

    for seed, (batch, n, heads, d_k) in enumerate(sized((2, 5, 3, 4), (1, 4, 2, 3), (1, 6, 4, 2))):
        d = heads * d_k
        x, *w = _random((batch, n, d), (d, d), (d, d), (d, d), (d, d), seed=seed)
        *w, w_o = (matrix / d**0.5 for matrix in w)
        right = ours(x, w, w_o, heads)
        result = want_tensor(call(function, x, *w, w_o, heads), (batch, n, d))
        diagnose(
            result,
            right,
            {
                "the heads are concatenated, but W^O has not been applied": ours(x, w, None, heads),
                "the scores are not scaled: divide by sqrt(d_k)": ours(x, w, w_o, heads, scale=1.0),
                "you divided by the root of d_model; a head's scores are sums over d_k = "
                "d_model / h products, so divide by sqrt(d_k)": ours(
                    x, w, w_o, heads, scale=d**-0.5
                ),
                "you divided by d_k, not by its root": ours(x, w, w_o, heads, scale=1 / d_k),
                "the softmax runs over the queries; each row, over the keys, must sum to 1": ours(
                    x, w, w_o, heads, dim=-2
                ),
                "that is one head of full width: split the projections before attending": ours(
                    x, w, w_o, 1
                ),
                "the outputs are joined without transposing back: the heads' rows were read on as "
                "if they were tokens; (B, h, n, d_k) must become (B, n, h, d_k) first": ours(
                    x, w, w_o, heads, transpose_back=False
                ),
                "the heads are averaged; concatenate them, each keeps its own d_k numbers": ours(
                    x, w, w_o, heads, average=True
                ),
                "w_v is not used: the heads mix slices of x itself": ours(
                    x, w, w_o, heads, use_values=False
                ),
                "nn.Linear multiplies by the transpose; here the matrices stand on the right, "
                "x @ w_q": ours(x, [m.T for m in w], w_o.T, heads),
            },
            "the result is not Concat(head_0, head_1, ...) W^O; compare one head with `attention`",
        )
    passed("project, split, attend, concatenate, project")


def count_parameters(function: Callable[..., Any]) -> None:
    """`my_count(d_model, num_heads, num_kv_heads, bias)`: the number of weights, an int."""

    def ours(d: int, h: int, g: int, bias: bool) -> int:
        kv = d // h * g
        return 2 * d * d + 2 * d * kv + (2 * d + 2 * kv if bias else 0)

    cases = [
        (512, 8, 2, False), (512, 8, 8, False), (512, 1, 1, False), (512, 8, 8, True),
        (64, 8, 8, True), (512, 8, 1, True), (24, 6, 3, True),
    ]  # fmt: skip
    cases += [
        (h * g * d, h * g, g, bool(b)) for h, g, d, b in draw(0, 4, (2, 4), (1, 4), (1, 9), (0, 1))
    ]
    for d, h, g, bias in cases:
        result = want_whole(call(function, d, h, g, bias), "return one whole number")
        right = ours(d, h, g, bias)
        where = f"d_model = {d}, {h} heads, {g} heads of keys and values, bias = {bias}"
        if result == right:
            continue
        kv = d // h * g
        suspects = {
            "you multiplied by the number of heads: h heads of width d_model / h have as many "
            "columns together as one head of width d_model": h * ours(d, h, g, bias),
            "W^O is missing: the count must hold four matrices": right - d * d - (d if bias else 0),
            "keys and values are counted with d_model columns each; with g heads they have "
            "g * d_k": ours(d, h, h, bias),
            "the biases are missing: one number per output column of every matrix": ours(
                d, h, g, False
            ),
            "biases are counted although bias is False": ours(d, h, g, True),
            "one of keys and values is missing": right - d * kv - (kv if bias else 0),
            "that is one head's share; count all of them": right // h,
            "with fewer heads of keys and values the queries and W^O keep d_model columns": 4
            * d
            * kv
            + (4 * kv if bias else 0),
        }
        for sentence, value in suspects.items():
            if result == value:
                raise NotYet(f"{sentence} (at {where})")
        raise NotYet(f"for {where} the count is not {result:,}")
    passed("four matrices, two of which shrink with the heads of keys and values")


def head_contributions(function: Callable[..., Any]) -> None:
    """`my_contributions(heads, w_o)`: heads (B, h, n, d_k), w_o (h * d_k, d) to (B, h, n, d)."""
    for seed, (batch, heads, n, d_k, d) in enumerate(sized((2, 3, 5, 4, 12), (1, 2, 3, 2, 7))):
        parts, w_o = _random((batch, heads, n, d_k), (heads * d_k, d), seed=seed)
        blocks = w_o.reshape(heads, d_k, d)
        right = parts @ blocks
        whole = parts.transpose(1, 2).reshape(batch, n, heads * d_k) @ w_o
        result = call(function, parts, w_o)
        if isinstance(result, Tensor) and tuple(result.shape) == (batch, n, d):
            raise NotYet("that is the sum over the heads; keep one contribution for each head")
        if isinstance(result, Tensor) and tuple(result.shape) == tuple(parts.shape) != tuple(
            right.shape
        ):
            raise NotYet(
                "the result has the heads' width d_k; a contribution has the output's width, "
                "because W^O has been applied to it"
            )
        result = want_tensor(result, (batch, heads, n, d))
        suspects = {
            "each head has the whole output: split W^O, not only the heads": whole[:, None].expand(
                batch, heads, n, d
            ),
            "each head has an equal share of the output; a head's own share is its own numbers "
            "times its own rows of W^O": whole[:, None].expand(batch, heads, n, d) / heads,
            "every head is multiplied by the first rows of W^O; head r owns the rows r * d_k to "
            "(r + 1) * d_k": parts @ blocks[:1],
            "the blocks of W^O are dealt out in reversed order": parts @ blocks.flip(0),
            "the rows of W^O are dealt out in turn; head r owns d_k rows that follow one "
            "another": parts @ w_o.reshape(d_k, heads, d).transpose(0, 1),
        }
        if d == heads * d_k:
            suspects[
                "you cut columns of W^O; the concatenation stands on the left, so head r meets rows"
            ] = parts @ w_o.T.reshape(heads, d_k, d)
        if close(result, right):
            continue
        if close(result.sum(1), whole) and not any(close(result, s) for s in suspects.values()):
            raise NotYet(
                "the contributions add up to the output, but they are not the heads' own: head r "
                "must depend on head r alone"
            )
        diagnose(result, right, suspects, "the contributions do not add up to Concat(...) W^O")
    passed("the output of the layer is a sum over its heads")


def grouped_attention(function: Callable[..., Any]) -> None:
    """`my_grouped(q, k, v)`: q (B, h, n_q, d_k), k and v (B, g, n_k, d_k) to (B, h, n_q, d_k)."""
    for seed, (batch, h, g, n_q, n_k, d_k) in enumerate(
        sized(
            (2, 4, 2, 3, 5, 4),
            (1, 6, 2, 4, 4, 3),
            (1, 4, 1, 2, 6, 5),
            (2, 3, 3, 4, 4, 2),
            keep=(1, 2),
        )
    ):
        shared = (batch, g, n_k, d_k)
        q, k, v = _random((batch, h, n_q, d_k), shared, shared, seed=seed)
        share = h // g
        at = f"h = {h}, g = {g}"

        def ours(keys: Tensor, values: Tensor, **options: Any) -> Tensor:
            return attention(q, keys, values, **options)[0]  # noqa: B023

        k_all, v_all = k.repeat_interleave(share, 1), v.repeat_interleave(share, 1)
        k_mean, v_mean = (x.mean(1, keepdim=True).expand_as(k_all) for x in (k, v))
        right = ours(k_all, v_all)
        result = call(function, q, k, v)
        if isinstance(result, tuple):
            raise NotYet("return the output alone, not the pair (out, weights)")
        if isinstance(result, Tensor) and g != h and tuple(result.shape) == (batch, g, n_q, d_k):
            raise NotYet("every query head keeps its own output: h of them, not g")
        result = want_tensor(result, (batch, h, n_q, d_k))
        diagnose(
            result,
            right,
            {
                f"the groups are dealt out in turn ({at}): query heads 0 to h/g - 1 share the "
                "first head of keys and values, so repeat each one beside itself": ours(
                    k.repeat(1, share, 1, 1), v.repeat(1, share, 1, 1)
                ),
                "all query heads use the first head of keys and values": ours(
                    k[:, :1].expand_as(k_all), v[:, :1].expand_as(v_all)
                ),
                "the groups' keys and values are averaged into one": ours(k_mean, v_mean),
                "the scores are not scaled: divide by sqrt(d_k)": ours(k_all, v_all, scale=1.0),
                "you divided by d_k, not by its root": ours(k_all, v_all, scale=1 / d_k),
                "the queries of a group are averaged; they stay apart, that is what is left of "
                "having many heads": ours(k_all, v_all)
                .reshape(batch, g, share, n_q, d_k)
                .mean(2)
                .repeat_interleave(share, 1),
                "the keys are shared, but the values are dealt out in turn": ours(
                    k_all, v.repeat(1, share, 1, 1)
                ),
                "the softmax runs over the queries; each row, over the keys, must sum to 1": (
                    torch.softmax(q @ k_all.transpose(-1, -2) / math.sqrt(d_k), -2) @ v_all
                ),
            },
            f"the result differs from plain attention on repeated keys and values ({at})",
        )
    passed("many heads of queries, few of keys and values")


def other_weights(function: Callable[..., Any]) -> None:
    """`my_other_weights(weights, v)`: weights (n,), v (n, d), n > d + 1, to other weights (n,)."""
    for seed, (n, d) in enumerate(sized((6, 2), (9, 4), (12, 8))):
        raw, v = _random((n,), (n, d), seed=seed)
        weights = torch.softmax(raw, 0)
        at = f"n = {n}, d = {d}"
        result = want_tensor(call(function, weights, v), (n,), "the new weights").detach().to(v)
        if not close(result.sum(), torch.tensor(1.0), 1e-4):
            raise NotYet(f"the weights must sum to 1; yours sum to {result.sum():.4f} ({at})")
        if (result < -1e-6).any():
            raise NotYet(f"a weight is negative: {result.min():.4f} ({at}); go less far")
        if not close(result @ v, weights @ v, 1e-3):
            off = (result @ v - weights @ v).abs().max()
            raise NotYet(
                f"the output has changed by {off:.3g} ({at}): the difference of the two weights "
                "must be orthogonal to every column of v, and to the column of ones"
            )
        moved = (result - weights).abs().sum() / 2
        if moved < 1e-3:
            raise NotYet(f"these are the old weights ({at}); find others that give the same output")
        if result.min() > 1e-4:
            raise NotYet(
                f"right so far, but you can go further ({at}): go on in the same direction until "
                "a weight reaches 0"
            )
    passed("two different rows of weights, one output")


def mean_pool(function: Callable[..., Any]) -> None:
    """`my_mean_pool(w_k, num_heads, groups)`: (d_model, h * d_k) to (d_model, g * d_k)."""
    for seed, (d, h, g, d_k) in enumerate(
        sized((12, 4, 2, 3), (10, 6, 2, 5), (8, 6, 3, 4), (6, 4, 1, 2), (5, 3, 3, 2), keep=(1, 2))
    ):  # fmt: skip
        w_k = _random((d, h * d_k), seed=seed)[0]
        heads = w_k.reshape(d, h, d_k)
        grouped = heads.reshape(d, g, h // g, d_k)
        right = grouped.mean(2).reshape(d, g * d_k)
        result = call(function, w_k, h, g)
        if isinstance(result, Tensor) and tuple(result.shape) == (d, d_k) != tuple(right.shape):
            raise NotYet(f"that is one head; with {g} groups there are {g} heads of {d_k} columns")
        result = want_tensor(result, (d, g * d_k))
        diagnose(
            result,
            right,
            {
                "you took the sum of each group, not its mean": right * (h // g),
                "you kept the first head of each group; take the mean of all": grouped[
                    :, :, 0
                ].reshape(d, -1),
                "you kept the first heads; every head belongs to a group": heads[:, :g].reshape(
                    d, -1
                ),
                "heads that stand next to each other form a group; you dealt them out in turn": (
                    heads.reshape(d, h // g, g, d_k).mean(1).reshape(d, -1)
                ),
                "every group got the mean of all heads": heads.mean(1, keepdim=True)
                .expand(d, g, d_k)
                .reshape(d, -1),
                "you averaged neighbouring columns; average the same column of neighbouring "
                "heads": w_k.reshape(d, g * d_k, h // g).mean(2),
                "the heads are the columns of w_k, d_k to a head; you cut its rows": (
                    w_k.reshape(g, h // g, d, d_k).mean(1).transpose(0, 1).reshape(d, -1)
                ),
            },
            "column c of group i must be the mean of column c of the heads in group i",
        )
    passed("each group has the mean of its heads")


def two_heads(function: Callable[..., Any]) -> None:
    """`my_two_heads()`: two pairs (w_q, w_k), each (6,), that tell tired from warm in one layer."""
    pairs = call(function)
    if not isinstance(pairs, (list, tuple)) or len(pairs) != 2:
        raise NotYet("return a list of two pairs, one for each head")
    vectors = []
    for r, pair in enumerate(pairs):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise NotYet(f"head {r} must be a pair (w_q, w_k)")
        for name, w in zip(("w_q", "w_k"), pair, strict=True):
            vectors.append(want_tensor(w, (6,), f"{name} of head {r}").detach().to(torch.float64))
    found = {}
    for ending in ("tired", "warm"):
        words, x = cat_sentence(ending)
        x, it = x.to(torch.float64), words.index("it")
        for r, name in enumerate(("alive", "place")):
            q, k = x @ vectors[2 * r][:, None], x @ vectors[2 * r + 1][:, None]
            out, _ = attention(q, k, x[:, [FEATURES.index(name)]])
            found[ending, name] = out[it].item()
    for ending, much, little in (("tired", "alive", "place"), ("warm", "place", "alive")):
        other = "warm" if ending == "tired" else "tired"
        got = f"with {ending!r} *{much}* is {found[ending, much]:.3f}"
        if found[ending, much] <= 0.9:
            why = (
                f"as with {other!r}: the key does not use the last word's state"
                if abs(found[ending, much] - found[other, much]) < 1e-6
                else f"with {other!r} it is {found[other, much]:.3f}"
            )
            raise NotYet(f"{got}, and must be more than 0.9; {why}")
        if found[ending, little] >= 0.1:
            raise NotYet(
                f"{got}, which is right, but *{little}* is {found[ending, little]:.3f} and must be "
                f"less than 0.1: let {ending!r} take the weight in that head"
            )
    passed("one layer, two heads: each is drowned out when its answer is not wanted")

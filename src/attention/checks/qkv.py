"""Checks for chapter 2, queries, keys, values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from attention.example import cat_sentence
from attention.functional import attention, softmax

from ._base import NotYet, call, close, diagnose, draw, no_nan, passed, sized, want_tensor

__all__ = [
    "aimed_query",
    "column_attention",
    "ending",
    "merge",
    "repaired_layer",
    "share_of_the_second_key",
    "weights_from_output",
]


def _randn(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def ending(function: Callable[..., Any]) -> None:
    """Check `my_matrices()`: the last word finds the noun that it describes, in both sentences."""
    got = call(function)
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        raise NotYet("return two matrices: `return w_q, w_k`")
    names = ("w_q", "w_k")
    for name, w in zip(names, got, strict=True):
        if not isinstance(w, Tensor) or w.ndim != 2 or len(w) != 6:
            shape = tuple(w.shape) if isinstance(w, Tensor) else type(w).__name__
            raise NotYet(f"{name} must be a matrix of shape (6, d_k), a row a feature; got {shape}")
        if not w.is_floating_point() or not torch.isfinite(w).all():
            raise NotYet(f"{name} must hold finite floating numbers; got {w.dtype}")
    w_q, w_k = (w.detach().double() for w in got)
    if w_q.shape != w_k.shape:
        raise NotYet(
            "w_q and w_k must share their width d_k, since queries are multiplied with keys; got "
            f"{tuple(w_q.shape)} and {tuple(w_k.shape)}"
        )
    seen = {}
    for last, noun, other in (("tired", "cat", "mat"), ("warm", "mat", "cat")):
        words, x = cat_sentence(last)
        x = x.double()
        if not ((x[-1] @ w_q).abs() > 0).any():
            raise NotYet(f"the query of {last!r} is zero, so it takes the plain mean")
        weights = attention(x @ w_q, x @ w_k, x)[1][-1]
        seen[last] = dict(zip(words, weights.tolist(), strict=True))
        if seen[last][other] > 0.5:
            same = last == "warm" and seen["tired"]["cat"] > 0.5
            raise NotYet(
                f"{last!r} gives {other} {seen[last][other]:.3f}; "
                + ("both endings find the cat: use the feature in which they differ"
                   if same else "it should find the " + noun + ": a sign is the wrong way round")
            )  # fmt: skip
        if seen[last][noun] < 0.9:
            most = words[int(weights.argmax())]
            raise NotYet(
                f"{last!r} gives {noun} {seen[last][noun]:.3f}, which is below 0.9"
                + (f"; it looks mostly at {most!r}" if most != noun and weights.max() > 0.3
                   else "; longer queries decide more clearly")
            )  # fmt: skip
    passed("the last word finds its noun, with either ending")


def repaired_layer(function: Callable[..., Any]) -> None:
    """Check `my_layer(x, w_q, w_k, w_v)`, three bugs repaired."""

    def layer(x: Tensor, w: Sequence[Tensor], turned: str = "qkv", width: bool = True,
              dim: int = -1, root: bool = True) -> Tensor:  # fmt: skip
        q, k, v = (x @ (m.T if c in turned else m) for c, m in zip("qkv", w, strict=True))
        size = (x.shape[1] if width else len(x)) ** (0.5 if root else 1)
        return torch.softmax(q @ k.T / size, dim) @ v

    for seed, (n, d) in enumerate(sized((5, 3), (4, 8), (7, 2))):
        x = _randn(seed, n, d)
        w = [_randn(20 + 3 * seed + i, d, d) for i in range(3)]
        got = want_tensor(call(function, x, *w), (n, d), "the output")
        q, k, v = (x @ m.T for m in w)
        transposes = "a matrix is used as it is stored; nn.Linear computes x @ w.T"
        root = "the scores are divided by the root of the number of tokens, not of the keys' width"
        dim = "the softmax runs down the columns; the weights of one query stand in a row"
        diagnose(
            got,
            layer(x, w),
            {
                "nothing is repaired yet": layer(x, w, "qk", False, 0),
                f"two bugs are left: {transposes}; and {root}": layer(x, w, "qk", False),
                f"two bugs are left: {transposes}; and {dim}": layer(x, w, "qk", True, 0),
                f"two bugs are left: {root}; and {dim}": layer(x, w, "qkv", False, 0),
                f"one bug is left: {transposes}": layer(x, w, "qk"),
                f"one bug is left: {root}": layer(x, w, "qkv", False),
                f"one bug is left: {dim}": layer(x, w, "qkv", True, 0),
                "now no matrix is transposed; they are stored as nn.Linear stores them": layer(
                    x, w, ""
                ),
                "the scores are divided by the width; take its root": layer(x, w, root=False),
                "the scores are not scaled": torch.softmax(q @ k.T, -1) @ v,
                "the keys are averaged instead of the values": torch.softmax(
                    q @ k.T / math.sqrt(d), -1
                )
                @ k,
                "these are the values themselves; average them with the weights": v,
            },
            f"wrong output for x of shape {(n, d)}",
        )
    passed("three bugs found")


def share_of_the_second_key(function: Callable[..., Any]) -> None:
    """Check `my_share(q, k_1, k_2)`, the weight of the second of two keys."""
    for seed, (lead, d_k) in enumerate(sized(((), 2), ((5,), 2), ((4,), 16), ((2, 3), 7))):
        q = _randn(seed, *lead, d_k)
        k_1, k_2 = _randn(seed + 40, d_k), _randn(seed + 80, d_k)
        got = _share(function, lead, q, k_1, k_2)
        s_1, s_2 = q @ k_1, q @ k_2
        gap, root = s_2 - s_1, math.sqrt(d_k)
        diagnose(
            got,
            torch.sigmoid(gap / root),
            {
                "this is the weight of the first key; the second is asked for": torch.sigmoid(
                    -gap / root
                ),
                "the scores are not scaled: divide them by the root of d_k": torch.sigmoid(gap),
                "you divided by d_k; divide by its root": torch.sigmoid(gap / d_k),
                "you multiplied by the root of d_k; divide by it": torch.sigmoid(gap * root),
                "this is the sigmoid of the second score alone; take the difference of the two": (
                    torch.sigmoid(s_2 / root)
                ),
                "this says which key wins, 0 or 1; the share lies between": (gap > 0).float(),
                "this is the difference of the scores; put it through a sigmoid": gap / root,
                "these are shares of the scores themselves; take exp first": s_2 / (s_1 + s_2),
                "this is one half for every query; use the query": torch.full(lead, 0.5),
            },
            f"wrong share for q of shape {tuple(q.shape)}",
        )
    keys = torch.tensor([0.18, 0.10]), torch.tensor([0.22, 0.03])
    edge = _share(function, (), torch.tensor([7.0, 4.0]), *keys)
    if not close(edge, torch.tensor(0.5)):
        raise NotYet("for the query [7, 4] the keys of cat and mat tie: the share is one half")
    big = torch.tensor([[1e4, 0.0], [-1e4, 0.0]])
    got = _share(function, (2,), big, torch.tensor([1.0, 0.0]), torch.tensor([-1.0, 0.0]))
    no_nan(got, "the share for very long queries")
    if not close(got, torch.tensor([0.0, 1.0])):
        raise NotYet("wrong share for very long queries: it should run from 0 to 1")
    passed("with two keys, softmax is a sigmoid of the difference")


def _share(function: Callable[..., Any], shape: tuple[int, ...], *args: Tensor) -> Tensor:
    return want_tensor(call(function, *args), shape, "the share")


def _merged(pieces: list[str], pair: tuple[str, str]) -> list[str]:
    out, i = [], 0
    while i < len(pieces):
        if tuple(pieces[i : i + 2]) == pair:
            out.append(pieces[i] + pieces[i + 1])
            i += 2
        else:
            out.append(pieces[i])
            i += 1
    return out


def merge(function: Callable[..., Any]) -> None:
    """Check `my_merge(pieces, pair)`, one step of a tokeniser."""
    cases = [
        (list("that cat"), ("a", "t")),
        (list("cats"), ("a", "t")),
        (list("cat"), ("a", "t")),
        (list("mats"), ("t", "a")),
        (list("tact"), ("a", "t")),
        (["c", "at", "s"], ("c", "at")),
        (["cat", "a", "t"], ("a", "t")),
        (["ca", "t", "x"], ("a", "t")),
        (list("aaa"), ("a", "a")),
        (list("aaaa"), ("a", "a")),
        (list("aaaaa"), ("a", "a")),
        (["a"], ("a", "a")),
        ([], ("a", "b")),
    ]
    for row in draw(0, 4, *[(0, 1)] * 12):
        cases.append((["ab"[i] for i in row], ("b", "a")))
    for pieces, pair in cases:
        given = list(pieces)
        got = call(function, given, pair)
        case = f"merging {pair} in {pieces}"
        if given != pieces:
            raise NotYet(f"{case} changed the list it was given; build a new one")
        if isinstance(got, str):
            raise NotYet(f"{case} must give a list of strings; got the string {got!r}")
        if not isinstance(got, (list, tuple)):
            raise NotYet(f"{case} must give a list of strings; got {type(got).__name__}")
        right = _merged(pieces, pair)
        got = list(got)
        if got == right:
            continue
        fault = f"it should give {right}; got {got}"
        flat = "".join(map(str, got))
        if not all(isinstance(piece, str) for piece in got):
            fault = f"join the two strings of the pair into one: {right}; got {got}"
        elif pieces and flat == "".join(pieces[:-1]):
            fault = f"the last piece is lost: {got} instead of {right}"
        elif len(flat) > len("".join(pieces)):
            fault = f"a piece is used twice; after a merge, jump over both pieces: {right}"
        elif len(flat) < len("".join(pieces)):
            fault = f"pieces are lost: {got} instead of {right}"
        elif sorted(flat) == sorted("".join(pieces)) and flat != "".join(pieces):
            fault = f"the order has changed, {got}; join the pair as it stands: {right}"
        elif got == pieces:
            fault = f"nothing is merged; it should give {right}"
        elif len(got) < len(right):
            fault = (
                f"too much is merged, {got}; only two neighbouring pieces that equal the pair "
                f"become one, and the result is not merged again: {right}"
            )
        elif len(got) > len(right):
            fault = f"an occurrence is left over, {got}; merge all of them: {right}"
        raise NotYet(f"{case}: {fault}")
    passed("one merge of a tokeniser")


def column_attention(function: Callable[..., Any]) -> None:
    """Check `my_column_attention(x, omega_q, omega_k, omega_v)`, tokens in columns."""
    for seed, (d, n, d_q, d_v) in enumerate(sized((6, 3, 4, 5), (4, 4, 4, 4), (8, 5, 2, 3))):
        x = _randn(seed, d, n)
        o_q, o_k, o_v = (
            _randn(seed + 20 * i + 20, rows, d) for i, rows in enumerate((d_q, d_q, d_v))
        )
        got = call(function, x, o_q, o_k, o_v)
        if isinstance(got, tuple):
            raise NotYet("return the output alone, without the weights")
        q, k, v = o_q @ x, o_k @ x, o_v @ x
        root = math.sqrt(d_q)

        def out(scores: Tensor, dim: int = 0, v: Tensor = v) -> Tensor:
            return v @ softmax(scores, dim=dim)

        right = out(k.T @ q / root)
        if isinstance(got, Tensor) and n != d_v and got.shape == right.T.shape:
            raise NotYet("the result is transposed: a token is a column here, so return (D_v, N)")
        got = want_tensor(got, (d_v, n), "the output")
        suspects = {
            "the softmax runs along the rows; a query is a column here, so normalise down each "
            "column, dim=0": out(k.T @ q / root, -1),
            "this is Q^T K, with a softmax down its columns; the textbook's order is K^T Q": out(
                q.T @ k / root
            ),
            "the weights are transposed: query n takes from the tokens in column n": out(
                q.T @ k / root, -1
            ),
            "the scores are not scaled: divide them by the root of D_q": out(k.T @ q),
            "you divided by D_q; divide by its root": out(k.T @ q / d_q),
            "you divided by the root of N; D_q is the height of q": out(k.T @ q / math.sqrt(n)),
            "you divided by the root of D; D_q is the height of q": out(k.T @ q / math.sqrt(d)),
            "this is the plain mean of the values; weight them": v.mean(1, keepdim=True).expand(
                d_v, n
            ),
            "these are the values themselves; average them": v,
        }
        if d_q == d_v:
            suspects["this averages the keys; average the values"] = out(k.T @ q / root, v=k)
        if n == d_v:
            suspects["the result is transposed: a token is a column here"] = right.T
        diagnose(got, right, suspects, f"wrong output for x of shape {(d, n)}")
    passed("attention with a token in each column")


def weights_from_output(function: Callable[..., Any]) -> None:
    """Check `my_weights(out, values)`, the weights behind a point of a triangle."""
    corners = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    cases = [
        (corners, torch.tensor([0.3, 0.4, 0.3])),
        (corners, torch.tensor([0.2, 0.5, 0.3])),
        (torch.tensor([[2.5, 0.0], [-2.0, 2.0], [-0.5, -2.5]]), torch.tensor([0.7, 0.1, 0.2])),
        (torch.tensor([[2.5, 0.0], [-2.0, 2.0], [-0.5, -2.5]]), torch.tensor([0.0, 0.0, 1.0])),
        (corners, torch.tensor([0.5, 0.7, -0.2])),
        (_randn(8, 3, 2), _randn(9, 3).softmax(0)),
    ]
    for values, right in cases:
        out = right @ values
        got = want_tensor(call(function, out, values), (3,), "the weights").to(values)
        if close(got, right, 1e-4):
            continue
        if close(got @ values, out, 1e-4) and not close(got.sum(), torch.tensor(1.0), 1e-4):
            raise NotYet(
                "the combination of the values is right, but the numbers do not sum to 1; that is "
                "the third equation"
            )
        where = "outside" if (right < 0).any() else "inside"
        distance = torch.cdist(out[None], values)[0]
        diagnose(
            got,
            right,
            {
                "negative numbers are cut off; they say on which side the point lies outside, so "
                "return them": right.clamp(min=0),
                "negative numbers are cut off and the rest rescaled; return them as they "
                "are": right.clamp(min=0) / right.clamp(min=0).sum(),
                "these are shares of the distances; solve the three equations instead": distance
                / distance.sum(),
                "these are a softmax of dot products with the output; solve the three equations "
                "instead": softmax(values @ out),
                "these are a scaled softmax of dot products with the output; solve the three "
                "equations instead": softmax(values @ out / math.sqrt(2)),
                "one third each is the centre of the triangle; use out": torch.full((3,), 1 / 3),
                "the weights are in reverse order; the first belongs to values[0]": right.flip(0),
            },
            f"not the weights of ({out[0]:.2f}, {out[1]:.2f}), a point {where} the triangle; test "
            "yourself with w @ values and w.sum()",
        )
    passed("the weights, read off the output")


def aimed_query(function: Callable[..., Any]) -> None:
    """Check `my_query(keys, weights)`, the query that produces given weights."""
    keys = [torch.tensor([[2.0, 1.0], [-1.0, 2.0], [0.5, -2.0]]), _randn(3, 3, 2), _randn(5, 3, 2)]
    for k in keys:
        for want in ([0.2, 0.5, 0.3], [0.9, 0.05, 0.05], [1 / 3, 1 / 3, 1 / 3]):
            want = torch.tensor(want)
            q = want_tensor(call(function, k, want), (2,), "the query").to(k)
            logs = want.log()
            gaps = logs[:2] - logs[2]
            solve = torch.linalg.solve
            right = solve(k[:2] - k[2], math.sqrt(2) * gaps)
            if close(attention(q[None], k, k)[1][0], want, 1e-3):
                continue
            if want[0] == want[1]:
                raise NotYet("for equal weights the query must be zero")
            diagnose(
                q,
                right,
                {
                    "the scale is missing: attention divides the scores by the root of 2, so the "
                    "query must be that much longer": right / math.sqrt(2),
                    "the scale is used twice or the wrong way: the query must be the root of 2 "
                    "longer, not more": right * math.sqrt(2),
                    "the query points the wrong way: ln a_1 - ln a_3 belongs to k_1 - k_3": -right,
                    "the logarithm is missing: scores are logarithms of weights": solve(
                        k[:2] - k[2], math.sqrt(2) * (want[:2] - want[2])
                    ),
                    "differences of keys are needed: with the keys themselves the third weight "
                    "is not controlled": solve(k[:2], math.sqrt(2) * logs[:2]),
                    "take the third key away on both sides; here it is only taken from the "
                    "logarithms": solve(k[:2], math.sqrt(2) * gaps),
                    "this is the blend of the keys with these weights; the query must produce the "
                    "weights": want @ k,
                },
                "this query gives the weights "
                + ", ".join(f"{w:.3f}" for w in attention(q[None], k, k)[1][0])
                + "; wanted "
                + ", ".join(f"{w:.3f}" for w in want),
            )
    passed("a query for every set of weights")

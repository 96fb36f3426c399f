"""Checks of chapter 9: cross-attention, a beam search, patches, pooling over real tokens."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from .. import functional, vision
from ._base import NotYet, call, close, diagnose, passed, sized, want_tensor, without

__all__ = ["beam", "cross_attention", "patches", "pool"]


def _random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _softmax(scores: Tensor, real: Tensor | None = None, dim: int = -1) -> Tensor:
    if real is not None:
        scores = scores.masked_fill(~real[:, None], -math.inf)
    return torch.softmax(scores, dim)


def cross_attention(function: Callable[..., Any]) -> None:
    """`my_cross_attention(x, memory, w_q, w_k, w_v, real)`: output and weights of one head."""
    padding = [  # on the right, on the left, scattered
        (2, 4, [[1, 1, 1], [1, 1, 0]]), (4, 3, [[1, 1], [0, 1]]), (3, 5, [[0, 1, 1], [1, 0, 1]]),
        (3, 4, [[0, 1, 0, 1, 1], [1, 0, 0, 0, 1]]),
    ]  # fmt: skip
    for n_q, d_k, rows in sized(*padding):
        (more,) = sized(0)
        real = torch.tensor([[1] * more + row for row in rows]).bool()
        n_k = real.shape[1]
        x, memory = _random(2, n_q, 6), _random(2, n_k, 6, seed=1)
        w_q, w_k, w_v = (_random(6, d_k, seed=s) for s in (2, 3, 4))
        with without(functional.attention, functional.fused_attention,
                     scaled_dot_product_attention):  # fmt: skip
            result = call(function, x, memory, w_q, w_k, w_v, real)
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise NotYet("return two tensors: (output, weights)")
        q, k, v = x @ w_q, memory @ w_k, memory @ w_v
        scores, own = q @ k.mT / math.sqrt(d_k), k @ q.mT / math.sqrt(d_k)
        right = _softmax(scores, real)
        out, weights = result
        for other, sentence in (
            (own, "the source asks and the target answers; the queries must come from x"),
            (q @ (x @ w_k).mT / math.sqrt(d_k), "the keys come from x: that is self-attention"),
        ):
            if isinstance(weights, Tensor) and weights.shape == other.shape:
                if n_q != n_k and other.shape != scores.shape or close(weights, _softmax(other)):
                    raise NotYet(sentence)
        weights = want_tensor(weights, (2, n_q, n_k), "the weights")
        late = torch.softmax(scores, -1) * real[:, None]
        diagnose(
            weights, right,
            {
                "the mask has no effect: padding gets weight": _softmax(scores),
                "the mask is the wrong way round: real is True where there is a token": _softmax(
                    scores, ~real
                ).nan_to_num(),
                "the mask comes after the softmax: the rows no longer sum to 1": late,
                "a score of 0 is not a weight of 0; set padding's scores to minus infinity": (
                    torch.softmax(scores * real[:, None], -1)
                ),
                "the scores are not divided by the square root of d_k": _softmax(
                    scores * math.sqrt(d_k), real
                ),
                "the scores are divided by d_k, not by its root": _softmax(
                    scores / math.sqrt(d_k), real
                ),
                "the softmax runs over the queries; each query's row must sum to 1": (
                    _softmax(scores, real, -2).nan_to_num()
                ),
            },
            "the weights are not the softmax of the scaled scores over the real source tokens",
        )  # fmt: skip
        out = want_tensor(out, (2, n_q, d_k), "the output")
        suspects = {"the output averages the keys, not the values": right @ k}
        if n_q == n_k:
            suspects["the values come from x; they must come from memory"] = right @ (x @ w_v)
        diagnose(out, right @ v, suspects, "the output is not the weighted average of the values")
    passed("the target asks, the source answers, and padding gets no weight")


def _best(log_p: Tensor, width: int) -> list[int]:
    """A beam's best text."""
    beam = [((), 0.0)]
    for step in log_p.double().tolist():
        grown = []
        for text, score in beam:
            grown += [((*text, j), score + x) for j, x in enumerate(step[text[-1] if text else 0])]
        beam = sorted(grown, key=lambda pair: -pair[1])[:width]
    return list(beam[0][0])


def _exhaustive(log_p: Tensor) -> list[int]:
    texts = itertools.product(range(log_p.shape[-1]), repeat=len(log_p))
    return list(max(texts, key=lambda text: sum(
        float(step[i, j]) for step, i, j in zip(log_p.double(), (0, *text), text, strict=False)
    )))  # fmt: skip


def beam(function: Callable[..., Any]) -> None:
    """`my_beam(log_p, width)`: the best text of a beam search, (steps,) ids."""
    cases = [
        (torch.log_softmax(3 * _random(steps, size, size, seed=seed), -1), width)
        for seed in range(12)
        for steps, size, width in sized((2, 4, 2), (4, 3, 2), (4, 4, 3), (3, 5, 1), keep=(0,))
    ]
    sums = [[[0.4, 0.35, 0.25]] * 3, [[0.4, 0.3, 0.3], [0.455, 0.3, 0.245], [0.4, 0.3, 0.3]]]
    cases.append((torch.tensor(sums).log(), 2))  # where probabilities, added, prefer another text
    for log_p, width in cases:
        result = want_tensor(call(function, log_p, width), (len(log_p),), "the text")
        if result.is_floating_point() or result.dtype == torch.bool:
            raise NotYet(f"the text must hold ids, torch.int64; got {result.dtype}")
        right, got = _best(log_p, width), result.tolist()
        if got == right:
            continue
        for wrong, sentence in (
            (_best(log_p, 1), "this is greedy's text: keep `width` beginnings, not one, and "
             "let all continuations of all of them compete"),
            (_exhaustive(log_p), "this is the best of all texts; a beam keeps only `width` "
             "beginnings after each step and can miss it"),
            (_best(-log_p, width), "you keep the least likely; sort from the largest sum down"),
            (_best(log_p.exp(), width), "the scores of words add up as logarithms; do not turn "
             "them into probabilities"),
            (_best(log_p.mT, width), "rows are the word before, columns the next word"),
            (_best(log_p.flip(0), width), "the steps run backwards; step 0 comes first"),
            (_best(log_p, width)[::-1], "the text is reversed"),
        ):  # fmt: skip
            if got == wrong:
                raise NotYet(sentence)
        raise NotYet(
            f"for {len(log_p)} steps and width {width} the text must be {right}; got {got}"
        )
    passed("the beam keeps the best beginnings, and its best text is returned")


def patches(function: Callable[..., Any]) -> None:
    """`my_patches(images, size)`: (B, height, width) to (B, n, size * size)."""
    for rows, columns, size in sized((2, 3, 2), (2, 2, 3), (4, 4, 2), (2, 4, 1)):
        height, width = rows * size, columns * size
        images = _random(2, height, width)
        with without(vision.patches):
            result = call(function, images, size)
        n, area = (height // size) * (width // size), size * size
        result = want_tensor(result, (2, n, area), "the patches")
        cut = images.reshape(2, height // size, size, width // size, size)
        right = cut.transpose(2, 3).reshape(2, n, area)
        diagnose(
            result, right,
            {
                "these are stretches of the image's rows, not squares; cut both sides first": (
                    images.reshape(2, n, area)
                ),
                "the patches come column by column; go row by row": (
                    cut.permute(0, 3, 1, 2, 4).reshape(2, n, area)
                ),
                "inside a patch the pixels come column by column; go row by row": (
                    cut.permute(0, 1, 3, 4, 2).reshape(2, n, area)
                ),
                "inside a patch are pixels from far apart: each is taken every n-th pixel": (
                    images.reshape(2, size, height // size, size, width // size)
                    .permute(0, 2, 4, 1, 3).reshape(2, n, area)
                ),
                "the patches come in the reversed order": right.flip(1),
                "the image is turned over: rows and columns are exchanged": (
                    images.mT.reshape(2, width // size, size, height // size, size)
                    .transpose(2, 3).reshape(2, n, area)
                ),
            },
            "the patches do not hold the right pixels",
        )  # fmt: skip
    passed("the squares come row by row, and so do their pixels")


def pool(function: Callable[..., Any]) -> None:
    """`my_pool(states, real)`: the mean state over the real tokens, (B, d)."""
    for batch, n, d, seed in sized((3, 4, 5, 0), (2, 6, 3, 1), (4, 4, 4, 2), keep=(0, 3)):
        states = _random(batch, n, d, seed=seed)
        real = torch.arange(n) < torch.tensor([n, 1, n - 1, 2][:batch])[:, None]
        real[0, 0] = False  # padding may stand on the left as well
        result = want_tensor(call(function, states, real), (batch, d), "the result")
        kept = states * real[..., None]
        right = kept.sum(1) / real.sum(1, keepdim=True)
        diagnose(
            result, right,
            {
                "the padding counts: this is the mean over all positions": states.mean(1),
                "the sum is right, but it is divided by n, padding included": kept.mean(1),
                "this is the sum; divide by the number of real tokens": kept.sum(1),
                "the mask is the wrong way round": (
                    (states * ~real[..., None]).sum(1) / (~real).sum(1, keepdim=True)
                ),
                "the padding is in the sum but not in the number": (
                    states.sum(1) / real.sum(1, keepdim=True)
                ),
                "this is the first token's state, not the mean": states[:, 0],
                "this is the largest value of each feature, not the mean": (
                    states.masked_fill(~real[..., None], -math.inf).amax(1)
                ),
            },
            "the result is not the mean over the real tokens",
        )  # fmt: skip
    passed("only real tokens are in the sum and in the number")

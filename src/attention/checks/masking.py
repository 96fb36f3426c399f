"""The checks of chapter 6: masks, attention under a mask, a head that cheats, a leak detector."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .. import masks
from ..functional import softmax
from ._base import NotYet, call, close, diagnose, no_nan, passed, sized, want_tensor, without

__all__ = ["batch", "causal", "cheat", "leak", "masked_softmax", "packed"]


def causal(function: Callable[..., Any]) -> None:
    """`my_causal_mask(n_q, n_k)`: bool (n_q, n_k), the queries being the last n_q tokens."""
    more = torch.randint(1, 9, (3, 2), generator=torch.Generator().manual_seed(0)).tolist()
    sizes = [(n, n + past) for n, past in more]
    for n_q, n_k in ((3, 3), (1, 1), (5, 5), (2, 4), (1, 6), (3, 7), *sizes):
        with without(masks.causal_mask):
            result = call(function, n_q, n_k)
        result = _want_mask(result, (n_q, n_k))
        i, j = torch.arange(n_q)[:, None], torch.arange(n_k)[None, :]
        right = j <= i + n_k - n_q
        diagnose(
            result,
            right,
            {
                "the polarity is reversed: True must mean that the query may attend": ~right,
                "a token must see itself too: use j <= i, not j < i": j < i + n_k - n_q,
                "each query sees the future and itself: rows are queries, columns are keys, and "
                "you have them the other way round": j >= i + n_k - n_q,
                "the queries are the last n_q tokens, so query 0 stands at position n_k - n_q; "
                "you placed it at position 0": j <= i,
                "each query sees one token too many: the token after its own": (
                    j <= i + n_k - n_q + 1
                ),
                "nothing is forbidden: the future must be": torch.ones_like(right),
            },
            f"for n_q = {n_q}, n_k = {n_k} the mask must be {right.int().tolist()}; "
            f"got {result.int().tolist()}",
        )
    passed("each query sees its own position and all earlier ones")


def masked_softmax(function: Callable[..., Any]) -> None:
    """`my_masked_softmax(scores, mask)`: weights like scores, zeros where nothing is allowed."""
    masked = [(shape, masks.causal_mask(*shape[-2:])) for shape in sized((4, 4), (2, 3, 3, 3))]
    padding = torch.tensor([[True, True, True, False, False], [False, True, True, True, True]])
    scattered = sized((2, 2, 3, 5))[0]
    masked += [((2, 3, 5), padding[:, None]), ((2, 4, 3, 5), padding[:, None, None]),
               (scattered, _random(scattered, seed=3) > -0.5)]  # fmt: skip
    for shape, mask in masked:
        scores = _random(shape)
        result = want_tensor(call(function, scores, mask), shape, "the weights")
        right = _masked_softmax(scores, mask)
        plain = torch.softmax(scores, -1)
        diagnose(
            result,
            right,
            {
                "the mask has no effect: these are the weights without it": plain,
                "the mask is used the wrong way round: True means that the query may attend": (
                    _masked_softmax(scores, ~mask)
                ),
                "the mask comes after the softmax: forbidden keys stand in the denominator, and "
                "the rows no longer sum to 1": plain * mask,
                "a forbidden score is set to 0, but a score of 0 is not a weight of 0: "
                "e^0 = 1": torch.softmax(scores * mask, -1),
                "the softmax runs over the queries; each query's row must sum to 1": (
                    torch.softmax(scores.masked_fill(~mask, -math.inf), -2).nan_to_num()
                ),
                "the allowed weights are all equal: the scores are not used": (
                    mask / mask.sum(-1, keepdim=True)
                ).expand(shape),
            },
            "some weights are wrong: forbidden keys must get 0, and the others the softmax of "
            "their scores",
        )
        if (result.masked_select(~mask.expand(shape)) != 0).any():
            raise NotYet(
                "forbidden keys must get exactly 0; use minus infinity, not a large negative number"
            )
    for huge in ("2e9", "inf"):
        row = torch.tensor([[0.0, 1.0, float(huge)]])
        result = call(function, row, torch.tensor([[True, True, False]]))
        if not close(result, torch.tensor([[1.0, math.e, 0.0]]) / (1 + math.e)):
            raise NotYet(
                f"a forbidden score of {huge} spoils the row: it must be replaced before the "
                "softmax, not added to, and not removed afterwards"
            )
    low = call(function, torch.tensor([[-300.0, -300.0, 0.0]]), torch.tensor([[True, True, False]]))
    if not close(low, torch.tensor([[0.5, 0.5, 0.0]])):
        raise NotYet(
            "for the scores -300, -300 and a forbidden 0 the weights are 0.5, 0.5, 0: forbidden "
            "means minus infinity; any other number can be the largest of its row"
        )
    _empty_row(function)
    passed("forbidden keys get exactly 0, rows sum to 1, and an empty row is zeros")


def _empty_row(function: Callable[..., Any]) -> None:
    """Whether a row with nothing to attend to gives zeros, and leaves the gradients finite."""
    scores = _random((3, 4)).requires_grad_()
    mask = torch.tensor([[True, True, False, False], [False] * 4, [True] * 4])
    result = call(function, scores, mask)
    if isinstance(result, Tensor) and torch.isnan(result[1]).any():
        raise NotYet("a row with nothing to attend to gives nan; it must give zeros")
    result = want_tensor(result, (3, 4), "the weights")
    if (result[1] != 0).any():
        raise NotYet(
            "a row with nothing to attend to must give zeros; "
            f"got {[round(w, 3) for w in result[1].tolist()]}"
        )
    if not close(result, _masked_softmax(scores, mask)):
        raise NotYet("one empty row must not change the weights of the others")
    if not result.requires_grad:
        raise NotYet("no gradient reaches the scores; did you use detach, item or tolist?")
    (slope,) = torch.autograd.grad((result * _random((3, 4), seed=1)).sum(), scores)
    if not slope.isfinite().all():
        raise NotYet(
            "the weights are right but the gradient is nan: a nan arose in the softmax of the "
            "empty row and was replaced too late; let no nan arise"
        )


def batch(function: Callable[..., Any]) -> None:
    """`my_batch_attention(q, k, v, real)`: causal attention over a padded batch (B, n, d)."""
    cases = [
        [[False, True, True, True], [True, True, False, False]],  # on the left, and on the right
        [[True, True, True], [False, True, True], [False, False, True]],  # B = n
        [[False, True, True, True, False]],
    ]
    for rows in cases:
        (more,) = sized(0)
        real = torch.tensor([[True] * more + row for row in rows])
        batch, n = real.shape
        q, k, v = (_random((batch, n, 4), seed=seed) for seed in range(3))
        v = v + 3.0  # so that a row of zeros is not nearly right
        result = call(function, q, k, v, real)
        if isinstance(result, Tensor) and tuple(result.shape) == (batch, n, 4):
            if torch.isnan(result[real]).any():
                raise NotYet(
                    "the output of a real token is nan: is the mask turned round before "
                    "masked_fill, and is only what is forbidden filled?"
                )
            result = result.masked_fill(~real[..., None], 0.0)
        result = want_tensor(result, (batch, n, 4), "the output")
        scores, past = q @ k.transpose(-2, -1) / 2, masks.causal_mask(n)
        keys = real[:, None, :]

        def out(allowed: Tensor, s: Tensor = scores, v: Tensor = v, real: Tensor = real) -> Tensor:
            found = _masked_softmax(s, allowed.expand(s.shape)) @ v
            return found.masked_fill(~real[..., None], 0.0)

        aligned = past & real if batch == n else past & keys
        diagnose(
            result,
            out(past & keys),
            {
                "both rules must hold: join them with &, not with |": out(past | keys),
                "the mask is used the wrong way round: masked_fill writes where its mask is True": (
                    torch.softmax(scores.masked_fill(past & keys, -1e9), -1) @ v
                ).masked_fill(~real[..., None], 0.0),
                "`real` is about keys, so it needs the shape (B, 1, n); as (B, n) it is taken for "
                "(n, n) when B = n": out(aligned),
                "the padding is not hidden; `real` is about keys: (B, 1, n), not (B, n, 1)": out(
                    past.expand(batch, n, n)
                ),
                "the future is not hidden": out(keys),
                "each token sees the future: rows are queries, columns are keys": out(
                    past.T & keys
                ),
                "a token must see itself too": out(past.tril(-1) & keys),
                "the scores must be divided by the root of d": out(past & keys, scores * 2),
                "a forbidden score must become minus infinity, not 0": (
                    torch.softmax(scores * (past & keys), -1) @ v
                ).masked_fill(~real[..., None], 0.0),
            },
            "some outputs of real tokens are wrong: query i of a sentence may attend to key j if "
            "j <= i and key j is a real token",
        )
    passed("every real token attends to the real tokens up to itself, wherever the padding stands")


def cheat(function: Callable[..., Any]) -> None:
    """`my_cheat(n)`: queries and keys (n, d_k) whose attention goes to the next position."""
    for n in sized(2, 3, 5, 8, 20, 200):
        result = call(function, n)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise NotYet(f"return two tensors, (Q, K); got {type(result).__name__}")
        width = result[0].shape[-1] if isinstance(result[0], Tensor) and result[0].ndim else 1
        q = want_tensor(result[0], (n, width), "Q")
        k = want_tensor(result[1], (n, width), "K")
        if not (no_nan(q, "Q").isfinite().all() and no_nan(k, "K").isfinite().all()):
            raise NotYet("Q and K must be finite numbers")
        q, k = q.double(), k.double()
        weights = torch.softmax(q @ k.T / math.sqrt(width), -1)
        found = weights.diagonal(1).min().item()
        if found >= 0.99:
            continue
        if weights.diagonal(-1).min() > 0.9:
            raise NotYet("each position attends to the one before it; it should be the one after")
        if weights.diagonal().min() > 0.9:
            raise NotYet("each position attends to itself: shift the queries by one position")
        if torch.softmax(q @ k.T, -1).diagonal(1).min() >= 0.99:
            raise NotYet(
                f"with n = {n} it would work without the division by the root of d_k = {width}; "
                "make the scores larger"
            )
        raise NotYet(
            f"with n = {n} some position gives the next one only {found:.3f}; at least 0.99 is "
            "wanted"
        )
    passed("every position copies from the next one: without a mask, the answer is found")


def packed(function: Callable[..., Any]) -> None:
    """`my_packed_mask(document)`: bool (n, n), causal and within each text."""
    lengths = torch.randint(1, 4, (4,), generator=torch.Generator().manual_seed(0)) + sized(0)[0]
    drawn = torch.tensor([5, 2, 9, 4]).repeat_interleave(lengths).tolist()
    for numbers in ([0, 0, 0, 1, 1], [0], [3, 3, 1, 1, 1, 2], [0, 1, 2], [4, 4, 4, 4], drawn):
        document = torch.tensor(numbers)
        n = len(document)
        result = _want_mask(call(function, document), (n, n))
        i, j = torch.arange(n)[:, None], torch.arange(n)[None, :]
        same = document[:, None] == document[None, :]
        right = same & (j <= i)
        diagnose(
            result,
            right,
            {
                "the polarity is reversed: True must mean that the token may attend": ~right,
                "later tokens of the same text are visible: the causal rule is missing": same,
                "tokens of another text are visible: only the causal rule is there": j <= i,
                "both rules must hold: combine them with &, not with |": same | (j <= i),
                "a token must see itself too: use j <= i, not j < i": same & (j < i),
                "each token sees the future of its text: rows are queries, columns are keys": (
                    same & (j >= i)
                ),
                "the texts need not be numbered in rising order; only equality counts": (
                    (document[:, None] <= document[None, :]) & (j <= i)
                ),
            },
            f"for document {numbers} the mask must be {right.int().tolist()}; "
            f"got {result.int().tolist()}",
        )
    passed("each token sees itself and the earlier tokens of its own text")


def leak(function: Callable[..., Any]) -> None:
    """`finds_leak(layer, n, d)`: True if an output of `layer` depends on a later input."""
    sizes = sized((6, 4), (3, 2), (9, 5))
    for n, d in sizes:
        honest, leaking = _layers(n, d)
        for expected, layers in ((False, honest), (True, leaking)):
            for name, layer in layers.items():
                _judge_leak(function, name, layer, expected, n, d)
    passed(
        f"{len(honest)} honest layers pass and {len(leaking)} leaking ones are caught, at "
        f"{len(sizes)} sizes"
    )


Layer = Callable[[Tensor], Tensor]


def _layers(n: int, d: int) -> tuple[dict[str, Layer], dict[str, Layer]]:
    """Layers for x (n, d) by name: those that never look ahead, and those that do."""
    mixing = _random((d, d), seed=3)

    def scores(x: Tensor) -> Tensor:  # bounded, so that no weight is too small to be noticed
        bounded = torch.tanh(x)
        return bounded @ mixing.to(x) @ bounded.T / 2

    def by(mask: Tensor) -> Callable[[Tensor], Tensor]:
        def layer(x: Tensor) -> Tensor:
            return _masked_softmax(scores(x), mask) @ x

        return layer

    past = masks.causal_mask(n)
    waves = 700 + 300 * torch.rand(n - 1, d, generator=torch.Generator().manual_seed(4))
    mean = masks.causal_mask(n).double() / torch.arange(1, n + 1)[:, None]

    def one_pair(i: int, j: int) -> Tensor:
        pair = torch.zeros(n, n, dtype=torch.bool)
        pair[i, j] = True
        return past | pair

    def too_late(x: Tensor) -> Tensor:
        return (torch.softmax(scores(x), -1) * past) @ x

    def whisper(x: Tensor) -> Tensor:
        heard = 0.004 * torch.sin(x[-1] * waves.to(x))  # (n - 1, d): any change of x[-1] shows
        return mean.to(x) @ x + torch.cat([heard, 0 * x[:1]])

    def one_feature(x: Tensor) -> Tensor:
        later = torch.cat([x[1:, -1], x[:1, -1] * 0])
        return torch.cat([x[:, :-1], (x[:, -1] + later)[:, None]], 1)

    def balanced(x: Tensor) -> Tensor:
        moved = torch.cat([torch.tanh(x[1:, :1]), x[:1, :1] * 0])
        return x + moved * (torch.arange(d) == 0) - moved * (torch.arange(d) == 1)

    honest: dict[str, Layer] = {
        "causal attention": by(past),
        "a layer that treats each token alone": lambda x: torch.tanh(x @ mixing.to(x)),
        "a running mean of the tokens so far": lambda x: mean.to(x) @ x,
        "a layer whose output is constant": lambda x: torch.ones_like(x) + 0 * x,
    }
    leaking: dict[str, Layer] = {
        "attention without a mask": by(torch.ones_like(past)),
        "a mask that lets each token see one too many": by(past | past.roll(-1, 0)),
        "attention whose mask comes after the softmax": too_late,
        "attention where only the last but one output sees the last token": by(
            one_pair(n - 2, n - 1)
        ),
        "attention where only output 0 sees token 1": by(one_pair(0, 1)),
        "attention where only output 0 sees the last token": by(one_pair(0, n - 1)),
        "a layer that subtracts the mean over all tokens": lambda x: x - x.mean(0),
        "a layer that leaks in its last feature alone": one_feature,
        "a layer whose leak is added to one feature and taken from another": balanced,
        "a layer that leaks a few thousandths of the last token": whisper,
    }
    if n > 3:
        leaking["attention where only output 2 sees token 3"] = by(one_pair(2, 3))
    return honest, leaking


def _judge_leak(
    function: Callable[..., Any], name: str, layer: Layer, expected: bool, n: int, d: int
) -> None:
    """Ask whether a layer leaks; NotYet if the answer is not the expected one."""

    def of_one_shape(x: Tensor) -> Tensor:
        if tuple(x.shape) != (n, d):
            raise NotYet(
                f"the layer accepts only shape (n, d) = {(n, d)}; got {tuple(x.shape)}: "
                "change later tokens instead of leaving them out"
            )
        return layer(x)

    found = call(function, of_one_shape, n, d)
    if hasattr(found, "item") and getattr(found, "ndim", 1) == 0:  # of torch or NumPy
        found = found.item()
    if not isinstance(found, bool):
        raise NotYet(f"return True or False; got {type(found).__name__}")
    if found and not expected:
        raise NotYet(
            f"you report a leak in {name}, which has none: an output may change when its "
            "own token or an earlier one changes"
        )
    if expected and not found:
        raise NotYet(
            f"you miss the leak in {name}: test every later token against every earlier "
            "output, all features of it, with a tolerance below a thousandth"
        )


def _masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    return softmax(scores.masked_fill(~mask, -math.inf))  # of a row without any -inf: zeros


def _want_mask(result: Any, shape: tuple[int, ...]) -> Tensor:
    result = want_tensor(result, shape, "the mask")
    if result.dtype != torch.bool:
        raise NotYet(f"the mask must be boolean, True = may attend; got {result.dtype}")
    return result


def _random(shape: tuple[int, ...], seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))

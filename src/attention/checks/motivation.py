"""Checks for chapter 1, why attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ._base import NotYet, call, close, diagnose, draw, passed, sized, want_tensor, want_whole

__all__ = ["additive_attention", "averages", "layers_needed", "recurrence"]


def _draws(seed: int, *shapes: tuple[int, ...]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=generator) for shape in shapes]


def averages(function: Callable[..., Any]) -> None:
    """Check `averages(shares, X)`: new vectors (n, d) and weights (n, n)."""
    for seed, (n, d) in enumerate(sized((3, 2), (5, 4), (4, 4))):
        shares, X = _draws(seed, (n, n), (n, d))
        shares = shares.exp()
        got = call(function, shares, X)
        if not isinstance(got, (tuple, list)) or len(got) != 2:
            raise NotYet("return two tensors, the new vectors (n, d) and the weights (n, n)")
        right = shares / shares.sum(1, keepdim=True)
        out, weights = got
        if n != d and isinstance(out, Tensor) and out.shape == (n, n):
            raise NotYet("the new vectors come first, (n, d), then the weights, (n, n)")
        weights = want_tensor(weights, (n, n), "the weights")
        suspects = {
            "you scaled the columns; it is each row that has to sum to 1": shares / shares.sum(0),
            "row i has to be divided by its own sum; without keepdim=True, column i is": shares
            / shares.sum(1),
            "these are the shares; divide each row by its sum": shares,
            "all weights together sum to 1; it is each row that has to": shares / shares.sum(),
            "this is the softmax of the shares; only divide each row by its sum": shares.softmax(1),
            "the shares are divided by n; divide each row by its sum": shares / n,
        }
        diagnose(weights, right, suspects, "each row of the weights must sum to 1")
        out = want_tensor(out, (n, d), "the new vectors")
        wrong = {
            "the product is weights @ X; you transposed the weights": right.T @ X,
            "this is the plain mean; weight the rows of X by the weights": X.mean(0).expand(n, d),
            "the shares are averaged before they are scaled; use the weights": shares @ X,
            "this is X itself; multiply it by the weights": X,
        }
        diagnose(out, right @ X, wrong, "new vector i is the sum of weights[i, j] * X[j]")
    passed("every row sums to 1, and each new vector is a weighted average")


def _layers(distance: int, kernel: int, causal: bool, dilated: bool) -> int:
    step = kernel - 1 if causal else (kernel - 1) // 2
    layers = reach = 0
    while reach < distance:
        reach += step * (2**layers if dilated else 1)
        layers += 1
    return layers


def layers_needed(function: Callable[..., Any]) -> None:
    """Check `layers_needed(distance, kernel, causal=False, dilated=False)`."""
    cases = [
        (d, k, c, g)
        for d in (1, 4, 7, 20, 21, 60, *(x for (x,) in draw(0, 3, (2, 90))))
        for k in (3, 5, 7)
        for c in (False, True)
        for g in (False, True)
    ]
    for case in cases:
        distance, kernel, causal, dilated = case
        got = call(function, distance, kernel, causal=causal, dilated=dilated)
        got = want_whole(got, "return a whole number of layers")
        right = _layers(*case)
        if got == right:
            continue
        about = f"distance {distance}, kernel {kernel}, causal={causal}, dilated={dilated}"
        if causal and got == _layers(distance, kernel, False, dilated):
            hint = "looking back, one layer reaches kernel - 1 positions, not half of them"
        elif not causal and got == _layers(distance, kernel, True, dilated):
            hint = "a centred window reaches (kernel - 1) // 2 to each side, half of it"
        elif dilated and got == _layers(distance, kernel, causal, False):
            hint = "dilated, the gap doubles from layer to layer: 1, 2, 4, ..."
        elif not dilated and got == _layers(distance, kernel, causal, True):
            hint = "without dilation the gap is 1 in every layer"
        elif got == right - 1:
            hint = "one layer too few: round up, the last part of the way needs a layer too"
        elif got == right + 1:
            hint = "one layer too many: stop as soon as the reach equals the distance"
        else:
            hint = "add up what each layer reaches until it is at least the distance"
        raise NotYet(f"{hint} ({about}: {right} layers, you said {got})")
    passed("for 20 words, 10 layers centred, 5 back, 4 dilated")


def recurrence(function: Callable[..., Any]) -> None:
    """Check `recurrence(x, W_x, W_h, b)`: all states of a plain recurrence."""
    for seed, (n, d, m) in enumerate(sized((1, 2, 2), (5, 3, 4), (12, 4, 3))):
        x, W_x, W_h, b = _draws(seed, (n, d), (d, m), (m, m), (m,))
        W_h = W_h / 2

        def states(start=None, use_b=True, use_h=True, squash=True, x=x, W_x=W_x, W_h=W_h, b=b):
            h, rows = torch.zeros_like(b) if start is None else start, []
            for row in x:
                h = row @ W_x + (h @ W_h if use_h else 0) + (b if use_b else 0)
                h = torch.tanh(h) if squash else h
                rows.append(h)
            return torch.stack(rows)

        got = call(function, x, W_x, W_h, b)
        right = states()
        if isinstance(got, Tensor) and got.shape == right[-1].shape and close(got, right[-1]):
            raise NotYet("you returned the last state only; all n states are wanted, (n, m)")
        got = want_tensor(got, tuple(right.shape), "the states")
        if n > 1 and close(got, right.flip(0)):
            raise NotYet("the states are right but in reverse order: the first word's state first")
        suspects = {
            "the bias b is missing": states(use_b=False),
            "the state before is not used: each state needs h of the step before": states(
                use_h=False
            ),
            "the tanh is missing": states(squash=False),
            "the first state before any word is zeros, not ones": states(torch.ones_like(b)),
            "h @ W_h, with the state as a row; you used the transpose of W_h": states(W_h=W_h.T),
        }
        diagnose(got, right, suspects, "the states differ from tanh(x_t W_x + h_{t-1} W_h + b)")
    passed("each state needs the one before, so n steps in a row")


def additive_attention(function: Callable[..., Any]) -> None:
    """Check `additive_attention(s, H, W, U, v)`: context (d,) and weights (n,)."""
    for seed, (n, d, m) in enumerate(sized((4, 3, 5), (6, 2, 3))):
        s, H, W, U, v = _draws(seed, (d,), (n, d), (d, m), (d, m), (m,))
        got = call(function, s, H, W, U, v)
        if not isinstance(got, (tuple, list)) or len(got) != 2:
            raise NotYet("return two tensors, the context (d,) and the weights (n,)")
        context, weights = got
        if isinstance(context, Tensor) and context.shape == (n,):
            raise NotYet("the context comes first, (d,), then the weights, (n,)")
        weights = want_tensor(weights, (n,), "the weights")

        def share(scores: Tensor) -> Tensor:
            return torch.softmax(scores, dim=0)

        inner = s @ W + H @ U
        suspects = {
            "the tanh is missing: without it s falls out of the softmax altogether": share(
                inner @ v
            ),
            "these are the scores; a softmax over the n states turns them into weights": torch.tanh(
                inner
            )
            @ v,
            "the state s is not used; add s W before the tanh": share(torch.tanh(H @ U) @ v),
            "W belongs to s and U to H; you changed them round": share(
                torch.tanh(s @ U + H @ W) @ v
            ),
            "the tanh goes inside, before v, not around the score": share(torch.tanh(inner @ v)),
            "this is the dot product of s with the states, not the additive score": share(H @ s),
        }
        diagnose(weights, share(torch.tanh(inner) @ v), suspects, "the weights are not right")
        context = want_tensor(context, (d,), "the context")
        plain = {"the context is the plain mean; weight the states by the weights": H.mean(0)}
        diagnose(
            context, weights.to(H) @ H, plain, "the context is the weighted sum of the rows of H"
        )
    passed("additive attention, one matrix product for all states")

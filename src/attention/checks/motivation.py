"""Checks for chapter 1, why attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ._base import NotYet, call, close, diagnose, passed, want_tensor, want_whole

__all__ = ["additive_attention", "layer_weights", "layers_needed", "recurrence"]


def _draws(seed: int, *shapes: tuple[int, ...]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=generator) for shape in shapes]


def layer_weights(function: Callable[..., Any]) -> None:
    """Check `layer_weights(n, d)`: weights of a dense layer and of four shared projections."""
    for n, d in ((3, 2), (37, 1024), (12, 64)):
        got = call(function, n, d)
        if not isinstance(got, tuple) or len(got) != 2:
            raise NotYet(f"return a tuple of two numbers, dense and shared; got {got!r}")
        dense = want_whole(got[0], "the dense layer's weights must be one whole number")
        shared = want_whole(got[1], "the projections' weights must be one whole number")
        if (dense, shared) == (4 * d**2, (n * d) ** 2):
            raise NotYet("the two numbers are right but in the other order: dense first")
        if dense == (n * d) ** 2 + n * d:
            raise NotYet("the dense layer: you counted its biases; the exercise leaves them out")
        if dense == n * d:
            raise NotYet("the dense layer: n·d is the size of its input; each feeds n·d outputs")
        if dense in (n * d**2, n**2 * d):
            raise NotYet(
                "the dense layer: every one of n·d inputs is joined to every one of n·d outputs"
            )
        if dense != (n * d) ** 2:
            raise NotYet(
                f"the dense layer for n = {n}, d = {d} has {(n * d) ** 2} weights, not {dense}"
            )
        if shared == 4 * n * d**2:
            raise NotYet(
                "the projections are shared by all tokens: their count does not grow with n"
            )
        if shared == 3 * d**2:
            raise NotYet(
                "four projections are wanted, you counted three; the fourth is the output's"
            )
        if shared != 4 * d**2:
            raise NotYet(
                f"four square projections of width {d} have {4 * d**2} weights, not {shared}"
            )
    passed("only the dense layer grows with the length of the text")


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
        for d in (1, 4, 7, 20, 21, 60)
        for k in (3, 5, 7)
        for c in (False, True)
        for g in (False, True)
    ]
    for case in cases:
        distance, kernel, causal, dilated = case
        got = call(function, distance, kernel, causal=causal, dilated=dilated)
        right = _layers(*case)
        if isinstance(got, bool) or not isinstance(got, int):
            raise NotYet(f"return a whole number of layers, an int; got {got!r}")
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
    for seed, (n, d, m) in enumerate([(1, 2, 2), (5, 3, 4), (12, 4, 3)]):
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
    for seed, (n, d, m) in enumerate([(4, 3, 5), (6, 2, 3)]):
        s, H, W, U, v = _draws(seed, (d,), (n, d), (d, m), (d, m), (m,))
        got = call(function, s, H, W, U, v)
        if not isinstance(got, tuple) or len(got) != 2:
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

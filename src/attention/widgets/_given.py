"""What AttentionView is given, in any usual form, or a sentence that says what does not fit."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import torch
import traitlets
from torch import Tensor

MOST = 8_000_000
TOLERANCE = 0.02  # a row of bfloat16 weights misses 1 by up to 0.004
WANTED = "(layers, heads, n_q, n_k), or one such array a layer"


def _array(x: Any, name: str) -> Tensor:
    """A tensor of float32 from a tensor, an array, or lists of them or of numbers."""
    if x is None or isinstance(x, tuple) and not x:  # what transformers return by default
        raise traitlets.TraitError(
            f"{name} must be an array of weights; got {x}. A model of transformers returns its "
            'weights when it is loaded with attn_implementation="eager" and called with '
            "output_attentions=True"
        )
    if isinstance(x, Tensor):
        return (x.detach() if x.requires_grad else x).to("cpu", torch.float32)
    first = x
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    if isinstance(x, (list, tuple)) and (first is None or hasattr(first, "shape")):
        parts = [_array(part, f"{name}[{i}]") for i, part in enumerate(x)]
        for i, part in enumerate(parts):
            if part.shape != parts[0].shape:
                raise traitlets.TraitError(
                    f"{name} must have one shape in all layers; got {tuple(parts[0].shape)} in "
                    f"{name}[0], {tuple(part.shape)} in {name}[{i}]"
                )
        return torch.stack(parts)
    try:
        return torch.from_numpy(np.array(x, dtype=np.float32))
    except (TypeError, ValueError):
        what = f"{x[:40]!r}" if isinstance(x, str) else f"a {type(x).__name__} of something else"
        raise traitlets.TraitError(
            f"{name} must be numbers in rows of equal length; got {what}"
        ) from None


def _place(wrong: Tensor) -> tuple[list[int], str]:
    """The first True of (layers, heads, n_q, ...): its indices, and how the view names it."""
    at = wrong.nonzero()[0].tolist()
    return at, f"L{at[0]}H{at[1]}, query {at[2]}"


def read_weights(given: Any) -> Tensor:
    """Weights (layers, heads, n_q, n_k) in float32, each row of which sums to 1 or to 0."""
    weights = _array(given, "weights")
    shape = tuple(weights.shape)
    if weights.ndim == 5:  # a list of (batch, heads, n_q, n_k)
        if shape[1] != 1:
            raise traitlets.TraitError(
                f"weights must belong to one sequence; got {shape[1]} of them in a batch, shape "
                f"{shape}. Give one: [w[:1] for w in weights]"
            )
        weights = weights[:, 0]
    elif weights.ndim in (2, 3):
        weights = weights[(None,) * (4 - weights.ndim)]
    if weights.ndim != 4 or not weights.numel():
        raise traitlets.TraitError(f"weights must be {WANTED}, none of them 0; got shape {shape}")
    if weights.numel() > MOST:
        raise traitlets.TraitError(
            f"weights must be at most {MOST:,} numbers (12 layers of 12 heads and 128 tokens are "
            f"2,359,296); got {weights.numel():,}. Give fewer layers, or fewer tokens"
        )
    for wrong, why in (
        (~weights.isfinite(), "must be numbers"),
        (weights < -1e-6, "must not be negative (are they scores, before the softmax?)"),
    ):
        if wrong.any():
            at, place = _place(wrong)
            raise traitlets.TraitError(f"weights {why}; got {weights[tuple(at)]:.4g} in {place}")
    sums = weights.sum(-1)
    wrong = ((sums - 1).abs() > TOLERANCE) & (sums > TOLERANCE)
    if wrong.any():
        at, place = _place(wrong)
        raise traitlets.TraitError(
            f"each row of weights must sum to 1, or to 0 where a query may attend to nothing; got "
            f"{sums[tuple(at)]:.4g} in {place}. Is it a model in training mode, with dropout, or "
            "are keys in the rows?"
        )
    return weights.clamp(0, 1) if weights.max() > 1 or weights.min() < 0 else weights


def read_tokens(given: Any, name: str) -> list[str]:
    """A list of strings."""
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise traitlets.TraitError(f"{name} must be a list of strings; got {given!r}")
    tokens = list(given)
    for token in tokens:
        if not isinstance(token, str):
            more = ". The tokenizer turns ids to strings" if hasattr(token, "__index__") else ""
            raise traitlets.TraitError(
                f"each entry of {name} must be a string; got {token!r:.40} "
                f"({type(token).__name__}){more}"
            )
    return [str(token) for token in tokens]


def check_lengths(weights: Tensor, tokens: list[str], tokens_k: list[str]) -> None:
    """A TraitError unless there is one string for each query and each key."""
    n_q, n_k = weights.shape[-2:]
    if n_q != n_k and not tokens_k:
        raise traitlets.TraitError(
            f"weights of {n_q} queries and {n_k} keys need tokens_k too, one string for each key"
        )
    for name, n, kind, words in (
        ("tokens", n_q, "queries", tokens),
        ("tokens_k", n_k, "keys", tokens_k or tokens),
    ):
        if len(words) != n:
            raise traitlets.TraitError(
                f"{name} must be one string for each of the {n} {kind} of weights; "
                f"got {len(words)} strings"
            )


def pack(weights: Tensor, widget: Any = None) -> dict:
    """What the page gets: the shape, and base64 of little-endian uint16, 65535 for 1."""
    whole = np.rint(weights.double().numpy() * 65535).astype("<u2")
    return {"shape": list(weights.shape), "data": base64.b64encode(whole.tobytes()).decode("ascii")}

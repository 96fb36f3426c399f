"""Scaled dot-product attention: the formula, and PyTorch's fused kernel behind the same door."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from . import _checks as check
from . import _fits as fit
from .masks import causal_mask


def softmax(x: Tensor, temperature: float = 1.0, dim: int = -1) -> Tensor:
    """Turn scores into positive weights that sum to 1 along `dim`: exp(x/T) / sum exp(x/T).

    x any shape; returns the same shape. A high temperature flattens the weights, a low one
    sharpens them. Where every score is -inf there is nothing to choose from: zeros. TypeError if
    x is not a floating tensor, ValueError if the temperature is not positive and finite. Bridle
    1990.

    >>> softmax(torch.tensor([0.0, math.log(3.0)]))
    tensor([0.2500, 0.7500])
    """
    check.floating("x", x)
    check.number("temperature", temperature, above=0)
    check.dimension("x", x, dim)
    if x.shape[dim] == 0:
        raise ValueError(f"x must have at least one entry along dim {dim}; got {check.shape(x)}")
    x = x - x.detach().amax(dim, keepdim=True).clamp_min(torch.finfo(x.dtype).min)
    x = x / max(temperature, 1e-30)  # no entry is above 0 now: nothing can overflow
    empty = (x == -math.inf).all(dim, keepdim=True)
    return torch.softmax(x.masked_fill(empty, 0.0), dim).masked_fill(empty, 0.0)


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Average the values, weighted by how well each query matches the keys.

    q (..., n_q, d_k), k (..., n_k, d_k), v (..., n_k, d_v); mask bool, True =
    may attend; bias float, added to the scores (-inf forbids, and what is -inf
    in q's type); both (n_q, n_k), or with all dimensions of (..., n_q, n_k), 1
    where they are shared; scale 1/sqrt(d_k) unless given; dropout, the share of
    weights dropped in training. Returns out (..., n_q, d_v) and weights
    (..., n_q, n_k); a row with nothing to attend to gives zeros. TypeError or
    ValueError if types, shapes or devices disagree. Vaswani et al. 2017, eq. 1.

    >>> q, k, v = torch.zeros(1, 2), torch.eye(2), torch.arange(2.0)[:, None]
    >>> attention(q, k, v)
    (tensor([[0.5000]]), tensor([[0.5000, 0.5000]]))
    """
    fit.query_key_value(q, k, v, mask, bias, scale, dropout)
    if fit.autocast(q.device.type):
        return _without_autocast(attention, q, k, v, mask, bias=bias, scale=scale, dropout=dropout)
    mask, bias, empty = _prepare(mask, bias, q.dtype)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    wide = torch.float32 if q.dtype == torch.float16 else q.dtype  # float16 ends at 65,504
    scores = (q.to(wide) * scale) @ k.to(wide).transpose(-2, -1)  # (..., n_q, n_k)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1).to(q.dtype)
    if empty is not None:
        weights = weights.masked_fill(empty, 0.0)
    if dropout > 0:
        weights = F.dropout(weights, dropout)
    return weights @ v, weights


def fused_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    scale: float | None = None,
    is_causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Compute `attention` without its weights, in one kernel that never stores them.

    Shapes, errors and empty rows as in `attention`. is_causal=True is
    ``causal_mask(n_q, n_k)``, and costs no memory if n_q >= n_k or n_q = 1. (On the CPU, PyTorch
    has no such kernel for dropout or for a trained bias, and stores the weights.) Returns out
    (..., n_q, d_v). Dao et al. 2022 (FlashAttention), algorithm 1.

    >>> x = torch.eye(3)
    >>> torch.allclose(fused_attention(x, x, x), attention(x, x, x)[0])
    True
    """
    fit.query_key_value(q, k, v, mask, bias, scale, dropout)
    check.flag("is_causal", is_causal)
    if fit.autocast(q.device.type):
        return _without_autocast(fused_attention, q, k, v, mask, bias=bias, scale=scale,
                                 is_causal=is_causal, dropout=dropout)  # fmt: skip
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    n_q, n_k = q.shape[-2], k.shape[-2]
    if is_causal and (n_q != n_k or mask is not None or bias is not None):
        # PyTorch's own flag is level at the start, not at the end, and excludes a mask.
        if n_q > n_k and mask is None and bias is None:  # the first rows are empty
            late = fused_attention(q[..., n_q - n_k :, :], k, v, scale=scale, is_causal=True,
                                   dropout=dropout)  # fmt: skip
            return F.pad(late, (0, 0, n_q - n_k, 0))
        if n_q > 1:
            past = causal_mask(n_q, n_k, device=q.device)
            mask = past if mask is None else mask & past
        is_causal = False
    mask, bias, empty = _prepare(mask, bias, q.dtype)
    if bias is not None:
        mask = bias if mask is None else torch.where(mask, bias, -math.inf)
    if q.ndim == 4 and q.shape[:2] == k.shape[:2] == v.shape[:2] and q.shape[-1] == v.shape[-1]:
        out = F.scaled_dot_product_attention(q, k, v, mask, dropout, is_causal, scale=scale)
    else:
        out = _fused_any_shape(q, k, v, mask, dropout, is_causal, scale)
    return out if empty is None else out.masked_fill(empty, 0.0)


def entropy(weights: Tensor, dim: int = -1) -> Tensor:
    """Measure how spread out weights are: -sum w log w, in nats, with 0 log 0 = 0.

    weights any shape, non-negative; returns the shape without `dim`: 0 for one-hot weights,
    log n for uniform ones. TypeError if weights is not a floating tensor, ValueError if one of
    them is negative. Shannon 1948.

    >>> entropy(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    tensor([0.6931, 0.0000])
    """
    check.floating("weights", weights)
    check.dimension("weights", weights, dim)
    if not check.may_hold(~(weights < 0).any()):
        raise ValueError(f"weights must not be negative; got {float(weights.min()):g}")
    return torch.special.entr(weights.masked_fill(weights == 0, 1.0)).sum(dim)


def softmax_jacobian(weights: Tensor) -> Tensor:
    """Say how each weight of a softmax answers to each score: diag(w) - w w^T.

    weights (..., n); returns (..., n, n), entry i, j = d w_i / d score_j (at temperature 1).
    TypeError if weights is not a floating tensor, ValueError if it has no entries.

    >>> softmax_jacobian(torch.tensor([0.5, 0.5]))
    tensor([[ 0.2500, -0.2500],
            [-0.2500,  0.2500]])
    """
    check.floating("weights", weights)
    if weights.ndim == 0 or weights.shape[-1] == 0:
        raise ValueError(f"weights must be (..., n) with n >= 1; got {check.shape(weights)}")
    return torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]


def _prepare(
    mask: Tensor | None, bias: Tensor | None, dtype: torch.dtype
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Mask and bias as both paths take them, and the rows with nothing to attend to (or None).

    A bias of -inf in `dtype` forbids as a mask does: it moves into the mask. A row that may see
    nothing may see everything, so that its softmax and gradient are finite; the caller zeroes it.
    """
    if bias is not None:
        bias = bias.to(dtype)
        forbidden = bias == -math.inf
        if check.may_hold(forbidden.any()):
            mask = ~forbidden if mask is None else mask & ~forbidden
            bias = bias.masked_fill(forbidden, 0.0)
    if mask is None:
        return None, bias, None
    empty = ~mask.any(-1, keepdim=True)  # (..., n_q, 1)
    if not check.may_hold(empty.any()):
        return mask, bias, None
    return mask | empty, bias, empty


def _without_autocast(run: Callable, q: Tensor, k: Tensor, v: Tensor, mask, **options) -> Any:
    """Bring q, k, v to the type that autocast chooses, as it would, and run without it."""
    where = q.device.type
    q, k, v = (x if x.dtype == torch.float64 else x.to(fit.autocast(where)) for x in (q, k, v))
    with torch.autocast(where, enabled=False):
        return run(q, k, v, mask, **options)


def _fused_any_shape(q, k, v, mask, dropout, is_causal, scale) -> Tensor:
    """Bring q, k, v to (B, h, n, d) with equal B, h, d: the only shape the kernel is fused for."""
    lead = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    d_v, width = v.shape[-1], max(q.shape[-1], v.shape[-1])

    def to_4d(x: Tensor) -> Tensor:  # zero columns change neither q.k nor the values kept
        x = F.pad(x, (0, width - x.shape[-1])) if x.shape[-1] < width else x
        return _to_4d(x, lead)

    mask = _to_4d(mask, lead) if mask is not None and mask.ndim > 2 else mask
    out = F.scaled_dot_product_attention(to_4d(q), to_4d(k), to_4d(v), mask, dropout, is_causal,
                                         scale=scale)  # fmt: skip
    return out.reshape(*lead, *out.shape[-2:])[..., :d_v]


def _to_4d(x: Tensor, lead) -> Tensor:
    """(..., n, d) -> (B, h, n, d), `lead` being all the leading dimensions."""
    x = x.expand(*lead, *x.shape[-2:])
    return x.flatten(0, len(lead) - 2) if len(lead) > 2 else x[(None,) * (2 - len(lead))]

"""Refusals, as sentences: which argument, what was wanted, what came. Nothing is computed here."""

import math
import numbers

import torch
from torch import Tensor


def count(name: str, value: int, least: float = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer; got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}; got {value}")
    return int(value)


def number(name: str, value: float, above: float = -math.inf) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number; got {value!r}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite; got {value}")
    if value <= above:
        raise ValueError(f"{name} must be greater than {above}; got {value}")


def share(name: str, value: float) -> None:
    """A share that may be 0 but not 1, such as dropout."""
    number(name, value)
    if not 0 <= value < 1:
        raise ValueError(f"{name} must be at least 0 and less than 1; got {value}")


def divides(name: str, value: int, whole_name: str, whole: int) -> None:
    if count(whole_name, whole) % count(name, value):
        raise ValueError(f"{name} must divide {whole_name} = {whole}; got {value}")


def flag(name: str, value: bool) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False; got a {type(value).__name__}")


def dimension(name: str, x: Tensor, dim: int) -> None:
    if x.ndim == 0:
        raise ValueError(f"{name} must have at least one dimension; got a single number")
    count("dim", dim, least=-x.ndim)
    if dim >= x.ndim:
        raise ValueError(f"dim must be from {-x.ndim} to {x.ndim - 1}; got {dim}")


def floating(name: str, x: Tensor) -> None:
    if not isinstance(x, Tensor) or not x.is_floating_point():
        raise TypeError(f"{name} must be a floating-point tensor; got {kind(x)}")


def integers(name: str, x: Tensor) -> None:
    if not isinstance(x, Tensor) or x.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name} must be an integer tensor; got {kind(x)}")


def mask(x: Tensor, name: str = "mask") -> None:
    if not isinstance(x, Tensor) or x.dtype != torch.bool:
        raise TypeError(
            f"{name} must be a boolean tensor, True = may attend; got {kind(x)}"
            + " (an added float is a bias)" * (isinstance(x, Tensor) and x.is_floating_point())
        )
    if x.ndim < 2:
        raise ValueError(f"{name} must be (..., n_q, n_k); got {shape(x)}")


def width(name: str, x: Tensor, d_model: int) -> None:
    """x must be (..., n, d_model), floating, with nothing of length 0."""
    floating(name, x)
    if x.ndim < 2 or x.shape[-1] != d_model or 0 in x.shape:
        raise ValueError(f"{name} must be (..., n, {d_model}), d_model last; got {shape(x)}")


def fits(name: str, x: Tensor, full: tuple[int, ...], like: Tensor) -> None:
    """x must broadcast to the shape `full` without enlarging it, and be where `like` is."""
    if x.device != like.device:
        raise ValueError(f"{name} must be on {like.device}, as the input is; got {x.device}")
    pairs = zip(reversed(x.shape), reversed(full), strict=False)
    if not 2 <= x.ndim <= len(full) or any(a not in (1, b) for a, b in pairs):
        raise ValueError(f"{name} must broadcast to (..., n_q, n_k) = {full}; got {shape(x)}")


def same_place(name: str, x: Tensor, weight: Tensor) -> None:
    if x.device != weight.device or x.dtype != weight.dtype and not autocast(x.device.type):
        raise ValueError(
            f"{name} must be {weight.dtype} on {weight.device}, as the weights are; "
            f"got {x.dtype} on {x.device}"
        )


def continues(name: str, past: Tensor | None, new: Tensor) -> None:
    """`new`, to be added to a cache, may differ from what it holds in the number of tokens."""
    floating(name, new)
    had, came = (None if x is None else (*x.shape[:-2], x.shape[-1], x.dtype, x.device)
                 for x in (past, new))  # fmt: skip
    if past is not None and had != came:
        raise ValueError(
            f"cache and {name} must agree but for the number of tokens; got "
            f"{shape(past)} {past.dtype} on {past.device}, {shape(new)} {new.dtype} on {new.device}"
        )


def autocast(device_type: str) -> bool:
    """Whether operations choose their own types there."""
    try:
        return torch.is_autocast_enabled(device_type)
    except TypeError:  # before torch 2.4
        return torch.is_autocast_enabled()


def query_key_value(q, k, v, mask_, bias, scale, dropout) -> None:
    """Everything that `attention` takes, and how it fits together."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        floating(name, x)
        if x.ndim < 2 or 0 in x.shape:
            raise ValueError(f"{name} must be (..., n, d) with no empty dimension; got {shape(x)}")
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(f"q, k and v must share one dtype; got {q.dtype}, {k.dtype}, {v.dtype}")
    if not q.device == k.device == v.device:
        raise ValueError(f"q, k, v must be on one device; got {q.device}, {k.device}, {v.device}")
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"q and k must share their last dimension d_k; got q {shape(q)}, k {shape(k)}"
        )
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"k and v must share their length n_k; got k {shape(k)}, v {shape(v)}")
    lead = q.shape[:-2]
    if not lead == k.shape[:-2] == v.shape[:-2]:
        try:
            lead = torch.broadcast_shapes(lead, k.shape[:-2], v.shape[:-2])
        except RuntimeError:
            raise ValueError(
                "q, k and v must agree in their leading dimensions; "
                f"got q {shape(q)}, k {shape(k)}, v {shape(v)}"
            ) from None
    if mask_ is not None:
        mask(mask_)
        fits("mask", mask_, (*lead, q.shape[-2], k.shape[-2]), q)
    if bias is not None:
        floating("bias", bias)
        fits("bias", bias, (*lead, q.shape[-2], k.shape[-2]), q)
    if scale is not None:
        number("scale", scale)
    if dropout != 0.0:
        share("dropout", dropout)


def multi_head(x, source, mask_, bias, head_mask_, weight, num_heads: int, past: int) -> None:
    """Everything that `MultiHeadAttention` takes; x attends to `past` keys and to `source`."""
    for name, given in (("x", x), ("context", source)):
        width(name, given, weight.shape[1])
        same_place(name, given, weight)
    if source.shape[:-2] != x.shape[:-2]:
        raise ValueError(f"x and context must share their batch; got {shape(x)}, {shape(source)}")
    if head_mask_ is not None and tuple(torch.as_tensor(head_mask_).shape) != (num_heads,):
        raise ValueError(f"head_mask must hold num_heads = {num_heads} factors; got {head_mask_}")
    full = (*x.shape[:-2], num_heads, x.shape[-2], past + source.shape[-2])
    if bias is not None:
        floating("bias", bias)
        fits("bias", bias, full, x)
    if mask_ is not None:
        mask(mask_)
        per_sequence = 2 < mask_.ndim == x.ndim  # (B, n_q, n_k): the same for all heads
        fits("mask", mask_.unsqueeze(-3) if per_sequence else mask_, full, x)


def shape(x: Tensor) -> str:
    return str(tuple(x.shape))


def kind(x) -> str:
    return str(x.dtype) if isinstance(x, Tensor) else type(x).__name__

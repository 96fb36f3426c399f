"""How tensors given to attention must fit together: refusals, as sentences, as in `_checks`."""

import torch
from torch import Tensor

from . import _checks as check
from ._checks import shape


def query_key_value(q, k, v, mask, bias, scale, dropout) -> None:
    """Everything that `attention` takes, and how it fits together."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        check.floating(name, x)
        if x.ndim < 2 or 0 in x.shape[-2:]:
            raise ValueError(f"{name} must be (..., n, d) with n and d at least 1; got {shape(x)}")
    if not q.dtype == k.dtype == v.dtype and not autocast(q.device.type):
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
    if mask is not None:
        check.mask(mask)
        fits("mask", mask, (*lead, q.shape[-2], k.shape[-2]), q)
    if bias is not None:
        check.floating("bias", bias)
        fits("bias", bias, (*lead, q.shape[-2], k.shape[-2]), q)
    if scale is not None:
        check.number("scale", scale)
    if dropout != 0.0:
        check.fraction("dropout", dropout)


def multi_head(layer, x, context, mask, bias, is_causal, cache, kind: type, factors) -> int:
    """Everything that `MultiHeadAttention` takes; returns how many tokens the cache holds."""
    source = x if context is None else context
    for name, given in (("x", x), ("context", source)):
        check.width(name, given, layer.d_model)
        if type(layer.w_q) is torch.nn.Linear:  # what replaces it may hold its weights otherwise
            same_place(name, given, layer.w_q.weight)
    if source.shape[:-2] != x.shape[:-2]:
        raise ValueError(f"x and context must share their batch; got {shape(x)}, {shape(source)}")
    if context is not None and (cache is not None or layer.rotary_base is not None):
        raise ValueError("context must be None with a cache or rotary positions")
    if cache is not None and not isinstance(cache, kind):
        raise TypeError(f"cache must be a {kind.__name__}; got {check.kind(cache)}")
    past = 0 if cache is None else len(cache)
    if cache is not None and past and cache.k.shape[:-3] != x.shape[:-2]:
        raise ValueError(f"x and cache must share their batch; got {shape(x)}, {shape(cache.k)}")
    check.flag("is_causal", is_causal)
    h = layer.num_heads
    if factors is not None and tuple(torch.as_tensor(factors).shape) != (h,):
        raise ValueError(f"head_mask must hold num_heads = {h} factors; got {factors}")
    full = (*x.shape[:-2], h, x.shape[-2], past + source.shape[-2])
    if bias is not None:
        check.floating("bias", bias)
        fits("bias", bias, full, x)
    if mask is not None:
        check.mask(mask)
        per_sequence = 2 < mask.ndim == x.ndim  # (B, n_q, n_k): the same for all heads
        fits("mask", mask, (*x.shape[:-1], full[-1]) if per_sequence else full, x)
    return past


def can_append(name: str, past: Tensor | None, new: Tensor) -> None:
    """`new`, to be added to a cache, may differ from what it holds in the number of tokens."""
    check.floating(name, new)
    had, came = (None if x is None else (*x.shape[:-2], x.shape[-1], x.dtype, x.device)
                 for x in (past, new))  # fmt: skip
    if past is not None and had != came:
        raise ValueError(
            f"cache and {name} must agree but for the number of tokens; got "
            f"{shape(past)} {past.dtype} on {past.device}, {shape(new)} {new.dtype} on {new.device}"
        )


def fits(name: str, x: Tensor, full: tuple[int, ...], like: Tensor) -> None:
    """x must be (n_q, n_k), or have as many dimensions as `full` and broadcast to it.

    Anything between could mean one a sequence as well as one a head.
    """
    if x.device != like.device:
        raise ValueError(f"{name} must be on {like.device}, as the input is; got {x.device}")
    if 2 < x.ndim < len(full):
        raise ValueError(
            f"{name} must be (n_q, n_k) or have all {len(full)} dimensions of {full}, 1 where it "
            f"is shared; got {shape(x)}"
        )
    pairs = zip(reversed(x.shape), reversed(full), strict=False)
    if not 2 <= x.ndim <= len(full) or any(a != 1 and a != b for a, b in pairs):
        raise ValueError(f"{name} must broadcast to (..., n_q, n_k) = {full}; got {shape(x)}")


def same_place(name: str, x: Tensor, weight: Tensor) -> None:
    if x.device != weight.device or x.dtype != weight.dtype and not autocast(x.device.type):
        raise ValueError(
            f"{name} must be {weight.dtype} on {weight.device}, as the weights are; "
            f"got {x.dtype} on {x.device}"
        )


def autocast(device_type: str) -> torch.dtype | None:
    """The type that operations bring their inputs to there, or None where autocast is off."""
    if not hasattr(torch, "get_autocast_dtype"):  # before torch 2.4
        cpu, kind = device_type == "cpu", "cpu" if device_type == "cpu" else "gpu"
        on = torch.is_autocast_cpu_enabled() if cpu else torch.is_autocast_enabled()
        return getattr(torch, f"get_autocast_{kind}_dtype")() if on else None
    if device_type == "meta" or not torch.is_autocast_enabled(device_type):
        return None
    return torch.get_autocast_dtype(device_type)

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


def multi_head(x, source, mask, bias, factors, weight, num_heads: int, past: int) -> None:
    """Everything that `MultiHeadAttention` takes; x attends to `past` keys and to `source`."""
    for name, given in (("x", x), ("context", source)):
        check.width(name, given, weight.shape[1])
        same_place(name, given, weight)
    if source.shape[:-2] != x.shape[:-2]:
        raise ValueError(f"x and context must share their batch; got {shape(x)}, {shape(source)}")
    if factors is not None and tuple(torch.as_tensor(factors).shape) != (num_heads,):
        raise ValueError(f"head_mask must hold num_heads = {num_heads} factors; got {factors}")
    full = (*x.shape[:-2], num_heads, x.shape[-2], past + source.shape[-2])
    if bias is not None:
        check.floating("bias", bias)
        fits("bias", bias, full, x)
    if mask is not None:
        check.mask(mask)
        per_sequence = 2 < mask.ndim == x.ndim  # (B, n_q, n_k): the same for all heads
        fits("mask", mask, (*x.shape[:-1], full[-1]) if per_sequence else full, x)


def head_masks(given: dict, num_layers: int, num_heads: int) -> None:
    wanted = num_layers, num_heads
    for x in (given.get("head_mask"), given.get("cross_head_mask")):
        if x is not None and not (isinstance(x, Tensor) and tuple(x.shape) == wanted):
            came = shape(x) if isinstance(x, Tensor) else check.kind(x)
            raise ValueError(f"head_mask must be (num_layers, num_heads) = {wanted}; got {came}")


def caches(given, kind: type, num_layers: int, is_causal: bool) -> int:
    """How many tokens the caches hold: one per layer, each another, of a causal model."""
    if given is None:
        return 0
    if not isinstance(given, (list, tuple)) or not all(isinstance(x, kind) for x in given):
        raise TypeError(f"caches must be a list of {kind.__name__}; got {given!r}")
    if len(given) != num_layers:
        raise ValueError(f"caches must be one per layer, {num_layers}; got {len(given)}")
    if len({id(cache) for cache in given}) < num_layers:
        raise ValueError("caches must be a different one for each layer; one came twice")
    if not is_causal:
        raise ValueError("caches need a causal model; in this one the past sees the future")
    lengths = [len(cache) for cache in given]
    if len(set(lengths)) > 1:
        raise ValueError(f"caches must hold equally many tokens; got {lengths}")
    return lengths[0]


def pair(source, target, source_mask, head_masks, table: Tensor) -> None:
    """Everything that `EncoderDecoder` takes."""
    check.token_ids("source", source, table)
    check.token_ids("target", target, table)
    if source.shape[0] != target.shape[0]:
        raise ValueError(
            f"source and target must share their batch; got {shape(source)}, {shape(target)}"
        )
    if source_mask is not None:
        check.mask(source_mask, "source_mask")
    if not isinstance(head_masks, dict):
        raise TypeError(f"head_mask must be a dict; got {check.kind(head_masks)}")
    if set(head_masks) - {"encoder", "decoder", "cross"}:
        raise ValueError(
            f'head_mask must have the keys "encoder", "decoder", "cross"; got {list(head_masks)}'
        )


def start(token: int, vocab_size: int) -> None:
    if check.count("start", token, least=0) >= vocab_size:
        raise ValueError(f"start must be a token from 0 to {vocab_size - 1}; got {token}")


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

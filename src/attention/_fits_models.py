"""What is given to a whole model must fit together: refusals, as sentences, as in `_checks`."""

from torch import Tensor

from . import _checks as check
from ._checks import shape


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

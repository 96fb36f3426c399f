"""Look at what each head of a trained model carries, and put something else in its place."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from . import _checks as check


def _attention_layers(model: nn.Module) -> list:
    """The attention of every block, refused in a sentence where there is none."""
    layers = getattr(model, "layers", None)
    if layers is None or not all(hasattr(layer, "attention") for layer in layers):
        raise TypeError(f"model must be an Encoder or LanguageModel; got {check.kind(model)}")
    return [layer.attention for layer in layers]


@torch.no_grad()
def head_parts(model: nn.Module, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Run the model and return each head's values and outputs, before W^O mixes them.

    ids (B, n). Returns values (layers, B, g, n, d_k) and outputs (layers, B, h, n, d_k), where
    outputs = weights @ values in every head. TypeError if model has no attention layers. Elhage et
    al. 2021 (a layer as a sum over its heads).

    >>> from attention import Encoder
    >>> model = Encoder(vocab_size=10, d_model=8, num_heads=2, num_layers=3)
    >>> values, outputs = head_parts(model, torch.tensor([[1, 2, 3, 4]]))
    >>> outputs.shape
    torch.Size([3, 1, 2, 4, 4])
    """
    values: list[Tensor] = []
    outputs: list[Tensor] = []
    hooks = []
    for part in _attention_layers(model):
        width = part.d_k

        def keep_values(module, inputs, out, width=width):
            values.append(out.unflatten(-1, (-1, width)).transpose(-3, -2))

        def keep_outputs(module, inputs, width=width):
            outputs.append(inputs[0].unflatten(-1, (-1, width)).transpose(-3, -2))

        hooks.append(part.w_v.register_forward_hook(keep_values))
        hooks.append(part.w_o.register_forward_pre_hook(keep_outputs))
    try:
        model(ids)
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack(values), torch.stack(outputs)


@torch.no_grad()
def patch_heads(
    model: nn.Module, ids: Tensor, position: int, outputs: Mapping[tuple[int, int], Tensor],
    **options,
):  # fmt: skip
    """Run the model with other outputs of some heads at one position; the rest follows from them.

    ids (B, n); outputs {(layer, head): (B, d_k) or (d_k,)}, both counted from 0; options go to the
    model's forward, whose result is returned. IndexError if there is no such layer, head or
    position, ValueError if an output has another width. Vig et al. 2020; Meng et al. 2022.

    >>> from attention import Encoder
    >>> model = Encoder(vocab_size=10, d_model=8, num_heads=2, num_layers=1)
    >>> ids, other = torch.tensor([[1, 2, 3]]), torch.tensor([[1, 2, 4]])
    >>> _, outputs = head_parts(model, other)  # what the heads say of another sentence
    >>> patched = patch_heads(model, ids, 1, {(0, r): outputs[0, :, r, 1] for r in range(2)})
    >>> torch.allclose(patched[:, 0], model(ids)[:, 0])
    True
    """
    parts = _attention_layers(model)
    if not -ids.shape[-1] <= position < ids.shape[-1]:
        raise IndexError(f"position must be one of {ids.shape[-1]}; got {position}")
    for (layer, head), out in outputs.items():
        if not (0 <= layer < len(parts) and 0 <= head < parts[layer].num_heads):
            heads = f"{len(parts)} layers and {parts[0].num_heads} heads, counted from 0"
            raise IndexError(f"outputs must name heads (layer, head) of {heads}; got {layer, head}")
        check.floating(f"outputs[{layer}, {head}]", out)
        if tuple(out.shape) not in ((parts[layer].d_k,), (len(ids), parts[layer].d_k)):
            wanted = f"({len(ids)}, {parts[layer].d_k}) or ({parts[layer].d_k},)"
            raise ValueError(f"outputs[{layer}, {head}] must be {wanted}; got {check.shape(out)}")
    hooks = []
    for i, part in enumerate(parts):
        own = {head: out for (layer, head), out in outputs.items() if layer == i}

        def replace(module, inputs, own=own, width=part.d_k):
            heads = inputs[0].unflatten(-1, (-1, width)).clone()  # (B, n, h, d_k)
            for head, out in own.items():
                heads[:, position, head] = out.to(heads)
            return heads.flatten(-2)

        if own:
            hooks.append(part.w_o.register_forward_pre_hook(replace))
    try:
        return model(ids, **options)
    finally:
        for hook in hooks:
            hook.remove()

"""The way back from the book's attention to PyTorch's, which only the tests need."""

import torch
from torch import nn


def to_torch(ours):
    """Copy into an ``nn.MultiheadAttention(batch_first=True)``; shared K/V heads are repeated."""
    has_bias = ours.w_q.bias is not None
    theirs = nn.MultiheadAttention(
        ours.d_model, ours.num_heads, dropout=ours.dropout, bias=has_bias, batch_first=True
    )
    theirs.to(ours.w_q.weight).train(ours.training)

    def repeat(x):  # (g * d_k, ...) -> (h * d_k, ...)
        groups = x.unflatten(0, (ours.num_kv_heads, ours.d_k))
        return groups.repeat_interleave(ours.num_heads // ours.num_kv_heads, 0).flatten(0, 1)

    with torch.no_grad():
        for name in ("weight", "bias")[: 1 + has_bias]:
            layers = ours.w_q, ours.w_k, ours.w_v, ours.w_o
            q, k, v, o = (getattr(layer, name) for layer in layers)
            getattr(theirs, f"in_proj_{name}").copy_(torch.cat([q, repeat(k), repeat(v)]))
            getattr(theirs.out_proj, name).copy_(o)
    return theirs

"""Several attentions side by side, each on its own projection of the input."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from . import _checks as check
from . import _fits as fit
from .functional import attention, fused_attention
from .masks import causal_mask
from .positions import _frequencies, rotary


class KVCache:
    """The keys and values of the tokens seen so far, so that decoding projects each one once.

    Give one cache per layer to `MultiHeadAttention`, which appends to it. `len` is the number of
    tokens held; `nbytes` the memory they take.

    >>> cache = KVCache()
    >>> _ = MultiHeadAttention(8, 2)(torch.zeros(1, 3, 8), is_causal=True, cache=cache)
    >>> len(cache), cache.k.shape
    (3, torch.Size([1, 2, 3, 4]))
    """

    def __init__(self):
        self.k: Tensor | None = None  # (..., g, n, d_k)
        self.v: Tensor | None = None

    def __len__(self) -> int:
        return 0 if self.k is None else self.k.shape[-2]

    @property
    def nbytes(self) -> int:
        return sum(x.numel() * x.element_size() for x in (self.k, self.v) if x is not None)

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add the new tokens' k and v (..., g, n, d_k); return those of all tokens so far.

        ValueError, and nothing is added, if they differ from the others in more than n.
        """
        fit.can_append("k", self.k, k)
        fit.can_append("v", self.v, v)
        if self.k is not None and self.v is not None:
            k, v = torch.cat([self.k, k], -2), torch.cat([self.v, v], -2)
        self.k, self.v = k, v
        return k, v


class MultiHeadAttention(nn.Module):
    """Attend with `num_heads` heads of width d_k = d_model / num_heads, and mix their outputs.

    num_kv_heads: how many heads of keys and values there are, shared by the query heads in equal
    groups (1 is multi-query attention); num_heads unless given. dropout: the share of weights
    dropped in training. rotary_base: turn queries and keys by their positions, see `rotary`.
    ValueError if num_heads does not divide d_model, or num_kv_heads not num_heads. Vaswani et al.
    2017, section 3.2.2; Ainslie et al. 2023 (grouped queries), section 2.2.

    >>> out, weights = MultiHeadAttention(d_model=8, num_heads=2)(torch.zeros(1, 3, 8))
    >>> out.shape, weights.shape
    (torch.Size([1, 3, 8]), torch.Size([1, 2, 3, 3]))
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_kv_heads: int | None = None,
        *,
        bias: bool = True,
        dropout: float = 0.0,
        rotary_base: float | None = None,
    ):
        super().__init__()
        check.flag("bias", bias)
        check.divides("num_heads", num_heads, "d_model", d_model)
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        check.divides("num_kv_heads", num_kv_heads, "num_heads", num_heads)
        check.fraction("dropout", dropout)
        self.d_model, self.d_k = d_model, d_model // num_heads
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.dropout, self.rotary_base = dropout, rotary_base
        if rotary_base is not None:
            _frequencies(self.d_k, rotary_base, "the width d_k of a head")  # refuses odd widths
        self.w_q = nn.Linear(d_model, d_model, bias)
        self.w_k = nn.Linear(d_model, num_kv_heads * self.d_k, bias)
        self.w_v = nn.Linear(d_model, num_kv_heads * self.d_k, bias)
        self.w_o = nn.Linear(d_model, d_model, bias)

    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        bias: Tensor | None = None,
        is_causal: bool = False,
        need_weights: bool = True,
        cache: KVCache | None = None,
        head_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Let x attend to itself, or to `context` (cross-attention).

        x (B, n_q, d_model), context (B, n_k, d_model); mask bool, True = may attend, and bias are
        (n_q, n_k) or (B, h, n_q, n_k) with 1 for B or h where they are shared; a mask may leave
        out the heads, (B, n_q, n_k), as `padding_mask` does; is_causal,
        mask the future too; cache, the past to attend to and to append to; head_mask (h,), a
        factor for each head's output, 0 switches it off. B may be any leading dimensions.
        Returns out (B, n_q, d_model) and weights (B, h, n_q, n_k), None unless need_weights.
        """
        past = fit.multi_head(self, x, context, mask, bias, is_causal, cache, KVCache, head_mask)
        source = x if context is None else context
        q = self._split_heads(self.w_q(x))  # (B, h, n_q, d_k)
        k = self._split_heads(self.w_k(source))  # (B, g, n_k, d_k)
        v = self._split_heads(self.w_v(source))
        if self.rotary_base is not None:
            positions = torch.arange(past, past + x.shape[-2], device=x.device)
            q = rotary(q, positions, self.rotary_base)
            k = rotary(k, positions, self.rotary_base)
        if cache is not None:
            k, v = cache.append(k, v)
        if mask is not None and 2 < mask.ndim == x.ndim:
            mask = mask.unsqueeze(-3)  # (B, n_q, n_k) -> (B, 1, n_q, n_k)
        one = self.num_kv_heads < self.num_heads and x.shape[-2] == 1
        if one:  # of a single token, the queries of a group are rows before the same keys
            q = self._group(q)  # (B, g, h / g, d_k)
            mask, bias = (t if t is None else self._group(t) for t in (mask, bias))
            is_causal = False  # it comes last: nothing lies ahead
        elif self.num_kv_heads < self.num_heads:  # (B, g, n_k, d_k) -> (B, h, n_k, d_k)
            k, v = (t.repeat_interleave(self.num_heads // self.num_kv_heads, -3) for t in (k, v))
        dropout, weights = self.dropout if self.training else 0.0, None
        if need_weights:
            if is_causal:
                before = causal_mask(q.shape[-2], k.shape[-2], device=x.device)
                mask = before if mask is None else mask & before
            out, weights = attention(q, k, v, mask, bias=bias, dropout=dropout)
        else:
            out = fused_attention(q, k, v, mask, bias=bias, is_causal=is_causal, dropout=dropout)
        if one:  # (B, g, h / g, ...) -> (B, h, 1, ...)
            out = out.flatten(-3, -2).unsqueeze(-2)
            weights = None if weights is None else weights.flatten(-3, -2).unsqueeze(-2)
        if head_mask is not None:
            out = out * torch.as_tensor(head_mask).to(out)[:, None, None]
        out = out.transpose(-3, -2).flatten(-2)  # (B, n_q, d_model), the heads joined
        return self.w_o(out), weights

    def _split_heads(self, x: Tensor) -> Tensor:
        """(..., n, heads * d_k) -> (..., heads, n, d_k)"""
        return x.unflatten(-1, (-1, self.d_k)).transpose(-3, -2)

    def _group(self, x: Tensor) -> Tensor:
        """(..., h, 1, d) -> (..., g, h / g, d); what all heads share stays as it is."""
        if x.ndim == 2 or x.shape[-3] == 1:
            return x
        return x.squeeze(-2).unflatten(-2, (self.num_kv_heads, -1))

    @classmethod
    def from_torch(cls, mha: nn.MultiheadAttention) -> MultiHeadAttention:
        """Copy an ``nn.MultiheadAttention``: same weights, same results, in (B, n, d_model) order.

        TypeError if it is no such module; ValueError if it uses kdim, vdim, add_bias_kv or
        add_zero_attn, which have no place here.

        >>> MultiHeadAttention.from_torch(nn.MultiheadAttention(8, 2)).num_heads
        2
        """
        if not isinstance(mha, nn.MultiheadAttention):
            raise TypeError(f"mha must be an nn.MultiheadAttention; got {type(mha).__name__}")
        if mha.in_proj_weight is None or mha.bias_k is not None or mha.add_zero_attn:
            raise ValueError("mha must not use kdim, vdim, add_bias_kv or add_zero_attn")
        has_bias = mha.in_proj_bias is not None
        ours = cls(mha.embed_dim, mha.num_heads, bias=has_bias, dropout=mha.dropout)
        ours.to(mha.in_proj_weight).train(mha.training)
        with torch.no_grad():
            for name in ("weight", "bias")[: 1 + has_bias]:
                packed = getattr(mha, f"in_proj_{name}").chunk(3)  # W^Q, W^K, W^V in one
                parts = (*packed, getattr(mha.out_proj, name))
                layers = ours.w_q, ours.w_k, ours.w_v, ours.w_o
                for layer, part in zip(layers, parts, strict=True):
                    getattr(layer, name).copy_(part)
        return ours

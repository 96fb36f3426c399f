"""What a transformer repeats: attention, then a feed-forward layer, each added to its input."""

import torch.nn.functional as F
from torch import Tensor, nn

from . import _checks as check
from .multi_head import KVCache, MultiHeadAttention

_ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}


class FeedForward(nn.Module):
    """Widen each token, bend it, narrow it again: W_2 f(W_1 x + b_1) + b_2.

    x (..., d_model) to the same shape; d_ff = 4 d_model unless given; activation "relu", "gelu"
    or "silu". ValueError if it is another, or a width is not positive. Vaswani et al. 2017, eq. 2.

    >>> sum(p.numel() for p in FeedForward(512, 2048).parameters())
    2099712
    """

    def __init__(
        self, d_model: int, d_ff: int | None = None, activation: str = "relu", dropout: float = 0.0
    ):
        super().__init__()
        check.count("d_model", d_model)
        check.fraction("dropout", dropout)
        d_ff = 4 * d_model if d_ff is None else d_ff
        check.count("d_ff", d_ff)
        check.one_of("activation", activation, _ACTIVATIONS)
        self.widen, self.narrow = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.activation, self.dropout = activation, nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        check.width("x", x, self.widen.in_features)
        hidden = _ACTIVATIONS[self.activation](self.widen(x))  # (..., d_ff)
        return self.narrow(self.dropout(hidden))


class EncoderBlock(nn.Module):
    """Let the tokens attend to one another, then think each for itself.

    norm_first: normalise what enters each sub-layer (pre-norm); otherwise what leaves its sum
    (post-norm, as in 2017). dropout: of weights, hidden units and sub-layers' outputs, in
    training. With is_causal=True this is the block of a decoder-only model. Errors as
    `MultiHeadAttention` and `FeedForward`. Vaswani et al. 2017, section 3.1; Xiong et al. 2020
    (pre-norm), fig. 1.

    >>> sum(p.numel() for p in EncoderBlock(512, 8, 2048).parameters())
    3152384
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int | None = None,
        *,
        norm_first: bool = True,
        dropout: float = 0.0,
        activation: str = "relu",
        num_kv_heads: int | None = None,
        rotary_base: float | None = None,
    ):
        super().__init__()
        check.flag("norm_first", norm_first)
        self.attention = MultiHeadAttention(
            d_model, num_heads, num_kv_heads, dropout=dropout, rotary_base=rotary_base
        )
        self.feed_forward = FeedForward(d_model, d_ff, activation, dropout)
        self.norm_attention, self.norm_feed_forward = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.norm_first, self.dropout = norm_first, nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        bias: Tensor | None = None,
        is_causal: bool = False,
        need_weights: bool = True,
        cache: KVCache | None = None,
        head_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """x (B, n, d_model) to out, same shape, and weights (B, h, n, n), None unless need_weights.

        mask, bias, is_causal, cache, head_mask as `MultiHeadAttention.forward`; with a cache the
        weights are (B, h, n, past + n).
        """
        check.width("x", x, self.attention.d_model)
        h = self.norm_attention(x) if self.norm_first else x
        h, weights = self.attention(
            h, mask=mask, bias=bias, is_causal=is_causal, need_weights=need_weights, cache=cache,
            head_mask=head_mask,
        )  # fmt: skip
        x = x + self.dropout(h)
        x = x if self.norm_first else self.norm_attention(x)
        h = self.norm_feed_forward(x) if self.norm_first else x
        x = x + self.dropout(self.feed_forward(h))
        return x if self.norm_first else self.norm_feed_forward(x), weights


class DecoderBlock(nn.Module):
    """Attend to the target's past, then to the source, then think each for itself.

    Arguments as `EncoderBlock`. Vaswani et al. 2017, section 3.1.

    >>> sum(p.numel() for p in DecoderBlock(512, 8, 2048).parameters())
    4204032
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int | None = None,
        *,
        norm_first: bool = True,
        dropout: float = 0.0,
        activation: str = "relu",
        num_kv_heads: int | None = None,
        rotary_base: float | None = None,
    ):
        super().__init__()
        check.flag("norm_first", norm_first)
        self.attention = MultiHeadAttention(
            d_model, num_heads, num_kv_heads, dropout=dropout, rotary_base=rotary_base
        )
        self.cross_attention = MultiHeadAttention(d_model, num_heads, num_kv_heads, dropout=dropout)
        self.feed_forward = FeedForward(d_model, d_ff, activation, dropout)
        self.norm_attention = nn.LayerNorm(d_model)
        self.norm_cross_attention = nn.LayerNorm(d_model)
        self.norm_feed_forward = nn.LayerNorm(d_model)
        self.norm_first, self.dropout = norm_first, nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        context: Tensor,
        mask: Tensor | None = None,
        context_mask: Tensor | None = None,
        *,
        bias: Tensor | None = None,
        is_causal: bool = True,
        need_weights: bool = True,
        cache: KVCache | None = None,
        head_mask: Tensor | None = None,
        cross_head_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """x (B, n, d_model) and context (B, m, d_model) to out and the weights of both attentions.

        mask, bias, is_causal, cache and head_mask are for x on x, as in
        `MultiHeadAttention.forward`, but is_causal is True unless told; context_mask and
        cross_head_mask are for x on context. Weights (B, h, n, n), or (B, h, n, past + n) with a
        cache, and (B, h, n, m), None unless need_weights.
        """
        check.width("x", x, self.attention.d_model)
        check.width("context", context, self.attention.d_model)
        if context_mask is not None:
            check.mask(context_mask, "context_mask")
        h = self.norm_attention(x) if self.norm_first else x
        h, weights = self.attention(
            h, mask=mask, bias=bias, is_causal=is_causal, need_weights=need_weights, cache=cache,
            head_mask=head_mask,
        )  # fmt: skip
        x = x + self.dropout(h)
        x = x if self.norm_first else self.norm_attention(x)
        h = self.norm_cross_attention(x) if self.norm_first else x
        h, cross_weights = self.cross_attention(
            h, context, context_mask, need_weights=need_weights, head_mask=cross_head_mask
        )
        x = x + self.dropout(h)
        x = x if self.norm_first else self.norm_cross_attention(x)
        h = self.norm_feed_forward(x) if self.norm_first else x
        x = x + self.dropout(self.feed_forward(h))
        return x if self.norm_first else self.norm_feed_forward(x), weights, cross_weights

"""What a transformer repeats: attention, then a feed-forward layer, each added to its input."""

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from . import _checks as check
from .config import BlockConfig, _made_from
from .multi_head import MultiHeadAttention

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


class SubLayer(nn.Module):
    """One step of a block: normalise, apply a layer, add what it gives to the input.

    ``SubLayer(d_model)(x, layer)`` is x + layer(norm(x)); with norm_first=False it is
    norm(x + layer(x)), as in 2017. dropout: of what the layer gives, in training. Vaswani et al.
    2017, section 3.1; Xiong et al. 2020 (pre-norm), fig. 1.

    >>> import torch
    >>> SubLayer(3)(torch.tensor([[1.0, 2.0, 3.0]]), torch.abs)[0]
    tensor([[2.2247, 2.0000, 4.2247]], grad_fn=<AddBackward0>)
    """

    def __init__(self, d_model: int, norm_first: bool = True, dropout: float = 0.0):
        super().__init__()
        check.count("d_model", d_model)
        check.flag("norm_first", norm_first)
        check.fraction("dropout", dropout)
        self.norm, self.dropout = nn.LayerNorm(d_model), nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(
        self,
        x: Tensor,
        layer: Callable,
        **options: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """x (..., n, d_model) to the same shape; weights if any.

        layer is called with x or norm(x), and the options; it returns
        out or (out, weights).
        """
        check.width("x", x, *self.norm.normalized_shape)
        out = layer(self.norm(x) if self.norm_first else x, **options)
        out, weights = out if isinstance(out, tuple) else (out, None)
        x = x + self.dropout(out)
        return x if self.norm_first else self.norm(x), weights


@_made_from(BlockConfig, "d_model", "num_heads", "d_ff")
class EncoderBlock(nn.Module):
    """Let the tokens attend to one another, then think each for itself.

    Made from a `BlockConfig` or its fields: ``EncoderBlock(d_model, num_heads, d_ff=None, ...)``.
    With is_causal=True this is the block of a decoder-only model. ValueError or TypeError as
    `MultiHeadAttention` and `FeedForward`. Vaswani et al. 2017, section 3.1.

    >>> sum(p.numel() for p in EncoderBlock(512, 8, 2048).parameters())
    3152384
    """

    def __init__(self, config: BlockConfig):
        super().__init__()
        self.attention = _attention(config, config.rotary_base)
        self.feed_forward = _feed_forward(config)
        self.add_attention, self.add_feed_forward = _sub_layers(config, 2)

    def forward(
        self, x: Tensor, mask: Tensor | None = None, **options: Any
    ) -> tuple[Tensor, Tensor | None]:
        """x (B, n, d_model) to out, same shape, and weights (B, h, n, n).

        mask and options (bias, is_causal, need_weights, cache,
        head_mask) are those of `MultiHeadAttention.forward`; the
        weights are None unless need_weights, and (B, h, n, past + n)
        with a cache.
        """
        x, weights = self.add_attention(x, self.attention, mask=mask, **options)
        x, _ = self.add_feed_forward(x, self.feed_forward)
        return x, weights


@_made_from(BlockConfig, "d_model", "num_heads", "d_ff")
class DecoderBlock(nn.Module):
    """Attend to the target's past, then to the source, then think each for itself.

    Made as `EncoderBlock`. Vaswani et al. 2017, section 3.1.

    >>> sum(p.numel() for p in DecoderBlock(512, 8, 2048).parameters())
    4204032
    """

    def __init__(self, config: BlockConfig):
        super().__init__()
        self.attention = _attention(config, config.rotary_base)
        self.cross_attention = _attention(config, None)  # positions of two texts do not compare
        self.feed_forward = _feed_forward(config)
        adds = _sub_layers(config, 3)
        self.add_attention, self.add_cross_attention, self.add_feed_forward = adds

    def forward(
        self,
        x: Tensor,
        context: Tensor,
        mask: Tensor | None = None,
        context_mask: Tensor | None = None,
        *,
        is_causal: bool = True,
        need_weights: bool = True,
        cross_head_mask: Tensor | None = None,
        **options: Any,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """x (B, n, d_model) and context (B, m, d_model) to out and the weights of both attentions.

        mask, is_causal and options (bias, cache, head_mask) are for x on x, as in
        `MultiHeadAttention.forward`, but is_causal is True unless told; context_mask and
        cross_head_mask are for x on context. Weights (B, h, n, n), or (B, h, n, past + n) with a
        cache, and (B, h, n, m), None unless need_weights.
        """
        check.width("context", context, self.attention.d_model)
        if context_mask is not None:
            check.mask(context_mask, "context_mask")
        own = dict(mask=mask, is_causal=is_causal, need_weights=need_weights, **options)
        cross = dict(mask=context_mask, need_weights=need_weights, head_mask=cross_head_mask)
        x, weights = self.add_attention(x, self.attention, **own)
        x, seen = self.add_cross_attention(x, self.cross_attention, context=context, **cross)
        x, _ = self.add_feed_forward(x, self.feed_forward)
        return x, weights, seen


def _attention(config: BlockConfig, rotary_base: float | None) -> MultiHeadAttention:
    return MultiHeadAttention(
        config.d_model, config.num_heads, config.num_kv_heads, dropout=config.dropout,
        rotary_base=rotary_base,
    )  # fmt: skip


def _feed_forward(config: BlockConfig) -> FeedForward:
    return FeedForward(config.d_model, config.d_ff, config.activation, config.dropout)


def _sub_layers(config: BlockConfig, count: int) -> list[SubLayer]:
    return [SubLayer(config.d_model, config.norm_first, config.dropout) for _ in range(count)]

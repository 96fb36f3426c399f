"""The transformer of 2017: one stack reads the source, another writes the target."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from . import _checks as check
from .blocks import DecoderBlock
from .models import Encoder, _per_layer
from .positions import T5Bias


class EncoderDecoder(nn.Module):
    """Read a source with an encoder, write a target with a decoder that attends to it.

    One vocabulary and one table of embeddings for source, target and output. Arguments as
    `Encoder`; rotary, ALiBi and T5 positions act in self-attention only. Vaswani et al. 2017,
    fig. 1.

    >>> model = EncoderDecoder(vocab_size=10, d_model=8, num_heads=2, num_layers=1)
    >>> model(torch.tensor([[1, 2, 3]]), torch.tensor([[4, 5]])).shape
    torch.Size([1, 2, 10])
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        d_ff: int | None = None,
        *,
        positions: str = "sinusoidal",
        max_len: int = 512,
        norm_first: bool = True,
        dropout: float = 0.0,
        activation: str = "relu",
        num_kv_heads: int | None = None,
        scaled: bool = True,
        tied: bool = True,
    ):
        super().__init__()
        shared: dict[str, Any] = dict(
            positions=positions, max_len=max_len, norm_first=norm_first, dropout=dropout,
            activation=activation, num_kv_heads=num_kv_heads, scaled=scaled, tied=tied,
        )  # fmt: skip
        self.encoder = Encoder(vocab_size, d_model, num_heads, num_layers, d_ff, **shared)
        self.t5 = T5Bias(num_heads, bidirectional=False) if positions == "t5" else None
        self.layers = nn.ModuleList(
            DecoderBlock(
                d_model, num_heads, d_ff, norm_first=norm_first, dropout=dropout,
                activation=activation, num_kv_heads=num_kv_heads,
                rotary_base=10000.0 if positions == "rotary" else None,
            )
            for _ in range(num_layers)
        )  # fmt: skip
        self.norm = nn.LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        source_mask: Tensor | None = None,
        *,
        head_mask: dict[str, Tensor] | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, dict[str, list[Tensor]]]:
        """source (B, m), target (B, n) to logits (B, n, vocab_size).

        Logits at place i predict target token i + 1. source_mask bool, broadcastable to
        (B, 1, m), such as a padding mask. head_mask and the weights that return_weights adds are
        dicts with the keys "encoder", "decoder" and "cross": (num_layers, h), a factor for each
        head, and lists of (B, h, m, m), (B, h, n, n) and (B, h, n, m).
        """
        check.integers("source", source)
        check.integers("target", target)
        if source.shape[:1] != target.shape[:1]:
            raise ValueError(
                "source and target must share their batch; "
                f"got {check.shape(source)}, {check.shape(target)}"
            )
        if source_mask is not None:
            check.mask(source_mask, "source_mask")
        head_mask = {} if head_mask is None else head_mask
        if not isinstance(head_mask, dict):
            raise TypeError(f"head_mask must be a dict; got {check.kind(head_mask)}")
        if set(head_mask) - {"encoder", "decoder", "cross"}:
            raise ValueError(
                f'head_mask must have the keys "encoder", "decoder", "cross"; got {list(head_mask)}'
            )
        memory, encoder_weights = self._encode(source, source_mask, head_mask, return_weights)
        logits, own, cross = self._decode(target, memory, source_mask, head_mask, return_weights)
        weights = {"encoder": encoder_weights, "decoder": own, "cross": cross}
        return (logits, weights) if return_weights else logits

    @torch.no_grad()
    def generate(
        self, source: Tensor, steps: int, start: int, source_mask: Tensor | None = None
    ) -> Tensor:
        """Write `steps` tokens after the token `start`, each the likeliest: (B, 1 + steps).

        There is no cache: each step runs the decoder over the whole target written so far.
        """
        if source_mask is not None:
            check.mask(source_mask, "source_mask")
        check.count("steps", steps, least=0)
        check.integers("source", source)
        if check.count("start", start, least=0) >= self.encoder.embedding.tokens.num_embeddings:
            last = self.encoder.embedding.tokens.num_embeddings - 1
            raise ValueError(f"start must be a token from 0 to {last}; got {start}")
        was_training = self.training
        self.eval()
        try:
            memory, _ = self._encode(source, source_mask, {}, False)
            target = torch.full_like(source[:, :1], start)
            for _ in range(steps):
                logits, _, _ = self._decode(target, memory, source_mask, {}, False)
                target = torch.cat([target, logits[:, -1:].argmax(-1)], dim=1)
        finally:
            self.train(was_training)
        return target

    def _encode(self, source, mask, head_mask, need_weights) -> tuple[Tensor, list]:
        """source (B, m) to memory (B, m, d_model) and the encoder's weights."""
        encoder = self.encoder
        own_mask = _per_layer(
            head_mask.get("encoder"), len(encoder.layers), encoder.embedding.num_heads
        )
        check.token_ids("source", source, encoder.embedding.tokens.weight)
        x = encoder.embedding(source)
        bias = encoder.embedding.bias(source.shape[1], source.shape[1])
        weights = []
        for layer, heads in zip(encoder.layers, own_mask, strict=True):
            x, w = layer(x, mask, bias=bias, need_weights=need_weights, head_mask=heads)
            weights.append(w)
        return encoder.norm(x), weights

    def _decode(self, target, memory, source_mask, head_mask, need_weights):
        """target (B, n) and memory (B, m, d_model) to logits, own and cross weights."""
        embedding = self.encoder.embedding
        own_mask, cross_mask = (
            _per_layer(head_mask.get(key), len(self.layers), embedding.num_heads)
            for key in ("decoder", "cross")
        )
        check.token_ids("target", target, embedding.tokens.weight)
        x = embedding(target)
        n = target.shape[1]
        bias = embedding.bias(n, n) if self.t5 is None else self.t5(n)[None]
        own, cross = [], []
        for i, layer in enumerate(self.layers):
            x, a, c = layer(
                x, memory, None, source_mask, bias=bias, need_weights=need_weights,
                head_mask=own_mask[i], cross_head_mask=cross_mask[i],
            )  # fmt: skip
            own.append(a)
            cross.append(c)
        return embedding.logits(self.norm(x)), own, cross

"""The transformer of 2017: one stack reads the source, another writes the target."""

from __future__ import annotations

import torch
from torch import Tensor

from . import _checks as check
from . import _fits_models as fit
from .blocks import DecoderBlock
from .config import ModelConfig, _made_from
from .models import Encoder, _Stack
from .positions import T5Bias


@_made_from(ModelConfig, "vocab_size", "d_model", "num_heads", "num_layers", "d_ff")
class EncoderDecoder(_Stack):
    """Read a source with an encoder, write a target with a decoder that attends to it.

    One vocabulary and one table of embeddings for source, target and output. Made as `Encoder`;
    rotary, ALiBi and T5 positions act in self-attention only. Vaswani et al. 2017, fig. 1.

    >>> model = EncoderDecoder(vocab_size=10, d_model=8, num_heads=2, num_layers=1)
    >>> model(torch.tensor([[1, 2, 3]]), torch.tensor([[4, 5]])).shape
    torch.Size([1, 2, 10])
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.encoder = Encoder(config)
        self.t5 = None
        if config.positions == "t5":
            self.t5 = T5Bias(config.num_heads, bidirectional=False)  # the decoder's own
        self._build(DecoderBlock, config)

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
        heads = {} if head_mask is None else head_mask
        fit.pair(source, target, source_mask, heads, self.encoder.embedding.tokens.weight)
        memory, read = self.encoder._states(
            source, source_mask, heads.get("encoder"), return_weights
        )
        logits, own, cross = self._write(target, memory, source_mask, heads, return_weights)
        weights = {"encoder": read, "decoder": own, "cross": cross}
        return (logits, weights) if return_weights else logits

    @torch.no_grad()
    def generate(
        self, source: Tensor, steps: int, start: int, source_mask: Tensor | None = None
    ) -> Tensor:
        """Write `steps` tokens after the token `start`, each the likeliest: (B, 1 + steps).

        There is no cache: each step runs the decoder over the whole target written so far.
        """
        fit.start(start, self.config.vocab_size)
        check.count("steps", steps, least=0)
        check.integers("source", source)
        target = torch.full_like(source[:, :1], start)
        fit.pair(source, target, source_mask, {}, self.encoder.embedding.tokens.weight)
        was_training = self.training
        self.eval()
        try:
            memory, _ = self.encoder._states(source, source_mask, None, False)
            for _ in range(steps):
                logits, _, _ = self._write(target, memory, source_mask, {}, False)
                target = torch.cat([target, logits[:, -1:].argmax(-1)], dim=1)
        finally:
            self.train(was_training)
        return target

    def _write(self, target, memory, source_mask, heads, need_weights):
        """target (B, n) and memory (B, m, d_model) to logits, own and cross weights."""
        embedding, n = self.encoder.embedding, target.shape[1]
        bias = embedding.bias(n, n) if self.t5 is None else self.t5(n)[None]
        x, (own, cross) = self._run(
            embedding(target), memory, None, source_mask, bias=bias, need_weights=need_weights,
            per_layer={"head_mask": heads.get("decoder"), "cross_head_mask": heads.get("cross")},
        )  # fmt: skip
        return embedding.logits(x), own, cross

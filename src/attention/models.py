"""Stacks of blocks between an embedding and its logits: an encoder, and a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from . import _checks as check
from . import _fits_models as fit
from .blocks import EncoderBlock
from .config import ModelConfig, _made_from
from .embedding import Embedding
from .multi_head import KVCache
from .sampling import next_token_probabilities


class _Stack(nn.Module):
    """What encoders and decoders share: blocks one after another, then a norm."""

    def _build(self, block: type, config: ModelConfig) -> None:
        check.count("num_layers", config.num_layers)
        self.config = config
        if config.positions == "rotary":
            config = replace(config, rotary_base=config.rotary_base or 10000.0)
        self.layers = nn.ModuleList(block(config) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(config.d_model) if config.norm_first else nn.Identity()

    def _run(self, x: Tensor, *inputs: Tensor | None, per_layer: dict, **options: Any) -> Any:
        """x (B, n, d_model) to the same shape, and for each kind of weights a list, one per layer.

        inputs and options go to every block; per_layer[name][i] to block i, as `name`.
        """
        fit.head_masks(per_layer, len(self.layers), self.config.num_heads)
        weights = []
        for i, block in enumerate(self.layers):
            own = {name: given[i] for name, given in per_layer.items() if given is not None}
            x, *seen = block(x, *inputs, **own, **options)
            weights.append(seen)
        return self.norm(x), [list(kind) for kind in zip(*weights, strict=True)]


@_made_from(ModelConfig, "vocab_size", "d_model", "num_heads", "num_layers", "d_ff")
class Encoder(_Stack):
    """Embed the tokens, pass them through `num_layers` blocks, and predict a token at each place.

    Made from a `ModelConfig` or its fields: ``Encoder(vocab_size, d_model, num_heads, num_layers,
    d_ff=None, ...)``. Vaswani et al. 2017, section 3; Devlin et al. 2019 (BERT), section 3.

    >>> model = Encoder(vocab_size=10, d_model=8, num_heads=2, num_layers=1)
    >>> logits, weights = model(torch.tensor([[1, 2, 3]]), return_weights=True)
    >>> logits.shape, weights[0].shape
    (torch.Size([1, 3, 10]), torch.Size([1, 2, 3, 3]))
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        check.flag("is_causal", config.is_causal)
        self.is_causal = config.is_causal
        self.embedding = Embedding(
            config.vocab_size, config.d_model, config.num_heads, positions=config.positions,
            max_len=config.max_len, dropout=config.dropout, scaled=config.scaled,
            tied=config.tied, bidirectional=not config.is_causal,
        )  # fmt: skip
        self._build(EncoderBlock, config)

    def forward(
        self,
        ids: Tensor,
        mask: Tensor | None = None,
        *,
        head_mask: Tensor | None = None,
        return_weights: bool = False,
        caches: Sequence[KVCache] | None = None,
    ) -> Tensor | tuple[Tensor, list[Tensor]]:
        """ids (B, n) to logits (B, n, vocab_size); with return_weights, to (logits, weights).

        mask bool, broadcastable to (B, n, n), such as a padding mask; head_mask (num_layers, h),
        a factor for each head's output, 0 switches it off; caches one per layer. weights is a
        list, one (B, h, n, n) per layer, or (B, h, n, past + n) with caches.
        """
        x, weights = self._states(ids, mask, head_mask, return_weights, caches)
        logits = self.embedding.logits(x)
        return (logits, weights) if return_weights else logits

    def _states(self, ids, mask, head_mask, need_weights, caches=None) -> tuple[Tensor, list]:
        """ids (B, n) to what the logits are made from, (B, n, d_model), and the weights."""
        past = fit.caches(caches, KVCache, len(self.layers), self.is_causal)  # tokens held
        x = self.embedding(ids, past)  # (B, n, d_model)
        bias = self.embedding.bias(ids.shape[1], past + ids.shape[1])
        x, (weights,) = self._run(
            x, mask, bias=bias, is_causal=self.is_causal, need_weights=need_weights,
            per_layer={"head_mask": head_mask, "cache": caches},
        )  # fmt: skip
        return x, weights


@_made_from(ModelConfig, "vocab_size", "d_model", "num_heads", "num_layers", "d_ff", is_causal=True)
class LanguageModel(Encoder):
    """The same stack with a causal mask: each place sees its past and predicts the next token.

    Arguments as `Encoder`. is_causal=False takes the mask away, so that the model can copy the
    answer from the next place: a mistake to learn from. Radford et al. 2018 (GPT), section 3.1.

    >>> model = LanguageModel(vocab_size=10, d_model=8, num_heads=2, num_layers=1)
    >>> model.generate(torch.tensor([[1, 2, 3]]), steps=2).shape
    torch.Size([1, 5])
    """

    @torch.no_grad()
    def generate(
        self,
        ids: Tensor,
        steps: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Continue ids (B, n) by `steps` sampled tokens: (B, n + steps).

        temperature, top_k, top_p as `next_token_probabilities` (top_k=1 always takes the
        likeliest token); generator makes the choice repeatable. Works through a cache, so each
        new token costs one pass of one token.
        """
        check.count("steps", steps, least=0)
        if generator is not None and not isinstance(generator, torch.Generator):
            raise TypeError(f"generator must be a torch.Generator; got {check.kind(generator)}")
        was_training = self.training
        self.eval()
        caches = [KVCache() for _ in self.layers] if self.is_causal else None
        where = "cpu" if generator is None else generator.device
        new = ids
        try:
            for _ in range(steps):
                logits = self(ids if caches is None else new, caches=caches)
                p = next_token_probabilities(logits[:, -1], temperature, top_k, top_p)
                new = torch.multinomial(p.to(where), 1, generator=generator).to(ids)  # (B, 1)
                ids = torch.cat([ids, new], dim=1)
        finally:
            self.train(was_training)
        return ids

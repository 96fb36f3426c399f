"""Stacks of blocks between an embedding and its logits: an encoder, and a language model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from . import _checks as check
from .blocks import EncoderBlock
from .embedding import Embedding
from .multi_head import KVCache
from .sampling import next_token_probabilities


def _per_layer(head_mask: Tensor | None, num_layers: int, num_heads: int) -> Any:
    """One (h,) factor, or None, for each layer."""
    if head_mask is None:
        return [None] * num_layers
    x, wanted = head_mask, (num_layers, num_heads)
    if not isinstance(x, Tensor) or tuple(x.shape) != wanted:
        came = check.shape(x) if isinstance(x, Tensor) else check.kind(x)
        raise ValueError(f"head_mask must be (num_layers, num_heads) = {wanted}; got {came}")
    return x


class Encoder(nn.Module):
    """Embed the tokens, pass them through `num_layers` blocks, and predict a token at each place.

    positions, scaled, tied: see `Embedding`; the rest: see `EncoderBlock`. Vaswani et al. 2017,
    section 3; Devlin et al. 2019 (BERT), section 3.

    >>> model = Encoder(vocab_size=10, d_model=8, num_heads=2, num_layers=1)
    >>> logits, weights = model(torch.tensor([[1, 2, 3]]), return_weights=True)
    >>> logits.shape, weights[0].shape
    (torch.Size([1, 3, 10]), torch.Size([1, 2, 3, 3]))
    """

    is_causal = False

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
        check.count("num_layers", num_layers)
        self.embedding = Embedding(
            vocab_size, d_model, num_heads, positions=positions, max_len=max_len, dropout=dropout,
            scaled=scaled, tied=tied, bidirectional=not self.is_causal,
        )  # fmt: skip
        self.layers = nn.ModuleList(
            EncoderBlock(
                d_model, num_heads, d_ff, norm_first=norm_first, dropout=dropout,
                activation=activation, num_kv_heads=num_kv_heads,
                rotary_base=10000.0 if positions == "rotary" else None,
            )
            for _ in range(num_layers)
        )  # fmt: skip
        self.norm = nn.LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(
        self,
        ids: Tensor,
        mask: Tensor | None = None,
        *,
        head_mask: Tensor | None = None,
        return_weights: bool = False,
        caches: list[KVCache] | None = None,
    ) -> Tensor | tuple[Tensor, list[Tensor]]:
        """ids (B, n) to logits (B, n, vocab_size); with return_weights, to (logits, weights).

        mask bool, broadcastable to (B, n, n), such as a padding mask; head_mask (num_layers, h),
        a factor for each head's output, 0 switches it off; caches one per layer. weights is a
        list, one (B, h, n, n) per layer, or (B, h, n, past + n) with caches.
        """
        heads = _per_layer(head_mask, len(self.layers), self.embedding.num_heads)
        listed = isinstance(caches, (list, tuple)) and all(isinstance(x, KVCache) for x in caches)
        if caches is not None and not listed:
            raise TypeError(f"caches must be a list of KVCache; got {caches!r}")
        if caches is not None and len(caches) != len(self.layers):
            raise ValueError(f"caches must be one per layer, {len(self.layers)}; got {len(caches)}")
        if caches is not None and len({id(cache) for cache in caches}) < len(caches):
            raise ValueError("caches must be a different one for each layer; one came twice")
        if caches is not None and not self.is_causal:
            raise ValueError("caches need a causal model; in this one the past sees the future")
        past = len(caches[0]) if caches else 0
        x = self.embedding(ids, past)  # (B, n, d_model)
        bias = self.embedding.bias(ids.shape[1], past + ids.shape[1])
        weights = []
        for i, layer in enumerate(self.layers):
            x, w = layer(
                x, mask, bias=bias, is_causal=self.is_causal, need_weights=return_weights,
                cache=caches[i] if caches else None, head_mask=heads[i],
            )  # fmt: skip
            weights.append(w)
        logits = self.embedding.logits(self.norm(x))
        return (logits, weights) if return_weights else logits


class LanguageModel(Encoder):
    """The same stack with a causal mask: each place sees its past and predicts the next token.

    Arguments as `Encoder`. is_causal=False takes the mask away, so that the model can copy the
    answer from the next place: a mistake to learn from. Radford et al. 2018 (GPT), section 3.1.

    >>> model = LanguageModel(vocab_size=10, d_model=8, num_heads=2, num_layers=1)
    >>> model.generate(torch.tensor([[1, 2, 3]]), steps=2).shape
    torch.Size([1, 5])
    """

    def __init__(self, *args, is_causal: bool = True, **kwargs):
        check.flag("is_causal", is_causal)
        self.is_causal = is_causal
        super().__init__(*args, **kwargs)

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

"""The choices that a block or a model is made of, in one object that is passed on whole."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class BlockConfig:
    """What a block is made of.

    d_ff, activation: see `FeedForward`; num_kv_heads, rotary_base: see `MultiHeadAttention`;
    norm_first: see `SubLayer`. dropout: of weights, hidden units and sub-layers' outputs.

    >>> BlockConfig(d_model=8, num_heads=2).norm_first
    True
    """

    d_model: int
    num_heads: int
    d_ff: int | None = None
    norm_first: bool = True
    dropout: float = 0.0
    activation: str = "relu"
    num_kv_heads: int | None = None
    rotary_base: float | None = None


@dataclass(frozen=True, kw_only=True)
class ModelConfig(BlockConfig):
    """What a model is made of: `num_layers` such blocks, an embedding and its logits.

    positions, max_len, scaled, tied: see `Embedding`; positions="rotary" sets a rotary_base of
    10,000 where none is given. is_causal: each position sees its past only.

    >>> ModelConfig(vocab_size=10, d_model=8, num_heads=2, num_layers=1).positions
    'sinusoidal'
    """

    vocab_size: int
    num_layers: int
    positions: str = "sinusoidal"
    max_len: int = 512
    scaled: bool = True
    tied: bool = True
    is_causal: bool = False


def _made_from(config: type, *by_place: str, **defaults: Any) -> Any:
    """Let a class that is made from a `config` be made from the config's fields as well.

    Below ``@_made_from(BlockConfig, "d_model", "num_heads")``, ``Block(8, 2, dropout=0.1)`` is
    ``Block(BlockConfig(d_model=8, num_heads=2, dropout=0.1))``. `by_place` are the fields that
    need no keyword; `defaults` stand in for the config's own.
    """
    known = {
        name: field.replace(default=defaults.get(name, field.default))
        for name, field in inspect.signature(config).parameters.items()
    }
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    first = [known.pop(name).replace(kind=plain) for name in by_place]
    signature = inspect.Signature([*first, *known.values()])

    def decorate(cls: type) -> type:
        build = cls.__init__

        @functools.wraps(build)
        def init(self, *given, **named):
            if not (given and isinstance(given[0], config)):
                given, named = [config(**defaults | signature.bind(*given, **named).arguments)], {}
            build(self, *given, **named)

        fields = [inspect.Parameter("self", plain), *signature.parameters.values()]
        vars(init)["__signature__"] = inspect.Signature(fields)  # what help() shows
        cls.__init__ = init
        return cls

    return decorate

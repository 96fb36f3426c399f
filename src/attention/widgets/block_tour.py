"""A tour of the blocks (chapter 7): shapes, parameters, operations and cache of a model."""

from __future__ import annotations

from typing import Any

import traitlets

from ._base import Explorer, Whole, figure

TourRow = tuple[str, tuple[int, ...], int, int]  # name, shape, parameters, multiply-adds

_OLD = {"bias": True, "gated": False, "norm": "layer", "tied": True}
_LLAMA = {
    "kind": "decoder", "bias": False, "gated": True, "norm": "rms", "tied": False,
    "d_model": 4096, "num_heads": 32, "num_kv_heads": 8, "d_ff": 14336, "num_layers": 32,
    "n": 8192,
}  # fmt: skip
PRESETS: dict[str, dict[str, Any]] = {
    "2017 base": {
        **_OLD, "kind": "encoder-decoder", "n": 64, "d_model": 512, "num_heads": 8,
        "num_kv_heads": 8, "d_ff": 2048, "num_layers": 6, "vocab_size": 37000,
    },
    "2017 big": {
        **_OLD, "kind": "encoder-decoder", "n": 64, "d_model": 1024, "num_heads": 16,
        "num_kv_heads": 16, "d_ff": 4096, "num_layers": 6, "vocab_size": 37000,
    },
    "BERT base": {
        **_OLD, "kind": "encoder", "n": 512, "d_model": 768, "num_heads": 12, "num_kv_heads": 12,
        "d_ff": 3072, "num_layers": 12, "vocab_size": 30522, "positions": 512, "extra": 592128,
    },
    "GPT-2 small": {
        **_OLD, "kind": "decoder", "n": 1024, "d_model": 768, "num_heads": 12,
        "num_kv_heads": 12, "d_ff": 3072, "num_layers": 12, "vocab_size": 50257,
        "positions": 1024,
    },
    "Mistral 7B": {**_LLAMA, "vocab_size": 32000, "window": 4096},
    "Llama 3 8B": {**_LLAMA, "vocab_size": 128256},
}  # fmt: skip


class BlockTour(Explorer):
    """Every tensor of a transformer: shape, parameters, multiply-adds, and the cache.

    Traits, to read and to set: `n` (tokens, 1 to 131072), `d_model`, `num_heads`,
    `num_kv_heads`, `d_ff`, `num_layers`, `vocab_size`; `kind` ("encoder-decoder", "decoder" or
    "encoder"), `bias` (in every linear map but the output's), `gated` (SwiGLU's third matrix),
    `norm` ("layer": gain and bias, or "rms": gain), `tied` (the output shares the embedding),
    `positions` (rows of learned positions), `window` (a token attends to so many at most and the
    cache holds no more; 0 = all) and `extra` (parameters outside all this; BERT's pooler and
    segment embeddings). `preset=` starts from one of `PRESETS`. 2017's base comes to
    63.1 million with a shared vocabulary of 37,000 and biases throughout; the paper, which gives
    the vocabulary as "about 37000", says 65 million. Scores are counted in full, masked or not.

    >>> BlockTour(preset="GPT-2 small").parameters
    124439808
    >>> BlockTour(preset="Llama 3 8B").parameters
    8030261248
    """

    name = "block_tour"
    title = "Block tour"

    n = Whole(64, 1, 131072)
    d_model = Whole(512, 1, 32768)
    num_heads = Whole(8, 1, 256)
    num_kv_heads = Whole(8, 1, 256)
    d_ff = Whole(2048, 1, 131072)
    num_layers = Whole(6, 1, 256)
    vocab_size = Whole(37000, 1, 1_000_000)
    kind = traitlets.Unicode("encoder-decoder").tag(sync=True)
    bias = traitlets.Bool(True).tag(sync=True)
    gated = traitlets.Bool(False).tag(sync=True)
    norm = traitlets.Unicode("layer").tag(sync=True)
    tied = traitlets.Bool(True).tag(sync=True)
    positions = Whole(0, 0, 1_000_000)
    window = Whole(0, 0, 131072)
    extra = Whole(0, 0, 10**9)

    def __init__(self, preset: str | None = None, **traits: Any) -> None:
        if preset is not None and preset not in PRESETS:
            raise traitlets.TraitError(
                f"preset must be one of {', '.join(PRESETS)}; got {preset!r}"
            )
        super().__init__(**{**PRESETS.get(preset or "", {}), **traits})

    @traitlets.validate("kind", "norm")
    def _check_choice(self, proposal: Any) -> str:
        name, value = proposal["trait"].name, proposal["value"]
        options = {"kind": ["encoder-decoder", "decoder", "encoder"], "norm": ["layer", "rms"]}
        if value not in options[name]:
            raise traitlets.TraitError(
                f"{name} must be one of {', '.join(options[name])}; got {value!r}"
            )
        return value

    @property
    def parts(self) -> list[tuple[str, int, list[TourRow]]]:
        """Parts of the model, each (name, how many, rows); a row is (name, shape, parameters,
        multiply-adds) of one of them. ValueError if the heads do not divide d_model.
        """
        n, d, h, g, f = self.n, self.d_model, self.num_heads, self.num_kv_heads, self.d_ff
        if d % h:
            raise ValueError(f"d_model must be divisible by num_heads; got {d} and {h}")
        if h % g:
            raise ValueError(f"num_heads must be divisible by num_kv_heads; got {h} and {g}")
        d_k = d // h
        kv = g * d_k
        b = int(self.bias)
        seen = min(n, self.window or n)  # keys that a query can meet
        norm = d if self.norm == "rms" else 2 * d

        def attention(name: str) -> list[TourRow]:
            return [
                (f"{name}queries", (h, n, d_k), d * d + b * d, n * d * d),
                (f"{name}keys", (g, n, d_k), d * kv + b * kv, n * d * kv),
                (f"{name}values", (g, n, d_k), d * kv + b * kv, n * d * kv),
                (f"{name}scores, weights", (h, n, seen), 0, n * seen * d),
                (f"{name}weighted values", (h, n, d_k), 0, n * seen * d),
                (f"{name}output projection", (n, d), d * d + b * d, n * d * d),
                (f"{name}norm", (n, d), norm, 0),
            ]

        up = 2 if self.gated else 1
        feed: list[TourRow] = [
            ("feed-forward: gate, up" if self.gated else "feed-forward: up", (n, f),
             up * (d * f + b * f), up * n * d * f),
            ("feed-forward: down", (n, d), d * f + b * d, n * d * f),
            ("norm", (n, d), norm, 0),
        ]  # fmt: skip
        both = self.kind == "encoder-decoder"
        begin: list[TourRow] = [("token embedding", (n, d), self.vocab_size * d, 0)]
        if self.positions:
            begin.append(("learned positions", (n, d), self.positions * d, 0))
        if self.kind == "encoder":  # BERT: the norm of the embeddings, none at the end
            begin.append(("embedding norm", (n, d), norm, 0))
        end: list[TourRow] = [("norm", (n, d), norm, 0)] if self.kind == "decoder" else []
        if self.extra:
            end.append(("other parameters", (), self.extra, 0))
        if self.kind != "encoder":
            table = self.vocab_size * d
            end.append(("logits", (n, self.vocab_size), 0 if self.tied else table, n * table))
        layer = attention("") + feed
        layers = ("encoder layer" if both else "layer", self.num_layers, layer)
        parts = [("start", 1, begin), layers]
        if both:
            rows = attention("") + attention("cross: ") + feed
            parts.append(("decoder layer", self.num_layers, rows))
        return [*parts, ("end", 1, end)]

    @property
    def parameters(self) -> int:
        """All parameters; a table shared by input and output counts once."""
        return sum(times * sum(row[2] for row in rows) for _, times, rows in self.parts)

    @property
    def operations(self) -> int:
        """Multiply-adds of one pass over n tokens (each of n source and n target tokens)."""
        return sum(times * sum(row[3] for row in rows) for _, times, rows in self.parts)

    @property
    def cache_bytes(self) -> int:
        """Keys and values of n tokens, or of the window, in every layer, two bytes a number."""
        if self.kind == "encoder":
            return 0
        kv = self.num_kv_heads * (self.d_model // self.num_heads)
        held = min(self.n, self.window or self.n)
        return 4 * self.num_layers * kv * held * (2 if self.kind == "encoder-decoder" else 1)

    @property
    def caption(self) -> str:
        size = (
            f"{self.num_layers} layers, d_model {self.d_model}, {self.num_heads} heads, d_ff "
            f"{self.d_ff}, vocabulary {self.vocab_size:,}"
        )
        try:
            return (
                f"A transformer ({self.kind}) with {size}: {self.parameters:,} parameters; for "
                f"{self.n:,} tokens {self.operations:,} multiply-adds and a key/value cache of "
                f"{self.cache_bytes:,} bytes."
            )
        except ValueError as error:
            return f"A transformer ({self.kind}) with {size}. {error}."

    def still(self) -> Any:
        fig, ax = figure(6.6, 3.4)
        try:
            parts = self.parts
        except ValueError as error:
            ax.text(0, 0.5, str(error), fontsize=9)
            ax.set_axis_off()
            return fig
        totals: dict[str, int] = {}
        for _, times, rows in parts:
            for row in rows:
                totals[row[0]] = totals.get(row[0], 0) + times * row[2]
        totals = {name: count for name, count in totals.items() if count}
        ax.barh(range(len(totals)), list(totals.values()), color="#0072b2")
        ax.set_yticks(range(len(totals)), list(totals), fontsize=8)
        for i, total in enumerate(totals.values()):
            ax.text(total, i, f" {total:,}", va="center", fontsize=8)
        ax.invert_yaxis()
        ax.set_xlim(0, 1.35 * max(totals.values()))
        ax.set_xticks([])
        ax.spines[["top", "right", "bottom"]].set_visible(False)
        ax.set_title(f"parameters, {self.parameters:,} in all", fontsize=10)
        return fig

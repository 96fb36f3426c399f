"""AttentionView: the weights of any model, all heads small, one large, words joined by lines."""

from __future__ import annotations

import functools
import re
from collections import Counter
from pathlib import Path
from typing import Any

import torch
import traitlets
from torch import Tensor

from . import _given, heads
from ._base import Explorer, draw_heatmap, figure, whole
from ._page import page

SMALL = 48  # points a side, at most, of a head's map among all heads
STATE = ("tokens", "tokens_k", "layer", "head", "query", "key", "small")


@functools.cache
def _example() -> tuple[Tensor, list[str]]:
    """The trained model of chapter 4, reading its sentence."""
    task, model = heads._trained()
    words = "the animal did not cross the street because it was too tired".split()
    with torch.no_grad():
        weights = model(task.vocabulary.encode(words)[None], return_weights=True)[1]
    return _given.read_weights(weights), [*words]


class Weights(traitlets.TraitType):
    """Weights of attention (layers, heads, n_q, n_k), from tensors, arrays or lists."""

    def validate(self, obj: Any, value: Any) -> Tensor:
        return _given.read_weights(value)


class Words(traitlets.TraitType):
    """Strings, from any list of them."""

    def validate(self, obj: Any, value: Any) -> list[str]:
        return _given.read_tokens(value, self.name or "")


class AttentionView(Explorer):
    """The attention weights of any model: all heads as small maps, one large, lines between words.

    `weights` (layers, heads, n_q, n_k) as a tensor, an array or nested lists, or one
    (heads, n_q, n_k) or (1, heads, n_q, n_k) a layer, as this book's models and those of
    transformers return them (nn.MultiheadAttention with average_attn_weights=False); each row sums
    to 1, or to 0 where nothing may be attended to.
    `tokens`, n_q strings; `tokens_k`, n_k strings, where the keys are other words
    (cross-attention). Without strings words are numbered; without weights, chapter 4's model reads
    its sentence. Further traits: `layer` and `head`, the one shown large; `query` and `key`, the
    word or the pair looked at, -1 for none; `small`, whether small weights are drawn stronger, by
    their square root. `save` writes one file that opens offline. A TraitError says what does not
    fit.

    >>> view = AttentionView([[[0.9, 0.1], [0.5, 0.5]]], ["the", "cat"], query=0)
    >>> print(view.caption.partition(". ")[2])
    In L0H0, “the” gives 0.90 to “the” and 0.10 to “cat”.
    """

    name = "attention_view"
    title = "Attention view"

    weights = Weights().tag(sync=True, to_json=_given.pack)
    tokens = Words().tag(sync=True)
    tokens_k = Words().tag(sync=True)
    layer = traitlets.Any(0).tag(sync=True)
    head = traitlets.Any(0).tag(sync=True)
    query = traitlets.Any(-1).tag(sync=True)
    key = traitlets.Any(-1).tag(sync=True)
    small = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self, weights: Any = None, tokens: Any = None, tokens_k: Any = None, **traits: Any
    ) -> None:
        if weights is None:
            if tokens is not None or tokens_k is not None:
                raise traitlets.TraitError("weights must be given with tokens; got None")
            weights, tokens = _example()
            traits = {"layer": 1, "query": 8, **traits}
        weights = _given.read_weights(weights)
        n_q, n_k = weights.shape[-2:]
        if tokens is None:
            tokens = [str(i) for i in range(n_q)]
        if tokens_k is None:
            numbered = n_q != n_k and tokens == [str(i) for i in range(n_q)]
            tokens_k = [str(i) for i in range(n_k)] if numbered else []
        if not {"query", "key"} & set(traits):
            traits["query"] = n_q - 1
        traits = {"small": n_k > 32, **traits}
        super().__init__(weights=weights, tokens=tokens, tokens_k=tokens_k, **traits)

    @traitlets.validate("weights", "tokens", "tokens_k")
    def _check_lengths(self, proposal: Any) -> Any:
        now = {name: getattr(self, name) for name in ("weights", "tokens", "tokens_k")}
        _given.check_lengths(**{**now, proposal["trait"].name: proposal["value"]})
        return proposal["value"]

    @traitlets.validate("layer", "head", "query", "key")
    def _check_place(self, proposal: Any) -> int:
        name = proposal["trait"].name
        axis = ("layer", "head", "query", "key").index(name)
        return whole(proposal["value"], name, -(axis > 1), self.weights.shape[axis] - 1)

    @traitlets.observe("weights")
    def _stay_inside(self, change: Any) -> None:
        for axis, name in enumerate(("layer", "head")):
            if getattr(self, name) >= self.weights.shape[axis]:
                setattr(self, name, 0)

    def save(self, path: str | Path) -> Path:
        """Write the view as one file that opens in a browser without a network; return its path.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     AttentionView().save(f"{folder}/view.html").name
        'view.html'
        """
        path = Path(path)
        if path.suffix not in (".html", ".htm"):
            raise ValueError(f"path must end in .html; got {str(path)!r}")
        state = {name: getattr(self, name) for name in STATE}
        state["weights"] = _given.pack(self.weights)
        path.write_text(page(self, state), encoding="utf-8")
        return path

    @property
    def caption(self) -> str:
        layers, count, n_q, n_k = self.weights.shape
        sizes = [_count(layers, "layer"), "of", _count(count, "head"), "each,"]
        sizes += [_count(n_q, "query", "queries"), "and", _count(n_k, "key")]
        return f"{' '.join(sizes)}. In L{self.layer}H{self.head}, {self._told()}."

    def _told(self) -> str:
        """What the chosen word, or pair of words, gives or gets in the chosen head."""
        table = self.weights[self.layer, self.head]
        queries, keys = _named(self.tokens), _named(self.tokens_k or self.tokens)
        i, j = self.query, self.key
        if i < 0 and j < 0:
            i, j = divmod(int(table.argmax()), table.shape[1])
            if table[i, j] < 0.005:
                return "no weight is as large as 0.005"
            return f"the largest weight is {table[i, j]:.2f}, from {queries[i]} to {keys[j]}"
        if i >= 0 and j >= 0:
            return f"{queries[i]} gives {table[i, j]:.3f} to {keys[j]}"
        row, names, verb = (table[i], keys, "gives") if i >= 0 else (table[:, j], queries, "gets")
        way = "to" if i >= 0 else "from"
        best = [k for k in row.argsort(descending=True, stable=True).tolist() if row[k] >= 0.005]
        parts = ", ".join(f"{row[k]:.2f} {way} {names[k]}" for k in best[:3])
        parts = " and ".join(parts.rsplit(", ", 1)) or "next to nothing"
        return f"{queries[i] if i >= 0 else keys[j]} {verb} {parts}"

    def still(self) -> Any:
        fig, (left, right) = figure(6.8, 3.6, ncols=2)
        layers, count = self.weights.shape[:2]
        tall, wide = (min(n, SMALL) + 2 for n in self.weights.shape[2:])
        all_heads = torch.full((layers * tall, count * wide), torch.nan)
        maps = torch.nn.functional.adaptive_max_pool2d(self.weights, (tall - 2, wide - 2))
        for i in range(layers):
            for r in range(count):
                all_heads[i * tall : (i + 1) * tall - 2, r * wide : (r + 1) * wide - 2] = maps[i, r]
        shade = torch.sqrt if self.small else torch.abs
        draw_heatmap(left, shade(all_heads).numpy(), [], [], "all heads", digits=None)
        left.set_xticks(
            [r * wide + wide / 2 - 1 for r in range(count)], [f"H{r}" for r in range(count)]
        )
        left.set_yticks(
            [i * tall + tall / 2 - 1 for i in range(layers)], [f"L{i}" for i in range(layers)]
        )
        table = shade(self.weights[self.layer, self.head]).numpy()
        rows, columns = self.tokens, self.tokens_k or self.tokens
        few = max(len(rows), len(columns)) <= 24
        draw_heatmap(right, table, rows if few else [], columns if few else [],
                     f"L{self.layer}H{self.head}", digits=None)  # fmt: skip
        return fig


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


def _named(tokens: list[str]) -> list[str]:
    """Each word in quotes, with its position where the word comes more than once."""
    times = Counter(tokens)
    return [f"“{_seen(t)}”" + f" ({i})" * (times[t] > 1) for i, t in enumerate(tokens)]


def _seen(token: str) -> str:
    """Spaces, line ends and nothing at all are told."""
    return token if token.strip() else re.sub(r"\s", "␣", token.replace("\n", "↵")) or "(empty)"

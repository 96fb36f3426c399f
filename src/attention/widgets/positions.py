"""Positions compared (chapter 5): sinusoidal, T5, ALiBi and rotary on one score matrix."""

from __future__ import annotations

import math
from typing import Any

import torch
import traitlets
from torch import Tensor

from attention.functional import softmax
from attention.positions import alibi_bias, rotary, sinusoidal_encoding, t5_buckets

from ._base import Explorer, Whole, draw_heatmap, figure, normals

SCHEMES = ["none", "sinusoidal", "t5", "alibi", "rotary"]
_D = 16


class Positions(Explorer):
    """The scores of a sentence under a scheme of positions, wherever the sentence stands.

    Traits, to read and to set: `labels` (2 to 8 words; equal words have equal embeddings),
    `scheme` ("none", "sinusoidal", "t5", "alibi" or "rotary"), `shift` (0 to 40, the position of
    the first word), `reversed`, `show` ("scores" or "weights"). Embeddings and projections are
    random, the same in the page; so are T5's biases, which a model would learn.

    >>> a, b = Positions(scheme="rotary"), Positions(scheme="rotary", shift=9)
    >>> bool((a.scores - b.scores).abs().max() < 1e-9)
    True
    """

    name = "positions"
    title = "Positions compared"

    labels = traitlets.List(
        traitlets.Unicode(), default_value=["the", "dog", "saw", "the", "cat", "run"]
    ).tag(sync=True)
    scheme = traitlets.Unicode("sinusoidal").tag(sync=True)
    shift = Whole(0, 0, 40)
    reversed = traitlets.Bool(False).tag(sync=True)
    show = traitlets.Unicode("scores").tag(sync=True)

    @traitlets.validate("scheme", "show")
    def _check_choice(self, proposal: Any) -> str:
        name, value = proposal["trait"].name, proposal["value"]
        options = SCHEMES if name == "scheme" else ["scores", "weights"]
        if value not in options:
            raise traitlets.TraitError(f"{name} must be one of {', '.join(options)}; got {value!r}")
        return value

    @traitlets.validate("labels")
    def _check_labels(self, proposal: Any) -> list[str]:
        if not 2 <= len(proposal["value"]) <= 8:
            raise traitlets.TraitError(f"labels must be 2 to 8 words; got {len(proposal['value'])}")
        return proposal["value"]

    def _words(self) -> list[str]:
        return self.labels[::-1] if self.reversed else list(self.labels)

    @property
    def scores(self) -> Tensor:
        """The scores, (n, n), float64, with the biases of the scheme added."""
        words, at = self._words(), torch.arange(len(self.labels)) + self.shift

        def draw(seed: int) -> Tensor:
            return torch.from_numpy(normals(seed, 16 * _D)).view(16, _D)

        names = sorted(set(words), key=lambda word: word.encode("utf-16-be"))  # as JavaScript sorts
        x = draw(5)[[names.index(word) for word in words]]
        if self.scheme == "sinusoidal":
            x = x + sinusoidal_encoding(int(at[-1]) + 1, _D)[at]
        q, k = (x @ draw(seed) / math.sqrt(_D) for seed in (6, 7))
        if self.scheme == "rotary":
            q, k = rotary(q, at), rotary(k, at)
        scores = q @ k.T / math.sqrt(_D)
        if self.scheme == "alibi":
            scores = scores + alibi_bias(8, len(words))[0]
        elif self.scheme == "t5":
            bucket = torch.arange(32, dtype=torch.float64)
            table = 1.5 - 0.2 * (bucket % 16) - 0.4 * (bucket > 15)
            scores = scores + table[t5_buckets(at[:, None] - at)]
        return scores

    @property
    def weights(self) -> Tensor:
        """softmax(scores), (n, n)."""
        return softmax(self.scores)

    @property
    def caption(self) -> str:
        words = self._words()
        twins = [i for i, word in enumerate(words) if word in words[:i]]
        end = ""
        if twins:
            first = words.index(words[twins[0]])
            gap = (self.scores[first] - self.scores[twins[0]]).abs().max().item()
            same = "are equal" if gap < 1e-9 else f"differ by up to {gap:.2f}"
            end = f" The rows of the two “{words[first]}” {same}."
        return (
            f"Scores of “{' '.join(words)}” with positions by {self.scheme}, the first word at "
            f"position {self.shift}.{end}"
        )

    def still(self) -> Any:
        fig, axes = figure(6.8, 3.2, ncols=2)
        words = self._words()
        plain = Positions(labels=self.labels, scheme="none", reversed=self.reversed)
        for i, (ax, widget) in enumerate(zip(axes, (plain, self), strict=True)):
            title = f"{self.show}: {'content alone' if widget is plain else self.scheme}"
            table = widget.weights if self.show == "weights" else widget.scores
            draw_heatmap(
                ax,
                table.tolist(),
                [""] * len(words) if i else words,
                words,
                title,
                signed=0.0 if self.show == "weights" else 4.0,
            )
        plain.close()
        return fig

"""Queries, keys and values in the plane (chapter 2): what the output is an average of."""

from __future__ import annotations

import math
from typing import Any

import torch
import traitlets
from torch import Tensor

from attention.functional import attention

from ._base import COLOURS, Explorer, Row, Table, figure, short


class QKVPlane(Explorer):
    """One query, a few keys and values as points of a plane, and the output among the values.

    Traits, to read and to set: `q` (2 numbers), `k` and `v` (n, 2), n from 1 to 6,
    all within ±4 (a tensor will do), `labels`, `scaled` (divide by √2).

    >>> QKVPlane(q=[0, 0]).weights
    tensor([0.3333, 0.3333, 0.3333], dtype=torch.float64)
    """

    name = "qkv_plane"
    title = "Query, keys and values in the plane"

    q = Row([0.8, 0.6], limit=4)
    k = Table([[2, 1], [-1, 2], [0.5, -2]], columns=2, limit=4, rows=6)
    v = Table([[2.5, 0], [-2, 2], [-0.5, -2.5]], columns=2, limit=4, rows=6)
    labels = traitlets.List(traitlets.Unicode(), default_value=["cat", "mat", "was"]).tag(sync=True)
    scaled = traitlets.Bool(True).tag(sync=True)

    @traitlets.validate("q")
    def _check_query(self, proposal: Any) -> list:
        if len(proposal["value"]) != 2:
            raise traitlets.TraitError(f"q must be 2 numbers; got {len(proposal['value'])}")
        return proposal["value"]

    @traitlets.validate("k", "v")
    def _check_lengths(self, proposal: Any) -> list:
        both = {"k": self.k, "v": self.v}
        both[proposal["trait"].name] = proposal["value"]
        keys, values = len(both["k"]), len(both["v"])
        if keys != values:
            raise traitlets.TraitError(
                f"k and v must have equally many rows; got {keys} and {values}"
            )
        return proposal["value"]

    def _attend(self) -> tuple[Tensor, Tensor]:
        q, k, v = (torch.tensor(x, dtype=torch.float64) for x in ([self.q], self.k, self.v))
        out, weights = attention(q, k, v, scale=self.scale)
        return out[0], weights[0]

    @property
    def scale(self) -> float:
        """What the scores are multiplied by: 1/√2, or 1 when not scaled."""
        return 1 / math.sqrt(2) if self.scaled else 1.0

    @property
    def scores(self) -> Tensor:
        """q · k, scaled if `scaled`, (n,)."""
        keys = torch.tensor(self.k, dtype=torch.float64)
        return keys @ torch.tensor(self.q, dtype=torch.float64) * self.scale

    @property
    def weights(self) -> Tensor:
        """softmax(scores), (n,)."""
        return self._attend()[1]

    @property
    def out(self) -> Tensor:
        """The weighted mean of the values, (2,)."""
        return self._attend()[0]

    def _label(self, i: int) -> str:
        return self.labels[i] if i < len(self.labels) else f"key {i + 1}"

    @property
    def caption(self) -> str:
        parts = [f"{self._label(i)} {w:.3f}" for i, w in enumerate(self.weights.tolist())]
        x, y = self.out.tolist()
        return (
            f"A query at ({short(self.q[0])}, {short(self.q[1])}) weights the values of "
            f"{', '.join(parts)}; the output lies at ({short(x)}, {short(y)}), inside the hull of "
            "the values."
        )

    def still(self) -> Any:
        fig, (left, right) = figure(6.4, 3.2, ncols=2)
        arrow = {"arrowstyle": "->", "lw": 2}
        for i, (key, value) in enumerate(zip(self.k, self.v, strict=True)):
            colour = COLOURS[i % 8]
            left.annotate("", key, (0, 0), arrowprops={**arrow, "color": colour})
            left.annotate(self._label(i), key, (4, 4), textcoords="offset points")
            right.plot(*value, "o", ms=9, color=colour)
            right.annotate(self._label(i), value, (6, 6), textcoords="offset points")
            right.plot(
                [self.out[0], value[0]], [self.out[1], value[1]], color=colour,
                lw=0.5 + 8 * self.weights[i].item(), alpha=0.6,
            )  # fmt: skip
        left.annotate("", self.q, (0, 0), arrowprops={**arrow, "color": "k", "lw": 3})
        left.annotate("query", self.q, (4, -10), textcoords="offset points")
        right.plot(*self.out.tolist(), "kD", ms=9)
        right.annotate("output", self.out.tolist(), (6, -12), textcoords="offset points")
        for ax, title in ((left, "query and keys"), (right, "values and the output")):
            ax.set(xlim=(-4.2, 4.2), ylim=(-4.2, 4.2), aspect="equal")
            ax.set_title(title, fontsize=10)
            ax.grid(lw=0.4)
        return fig

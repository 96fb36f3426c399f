"""Attention step by step (chapter 3): QKᵀ, scaling, softmax, times V, each cell worked out."""

from __future__ import annotations

import math
from typing import Any

import torch
import traitlets
from torch import Tensor

from attention.functional import attention

from ._base import Explorer, Table, Whole, draw_heatmap, figure

_NAMES = ["scores QKᵀ", "scaled scores", "weights A", "output O = AV"]


class StepByStep(Explorer):
    """Attention on small matrices, one step at a time.

    Traits, to read and to set: `q` (n_q, d_k), `k` (n_k, d_k), `v` (n_k, d_v), at most 5 rows of
    at most 3 numbers within ±99 (a tensor will do); `labels`; `scaled`; `step` (1 scores, 2
    scaled, 3 softmax, 4 times V); `row` and `column` of the chosen cell.

    >>> StepByStep().out[0]
    tensor([3.4067, 4.4067], dtype=torch.float64)
    """

    name = "step_by_step"
    title = "Attention step by step"

    q = Table([[1, 0], [0, 1], [1, 1]], limit=99, rows=5, most=3)
    k = Table([[0, 1], [1, 0], [1, 1]], limit=99, rows=5, most=3)
    v = Table([[1, 2], [3, 4], [5, 6]], limit=99, rows=5, most=3)
    labels = traitlets.List(traitlets.Unicode(), default_value=["I", "love", "math"]).tag(sync=True)
    scaled = traitlets.Bool(True).tag(sync=True)
    step = Whole(1, 1, 4)
    row = Whole(2, 0, 4)
    column = Whole(2, 0, 4)

    @traitlets.validate("q", "k", "v")
    def _check_shapes(self, proposal: Any) -> list:
        tables = {"q": self.q, "k": self.k, "v": self.v, proposal["trait"].name: proposal["value"]}
        shapes = {name: (len(table), len(table[0])) for name, table in tables.items()}
        if shapes["q"][1] != shapes["k"][1]:
            raise traitlets.TraitError(
                f"q and k must share their last dimension d_k; got q {shapes['q']}, k {shapes['k']}"
            )
        if shapes["k"][0] != shapes["v"][0]:
            raise traitlets.TraitError(
                f"k and v must have equally many rows; got k {shapes['k']}, v {shapes['v']}"
            )
        return proposal["value"]

    def _qkv(self) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = (torch.tensor(x, dtype=torch.float64) for x in (self.q, self.k, self.v))
        return q, k, v

    @property
    def scale(self) -> float:
        """What the scores are multiplied by: 1/√d_k, or 1 when not scaled."""
        return 1 / math.sqrt(len(self.k[0])) if self.scaled else 1.0

    @property
    def scores(self) -> Tensor:
        """QKᵀ, (n_q, n_k), before scaling."""
        q, k, _ = self._qkv()
        return q @ k.T

    @property
    def weights(self) -> Tensor:
        """softmax of the (scaled) scores, (n_q, n_k)."""
        return attention(*self._qkv(), scale=self.scale)[1]

    @property
    def out(self) -> Tensor:
        """weights @ v, (n_q, d_v)."""
        return attention(*self._qkv(), scale=self.scale)[0]

    def _tables(self) -> list[Tensor]:
        return [self.scores, self.scores * self.scale, self.weights, self.out]

    def _label(self, i: int) -> str:
        return self.labels[i] if i < len(self.labels) else str(i + 1)

    @property
    def caption(self) -> str:
        rows = [
            f"“{self._label(i)}” attends with weights {', '.join(f'{w:.3f}' for w in ws)} and "
            f"outputs ({', '.join(f'{o:.3f}' for o in out)})"
            for i, (ws, out) in enumerate(
                zip(self.weights.tolist(), self.out.tolist(), strict=True)
            )
        ]
        how = f"scores divided by √{len(self.k[0])}" if self.scaled else "scores not scaled"
        words = ", ".join(self._label(i) for i in range(len(self.k)))
        return f"Attention over {words}, {how}: {'; '.join(rows)}."

    def still(self) -> Any:
        fig, axes = figure(6.8, 0.4 * len(self.q) + 1.1, ncols=4)
        rows = [self._label(i) for i in range(len(self.q))]
        keys = [self._label(i) for i in range(len(self.k))]
        columns = [str(j + 1) for j in range(len(self.v[0]))]
        for s, (ax, table) in enumerate(zip(axes, self._tables(), strict=True)):
            signed = 0.0 if s == 2 else max(table.abs().max().item(), 1e-9)
            draw_heatmap(
                ax,
                table.tolist(),
                rows if s == 0 else [""] * len(rows),
                columns if s == 3 else keys,
                _NAMES[s],
                signed=signed,
            )
        return fig

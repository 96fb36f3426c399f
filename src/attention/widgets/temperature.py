"""Softmax temperature (chapter 3): scores, a temperature, and the weights that come out."""

from __future__ import annotations

import math
from typing import Any

import torch
import traitlets
from torch import Tensor

from attention.functional import entropy, softmax, softmax_jacobian

from ._base import COLOURS, Explorer, Number, Row, Whole, figure, short


class Temperature(Explorer):
    """Softmax of a few scores at a temperature: weights, entropy, gradient.

    Traits, to read and to set: `scores` (1 to 16 numbers within ±10,000; a tensor will do),
    `labels` (a token without one is called "token 1", ...), `temperature` (0.05 to 20), `d_k`
    (1 to 400) and `scaled`: while it is on, the temperature is √d_k; setting another
    temperature turns it off.

    >>> w = Temperature(scores=[112, 96], d_k=64, scaled=True)
    >>> w.temperature
    8.0
    >>> w.weights
    tensor([0.8808, 0.1192], dtype=torch.float64)
    """

    name = "temperature"
    title = "Softmax temperature"

    scores = Row([1.0, 1.0, 2.0])
    labels = traitlets.List(traitlets.Unicode(), default_value=["I", "love", "math"]).tag(sync=True)
    temperature = Number(math.sqrt(2), 0.05, 20)
    d_k = Whole(2, 1, 400)
    scaled = traitlets.Bool(True).tag(sync=True)

    def __init__(self, scores: Any = None, **traits: Any) -> None:
        if scores is not None:
            traits["scores"] = scores
            traits.setdefault("labels", [])
        if "scaled" not in traits and "temperature" in traits:
            traits["scaled"] = False
        elif "scaled" not in traits and scores is not None and "d_k" not in traits:
            traits.update(scaled=False, temperature=1.0)
        super().__init__(**traits)
        if self.scaled:
            self.temperature = math.sqrt(self.d_k)
        self.observe(self._agree, ["temperature", "d_k", "scaled"])

    def _agree(self, change: Any) -> None:
        root = math.sqrt(self.d_k)
        if not self.scaled or math.isclose(self.temperature, root, rel_tol=1e-9):
            return
        if change["name"] == "temperature":
            self.scaled = False
        else:
            self.temperature = root

    @property
    def weights(self) -> Tensor:
        """softmax(scores / temperature), (n,), float64."""
        return softmax(torch.tensor(self.scores, dtype=torch.float64), self.temperature)

    @property
    def entropy(self) -> float:
        """Entropy of the weights, in nats."""
        return entropy(self.weights).item()

    @property
    def effective_tokens(self) -> float:
        """exp(entropy): how many equally weighted tokens would be as undecided."""
        return math.exp(self.entropy)

    @property
    def largest_jacobian(self) -> float:
        """The largest |p_i (δ_ij − p_j)|; at most 1/4, and near 0 once softmax has chosen."""
        return softmax_jacobian(self.weights).abs().max().item()

    def _label(self, i: int) -> str:
        return self.labels[i] if i < len(self.labels) else f"token {i + 1}"

    @property
    def caption(self) -> str:
        parts = [
            f"{self._label(i)} (score {short(s)}) {w:.3f}"
            for i, (s, w) in enumerate(zip(self.scores, self.weights.tolist(), strict=True))
        ]
        return (
            f"At temperature {short(self.temperature)} the weights are: {', '.join(parts)}. "
            f"Entropy {self.entropy:.3f} nats, that is {self.effective_tokens:.2f} effective "
            f"tokens of {len(self.scores)}; largest Jacobian entry {self.largest_jacobian:.3f}."
        )

    def still(self) -> Any:
        n = len(self.scores)
        fig, (left, right) = figure(6.4, max(2.0, 0.35 * n + 1.0), ncols=2)
        names = [self._label(i) for i in range(n)]
        colours = [COLOURS[i % 8] for i in range(n)]
        weights = self.weights.tolist()
        left.barh(range(n), weights, color=colours)
        left.set_yticks(range(n), names)
        left.invert_yaxis()
        left.set_xlim(0, 1.25)
        left.set_xticks([0, 0.5, 1])
        for i, weight in enumerate(weights):
            left.text(weight + 0.02, i, f"{weight:.3f}", va="center", fontsize=9)
        left.set_title(f"weights at T = {short(self.temperature)}", fontsize=10)
        steps = torch.logspace(math.log10(0.05), math.log10(20), 81, dtype=torch.float64).tolist()
        scores = torch.tensor(self.scores, dtype=torch.float64)
        curves = torch.stack([softmax(scores, t) for t in steps]).numpy()
        for i in range(n):
            right.plot(
                steps,
                curves[:, i],
                color=colours[i],
                ls=["-", "--", ":", "-."][i % 4],
                label=names[i],
            )
        right.axvline(self.temperature, color="k", lw=1)
        right.set_xscale("log")
        right.set_xticks([0.05, 0.2, 1, 5, 20], ["0.05", "0.2", "1", "5", "20"])
        right.set_ylim(-0.03, 1.03)
        right.set_title("weight against temperature", fontsize=10)
        if n <= 6:
            right.legend(fontsize=8, frameon=False)
        for ax in (left, right):
            ax.spines[["top", "right"]].set_visible(False)
        return fig

"""Sinusoidal positions (chapter 5): heatmap, waves, clock hands, and a shift as a rotation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import traitlets
from torch import Tensor

from attention.positions import shift_matrix, sinusoidal_encoding

from ._base import COLOURS, Explorer, Number, Whole, diverging, figure, short, whole

N = 64
WIDTHS = [4, 8, 16, 32, 64, 128, 256, 512]


class Sinusoids(Explorer):
    """The sinusoidal encoding of positions 0 to 63, and what a shift does to it.

    Traits, to read and to set: `base` (2 to 1,000,000), `d_model` (4, 8, 16, ... 512),
    `position` (0 to 63), `delta` (-63 to 63), `pairs` (1 to 3 pairs of columns, each below
    d_model / 2).

    >>> Sinusoids(d_model=4).encoding[3]
    tensor([ 0.1411, -0.9900,  0.0300,  0.9996])
    """

    name = "sinusoids"
    title = "Sinusoidal positions"

    base = Number(10000.0, 2, 1e6)
    d_model = traitlets.Int(64).tag(sync=True)
    position = Whole(20, 0, N - 1)
    delta = Whole(7, 1 - N, N - 1)
    pairs = traitlets.List(default_value=[0, 4, 16]).tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        if "d_model" in traits and "pairs" not in traits:
            half = max(1, traits["d_model"] // 2) if isinstance(traits["d_model"], int) else 32
            traits["pairs"] = sorted({0, half // 8, half // 2})
        super().__init__(**traits)

    @traitlets.validate("d_model")
    def _check_width(self, proposal: Any) -> int:
        width = whole(proposal["value"], "d_model", 1, 512)
        if width not in WIDTHS:
            raise traitlets.TraitError(f"d_model must be one of {WIDTHS}; got {width}")
        return width

    @traitlets.observe("d_model")
    def _keep_pairs(self, change: Any) -> None:
        self.pairs = sorted({min(pair, self.d_model // 2 - 1) for pair in self.pairs})

    @traitlets.validate("pairs")
    def _check_pairs(self, proposal: Any) -> list[int]:
        pairs = proposal["value"]
        if not 1 <= len(pairs) <= 3:
            raise traitlets.TraitError(f"pairs must be 1 to 3 numbers; got {len(pairs)}")
        pairs = sorted({whole(pair, "each of pairs", 0, 255) for pair in pairs})
        if pairs[-1] >= self.d_model // 2:
            raise traitlets.TraitError(
                f"each of pairs must be below d_model / 2 = {self.d_model // 2}; got {pairs[-1]}"
            )
        return pairs

    def _angles(self, positions: Tensor) -> Tensor:
        pair = torch.arange(self.d_model // 2, dtype=torch.float64)
        return positions[:, None] * self.base ** (-2 * pair / self.d_model)

    @property
    def frequencies(self) -> Tensor:
        """The angle that each pair turns by from one position to the next, (d_model / 2,)."""
        return self._angles(torch.ones(1, dtype=torch.float64))[0]

    @property
    def encoding(self) -> Tensor:
        """PE of positions 0 to 63, (64, d_model)."""
        return sinusoidal_encoding(N, self.d_model, self.base)

    @property
    def rotation(self) -> Tensor:
        """U, (d_model, d_model), with PE[p] @ U = PE[p + Δ] for every p."""
        return shift_matrix(self.delta, self.d_model, self.base)

    @property
    def similarity(self) -> Tensor:
        """PE(p)·PE(p + Δ) / (d_model / 2) for Δ from -63 to 63, whatever p is, (127,)."""
        return self._angles(torch.arange(1 - N, N, dtype=torch.float64)).cos().mean(-1)

    def _turns(self) -> list[str]:
        speeds = self.frequencies.tolist()
        return [
            f"pair {pair} by {short(math.degrees(self.delta * speeds[pair]), 1)}°"
            for pair in self.pairs
            if pair < len(speeds)
        ]

    @property
    def caption(self) -> str:
        alike = self.similarity[self.delta + N - 1].item()
        return (
            f"Sinusoidal encoding of positions 0 to 63, d_model {self.d_model}, base "
            f"{short(self.base)}: columns to the left turn fast, those to the right slowly. A "
            f"shift by {short(self.delta)} from position {self.position} turns "
            f"{', '.join(self._turns())}; the normalised dot product of the two encodings is "
            f"{short(alike)}."
        )

    def still(self) -> Any:
        fig, (left, right) = figure(7.0, 3.0, ncols=2)
        left.imshow(
            self.encoding.numpy(),
            aspect="auto",
            cmap=diverging(),
            vmin=-1,
            vmax=1,
            interpolation="nearest",
        )
        left.axhline(self.position, color="k", lw=1.2)
        if 0 <= self.position + self.delta < N:
            left.axhline(self.position + self.delta, color="k", lw=1.2, ls="--")
        left.set(xlabel="column", ylabel="position")
        left.set_title("encoding", fontsize=10)
        x = torch.linspace(0, N - 1, 400, dtype=torch.float64).numpy()
        speeds = self.frequencies.numpy()
        for i, pair in enumerate(self.pairs):
            if pair < len(speeds):
                right.plot(
                    x,
                    np.sin(x * speeds[pair]),
                    color=COLOURS[i],
                    ls=["-", "--", ":"][i],
                    label=f"pair {pair}",
                )
        right.axvline(self.position, color="k", lw=1.2)
        right.set_title("sine of the chosen pairs", fontsize=10)
        right.set(xlabel="position", ylim=(-1.1, 1.45))
        right.legend(fontsize=8, frameon=False, ncols=3, columnspacing=0.8)
        right.spines[["top", "right"]].set_visible(False)
        return fig

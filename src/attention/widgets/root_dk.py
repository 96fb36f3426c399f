"""Why √d_k (chapter 3): what the width of queries and keys does to softmax, with and without."""

from __future__ import annotations

import math
from typing import Any

import torch
import traitlets
from torch import Tensor

from attention.functional import entropy, softmax, softmax_jacobian

from ._base import Explorer, Whole, figure, normals, short, whole

WIDTHS = [2**i for i in range(11)]
_QUERIES, _KEYS = 16, 64


class RootDk(Explorer):
    """Scores of random queries and keys, with and without division by √d_k.

    Traits, to read and to set: `d_k` (a power of two, 1 to 1024), `n_keys` (2 to 64), `scaled`,
    `sample` (0 to 99, which random numbers). The queries and keys are the same in the page.
    """

    name = "root_dk"
    title = "Why the square root of d_k"

    d_k = traitlets.Int(64).tag(sync=True)
    n_keys = Whole(16, 2, _KEYS)
    scaled = traitlets.Bool(False).tag(sync=True)
    sample = Whole(0, 0, 99)

    @traitlets.validate("d_k")
    def _check_width(self, proposal: Any) -> int:
        width = whole(proposal["value"], "d_k", 1, 1024)
        if width not in WIDTHS:
            raise traitlets.TraitError(f"d_k must be a power of two up to 1024; got {width}")
        return width

    def _scores(self, width: int, scaled: bool) -> Tensor:
        q = torch.from_numpy(normals(2 * self.sample, _QUERIES * 1024)).view(_QUERIES, 1024)
        k = torch.from_numpy(normals(2 * self.sample + 1, _KEYS * 1024)).view(_KEYS, 1024)
        scores = q[:, :width] @ k[: self.n_keys, :width].T
        return scores / math.sqrt(width) if scaled else scores

    @property
    def scores(self) -> Tensor:
        """The scores of 16 queries, (16, n_keys), scaled if `scaled`."""
        return self._scores(self.d_k, self.scaled)

    @property
    def weights(self) -> Tensor:
        """softmax(scores), (16, n_keys)."""
        return softmax(self.scores)

    def statistics(self, scaled: bool | None = None, d_k: int | None = None) -> dict[str, float]:
        """Averages over the queries: spread, largest weight, entropy (nats), largest Jacobian."""
        scores = self._scores(d_k or self.d_k, self.scaled if scaled is None else scaled)
        weights = softmax(scores)
        jacobian = softmax_jacobian(weights).abs().flatten(-2).amax(-1)
        return {
            "spread": scores.std(correction=0).item(),
            "largest_weight": weights.amax(-1).mean().item(),
            "entropy": entropy(weights).mean().item(),
            "largest_jacobian": jacobian.mean().item(),
        }

    @property
    def caption(self) -> str:
        raw, scaled = self.statistics(False), self.statistics(True)
        return (
            f"With d_k = {self.d_k} and {self.n_keys} random keys, raw scores spread by "
            f"{short(raw['spread'], 2)} and the largest weight is {raw['largest_weight']:.3f} on "
            f"average, the largest Jacobian entry {raw['largest_jacobian']:.3f}; divided by √d_k: "
            f"{short(scaled['spread'], 2)}, {scaled['largest_weight']:.3f} and "
            f"{scaled['largest_jacobian']:.3f}."
        )

    def still(self) -> Any:
        fig, axes = figure(6.6, 2.5, ncols=2)
        for scaled, colour, style in ((False, "#d55e00", "--"), (True, "#0072b2", "-")):
            rows = [self.statistics(scaled, width) for width in WIDTHS]
            name = r"divided by $\sqrt{d_k}$" if scaled else "raw"
            for ax, key in zip(axes, ("largest_weight", "largest_jacobian"), strict=True):
                ax.plot(WIDTHS, [row[key] for row in rows], style, color=colour, label=name)
        for ax, title in zip(axes, ("largest weight", "largest Jacobian entry"), strict=True):
            ax.set_xscale("log", base=2)
            ax.set_xticks([1, 4, 16, 64, 256, 1024], ["1", "4", "16", "64", "256", "1024"])
            ax.axvline(self.d_k, color="k", lw=1)
            ax.set_ylim(bottom=0)
            ax.set_xlabel("$d_k$")
            ax.set_title(f"{title}, {self.n_keys} keys", fontsize=10)
            ax.spines[["top", "right"]].set_visible(False)
        axes[0].legend(fontsize=8, frameon=False)
        return fig

"""Masks (chapter 6): who may attend to whom, the weights, and how far information reaches."""

from __future__ import annotations

from typing import Any

import torch
import traitlets
from torch import Tensor

from attention.functional import softmax
from attention.masks import causal_mask, padding_mask, prefix_mask, reach, sliding_window_mask

from ._base import Explorer, Table, Whole, draw_heatmap, figure, normals

PATTERNS = ["all", "causal", "padding", "window", "prefix", "blocks", "painted"]
_WORDS = ["the", "sun", "sets", "and", "the", "sky", "turns", "red"]


class Masks(Explorer):
    """A mask over one table of scores: presets, painted cells, weights, reach.

    Traits, to read and to set: `labels` (2 to 12 tokens), `scores` (n, n), `pattern` ("all",
    "causal", "padding", "window", "prefix", "blocks" or "painted"), `size` (real tokens, window,
    prefix or block size), `causal` (combined with &), `layers` (1 to 8), and `cells` (n, n), the
    mask itself as 0 and 1: setting it makes the pattern "painted". `mask` is the same as a
    boolean tensor, True = may attend.

    >>> w = Masks(labels=["a", "b", "c"], pattern="window", size=2, causal=True)
    >>> w.mask.int().tolist()
    [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """

    name = "masks"
    title = "Masks"

    labels = traitlets.List(traitlets.Unicode(), default_value=_WORDS).tag(sync=True)
    scores = Table([[0.0]], rows=12, most=12)
    cells = Table([[1.0]], rows=12, most=12)
    pattern = traitlets.Unicode("causal").tag(sync=True)
    size = Whole(3, 1, 12)
    causal = traitlets.Bool(True).tag(sync=True)
    layers = Whole(3, 1, 8)

    def __init__(self, labels: Any = None, mask: Any = None, **traits: Any) -> None:
        if isinstance(labels, str):
            raise traitlets.TraitError(f"labels must be a list of 2 to 12 tokens; got {labels!r}")
        labels = [str(label) for label in (_WORDS if labels is None else labels)]
        n = len(labels)
        if not 2 <= n <= 12:
            raise traitlets.TraitError(f"labels must be 2 to 12 tokens; got {n}")
        if mask is not None:
            traits["cells"] = self._as_cells(mask)
        if "cells" in traits:
            traits["pattern"] = "painted"
        traits.setdefault("causal", traits.get("pattern", "causal") == "causal")
        if "scores" not in traits:
            noise = (normals(2017, n * n).reshape(n, n) * 1.2).round(2)
            traits["scores"] = noise.tolist()
        self._n = n
        self._busy = True
        cells = traits.pop("cells", [[1.0] * n] * n)
        super().__init__(labels=labels, cells=cells, **traits)
        self._busy = False
        self._follow(None)
        self.observe(self._follow, ["pattern", "size", "causal"])
        self.observe(self._painted, "cells")

    @staticmethod
    def _as_cells(mask: Any) -> list:
        mask = torch.as_tensor(mask)
        if mask.dtype != torch.bool:
            raise traitlets.TraitError(f"mask must be boolean, True = may attend; got {mask.dtype}")
        return mask.int().tolist()

    @traitlets.validate("pattern")
    def _check_pattern(self, proposal: Any) -> str:
        if proposal["value"] not in PATTERNS:
            raise traitlets.TraitError(
                f"pattern must be one of {', '.join(PATTERNS)}; got {proposal['value']!r}"
            )
        return proposal["value"]

    @traitlets.validate("scores", "cells")
    def _check_square(self, proposal: Any) -> list:
        table, name = proposal["value"], proposal["trait"].name
        if len(table) != self._n or len(table[0]) != self._n:
            raise traitlets.TraitError(
                f"{name} must be ({self._n}, {self._n}), a row and a column for each label; "
                f"got ({len(table)}, {len(table[0])})"
            )
        if name == "cells":
            if any(x not in (0, 1) for row in table for x in row):
                raise traitlets.TraitError("each entry of cells must be 0 or 1, 1 = may attend")
            return [[int(x) for x in row] for row in table]
        return table

    @traitlets.validate("labels")
    def _check_labels(self, proposal: Any) -> list:
        if len(proposal["value"]) != self._n:
            raise traitlets.TraitError(
                f"labels must stay {self._n} tokens; got {len(proposal['value'])}: make a new "
                "Masks for another length"
            )
        return proposal["value"]

    def _of_pattern(self) -> Tensor:
        n, size = self._n, min(self.size, self._n)
        at = torch.arange(n) // size
        masks = {
            "causal": lambda: causal_mask(n),
            "padding": lambda: padding_mask([size], n)[0].expand(n, n),
            "window": lambda: sliding_window_mask(n, size),
            "prefix": lambda: prefix_mask(n, size),
            "blocks": lambda: at[:, None] == at[None, :],
        }
        mask = masks.get(self.pattern, lambda: torch.ones(n, n, dtype=torch.bool))()
        return mask & causal_mask(n) if self.causal else mask

    def _follow(self, change: Any) -> None:
        if self._busy or self.pattern == "painted":
            return
        self._busy = True
        if self.pattern == "causal":
            if change is not None and change["name"] == "causal" and not self.causal:
                self.pattern = "all"
            else:
                self.causal = True
        self.cells = self._as_cells(self._of_pattern())
        self._busy = False

    def _painted(self, change: Any) -> None:
        if self._busy or self.cells == self._as_cells(self._of_pattern()):
            return
        self._busy = True
        self.pattern, self.causal = "painted", False
        self._busy = False

    @property
    def mask(self) -> Tensor:
        """The mask, bool (n, n), True = may attend."""
        return torch.tensor(self.cells, dtype=torch.bool)

    @mask.setter
    def mask(self, mask: Any) -> None:
        self.cells = self._as_cells(mask)

    @property
    def weights(self) -> Tensor:
        """softmax(scores + M), (n, n), float64; a row with nothing to attend to is zeros."""
        scores = torch.tensor(self.scores, dtype=torch.float64)
        return softmax(scores.masked_fill(~self.mask, float("-inf")))

    @property
    def weights_before(self) -> Tensor:
        """softmax(scores), (n, n), float64: without the mask."""
        return softmax(torch.tensor(self.scores, dtype=torch.float64))

    @property
    def reach(self) -> Tensor:
        """Which inputs can influence which outputs after `layers` layers, bool (n, n)."""
        return reach(self.mask, self.layers)

    @property
    def caption(self) -> str:
        n, mask = self._n, self.mask
        what = f"pattern {self.pattern}"
        if self.pattern in ("padding", "window", "prefix", "blocks"):
            what += f" of size {min(self.size, n)}"
        if self.causal and self.pattern != "causal":
            what += " & causal"
        ahead = int((mask & ~causal_mask(n)).any(-1).sum())
        empty = [self.labels[i] for i in range(n) if not mask[i].any()]
        rows = f"; nothing to attend to in the rows {', '.join(empty)}" if empty else ""
        layers = f"{self.layers} layer{'' if self.layers == 1 else 's'}"
        return (
            f"A mask over {n} tokens ({what}): {int(mask.sum())} of {n * n} cells are open, "
            f"{ahead} rows see the future{rows}. After {layers} the last token can know "
            f"of {int(self.reach[-1].sum())} of {n}."
        )

    def still(self) -> Any:
        fig, axes = figure(7.2, 2.9, ncols=3)
        tables = [
            (self.mask.float() * 0.5, "mask"),
            (self.weights, "weights with the mask"),
            (self.reach.float() * 0.5, f"reach in {self.layers} layers"),
        ]
        for i, (ax, (table, title)) in enumerate(zip(axes, tables, strict=True)):
            draw_heatmap(
                ax,
                table.tolist(),
                self.labels if i == 0 else [""] * self._n,
                self.labels,
                title,
                digits=None,
            )
            ax.set_aspect("equal")
            for row in range(self._n):
                for column in range(self._n):
                    x = float(table[row, column])
                    text = f"{x:.1f}".lstrip("0") if i == 1 else "✓" if x else "·"
                    ax.text(
                        column,
                        row,
                        text,
                        ha="center",
                        va="center",
                        fontsize=7,
                        color="white" if x > 0.63 else "black",
                    )
        return fig

"""Patch attention (chapter 9): a trained vision transformer, and where each patch looks."""

from __future__ import annotations

import functools
from typing import Any

import torch
import traitlets
from torch import Tensor

from attention.vision import VisionTransformer, digits

from . import _weights
from ._base import Explorer, Whole, draw_heatmap, figure

# Of `digits()`, all held out; the last two are misread.
IMAGES = [1418, 1413, 1457, 1400, 1408, 1420, 1421, 1405, 1401, 1424, 1412, 1723]


@functools.cache
def _trained() -> VisionTransformer:
    return _weights.unpack(VisionTransformer(), _weights.read("patches")["model"])  # type: ignore[return-value]


class PatchAttention(Explorer):
    """A vision transformer reads a digit: choose a patch and see where it looks, head by head.

    Traits, to read and to set: `image`, which of the `IMAGES`; `erased`, the patches without ink,
    numbered 1 to 16 row by row; `token`, the one that looks, 0 for the class token; `layer` and
    `head`. `weights` (2, 2, 17, 17), `probabilities` (10,) and `prediction` are computed with
    `model`, from the page's own numbers.

    >>> w = PatchAttention(image=0)
    >>> w.prediction == w.label
    True
    """

    name = "patches"
    title = "Patch attention"

    image = Whole(0, 0, len(IMAGES) - 1)
    erased = traitlets.List(default_value=[]).tag(sync=True)
    token = Whole(0, 0, 16)
    layer = Whole(1, 0, 1)
    head = Whole(0, 0, 1)

    @traitlets.validate("erased")
    def _check_erased(self, proposal: Any) -> list:
        try:
            patches = sorted({int(p) for p in proposal["value"]})
        except (TypeError, ValueError):
            patches = [0]
        if any(not 1 <= p <= 16 for p in patches):
            raise traitlets.TraitError(
                f"erased must be numbers of patches from 1 to 16; got {proposal['value']!r}"
            )
        return patches

    @property
    def model(self) -> VisionTransformer:
        """The trained model, in float32, with the weights that the page has."""
        return _trained()

    @property
    def pixels(self) -> Tensor:
        """The image as the model sees it, (8, 8), with the erased patches empty."""
        pixels = digits()[0][IMAGES[self.image]].clone()
        for p in self.erased:
            row, column = divmod(p - 1, 4)
            pixels[2 * row : 2 * row + 2, 2 * column : 2 * column + 2] = 0
        return pixels

    @property
    def label(self) -> int:
        """The digit that the writer meant."""
        return int(digits()[1][IMAGES[self.image]])

    @torch.no_grad()
    def _run(self) -> tuple[Tensor, Tensor]:
        logits, weights = _trained()(self.pixels[None], return_weights=True)
        return logits[0], torch.stack(weights)[:, 0]

    @property
    def logits(self) -> Tensor:
        """The model's logits, one for each digit, (10,)."""
        return self._run()[0]

    @property
    def weights(self) -> Tensor:
        """The weights of every head, (2, 2, 17, 17): layer, head, query, key."""
        return self._run()[1]

    @property
    def probabilities(self) -> Tensor:
        """A probability for each digit, (10,)."""
        return self.logits.softmax(-1)

    @property
    def prediction(self) -> int:
        """The likeliest digit."""
        return int(self.probabilities.argmax())

    @property
    def caption(self) -> str:
        row = self.weights[self.layer, self.head, self.token]
        p = float(self.probabilities.max())
        gone = f" without {len(self.erased)} of its 16 patches" if self.erased else ""
        who = self._named(self.token)
        return (
            f"A handwritten {self.label}{gone}: a trained vision transformer sees a "
            f"{self.prediction} ({100 * p:.1f} %). In L{self.layer}H{self.head}, {who} looks most "
            f"at {self._named(int(row.argmax()))}, with a weight of {float(row.max()):.2f}."
        )

    @staticmethod
    def _named(token: int) -> str:
        if token == 0:
            return "the class token"
        row, column = divmod(token - 1, 4)
        return f"the patch in row {row}, column {column}"

    def still(self) -> Any:
        fig, axes = figure(6.4, 2.9, ncols=2)
        axes[0].imshow(self.pixels.numpy(), cmap="gray_r", vmin=0, vmax=1, extent=(0, 4, 4, 0))
        axes[0].set_xticks(range(5), [])
        axes[0].set_yticks(range(5), [])
        axes[0].grid(color="#808080", linewidth=0.6)
        axes[0].set_title(f"the model sees a {self.prediction}", fontsize=10)
        row = self.weights[self.layer, self.head, self.token]
        labels = [str(i) for i in range(4)]
        title = f"L{self.layer}H{self.head}: where {self._named(self.token)} looks"
        draw_heatmap(axes[1], row[1:].view(4, 4).tolist(), labels, labels, title)
        return fig

"""The map of the model that opens every chapter: one drawing, with the chapter's part lit."""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from attention.plots import BLUE, arrow, canvas

# chapter: where its part stands (centre x, y, width, height) and what it says
PARTS = {
    "words": (2.15, 0.25, 1.9, 0.36, "words"),
    "qkv-vectors": (2.15, 0.83, 1.9, 0.36, "vectors"),
    "positions": (2.15, 1.41, 1.9, 0.36, "+ positions"),
    "qkv": (2.15, 2.26, 2.7, 0.36, "queries, keys, values"),
    "scaling": (2.15, 2.76, 2.7, 0.36, "scores, ÷ √d, softmax"),
    "masking": (2.15, 3.26, 2.7, 0.36, "mask"),
    "multi-head": (2.15, 3.76, 2.7, 0.36, "several heads, joined"),
    "blocks": (2.15, 4.42, 2.7, 0.36, "feed-forward, norms, sums"),
    "writing": (2.15, 5.2, 1.9, 0.36, "next word"),
}
LIT = {
    "motivation": tuple(PARTS),
    "qkv": ("qkv-vectors", "qkv"),
    **{name: (name,) for name in ("scaling", "multi-head", "positions", "masking")},
    "blocks": ("blocks",),
    "writing": ("words", "writing"),
}


def model_map(lit: str) -> Figure:
    """The whole model from words to the next word; the part of chapter `lit` in colour.

    ValueError if lit is not one of motivation, qkv, scaling, multi-head, positions, masking,
    blocks, writing.
    """
    if lit not in LIT:
        raise ValueError(f"lit must be one of {', '.join(LIT)}; got {lit!r}")
    ax = canvas(4.3, 5.5)

    def frame(x: float, y: float, width: float, height: float, on: bool, dash: str = "-") -> None:
        ax.add_patch(FancyBboxPatch(
            (x - width / 2, y - height / 2), width, height,
            boxstyle="round,pad=0,rounding_size=0.08", linestyle=dash,
            facecolor=BLUE + ("40" if on else "00"), edgecolor=BLUE if on else "#808080",
            linewidth=2.2 if on else 1.0,
        ))  # fmt: skip

    frame(2.15, 3.34, 3.5, 2.76, lit == "blocks", "--")  # the block, repeated
    ax.text(4.02, 4.86, "× N", ha="center", va="center", fontsize=12)
    for name, (x, y, width, height, text) in PARTS.items():
        frame(x, y, width, height, name in LIT[lit])
        ax.text(x, y, text, ha="center", va="center", fontsize=12)
    order = list(PARTS.values())
    for below, above in zip(order, order[1:], strict=False):
        arrow(ax, (2.15, below[1] + 0.18), (2.15, above[1] - 0.18))
    return plt.gcf()

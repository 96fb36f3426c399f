"""The map of the model that opens every chapter: one drawing, with the chapter's part lit."""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from attention.plots import BLUE, arrow, canvas

GREY = "#808080"

STREAM = 3.55  # where the vectors run upwards, past the block's parts and back from them
# a part: centre x, y, width, text
PARTS = {
    "words": (0.52, 0.22, 0.76, "words"),
    "vectors": (1.74, 0.22, 0.88, "vectors"),
    "positions": (STREAM, 0.22, 1.2, "+ positions"),
    "qkv": (1.5, 1.14, 2.5, "queries, keys, values"),
    "scores": (0.755, 1.64, 1.01, "scores ÷ √d"),
    "mask": (1.69, 1.64, 0.5, "mask"),
    "softmax": (2.4, 1.64, 0.7, "softmax"),
    "heads": (1.5, 2.14, 2.5, "heads, joined"),
    "add": (STREAM, 2.14, 1.0, "add, norm"),
    "feed-forward": (1.5, 3.0, 2.5, "feed-forward"),
    "add again": (STREAM, 3.0, 1.0, "add, norm"),
    "next": (STREAM, 3.74, 1.0, "next word"),
}
FRAMES = {  # a frame: left, bottom, right, top
    "block": (0.06, 0.6, 4.24, 3.44),
    "attention": (0.18, 0.86, 2.82, 2.42),
}
LIT = {
    "motivation": ("attention", "qkv", "scores", "mask", "softmax", "heads"),
    "qkv": ("vectors", "qkv"),
    "scaling": ("scores", "softmax"),
    "multi-head": ("attention", "heads"),
    "positions": ("positions",),
    "masking": ("mask",),
    "blocks": ("block", "add", "feed-forward", "add again"),
    "writing": ("words", "next"),
    "relatives": ("words", "vectors", "next"),
    "in-practice": ("block", "attention"),
    "whole": (*PARTS, *FRAMES),
}
NUMBERS = {  # the chapter that explains a part
    "qkv": 2, "scores": 3, "softmax": 3, "heads": 4, "positions": 5, "mask": 6, "feed-forward": 7,
    "add": 7, "add again": 7, "vectors": 2, "words": 8, "next": 8,
}  # fmt: skip
HALF = 0.16  # half the height of a part


def numbered() -> Figure:
    """The map with the number of its chapter at every part, for the table of contents."""
    fig = model_map("whole")
    for name, number in NUMBERS.items():
        x, y, width, _ = PARTS[name]
        fig.axes[0].text(x + width / 2, y + HALF + 0.05, str(number), fontsize=11,
                         weight="bold", ha="center", va="center", color="#ffffff",
                         bbox={"boxstyle": "circle,pad=0.15", "facecolor": BLUE,
                               "edgecolor": BLUE})  # fmt: skip
    return fig


def model_map(lit: str) -> Figure:
    """The whole model from words to the next word; the part of chapter `lit` in colour.

    ValueError if lit is not one of motivation, qkv, scaling, multi-head, positions, masking,
    blocks, writing, relatives, in-practice, whole.
    """
    if lit not in LIT:
        raise ValueError(f"lit must be one of {', '.join(LIT)}; got {lit!r}")
    ax = canvas(4.3, 3.96)

    def outline(left: float, bottom: float, right: float, top: float, on: bool, fill: str) -> None:
        ax.add_patch(FancyBboxPatch(
            (left, bottom), right - left, top - bottom,
            boxstyle="round,pad=0,rounding_size=0.09", linewidth=2 if on else 0.9,
            facecolor=(BLUE if on else GREY) + fill, edgecolor=BLUE if on else GREY,
        ))  # fmt: skip

    def line(*corners: tuple[float, float]) -> None:
        """A path in straight pieces, with an arrow's head at its end."""
        ax.plot(*zip(*corners[:-1], strict=True), color="k", linewidth=1.2, zorder=1.5)
        arrow(ax, corners[-2], corners[-1], width=1.2)

    outline(*FRAMES["block"], "block" in LIT[lit], "14")
    ax.text(0.25, 3.29, "a block, repeated", ha="left", va="center", fontsize=11)
    ax.text(0.25, 0.73, "self-attention", ha="left", va="center", fontsize=11)
    on = "attention" in LIT[lit]
    left, bottom, right, top = FRAMES["attention"]
    for d in (0.14, 0.07):  # more heads, behind the first
        ax.plot((left + d, left + d, right + d, right + d, right),
                (top, top + d, top + d, bottom + d, bottom + d),
                color=BLUE if on else GREY, linewidth=1.6 if on else 0.9)  # fmt: skip
    outline(left, bottom, right, top, on, "14")
    for name, (x, y, width, text) in PARTS.items():
        on = name in LIT[lit]
        outline(x - width / 2, y - HALF, x + width / 2, y + HALF, on, "55" if on else "1e")
        ax.text(x, y, text, ha="center", va="center", fontsize=11)

    def sides(name: str) -> tuple[float, float, float, float]:
        """Left, right, x of the centre and y of a part."""
        x, y, width, _ = PARTS[name]
        return x - width / 2, x + width / 2, x, y

    rightwards = (
        ("words", "vectors"), ("vectors", "positions"), ("scores", "mask"), ("mask", "softmax"),
        ("heads", "add"), ("feed-forward", "add again"),
    )  # fmt: skip
    for start, end in rightwards:
        line((sides(start)[1], sides(start)[3]), (sides(end)[0], sides(end)[3]))
    for start, end in (("positions", "add"), ("add", "add again"), ("add again", "next")):
        line((STREAM, sides(start)[3] + HALF), (STREAM, sides(end)[3] - HALF))
    line((STREAM, PARTS["qkv"][1]), (sides("qkv")[1], PARTS["qkv"][1]))  # the block looks
    line((STREAM, 2.69), (1.5, 2.69), (1.5, 3.0 - HALF))
    line((0.78, 1.14 + HALF), (0.78, 1.64 - HALF))
    line((2.39, 1.64 + HALF), (2.39, 2.14 - HALF))
    return plt.gcf()

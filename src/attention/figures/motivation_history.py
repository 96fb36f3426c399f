"""Drawings of chapter 1: what a trained network looks at, and the translators of 2014."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from attention.plots import BLUE, GREEN, ORANGE, arrow, box, canvas

ENGLISH = "The agreement on the European Economic Area was signed in August 1992 .".split()
FRENCH = "L' accord sur la zone économique européenne a été signé en août 1992 .".split()
# Which English words each French word looks at. The positions follow figure 3a of Bahdanau et al.;
# the weights are ours, read off as dark, middle and pale.
LOOKS = [
    {0: 0.8, 1: 0.2}, {1: 0.9}, {2: 0.9}, {3: 0.6, 6: 0.3}, {6: 0.9}, {5: 0.9}, {4: 0.9},
    {7: 0.7, 8: 0.3}, {7: 0.5, 8: 0.5}, {8: 0.9}, {9: 0.9}, {10: 0.9}, {11: 0.9}, {12: 0.9},
]  # fmt: skip


def alignment() -> Figure:
    """A French sentence (rows) looking at its English source (columns)."""
    cell, left, bottom = 0.255, 1.02, 0.06
    top = bottom + cell * len(FRENCH)
    ax = canvas(4.4, top + 0.95)
    for j, word in enumerate(ENGLISH):
        ax.text(left + (j + 0.4) * cell, top + 0.06, word, rotation=55, ha="left", va="bottom",
                rotation_mode="anchor", fontsize=11)  # fmt: skip
    for i, (word, looks) in enumerate(zip(FRENCH, LOOKS, strict=True)):
        y = top - (i + 1) * cell
        ax.text(left - 0.07, y + cell / 2, word, ha="right", va="center", fontsize=11)
        for j in range(len(ENGLISH)):
            at = (left + j * cell, y)
            ax.add_patch(Rectangle(at, cell, cell, facecolor=BLUE, alpha=looks.get(j, 0), lw=0))
            ax.add_patch(Rectangle(at, cell, cell, fill=False, edgecolor="#808080", linewidth=0.5))
    corner = (left + 4 * cell, top - 7 * cell)
    ax.add_patch(Rectangle(corner, 3 * cell, 3 * cell, fill=False, edgecolor=ORANGE, linewidth=2.5))
    return plt.gcf()


def _states(
    ax: Axes, y: float, words: list[str], xs: list[float], colour: str, side: int = -1
) -> None:
    """A chain of states with its words below, or above if side is 1."""
    for i, (x, word) in enumerate(zip(xs, words, strict=True)):
        box(ax, x, y, "", width=0.36, height=0.36, colour=colour)
        ax.text(x, y + 0.34 * side, word, ha="center", va="center", fontsize=11)
        if i:
            arrow(ax, (xs[i - 1] + 0.17, y), (x - 0.17, y), colour=colour)


def bottleneck() -> Figure:
    """A translator that keeps one state of the source, and one that looks back at all states."""
    ax = canvas(4.4, 4.2)
    source, target = ["the", "grey", "cat"], ["le", "chat", "gris"]
    ax.text(0.05, 4.0, "one state carries everything", fontsize=11.5, va="center")
    _states(ax, 3.5, source, [0.3, 0.95, 1.6], BLUE)
    _states(ax, 3.5, target, [2.85, 3.5, 4.15], ORANGE)
    arrow(ax, (1.78, 3.5), (2.67, 3.5), width=3.5)
    ax.text(0.05, 2.62, "looking back at all states", fontsize=11.5, va="center")
    places = [1.0, 2.2, 3.4]
    _states(ax, 0.8, source, places, BLUE)
    _states(ax, 1.9, target, places, ORANGE, 1)
    ax.text(0.05, 0.16, "weight", ha="left", va="center", fontsize=11)
    for x, weight in zip(places, (0.06, 0.12, 0.82), strict=True):  # "chat" looks at "cat"
        ax.plot([x, places[1]], [0.98, 1.72], color=GREEN, linewidth=1 + 6 * weight,
                alpha=0.35 + 0.65 * weight, zorder=0)  # fmt: skip
        ax.text(x, 0.16, f"{weight:.2f}", ha="center", va="center", fontsize=11)
    return plt.gcf()


def learned(rows: Mapping[str, Tensor], words: Sequence[str]) -> Figure:
    """The weights of one word on all words of two sentences, as bars to the left and the right.

    rows: the last word of each sentence, and the weights (n,); words: the other n - 1.
    """
    line, middle, unit = 0.27, 2.2, 1.2  # a line's height; where the words stand; a weight of 1
    top = line * (len(words) + 1) + 0.1
    ax = canvas(4.4, top + 0.3)
    ends = list(rows)
    for side, colour, end in zip((-1, 1), (BLUE, ORANGE), ends, strict=True):
        x = middle + side * 0.5
        ax.text(x, top + 0.12, f"… {end}", ha="right" if side < 0 else "left", va="center",
                fontsize=12)  # fmt: skip
        for i, weight in enumerate(rows[end].tolist()):
            y = top - (i + 0.5) * line
            ax.barh(y, side * unit * weight, 0.7 * line, left=x, color=colour)
            if weight > 0.1:
                digits = 3 if round(weight, 2) == 1 else 2  # "1.00" would say: all of it
                ax.text(x + side * (unit * weight + 0.05), y, f"{weight:.{digits}f}", va="center",
                        ha="right" if side < 0 else "left", fontsize=11)  # fmt: skip
    for i, word in enumerate([*words, " / ".join(ends)]):
        ax.text(middle, top - (i + 0.5) * line, word, ha="center", va="center", fontsize=11,
                weight="bold" if word == "it" else "normal")  # fmt: skip
    return plt.gcf()

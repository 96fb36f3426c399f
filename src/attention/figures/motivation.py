"""Drawings of chapter 1, why attention: the sentence, the averages, three ways to connect words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextPath
from torch import Tensor

from attention.example import FEATURES
from attention.plots import BLUE, GREEN, ORANGE, arrow, canvas

GREY = "#808080"


def _sentence(ax: Axes, words: list[str], y: float, size: float) -> list[float]:
    """Write the words in a row over the width of the axes; return the middle of each."""
    font = FontProperties(size=size)
    widths = [TextPath((0, 0), word, prop=font).get_extents().width / 72 for word in words]
    gap = (ax.get_xlim()[1] - sum(widths)) / (len(words) - 1)
    x, middles = 0.0, []
    for word, width in zip(words, widths, strict=True):
        middles.append(x + width / 2)
        ax.text(x + width / 2, y, word, ha="center", va="center", fontsize=size)
        x += width + gap
    return middles


def pronoun() -> Figure:
    """Arcs from "it" to the words that decide what it is, for two last words."""
    ax = canvas(4.4, 2.8)
    cat, mat, it, last = 1, 5, 7, 9
    for y, end, strong, weak in ((1.68, "tired", cat, mat), (0.12, "warm", mat, cat)):
        words = f"The cat sat on the mat because it was {end}".split()
        middles = _sentence(ax, words, y, 11)
        start = (middles[it], y + 0.12)
        for target, width, colour in ((weak, 1.0, "k"), (last, 2.0, ORANGE), (strong, 4.0, BLUE)):
            to = (middles[target], y + 0.12)
            height = 0.42 + 0.16 * abs(middles[target] - middles[it])
            bend = 2 * height / abs(middles[target] - middles[it])
            bend = bend if target < it else -bend
            arrow(ax, start, to, colour=colour, width=width, bend=min(max(bend, -0.9), 0.9))
    return plt.gcf()


def _number(value: float) -> str:
    """1, 0.5, −1; nothing for zero."""
    return f"{value:.2g}".replace("-", "−") if abs(value) > 1e-6 else ""


def averages(panels: Mapping[str, tuple[Sequence[str], Tensor, Tensor]]) -> Figure:
    """Weights as bars beside the words' vectors, and under them the average that they make.

    panels: a name for the new vector, and its words, their weights (n,) and vectors (n, 6).
    """
    row, left, unit = 0.29, 1.92, 0.41  # a row's height; where the cells begin; their width
    height = 0.82 + sum((len(words) + 1) * row + 0.32 for words, _, _ in panels.values())
    ax = canvas(4.4, height)
    y = height - 0.82

    def line(y: float, name: str, vector: Tensor, width: float) -> None:
        ax.text(0.86, y - row / 2, name, ha="right", va="center", fontsize=11)
        for j, value in enumerate(vector.tolist()):
            at = (left + j * unit, y - row)
            ax.add_patch(Rectangle(at, unit, row, facecolor=BLUE if value > 0 else ORANGE,
                                   alpha=min(abs(value), 1.0) * 0.6, linewidth=0))  # fmt: skip
            ax.add_patch(Rectangle(at, unit, row, fill=False, edgecolor=GREY, linewidth=width))
            ax.text(at[0] + unit / 2, y - row / 2, _number(value), ha="center", va="center",
                    fontsize=11)  # fmt: skip

    for j, name in enumerate(FEATURES):
        ax.text(left + (j + 0.35) * unit, y + 0.06, name, rotation=40, ha="left", va="bottom",
                rotation_mode="anchor", fontsize=11)  # fmt: skip
    ax.text(0.98, y + 0.14, "weight", ha="left", va="center", fontsize=11)
    for name, (words, weights, vectors) in panels.items():
        for word, weight, vector in zip(words, weights.tolist(), vectors, strict=True):
            line(y, word, vector, 0.6)
            ax.add_patch(Rectangle((0.98, y - row + 0.05), 0.55 * weight, row - 0.1, color=GREEN))
            ax.text(1.04 + 0.55 * weight, y - row / 2, _number(weight) or "0", ha="left",
                    va="center", fontsize=11)  # fmt: skip
            y -= row
        y -= 0.1
        line(y, name, weights @ vectors, 1.8)
        y -= row + 0.22
    return plt.gcf()


def parameters(n: int, width: int) -> Figure:
    """Parameters of a dense layer and of four shared matrices against the length of the text."""
    fig, ax = plt.subplots(figsize=(4.3, 3.0))
    lengths = torch.logspace(0, 2.4, 50)
    shared = 4 * width**2
    ax.plot(lengths, (lengths * width) ** 2, "--", color=ORANGE)
    ax.plot(lengths, torch.full_like(lengths, shared), color=BLUE)
    ax.plot([n], [(n * width) ** 2], "o", color=ORANGE, markersize=8)
    ax.plot([n], [shared], "o", color=BLUE, markersize=8)
    ax.text(0.75 * n, (n * width) ** 2, "dense layer", fontsize=11, ha="right", va="bottom")
    ax.text(n, 0.5 * shared, "four shared matrices", fontsize=11, ha="center", va="top")
    ax.set(xscale="log", yscale="log", ylim=(5e5, 1e11))
    ax.set(xlabel="words in the text", ylabel="parameters")
    ax.set_xticks([1, 12, n, 200], ["1", "12", str(n), "200"])
    ax.minorticks_off()
    return fig


def three_ways() -> Figure:
    """Recurrence, convolution and attention over eight words, the path from first to last drawn."""
    ax = canvas(4.4, 6.3)
    n = 8
    xs = [0.2 + 0.57 * i for i in range(n)]

    def panel(y: float, title: str, colour: str, rows: int, step: float) -> list[float]:
        """Words as dots, `rows` layers of outputs as squares above; return the heights."""
        ax.text(0.05, y + rows * step + 0.34, title, fontsize=12, va="center")
        heights = [y + step * row for row in range(rows + 1)]
        ax.plot(xs, [y] * n, "o", color="k", markersize=6)
        for height in heights[1:]:
            ax.plot(xs, [height] * n, "s", color=colour, markersize=6)
        return heights

    def link(a: tuple[float, float], b: tuple[float, float]) -> None:
        ax.plot([a[0], b[0]], [a[1], b[1]], color="k", linewidth=0.6, alpha=0.45, zorder=0)

    low, high = panel(4.95, "recurrence: 8 steps in a row", BLUE, 1, 0.65)
    for i, x in enumerate(xs):
        link((x, low), (x, high))
        if i:
            arrow(ax, (xs[i - 1], high), (x, high), colour=BLUE, width=2.2)
    arrow(ax, (xs[0], low), (xs[0], high), colour=BLUE, width=2.2)

    heights = panel(2.0, "convolution, 3 words at a time: 4 layers", ORANGE, 4, 0.5)
    for below, above in zip(heights, heights[1:], strict=False):
        for i in range(n):
            for j in range(max(0, i - 2), i + 1):
                link((xs[j], below), (xs[i], above))
    for layer, (a, b) in enumerate(((0, 2), (2, 4), (4, 6), (6, 7))):
        start, end = (xs[a], heights[layer]), (xs[b], heights[layer + 1])
        arrow(ax, start, end, colour=ORANGE, width=2.2)

    low, high = panel(0.15, "attention: 1 step", GREEN, 1, 0.85)
    for a in xs:
        for b in xs:
            link((a, low), (b, high))
    arrow(ax, (xs[0], low), (xs[-1], high), colour=GREEN, width=2.2)
    return plt.gcf()

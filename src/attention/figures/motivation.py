"""Drawings of chapter 1, why attention."""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from torch import Tensor

from attention.plots import BLUE, COLOURS, GREEN, ORANGE, arrow, canvas


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
    ax = canvas(4.5, 2.8)
    cat, mat, it, last = 1, 5, 7, 9
    for y, end, strong, weak in ((1.68, "warm", mat, cat), (0.12, "tired", cat, mat)):
        words = f"The cat sat on the mat because it was {end}".split()
        middles = _sentence(ax, words, y, 11.5)
        start = (middles[it], y + 0.12)
        for target, width, colour in ((weak, 1.0, "k"), (last, 2.0, ORANGE), (strong, 4.0, BLUE)):
            to = (middles[target], y + 0.12)
            height = 0.42 + 0.16 * abs(middles[target] - middles[it])
            bend = 2 * height / abs(middles[target] - middles[it])
            bend = bend if target < it else -bend
            arrow(ax, start, to, colour=colour, width=width, bend=min(max(bend, -0.9), 0.9))
    return plt.gcf()


def forgetting(measured: dict[str, Tensor]) -> Figure:
    """The effect of each word on the last output, one curve a layer, on a logarithmic axis."""
    fig, ax = plt.subplots(figsize=(4.4, 3.8))
    for (name, effect), dash, colour in zip(
        measured.items(), ("-", "--", "-."), COLOURS, strict=False
    ):
        ax.plot(range(1, len(effect) + 1), effect, dash, color=colour, label=name)
    decades = math.floor(math.log10(min(effect.min().item() for effect in measured.values())))
    ax.set(yscale="log", ylim=(10.0**decades, 100), xlim=(1, len(effect)))
    ax.set(xlabel="position of the word", ylabel="effect on the last output")
    ax.set_xticks([1, 10, 20, 30, 40, 50])
    ax.minorticks_off()
    ax.legend(loc="lower right", fontsize=10.5)
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

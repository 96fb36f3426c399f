"""Drawings of chapter 2, queries, keys, values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle
from torch import Tensor

from attention.example import FEATURES, cat_sentence
from attention.functional import attention
from attention.plots import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, arrow, box, canvas

WORDS = ["The", "cat", "slept"]
# A query that asks "who acts?" and keys that answer it more or less well.
QUERY = [[1.0, 1.0]]
KEYS = [[0.0, 0.0], [2.0, 0.5], [0.5, 0.5]]
FOUR = [1, 5, 7, 9]  # cat, mat, it and the last word of the thread


def _number(value: float) -> str:
    """1, 0.5, −1; nothing for zero."""
    return f"{value:g}".replace("-", "−") if value else ""


def _cells(
    ax: Axes, left: float, top: float, values: Tensor | Sequence, *, wide: float = 0.36,
    high: float = 0.3, numbers: bool = True, reach: float = 1.0, colour: str = BLUE,
) -> None:  # fmt: skip
    """A matrix as coloured cells, `colour` above zero and orange below, zero left empty."""
    rows = torch.as_tensor(values, dtype=torch.float64).tolist()
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            shade = colour if value > 0 else ORANGE
            strength = min(abs(value) / reach, 1) * 0.6
            corner = (left + j * wide, top - (i + 1) * high)
            ax.add_patch(Rectangle(corner, wide, high, facecolor=shade, alpha=strength, lw=0))
            ax.add_patch(Rectangle(corner, wide, high, fill=False, edgecolor="#808080", lw=0.6))
            if numbers:
                ax.text(corner[0] + wide / 2, corner[1] + high / 2, _number(value), ha="center",
                        va="center", fontsize=11)  # fmt: skip


def _frame(ax: Axes, left: float, top: float, wide: float, high: float) -> None:
    ax.add_patch(Rectangle((left, top - high), wide, high, fill=False, edgecolor=PURPLE, lw=2.5))


def words() -> Figure:
    """The ten words of the thread as rows of coloured cells."""
    names, x = cat_sentence()
    ax = canvas(4.3, 3.85)
    left, top, wide, high = 0.85, 3.05, 0.56, 0.3
    _cells(ax, left, top, x, wide=wide, high=high)
    for i, name in enumerate(names):
        ax.text(left - 0.08, top - (i + 0.5) * high, name, ha="right", va="center", fontsize=12)
    for j, name in enumerate(FEATURES):
        ax.text(left + (j + 0.35) * wide, top + 0.06, name, rotation=40, ha="left", va="bottom",
                rotation_mode="anchor", fontsize=12)  # fmt: skip
    return plt.gcf()


def mean_product() -> Figure:
    """A X = O with all weights one tenth; the row of *it* is framed."""
    names, x = cat_sentence()
    a = torch.full((10, 10), 0.1)
    ax = canvas(4.4, 3.3)
    top, high = 2.85, 0.24
    for i, name in enumerate(names):
        ax.text(0.68, top - (i + 0.5) * high, name, ha="right", va="center", fontsize=12)
    for left, values, title, reach in (
        (0.74, a, "$A$", 0.3), (2.34, x, "$X$", 1.0), (3.48, a @ x, "$AX$", 0.3),
    ):  # fmt: skip
        wide = 0.13 if title == "$A$" else 0.145
        _cells(ax, left, top, values, wide=wide, high=high, numbers=False, reach=reach)
        middle = left + wide * values.shape[1] / 2
        ax.text(middle, top + 0.2, title, ha="center", va="center", fontsize=13)
        ax.text(middle, top - 10 * high - 0.2, f"{tuple(values.shape)}", ha="center", va="center",
                fontsize=12)  # fmt: skip
        if title != "$X$":
            _frame(ax, left, top - 7 * high, wide * values.shape[1], high)
    ax.text(2.19, top - 5 * high, "·", ha="center", va="center", fontsize=16)
    ax.text(3.345, top - 5 * high, "=", ha="center", va="center", fontsize=14)
    return plt.gcf()


def dot_scores() -> Figure:
    """x_i · x_j for four words of the thread: symmetric, with *it* · *it* the largest but one."""
    names, x = cat_sentence()
    names, x = [names[i] for i in FOUR], x[FOUR]
    ax = canvas(3.9, 2.75)
    left, top, wide, high = 0.9, 2.2, 0.7, 0.5
    _cells(ax, left, top, x @ x.T, wide=wide, high=high, reach=2.0)
    _frame(ax, left, top - 2 * high, 4 * wide, high)
    for i, name in enumerate(names):
        ax.text(left - 0.1, top - (i + 0.5) * high, name, ha="right", va="center", fontsize=12)
        ax.text(left + (i + 0.5) * wide, top + 0.17, name, ha="center", va="center", fontsize=12)
    return plt.gcf()


def ladder(rungs: Mapping[str, Tensor]) -> Figure:
    """From ten words to the new vector of *it*: a fan a rung, the width of a line its weight.

    The weights of cat, mat and it are written below them. rungs: title -> weights (10,).
    """
    names, _ = cat_sentence()
    xs = [0.2, 0.58, 0.95, 1.28, 1.6, 2.0, 2.62, 3.2, 3.54, 4.03]
    ax = canvas(4.4, 1.5 * len(rungs) + 0.05)
    for step, (title, weights) in enumerate(rungs.items()):
        low = 1.5 * (len(rungs) - 1 - step) + 0.4
        ax.text(0.05, low + 0.93, title, ha="left", va="center", fontsize=12, fontweight="bold")
        ax.plot(xs[7], low + 0.95, "o", color=GREEN, markersize=8)
        for j, (x, weight) in enumerate(zip(xs, weights.tolist(), strict=True)):
            ax.text(x, low, names[j], ha="center", va="center", fontsize=11)
            if names[j] in ("cat", "mat", "it"):
                ax.text(x, low - 0.22, f"{weight:.3f}", ha="center", va="center", fontsize=11)
            if weight > 0.001:
                ax.plot([x, xs[7]], [low + 0.15, low + 0.95], "-", color=GREEN,
                        lw=0.3 + 8 * weight, solid_capstyle="round")  # fmt: skip
    return plt.gcf()


def roles(w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Figure:
    """X times W^Q, W^K and W^V for four words: every product below its matrix, beside its word."""
    names, x = cat_sentence()
    names, x = [names[i] for i in FOUR], x[FOUR]
    ax = canvas(4.4, 4.35)
    wide, high, top, left = 0.33, 0.3, 2.15, 0.5
    _cells(ax, left, top, x, wide=wide, high=high)
    for i, name in enumerate(names):
        ax.text(left - 0.06, top - (i + 0.5) * high, name, ha="right", va="center", fontsize=12)
    for j, name in enumerate(FEATURES):
        ax.text(left + (j + 0.5) * wide, top - 4 * high - 0.08, name, rotation=90, ha="center",
                va="top", fontsize=11)  # fmt: skip
        ax.text(2.5, 4.1 - (j + 0.5) * high, name, ha="right", va="center", fontsize=11)
    ax.text(left + 3 * wide, top + 0.15, "$X$", ha="center", va="center", fontsize=13)
    at = 2.58
    for letter, w, colour, reach in (
        ("Q", w_q, BLUE, 8),
        ("K", w_k, BLUE, 1),
        ("V", w_v, GREEN, 1),
    ):
        _cells(ax, at, 4.1, w, wide=0.38, high=high, reach=reach, colour=colour)
        _cells(ax, at, top, x @ w, wide=0.38, high=high, reach=reach, colour=colour)
        middle = at + 0.19 * w.shape[1]
        ax.text(middle, 4.23, f"$W^{letter}$", ha="center", va="center", fontsize=13)
        ax.text(middle, top - 4 * high - 0.2, f"${letter}$", ha="center", va="center", fontsize=13)
        at += 0.38 * w.shape[1] + 0.13
    return plt.gcf()


def slept_weights() -> list[float]:
    """How "slept" divides its attention over The, cat, slept."""
    k = torch.tensor(KEYS)
    return attention(torch.tensor(QUERY), k, k)[1][0].tolist()


def _lines(ax: Axes, x: float, y: float, *lines: str, fontsize: float = 12) -> None:
    """One text a line: the page's font is narrower, and only single lines stay centred."""
    for i, line in enumerate(lines):
        height = y + 0.16 * (len(lines) - 1) - 0.32 * i
        ax.text(x, height, line, ha="center", va="center", fontsize=fontsize)


def lookup() -> Figure:
    """A query meets three keys, the softmax makes weights, and these average three values."""
    ax = canvas(4.4, 5.1)
    box(ax, 2.2, 4.7, "", width=2.6, height=0.72, colour=BLUE)
    _lines(ax, 2.2, 4.7, "query of “slept”:", "who acts?")
    box(ax, 2.2, 2.82, "", width=4.25, height=0.72, colour=SKY)
    ax.text(2.2, 2.98, "softmax", ha="center", va="center", fontsize=12)
    for i, (word, weight) in enumerate(zip(WORDS, slept_weights(), strict=True)):
        x, end = 0.75 + 1.45 * i, (2.2 + 0.5 * (i - 1), 0.78)
        box(ax, x, 3.65, "", width=1.2, height=0.45, colour=ORANGE)
        _lines(ax, x, 3.65, f"key {word}")
        arrow(ax, (2.2 + 0.5 * (i - 1), 4.32), (x, 3.9))
        arrow(ax, (x, 3.41), (x, 3.2))
        ax.text(x, 2.64, f"{weight:.2f}", ha="center", va="center", fontsize=12)
        ax.plot([x, x], [2.27, 2.44], ":", color="k", lw=1.2)
        box(ax, x, 2.02, "", width=1.2, height=0.45, colour=GREEN)
        _lines(ax, x, 2.02, f"value {word}")
        arrow(ax, (x, 1.78), end, colour=GREEN, width=0.6 + 7 * weight)
    box(ax, 2.2, 0.4, "", width=2.9, height=0.7, colour=RED)
    _lines(ax, 2.2, 0.4, "output: new vector", "of “slept”, an average")
    return plt.gcf()


def path() -> Figure:
    """From ids to Q, K and V, with shapes."""
    ax = canvas(4.3, 5.0)
    steps = [(4.6, ("ids 0, 1, 2, 3", "(4)"), SKY), (3.45, ("embedding: table", "6 × 16"), SKY),
             (2.3, ("$X$, a row a token", "(4, 16)"), SKY)]  # fmt: skip
    for y, lines, colour in steps:
        box(ax, 2.15, y, "", width=2.3, height=0.74, colour=colour)
        _lines(ax, 2.15, y, *lines)
    arrow(ax, (2.15, 4.22), (2.15, 3.84))
    arrow(ax, (2.15, 3.07), (2.15, 2.69))
    for i, (name, colour) in enumerate((("Q", BLUE), ("K", ORANGE), ("V", GREEN))):
        x = 0.7 + 1.45 * i
        box(ax, x, 0.5, "", width=1.15, height=0.74, colour=colour)
        _lines(ax, x, 0.5, f"${name}$", "(4, 8)")
        arrow(ax, (2.15 + 0.5 * (i - 1), 1.92), (x, 0.89))
        place = (2.15 + 0.5 * (i - 1) + x) / 2 + (-0.38, 0.34, 0.42)[i]
        ax.text(place, 1.45, f"$W^{name}$", ha="center", va="center", fontsize=13)
    return plt.gcf()


def layers() -> Figure:
    """A layer for each word alone, and attention."""
    ax = canvas(4.3, 4.6)
    xs = [0.8, 2.15, 3.5]
    k = torch.tensor(KEYS)
    weights = attention(torch.tensor([[0.3, 0.2], [0.6, -0.4], QUERY[0]]), k, k)[1].tolist()
    for top, title, all_to_all in ((4.4, "word by word", False), (2.05, "attention", True)):
        ax.text(2.15, top, title, ha="center", va="center", fontsize=12)
        for i, x in enumerate(xs):
            ax.plot([x, x], [top - 0.35, top - 1.45], "o", color="k", markersize=7)
            ax.text(x, top - 1.75, WORDS[i], ha="center", va="center", fontsize=12)
            for j, source in enumerate(xs):
                if all_to_all or i == j:
                    wide = 0.5 + 5 * weights[i][j] if all_to_all else 2.0
                    arrow(ax, (source, top - 1.42), (x, top - 0.4), width=wide,
                          colour=GREEN if all_to_all else BLUE)  # fmt: skip
    return plt.gcf()


def half_plane() -> Figure:
    """The queries that prefer the key of mat to that of cat."""
    fig, ax = plt.subplots(figsize=(4.3, 4.3))
    reach = 0.3
    edge = [-reach, reach], [-reach * 4 / 7, reach * 4 / 7]
    ax.add_patch(Polygon([(-reach, edge[1][0]), (reach, edge[1][1]), (reach, -reach),
                          (-reach, -reach)], closed=True, facecolor=BLUE + "26"))  # fmt: skip
    ax.plot(*edge, "--", color="k", lw=1.4)
    for point, colour, text, place in (
        ((0.21, 0.04), "k", "query of mat", (-0.27, 0.05)),
        ((0.18, 0.10), ORANGE, "key of cat", (0.02, 0.19)),
        ((0.22, 0.03), ORANGE, "key of mat", (0.13, -0.07)),
    ):
        ax.annotate("", point, (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2,
                                                   "shrinkA": 0, "shrinkB": 0})  # fmt: skip
        ax.annotate(text, point, place, fontsize=12,
                    arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.8})  # fmt: skip
    ax.text(-0.2, 0.24, "prefers cat", ha="center", fontsize=12)
    ax.text(0.14, -0.2, "prefers mat", ha="center", fontsize=12)
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="$q_1$", ylabel="$q_2$")
    ax.set_aspect("equal")
    ax.set_xticks([-0.2, 0, 0.2], ["−0.2", "0", "0.2"])
    ax.set_yticks([-0.2, 0, 0.2], ["−0.2", "0", "0.2"])
    ax.axhline(0, color="k", lw=0.5)
    ax.axvline(0, color="k", lw=0.5)
    return fig


def hull(outputs: Mapping[str, tuple[float, float]]) -> Figure:
    """The thread's values in the plane of *alive* and *place*, their triangle, outputs of *it*."""
    fig, ax = plt.subplots(figsize=(4.3, 4.2))
    ax.plot([0, 1, 1], [1, 1, 0], ":", color="k", lw=1.2)
    ax.add_patch(Polygon([(0, 0), (1, 0), (0, 1)], closed=True, facecolor=BLUE + "26",
                         edgecolor=BLUE, lw=1.5))  # fmt: skip
    for point, name, shift in (
        ((1, 0), "cat", (10, -2)), ((0, 1), "mat", (8, 4)), ((0.5, 0.5), "it", (8, 4)),
        ((0, 0), "other words", (-10, -17)),
    ):  # fmt: skip
        ax.plot(*point, "o", color=BLUE, markersize=8)
        ax.annotate(name, point, shift, textcoords="offset points", fontsize=12)
    for name, point in outputs.items():
        ax.plot(*point, "D", color=GREEN, markersize=8)
        place, side = (8, -4), "left"
        if sum(point) > 0.4:  # its name would cross the long side
            place = (-20, 9)
        if sum(point) > 0.8:
            place, side = (-9, -4), "right"
        if sum(point) > 0.95:  # almost at the corner cat: below the triangle
            place, side = (4, -20), "right"
        ax.annotate(name, point, place, textcoords="offset points", ha=side, fontsize=12)
    ax.plot(0.7, 0.5, "x", color="k", markersize=8, markeredgewidth=2)
    ax.annotate("?", (0.7, 0.5), (7, -5), textcoords="offset points", fontsize=15)
    ax.set(xlim=(-0.1, 1.2), ylim=(-0.14, 1.2), xlabel="alive", ylabel="place")
    ax.set_aspect("equal")
    ax.set_xticks([0, 0.5, 1])
    ax.set_yticks([0, 0.5, 1])
    return fig


def transposed() -> Figure:
    """W^Q of the formula, and the same matrix as nn.Linear stores it."""
    ax = canvas(4.3, 2.7)
    w = torch.linspace(-1, 1, 24).reshape(6, 4)  # a row is an input
    for left, values, title, shape in ((0.45, w, "in the formula", "(6, 4)"),
                                       (2.3, w.T, "in nn.Linear", "(4, 6)")):  # fmt: skip
        top = 1.2 + 0.14 * len(values)
        _cells(ax, left, top, values, wide=0.28, high=0.28, numbers=False)
        middle = left + 0.14 * values.shape[1]
        ax.text(middle, 2.45, title, ha="center", va="center", fontsize=12)
        ax.text(middle, 0.13, shape, ha="center", va="center", fontsize=12)
    _frame(ax, 0.45, 2.04, 0.28, 1.68)
    _frame(ax, 2.3, 1.76, 1.68, 0.28)
    return plt.gcf()

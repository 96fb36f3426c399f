"""Drawings of chapter 2, queries, keys, values."""

from __future__ import annotations

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from attention.functional import attention
from attention.plots import BLUE, GREEN, ORANGE, PURPLE, RED, arrow, box, canvas

WORDS = ["The", "cat", "slept"]
# A query that asks "who acts?" and keys that answer it more or less well.
QUERY = [[1.0, 1.0]]
KEYS = [[0.0, 0.0], [2.0, 0.5], [0.5, 0.5]]


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
    """A query meets three keys; the weights blend three values."""
    ax = canvas(4.4, 4.5)
    box(ax, 2.2, 4.1, "", width=2.6, height=0.72, colour=BLUE)
    _lines(ax, 2.2, 4.1, "query of “slept”:", "who acts?")
    for i, (word, weight) in enumerate(zip(WORDS, slept_weights(), strict=True)):
        x = 0.75 + 1.45 * i
        box(ax, x, 2.9, "", width=1.2, height=0.5, colour=ORANGE)
        _lines(ax, x, 2.9, f"key {word}")
        arrow(ax, (2.2 + 0.5 * (i - 1), 3.72), (x, 3.18))
        box(ax, x, 2.1, "", width=1.2, height=0.5, colour=GREEN)
        _lines(ax, x, 2.1, f"value {word}")
        ax.plot([x, x], [2.37, 2.63], ":", color="k", lw=1.2)
        end = (2.2 + 0.5 * (i - 1), 0.78)
        arrow(ax, (x, 1.83), end, colour=GREEN, width=0.6 + 7 * weight)
        side = {0: -0.42, 1: 0.42, 2: 0.45}[i]
        ax.text((x + end[0]) / 2 + side, 1.35, f"{weight:.2f}", ha="center", va="center",
                fontsize=12)  # fmt: skip
    box(ax, 2.2, 0.4, "", width=2.9, height=0.7, colour=PURPLE)
    _lines(ax, 2.2, 0.4, "output: new vector", "of “slept”, a blend")
    return plt.gcf()


def path() -> Figure:
    """From ids to Q, K and V, with shapes."""
    ax = canvas(4.3, 5.0)
    steps = [(4.6, ("ids 0, 1, 2, 3", "(4)"), BLUE), (3.45, ("embedding: table", "6 × 16"), ORANGE),
             (2.3, ("X, a row a token", "(4, 16)"), PURPLE)]  # fmt: skip
    for y, lines, colour in steps:
        box(ax, 2.15, y, "", width=2.3, height=0.74, colour=colour)
        _lines(ax, 2.15, y, *lines)
    arrow(ax, (2.15, 4.22), (2.15, 3.84))
    arrow(ax, (2.15, 3.07), (2.15, 2.69))
    for i, (name, colour) in enumerate((("Q", BLUE), ("K", ORANGE), ("V", GREEN))):
        x = 0.7 + 1.45 * i
        box(ax, x, 0.5, "", width=1.15, height=0.74, colour=colour)
        _lines(ax, x, 0.5, name, "(4, 8)")
        arrow(ax, (2.15 + 0.5 * (i - 1), 1.92), (x, 0.89))
        place = (2.15 + 0.5 * (i - 1) + x) / 2 + (-0.38, 0.34, 0.42)[i]
        ax.text(place, 1.45, f"$W^{name}$", ha="center", va="center", fontsize=13)
    return plt.gcf()


def layers() -> Figure:
    """A layer for each token alone, and attention."""
    ax = canvas(4.3, 4.6)
    xs = [0.8, 2.15, 3.5]
    k = torch.tensor(KEYS)
    weights = attention(torch.tensor([[0.3, 0.2], [0.6, -0.4], QUERY[0]]), k, k)[1].tolist()
    for top, title, all_to_all in ((4.4, "token by token", False), (2.05, "attention", True)):
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
        ((0.22, 0.03), GREEN, "key of mat", (0.13, -0.07)),
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


def hull() -> Figure:
    """The values of The, cat, sat, their triangle, right outputs and impossible ones."""
    fig, ax = plt.subplots(figsize=(4.3, 4.2))
    corners = [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
    ax.plot([0, 1, 1, 0, 0], [0, 0, 1, 1, 0], ":", color="k", lw=1.2)
    ax.add_patch(Polygon(corners, closed=True, facecolor=BLUE + "26", edgecolor=BLUE, lw=1.5))
    for corner, name, place in zip(corners, ("The", "cat", "sat"),
                                   ((8, 6), (-6, 8), (-26, 7)), strict=True):  # fmt: skip
        ax.plot(*corner, "o", color=BLUE, markersize=8)
        ax.annotate(name, corner, place, textcoords="offset points", fontsize=12)
    right = [(0.6, 0.7), (0.5, 0.8), (0.7, 0.6)]
    wrong = [(1.3869, 1.2797), (1.4006, 1.1692), (1.4296, 1.2905)]
    ax.plot(*zip(*right, strict=True), "D", color=GREEN, markersize=7)
    ax.plot(*zip(*wrong, strict=True), "X", color=RED, markersize=9)
    ax.text(1.05, 0.72, "right", color="k", fontsize=12)
    ax.plot([0.73, 1.03], [0.63, 0.73], "-", color="k", lw=0.7)
    ax.text(1.4, 1.38, "printed", ha="center", fontsize=12)
    ax.text(0.3, 0.5, "?", ha="center", va="center", fontsize=15, color="k")
    ax.set(xlim=(-0.1, 1.6), ylim=(-0.1, 1.55), xlabel="first coordinate",
           ylabel="second coordinate")  # fmt: skip
    ax.set_aspect("equal")
    ax.set_xticks([0, 0.5, 1, 1.5])
    ax.set_yticks([0, 0.5, 1, 1.5])
    return fig

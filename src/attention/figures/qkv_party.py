"""Drawings of the party in chapter 2: who looks at whom."""

from __future__ import annotations

import math
from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from torch import Tensor

from attention.plots import BLUE, GREEN, ORANGE, box, canvas, curves

GUESTS = ["Ann", "Ben", "Cem", "Dia", "Eva", "Fei", "Gus", "Ida"]


def guest() -> Figure:
    """The 20 numbers of one guest, and which part each of the three matrices takes."""
    ax = canvas(4.4, 2.3)
    for x, wide, text, shape, role, colour in (
        (0.82, 1.5, "looks for:\nBen", "8 numbers", "query", BLUE),
        (2.37, 1.5, "is called:\nAnn", "8 numbers", "key", ORANGE),
        (3.72, 1.1, "card", "4 numbers", "value", GREEN),
    ):
        box(ax, x, 1.6, "", width=wide, height=0.75, colour=colour)
        for i, line in enumerate(text.split("\n")):
            lift = 0.15 - 0.3 * i if "\n" in text else 0
            ax.text(x, 1.6 + lift, line, ha="center", va="center", fontsize=12)
        ax.text(x, 2.12, shape, ha="center", va="center", fontsize=12)
        ax.annotate("", (x, 0.55), (x, 1.2), arrowprops={"arrowstyle": "-|>", "color": "k"})
        letter = {"query": "Q", "key": "K", "value": "V"}[role]
        ax.text(x + 0.12, 0.88, f"$W^{letter}$", ha="left", va="center", fontsize=13)
        ax.text(x, 0.35, role, ha="center", va="center", fontsize=12)
    return plt.gcf()


def _ring(ax: Axes, centre: tuple[float, float], weights: Tensor, title: str) -> None:
    spots = []
    for i in range(len(GUESTS)):
        turn = math.pi / 2 - 2 * math.pi * i / len(GUESTS)
        reach = math.cos(turn), math.sin(turn)
        spots.append((centre[0] + 0.62 * reach[0], centre[1] + 0.62 * reach[1]))
        ax.text(centre[0] + 0.84 * reach[0], centre[1] + 0.84 * reach[1], f"{i + 1}", ha="center",
                va="center", fontsize=11)  # fmt: skip
    for i, row in enumerate(weights.tolist()):
        for j, weight in enumerate(row):
            if i == j:  # the dot grows with what a guest gives itself
                ax.plot(*spots[i], "o", color=ORANGE, markersize=2 + 14 * weight)
            elif weight > 0.01:
                ax.add_patch(FancyArrowPatch(
                    spots[i], spots[j], arrowstyle="-|>", color=BLUE, shrinkA=4, shrinkB=4,
                    alpha=min((weight / 0.15) ** 2, 1),
                    mutation_scale=4 + 8 * weight, linewidth=5 * weight,
                    connectionstyle="arc3,rad=0.15",
                ))  # fmt: skip
    ax.text(centre[0], centre[1] + 1.2, title, ha="center", va="center", fontsize=12,
            fontweight="bold")  # fmt: skip


def rings(maps: Mapping[str, Tensor]) -> Figure:
    """Eight guests in a ring, each looking for the next: weights as widths.

    maps: title -> weights (8, 8), two beside each other; arrows below 0.01 are left out.
    """
    lines = (len(maps) + 1) // 2
    ax = canvas(4.4, 2.5 * lines)
    for i, (title, weights) in enumerate(maps.items()):
        _ring(ax, (1.1 + 2.2 * (i % 2), 2.5 * (lines - i // 2) - 1.38), weights, title)
    return plt.gcf()


def directions(queries: Tensor, keys: Tensor) -> Figure:
    """The query and the key that training gave to each name, in the plane: both (8, 2)."""
    ax = plt.subplots(figsize=(4.3, 4.3))[1]
    reach = 1.4 * max(keys.norm(dim=-1).max().item(), queries.norm(dim=-1).max().item())
    for name, query, key in zip(GUESTS, queries.tolist(), keys.tolist(), strict=True):
        ax.annotate("", query, (0, 0), arrowprops={"arrowstyle": "-|>", "color": BLUE, "lw": 2,
                                                   "shrinkA": 0, "shrinkB": 0})  # fmt: skip
        ax.plot(*key, "o", color=ORANGE, markersize=9)
        far = 0.86 * reach / math.hypot(*key)
        ax.text(far * key[0], far * key[1], name, ha="center", va="center", fontsize=12)
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="first number",
           ylabel="second number")  # fmt: skip
    ax.set_aspect("equal")
    ax.set_xticks([-4, 0, 4], ["−4", "0", "4"])
    ax.set_yticks([-4, 0, 4], ["−4", "0", "4"])
    return plt.gcf()


def losses(series: Mapping[str, list[float]]) -> Figure:
    """The error against the steps of training, each point the mean of 20 steps."""
    ax = plt.subplots(figsize=(4.3, 3.2))[1]
    means = {
        name: [sum(values[i : i + 20]) / 20 for i in range(0, len(values), 20)]
        for name, values in series.items()
    }
    steps = [20 * i + 10 for i in range(len(next(iter(means.values()))))]
    curves(steps, means, ax=ax, xlabel="steps", ylabel="error")
    ax.set_ylim(0, 1.1)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncol=2, fontsize=11)
    return plt.gcf()

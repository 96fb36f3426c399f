"""The drawings of chapter 4."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from torch import Tensor

from ..plots import BLUE, GREEN, ORANGE, PURPLE, SEQUENTIAL, arrow, box, canvas


def parallel_heads() -> Figure:
    """Three heads side by side: project, attend, concatenate, project."""
    ax = canvas(4.9, 5.3)
    middle = 2.45
    ax.text(middle, 5.12, "every head reads all of $X$", ha="center", va="center")
    box(ax, middle, 4.65, r"$X$   ($n \times d_{\mathrm{model}}$)", width=2.2)
    for r, (x, colour) in enumerate(zip((0.8, 2.45, 4.1), (BLUE, ORANGE, GREEN), strict=True)):
        arrow(ax, (middle + 0.5 * (r - 1), 4.4), (x, 3.85))
        box(ax, x, 3.6, f"$Q_{r}, K_{r}, V_{r}$", width=1.4, colour=colour)
        arrow(ax, (x, 3.35), (x, 2.98))
        box(ax, x, 2.66, "attention,\nown weights", width=1.4, height=0.64, colour=colour)
        centre = middle + 1.0 * (r - 1)
        arrow(ax, (x, 2.34), (centre, 1.67))
        box(ax, centre, 1.4, rf"head$_{r}$", width=1.0, colour=colour)
    ax.text(0.02, 2.0, r"each $n \times d_v$", ha="left", va="center", fontsize=10)
    ax.text(0.02, 1.4, "Concat", ha="left", va="center", fontsize=10)
    ax.text(4.02, 1.4, r"$n \times h\,d_v$", ha="left", va="center", fontsize=10)
    arrow(ax, (middle, 1.15), (middle, 0.6))
    ax.text(middle + 0.12, 0.87, r"$W^O$ mixes the heads", ha="left", va="center", fontsize=10)
    box(ax, middle, 0.33, r"$O$   ($n \times d_{\mathrm{model}}$)", width=2.2, colour=PURPLE)
    return plt.gcf()


def rows_of_it(rows: Sequence[Tensor], tokens: Sequence[Sequence[str]]) -> Figure:
    """The weights of one query in every head, (heads, n), a panel for each sentence."""
    figure, axes = plt.subplots(
        len(rows), 1, figsize=(5.0, 2.9 * len(rows) + 0.6), layout="constrained"
    )
    for ax, weights, words in zip(axes, rows, tokens, strict=True):
        heads, n = weights.shape
        image = ax.pcolormesh(weights.numpy(), cmap=SEQUENTIAL, vmin=0, vmax=1)
        ax.invert_yaxis()
        ax.set_xticks([j + 0.5 for j in range(n)], words, rotation=50, ha="right")
        ax.set_yticks(
            [i + 0.5 for i in range(heads)],
            [f"{i // (heads // 2)}.{i % (heads // 2)}" for i in range(heads)],
        )
        ax.axhline(heads / 2, color="#ffffff", linewidth=2)
        ax.set(ylabel="layer.head", title=f"“… because it was too {words[-1]}”")
        ax.tick_params(length=0)
        for spine in ax.spines.values():
            spine.set_visible(False)
    bar = figure.colorbar(image, ax=list(axes), location="bottom", fraction=0.03, pad=0.02)
    bar.set_label("weight that “it” gives")
    return figure


def weight_against_loss(weight: Sequence[float], loss: Sequence[float], base: float) -> Figure:
    """One point a head: how much it looks at the referent, and what its absence costs."""
    figure, ax = plt.subplots(figsize=(4.9, 3.6))
    per_layer = len(weight) // 2
    for i, (x, y) in enumerate(zip(weight, loss, strict=True)):
        colour, marker = ((BLUE, "o"), (ORANGE, "s"))[i // per_layer]
        name = f"layer {i // per_layer}" if i % per_layer == 0 else None
        ax.plot(x, y, marker, color=colour, markersize=8, label=name)
        ax.annotate(
            f"{i // per_layer}.{i % per_layer}", (x, y), textcoords="offset points",
            xytext=(8, 5), fontsize=11,
        )  # fmt: skip
    ax.axhline(base, color="k", linestyle=":", linewidth=1.4)
    ax.text(1.0, base * 0.86, "all heads on", ha="right", va="top", fontsize=10)
    ax.set_yscale("log")
    ax.set(
        xlim=(-0.03, 1.03), ylim=(base * 0.4, max(loss) * 3),
        xlabel="mean weight from “it” to what it means", ylabel="loss with the head off (nats)",
    )  # fmt: skip
    ax.legend(loc="upper right")
    return figure


def shared_heads() -> Figure:
    """Eight query heads with eight, two and one heads of keys and values."""
    ax = canvas(4.9, 5.3)
    rows = (("multi-head", 8), ("grouped-query", 2), ("multi-query", 1))
    colours = (BLUE, ORANGE, GREEN, PURPLE)
    step = 0.6
    for i, (name, groups) in enumerate(rows):
        top = 4.6 - 1.8 * i
        text = f"{name}: 8 heads of queries, {groups} of keys and values"
        ax.text(0.05, top + 0.45, text, ha="left", va="center", fontsize=11)
        share = 8 // groups
        for r in range(8):
            group = r // share
            x = 0.35 + step * r
            centre = 0.35 + step * (group * share + (share - 1) / 2)
            colour = colours[group % 4]
            ax.plot([x, centre], [top - 0.2, top - 0.62], color=colour, linewidth=1.4)
            box(ax, x, top, "Q", width=0.42, height=0.38, colour=colour)
        for group in range(groups):
            centre = 0.35 + step * (group * share + (share - 1) / 2)
            box(ax, centre, top - 0.8, "KV", width=0.5, height=0.38, colour=colours[group % 4])
    return plt.gcf()

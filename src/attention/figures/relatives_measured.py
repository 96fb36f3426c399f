"""The drawings of chapter 9 that show trained models: alignments, masks, digits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from attention.plots import BLUE, COLOURS, GREEN, ORANGE, SEQUENTIAL, heatmap

__all__ = ["alignment", "bars", "learning", "misread", "patched", "reads", "seeds"]
GREY = "#808080"
Judged = Mapping[int, Mapping[str, Sequence[Mapping[int, Sequence[float]]]]]


def alignment(weights: Tensor, writes: Sequence[str], reads: Sequence[str]) -> Figure:
    """Cross-attention weights: one row for each token that is predicted, one column a source."""
    figure, ax = plt.subplots(figsize=(4.4, 4.0), layout="constrained")
    heatmap(weights, writes, reads, ax=ax, fmt=".2f", row_label="predicts", col_label=None)
    ax.tick_params(axis="x", rotation=60)
    return figure


def bars(shares: Mapping[str, float], marked: str = "", unit: str = "probability") -> Figure:
    """One bar for each name, the marked one in another colour, with its number."""
    figure, ax = plt.subplots(figsize=(4.3, 0.4 * len(shares) + 0.7), layout="constrained")
    names, values = list(shares), list(shares.values())
    colours = [ORANGE if name == marked else BLUE for name in names]
    drawn = ax.barh(range(len(names)), values, color=colours, height=0.6)
    whole = all(float(value).is_integer() for value in values)
    ax.bar_label(drawn, [f"{v:.0f}" if whole else f"{v:.2f}" for v in values], padding=3)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set(xlabel=unit, xlim=(0, 1.2 * max(values)))
    return figure


def learning(runs: Mapping[str, tuple[Sequence[float], float]]) -> Figure:
    """The loss on hidden words, smoothed, and what knowing only the words' frequencies gives."""
    figure, ax = plt.subplots(figsize=(4.3, 3.2), layout="constrained")
    for k, (name, (loss, frequencies)) in enumerate(runs.items()):
        smooth = torch.tensor(loss).unfold(0, 20, 1).mean(-1)
        ax.plot(range(20, len(loss) + 1), smooth, color=COLOURS[k], label=name,
                linestyle=("-", "--")[k])  # fmt: skip
        ax.axhline(frequencies, color=COLOURS[k], linewidth=0.9, linestyle=":")
    ax.set(xlabel="step", ylabel="loss on hidden words (nats)", ylim=(0, None))
    ax.text(0.98, 0.62, "dotted: word frequencies alone", transform=ax.transAxes, ha="right")
    figure.legend(loc="outside upper left", ncols=2)
    return figure


def reads(losses: Mapping[str, Sequence[float]], at: int) -> Figure:
    """Losses over the steps, each the mean of five, and a dotted line at the step `at`."""
    figure, ax = plt.subplots(figsize=(4.3, 3.2), layout="constrained")
    for k, (name, loss) in enumerate(losses.items()):
        smooth = torch.tensor(loss).unfold(0, 5, 1).mean(-1)
        ax.plot(range(3, len(smooth) + 3), smooth, ("-", "--")[k], color=COLOURS[k], label=name)
    ax.axvline(at, color=GREY, linewidth=0.9, linestyle=":")
    ax.set(xlabel="step", ylabel="loss (nats)", ylim=(0, None))
    figure.legend(loc="outside upper left", ncols=2)
    return figure


def seeds(judged: Judged, chance: float) -> Figure:
    """Share of right answers over the steps, a panel for each number of labels, a dot a seed."""
    figure, axes = plt.subplots(
        1, len(judged), figsize=(4.4, 3.0), sharey=True, layout="constrained"
    )
    for ax, (count, by_name) in zip(axes, judged.items(), strict=True):
        for k, (name, runs) in enumerate(by_name.items()):
            steps = list(runs[0])
            places = [x + 0.1 * (k - 0.5) for x in range(len(steps))]
            means = [sum(run[step][0] for run in runs) / len(runs) for step in steps]
            ax.plot(places, means, ("-", "--")[k], color=COLOURS[k], label=name)
            for run in runs:
                ax.plot(
                    places,
                    [run[step][0] for step in steps],
                    "os"[k],
                    color=COLOURS[k],
                    markersize=4,
                )
        ax.axhline(chance, color=GREY, linewidth=0.9, linestyle=":")
        ax.set_xticks(range(len(steps)), list(map(str, steps)))
        ax.set(xlabel="steps", ylim=(0.4, 1))
        ax.set_title(f"{count} labels", fontsize=11)
    axes[0].set_ylabel("share of right answers")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=2)
    return figure


def patched(image: Tensor, size: int = 2) -> Figure:
    """An image with its patches framed and numbered, and the patches in a row as tokens."""
    side = image.shape[0] // size
    figure = plt.figure(figsize=(4.3, 3.9), layout="constrained")
    top, below = figure.subplots(2, 1, height_ratios=(3.2, 1))
    top.pcolormesh(image.flip(0), cmap=SEQUENTIAL, vmin=0, vmax=1)
    top.set_aspect("equal")
    for i in range(side):
        for j in range(side):
            corner = (size * j, size * (side - 1 - i))
            top.add_patch(Rectangle(corner, size, size, fill=False, edgecolor=ORANGE, lw=1.6))
    cut = image.unfold(0, size, size).unfold(1, size, size).reshape(-1, size, size)
    for k, patch in enumerate(cut):
        row, column = divmod(k, 8)
        x, y = 1.5 + 1.3 * column, 2.0 - 2.1 * row
        below.pcolormesh([x, x + 0.5, x + 1], [y, y + 0.5, y + 1], patch.flip(0), cmap=SEQUENTIAL,
                         vmin=0, vmax=1, edgecolors="#80808066", linewidth=0.4)  # fmt: skip
        below.text(x + 0.5, y - 0.45, str(k + 1), ha="center", va="center", fontsize=11)
    below.text(0.5, 2.0, "class", ha="center", va="center", fontsize=11, color=GREEN)
    below.set(xlim=(-0.3, 12), ylim=(-0.9, 3.1), aspect="equal")
    for ax in (top, below):
        ax.set_axis_off()
    return figure


def misread(images: Tensor, said: Sequence[int], labels: Sequence[int]) -> Figure:
    """Images (8, 8, 8) that a model got wrong, each with what it is and what the model said."""
    figure, axes = plt.subplots(2, 4, figsize=(4.3, 3.0), layout="constrained")
    for ax, image, guess, label in zip(axes.flat, images, said, labels, strict=True):
        ax.pcolormesh(image.flip(0), cmap=SEQUENTIAL, vmin=0, vmax=1)
        ax.set_aspect("equal")
        ax.set(xticks=[], yticks=[])
        ax.set_title(f"a {label}, read {guess}", fontsize=11)
    return figure

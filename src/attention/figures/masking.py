"""The drawings of the chapter on masking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from torch import Tensor

from ..plots import BLUE, GREEN, ORANGE, arrow, box, canvas, heatmap

STYLES = {"masked": (BLUE, "-"), "unmasked": (ORANGE, "--")}


def the_answer_is_in_the_input(words: Sequence[str]) -> Figure:
    """Inputs below, targets above: each target is the next input, one column to the right."""
    inputs, targets = words[:-1], words[1:]
    ax = canvas(0.95 * len(inputs) + 1.15, 2.7)
    columns = [1.15 + 0.95 * i for i in range(len(inputs))]
    for x, word, target in zip(columns, inputs, targets, strict=True):
        box(ax, x, 0.45, word, width=0.8, colour=BLUE)
        box(ax, x, 2.25, target, width=0.8, colour=GREEN)
    for y, name in ((0.45, "input"), (2.25, "target")):
        ax.text(0.05, y, name, va="center", fontsize=11)
    place = len(inputs) - 2
    top = (columns[place], 1.96)
    for i, x in enumerate(columns):
        future = i > place
        arrow(ax, (x, 0.74), top, colour=ORANGE if future else "k", width=2.6 if future else 1.2)
    ax.text(columns[-1] - 0.1, 1.45, "the answer", ha="left", va="center", fontsize=11)
    return ax.figure  # type: ignore[return-value]


def before_and_after(before: Tensor, after: Tensor, words: Sequence[str]) -> Figure:
    """The weights of one example without the mask, and with it."""
    figure, axes = plt.subplots(1, 2, figsize=(5.0, 2.3), layout="constrained")
    for ax, weights, title in zip(axes, (before, after), ("no mask", "causal mask"), strict=True):
        heatmap(weights, list(words), list(words), ax=ax, title=title)
    return figure


def cheating(
    losses: Mapping[str, Sequence[Sequence[float]]],
    places: Mapping[str, Sequence[Sequence[float]]],
    floor: float,
) -> Figure:
    """Training loss over the steps and, after it, loss at each place; one line a seed."""
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(4.6, 5.4), layout="constrained")
    for name, runs in losses.items():
        colour, dash = STYLES[name]
        for i, run in enumerate(runs):
            label = name if i == 0 else None
            top.plot(range(1, len(run) + 1), run, dash, color=colour, lw=1.3, label=label)
    top.axhline(floor, color="k", lw=1, ls=":")
    top.text(1, floor * 0.92, "floor", ha="left", va="top")
    top.set(xlabel="step", ylabel="training loss (nats)", yscale="log")
    top.set_yticks([0.1, 1, 5], ["0.1", "1", "5"])
    top.minorticks_off()
    for name, runs in places.items():
        colour, dash = STYLES[name]
        for i, run in enumerate(runs):
            label = name if i == 0 else None
            bottom.plot(range(len(run)), run, dash, color=colour, lw=1.3, marker="o", ms=3,
                        label=label)  # fmt: skip
    bottom.set(xlabel="place in the window", ylabel="loss at this place (nats)", ylim=(0, None))
    bottom.set_xticks(range(0, len(next(iter(places.values()))[0]), 3))
    for ax in (top, bottom):
        ax.legend()
    return figure


def gallery(masks: Mapping[str, Tensor], columns: int = 2) -> Figure:
    """Boolean masks (n_q, n_k) side by side: filled where the query may attend."""
    rows = -(-len(masks) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(2.2 * columns, 2.4 * rows), layout="constrained", squeeze=False
    )
    for ax in axes.flat:
        ax.set_axis_off()
    for ax, (name, mask) in zip(axes.flat, masks.items(), strict=False):
        ax.set_axis_on()
        _grid(ax, mask)
        ax.set_title(name)
    return figure


def spread(reached: Mapping[int, Tensor]) -> Figure:
    """Which inputs reach which outputs, for each number of layers."""
    figure, axes = plt.subplots(
        1, len(reached), figsize=(1.7 * len(reached), 2.2), layout="constrained"
    )
    for ax, (layers, mask) in zip(axes, reached.items(), strict=True):
        _grid(ax, mask, "output", "input")
        ax.set_title("1 layer" if layers == 1 else f"{layers} layers")
    for ax in axes[1:]:
        ax.set_ylabel("")
    return figure


def _grid(ax, mask: Tensor, rows: str = "query", cols: str = "key") -> None:
    """A bordered cell for each pair, filled where the mask is True."""
    # matplotlib draws the grid lines grey: they must show on a light and on a dark page.
    ax.pcolormesh(
        mask.cpu().float().numpy(), cmap=ListedColormap(["none", BLUE]), vmin=0, vmax=1,
        edgecolors="#8a8a8a", linewidth=0.6,
    )  # fmt: skip
    ax.set_aspect("equal")
    ax.invert_yaxis()
    ax.set(xticks=[], yticks=[], xlabel=cols, ylabel=rows)
    ax.xaxis.set_label_position("top")
    for spine in ax.spines.values():
        spine.set_visible(False)

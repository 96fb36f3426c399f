"""Drawings of chapter 6, masking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from torch import Tensor

from ..masks import causal_mask, padding_mask, prefix_mask, sliding_window_mask
from ..plots import BLUE, GREEN, ORANGE, SEQUENTIAL, _ink, arrow, box, canvas, heatmap

GREY = "#8a8a8a"
STYLES = {"masked": (BLUE, "-"), "unmasked": (ORANGE, "--")}


def the_answer_is_in_the_input(words: Sequence[str]) -> Figure:
    """Inputs below, targets above: each target is the next input, one column to the right."""
    inputs, targets = words[:-1], words[1:]
    ax = canvas(4.4, 2.7)
    columns = [1.15 + 0.9 * i for i in range(len(inputs))]
    for x, word, target in zip(columns, inputs, targets, strict=True):
        box(ax, x, 0.45, word, width=0.76, colour=BLUE)
        box(ax, x, 2.25, target, width=0.76, colour=GREEN)
    for y, name in ((0.45, "input"), (2.25, "target")):
        ax.text(0.05, y, name, va="center", fontsize=11)
    asked = len(inputs) - 2
    top = (columns[asked], 1.96)
    for i, x in enumerate(columns):
        future = i > asked
        arrow(ax, (x, 0.74), top, colour=ORANGE if future else "k", width=2.6 if future else 1.2)
    ax.text(columns[-1] - 0.1, 1.45, "the answer", ha="left", va="center", fontsize=11)
    return plt.gcf()


def teacher_forcing(words: Sequence[str]) -> Figure:
    """One row for each beginning of a sentence: what is seen, what must be predicted."""
    n = len(words)
    ax = canvas(4.4, 0.52 * n)
    for i in range(n - 1):
        y = 0.52 * (n - i) - 0.55
        ax.text(0.02, y, f"position {i}", va="center", fontsize=11)
        for j, word in enumerate(words):
            x = 1.28 + 0.68 * j
            if j <= i + 1:
                box(ax, x, y, word, width=0.62, height=0.4, colour=BLUE if j <= i else GREEN)
            else:
                ax.add_patch(Rectangle((x - 0.31, y - 0.2), 0.62, 0.4, fill=False, edgecolor=GREY,
                                       linestyle=":"))  # fmt: skip
                ax.text(x, y, word, color=GREY, ha="center", va="center", fontsize=11)
    return plt.gcf()


def what_it_sees(shares: Mapping[str, Tensor], words: Sequence[str], hidden: int) -> Figure:
    """A row of weights for each name; in those marked "causal", the last `hidden` words crossed."""
    figure, ax = plt.subplots(figsize=(4.3, 2.5), layout="constrained")
    heatmap(torch.stack(list(shares.values())), list(shares), words, ax=ax, fmt=None,
            row_label=None, col_label=None)  # fmt: skip
    ax.set_aspect("auto")
    ax.tick_params(axis="x", rotation=90)
    for i, name in enumerate(shares):
        for j in range(len(words) - hidden, len(words)):
            if name.startswith("causal"):
                ax.text(j + 0.5, i + 0.5, "×", ha="center", va="center", fontsize=12)
    return figure


def _cells(ax: Axes, x: float, y: float, values: Tensor, fmt: str, weights: bool = False) -> None:
    """A small matrix drawn on a canvas, its upper left corner at (x, y)."""
    for i, row in enumerate(values.tolist()):
        for j, value in enumerate(row):
            gone = value == float("-inf")
            shade = SEQUENTIAL(value if weights else 0.0)
            face = shade if weights else ORANGE + "40" if gone else "none"
            corner = (x + 0.42 * j, y - 0.36 * (i + 1))
            ax.add_patch(Rectangle(corner, 0.42, 0.36, facecolor=face, edgecolor=GREY, lw=0.7))
            text = "−∞" if gone else format(value, fmt)
            colour = _ink(shade[3]) if weights else "k"
            ax.text(corner[0] + 0.21, corner[1] + 0.18, text, ha="center", va="center",
                    fontsize=11, color=colour)  # fmt: skip


def added(scores: Tensor, mask: Tensor, weights: Tensor) -> Figure:
    """Scores plus a matrix of 0 and −∞, and the softmax of the sum."""
    ax = canvas(4.4, 3.5)
    for x, values, name in ((0.05, scores, "scaled scores"), (1.57, mask, "M"),
                            (3.09, scores + mask, "sum")):  # fmt: skip
        _cells(ax, x, 3.15, values, ".0f")
        ax.text(x + 0.63, 3.32, name, ha="center", va="center", fontsize=12)
    for x, sign in ((1.44, "+"), (2.96, "=")):
        ax.text(x, 2.61, sign, ha="center", va="center", fontsize=13)
    arrow(ax, (3.72, 2.02), (3.72, 1.5))
    ax.text(3.6, 1.76, "softmax of each row", ha="right", va="center", fontsize=12)
    _cells(ax, 3.09, 1.15, weights, ".2f", weights=True)
    ax.text(3.72, 1.32, "weights", ha="center", va="center", fontsize=12)
    return plt.gcf()


def side_by_side(matrices: Mapping[str, Tensor], words: Sequence[str], fmt: str = ".3f") -> Figure:
    """Two or more matrices of weights with their names above them."""
    figure, axes = plt.subplots(1, len(matrices), figsize=(3.9, 2.1), layout="constrained")
    for ax, (name, weights) in zip(axes, matrices.items(), strict=True):
        heatmap(weights, list(words), list(words), ax=ax, title=name, fmt=fmt, row_label=None)
        if ax is not axes[0]:
            ax.set_yticks([])
    axes[0].set_ylabel("query")
    return figure


def _per_seed(ax: Axes, runs: Mapping[str, Sequence[Sequence[float]]], start: int, **style) -> None:
    """One line a seed, one colour and dash a model."""
    for name, lines in runs.items():
        colour, dash = STYLES[name]
        for i, line in enumerate(lines):
            ax.plot(range(start, start + len(line)), line, dash, color=colour, lw=1.3,
                    label=name if i == 0 else None, **style)  # fmt: skip
    ax.legend()


def losses(runs: Mapping[str, Sequence[Sequence[float]]], floor: float) -> Figure:
    """Training loss over the steps, one line a seed, and the floor."""
    figure, ax = plt.subplots(figsize=(4.3, 3.0), layout="constrained")
    _per_seed(ax, runs, 1)
    ax.axhline(floor, color="k", lw=1.2, ls=":")
    ax.text(2, floor * 0.9, f"floor {floor:.2f}", ha="left", va="top")
    ax.set(xlabel="step", ylabel="training loss (nats)", yscale="log")
    ax.set_yticks([0.1, 0.5, 1, 5], ["0.1", "0.5", "1", "5"])
    ax.minorticks_off()
    return figure


def positions(runs: Mapping[str, Sequence[Sequence[float]]]) -> Figure:
    """The loss at each position of new windows, one line a seed."""
    figure, ax = plt.subplots(figsize=(4.3, 2.8), layout="constrained")
    _per_seed(ax, runs, 0, marker="o", ms=3)
    ax.set(xlabel="position in the window", ylabel="loss there (nats)", ylim=(0, None))
    ax.set_xticks(range(0, len(next(iter(runs.values()))[0]), 3))
    return figure


def lengths(
    right: Mapping[str, Sequence[Sequence[float]]],
    nats: Mapping[str, Sequence[Sequence[float]]],
    commonest: float,
) -> Figure:
    """What the last of n tokens is worth, for n = 1, 2, …: the share right, and the loss."""
    figure, (top, below) = plt.subplots(2, 1, figsize=(4.3, 4.4), sharex=True, layout="constrained")
    _per_seed(top, right, 1, marker="o", ms=3)
    _per_seed(below, nats, 1, marker="o", ms=3)
    top.axhline(commonest, color="k", lw=1.2, ls=":")
    top.text(16, commonest - 0.03, "the commonest token", ha="right", va="top")
    top.set(ylabel="right", ylim=(0, 1))
    top.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    top.get_legend().remove()
    below.set(xlabel="tokens that the model reads", ylabel="loss (nats)", ylim=(0, None))
    below.set_xticks([1, 4, 8, 12, 16])
    return figure


def copy_path(weights: Mapping[str, Tensor], words: Sequence[str]) -> Figure:
    """Where each position looks: lines from the inputs below, as wide as the weight."""
    n = len(words)
    figure, axes = plt.subplots(len(weights), 1, figsize=(4.4, 4.4))
    for ax, (name, a) in zip(axes, weights.items(), strict=True):
        for i in range(n):
            for j in range(n):
                colour = ORANGE if j == i + 1 else BLUE if j <= i else GREY
                if a[i, j] > 0.2:
                    ax.plot([j, i], [0.14, 0.86], color=colour, lw=9 * float(a[i, j]),
                            solid_capstyle="butt", zorder=2 + (j == i + 1))  # fmt: skip
        for j, word in enumerate(words):
            ax.text(j, 0.0, word, ha="center", va="center", fontsize=11)
            ax.text(j, 1.0, word, ha="center", va="center", fontsize=11)
        ax.set_title(name)
        ax.set(xlim=(-0.5, n - 0.5), ylim=(-0.1, 1.1))
        ax.set_axis_off()
    figure.tight_layout()
    return figure


def cut(tests: Mapping[str, Sequence[float]], floor: float) -> Figure:
    """A group of bars for each thing that was hidden, one bar a seed."""
    figure, ax = plt.subplots(figsize=(4.3, 2.7), layout="constrained")
    for y, values in enumerate(tests.values()):
        for i, value in enumerate(values):
            ax.barh(y + 0.25 * (i - 1), value, height=0.2, facecolor=ORANGE + "99",
                    edgecolor=ORANGE)  # fmt: skip
    ax.axvline(floor, color="k", lw=1.2, ls=":")
    ax.text(floor + 0.03, -0.62, "floor", ha="left", va="center")
    ax.set_yticks(range(len(tests)), list(tests))
    ax.tick_params(axis="y", length=0)
    ax.set(xlabel="loss (nats)", ylim=(len(tests) - 0.5, -0.85))
    ax.set_title("hidden:", loc="left", x=-0.55)
    return figure


def padded(sentences: Sequence[Sequence[str]], pad: str) -> Figure:
    """A batch as rows of boxes, and beside each row its padding mask joined with the causal one."""
    n = max(map(len, sentences))
    lengths = [sum(word != pad for word in words) for words in sentences]
    masks = causal_mask(n) & padding_mask(lengths, n)
    ax = canvas(4.4, 1.35 * len(sentences) + 0.2)
    ax.text(3.58, 1.35 * len(sentences) + 0.08, "key", ha="center", va="center", fontsize=11)
    for b, words in enumerate(sentences):
        middle = 1.35 * (len(sentences) - b) - 0.65
        for j, word in enumerate(words):
            box(ax, 0.4 + 0.78 * j, middle, word, width=0.7, height=0.42,
                colour=GREY if word == pad else BLUE)  # fmt: skip
        arrow(ax, (2.42, middle), (2.9, middle))
        _mask(ax, 2.98, middle + 0.6, masks[b], 0.4)
        ax.text(4.3, middle, "query", rotation=-90, ha="center", va="center", fontsize=11)
    return plt.gcf()


def _mask(ax: Axes, x: float, y: float, mask: Tensor, cell: float = 1.0) -> None:
    """A mask with its upper left corner at (x, y), as two shapes: the open cells and the lines."""
    open_ = []  # one rectangle for each run of open cells in a row
    for i, row in enumerate(mask.tolist()):
        padded = [False, *row, False]
        edges = [j for j in range(len(row) + 1) if padded[j] != padded[j + 1]]
        for j, end in zip(edges[::2], edges[1::2], strict=True):
            corners = ((j, i), (end, i), (end, i + 1), (j, i + 1), (j, i))
            open_.append(Path([(x + cell * u, y - cell * v) for u, v in corners], closed=True))
    ax.add_patch(PathPatch(Path.make_compound_path(*open_), facecolor=BLUE, linewidth=0))
    rows, cols = mask.shape
    lines = [((0, i), (cols, i)) for i in range(rows + 1)]
    lines += [((j, 0), (j, rows)) for j in range(cols + 1)]
    path = [point for line in lines for point in (*line, (float("nan"), 0))]
    # matplotlib draws the grid lines grey: they must show on a light and on a dark page.
    ax.plot([x + cell * u for u, _ in path], [y - cell * v for _, v in path],
            color=GREY, lw=0.6)  # fmt: skip


def gallery() -> Figure:
    """The four masks of the package for eight tokens: filled where the query may attend."""
    masks = {
        "causal": causal_mask(8),
        "padding (5 of 8)": padding_mask([5], 8)[0].expand(8, 8),
        "window of 3": sliding_window_mask(8, 3),
        "prefix of 3": prefix_mask(8, 3),
    }
    figure, axes = plt.subplots(2, 2, figsize=(4.2, 4.6), layout="constrained")
    for ax, (name, mask) in zip(axes.flat, masks.items(), strict=True):
        _grid(ax, mask)
        ax.set_title(name)
    return figure


def combined() -> Figure:
    """One row for each pair of masks: left & right = both."""
    text = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1])
    same = text[:, None] == text[None, :]
    rows = (
        (sliding_window_mask(8, 3), "window", "causal window"),
        (padding_mask([5], 8)[0].expand(8, 8), "padding", "both"),
        (same, "same text", "packed texts"),
    )
    ax = canvas(4.4, 5.2)
    for r, (mask, name, result) in enumerate(rows):
        top = 4.9 - 1.72 * r
        for x, m, title in ((0.1, causal_mask(8), "causal"), (1.62, mask, name),
                            (3.14, causal_mask(8) & mask, result)):  # fmt: skip
            _mask(ax, x, top, m, 0.15)
            ax.text(x + 0.6, top + 0.14, title, ha="center", va="center", fontsize=12)
        for x, sign in ((1.46, "&"), (2.98, "=")):
            ax.text(x, top - 0.6, sign, ha="center", va="center", fontsize=13)
    return plt.gcf()


def relay(n: int = 7, layers: int = 3, window: int = 3) -> Figure:
    """How information climbs to the last token of the last layer through a causal window."""
    figure, ax = plt.subplots(figsize=(4.3, 3.2), layout="constrained")
    for layer in range(1, layers + 1):
        for i in range(n):
            for j in range(max(0, i - window + 1), i + 1):
                used = n - 1 - i <= (layers - layer) * (window - 1)
                ax.plot([j, i], [layer - 1, layer], color=ORANGE if used else GREY,
                        lw=2 if used else 0.6, zorder=1)  # fmt: skip
    for layer in range(layers + 1):
        for i in range(n):
            used = n - 1 - i <= (layers - layer) * (window - 1)
            ax.plot(i, layer, "o", ms=9, color=ORANGE if used else GREY, zorder=2)
    ax.set_xticks(range(n))
    ax.set_yticks(range(layers + 1), ["input", *(f"layer {i + 1}" for i in range(layers))])
    ax.tick_params(length=0)
    ax.set(xlabel="position", xlim=(-0.3, n - 0.7))
    for spine in ax.spines.values():
        spine.set_visible(False)
    return figure


def spread(reached: Mapping[int, Tensor]) -> Figure:
    """Which inputs reach which outputs, for each number of layers."""
    figure, axes = plt.subplots(1, len(reached), figsize=(4.4, 1.9), layout="constrained")
    for ax, (layers, mask) in zip(axes, reached.items(), strict=True):
        _grid(ax, mask, "output", "input")
        ax.set_title("1 layer" if layers == 1 else f"{layers} layers")
    for ax in axes[1:]:
        ax.set_ylabel("")
    return figure


def differences(gaps: Mapping[str, Tensor], words: Sequence[str]) -> Figure:
    """How far each position's vector is off at each stage of the model."""
    figure, ax = plt.subplots(figsize=(4.2, 2.5), layout="constrained")
    rows = torch.stack(list(gaps.values()))
    heatmap(rows, list(gaps), words, ax=ax, fmt=".2f", vmax=float(rows.max()), row_label=None,
            col_label=None)  # fmt: skip
    ax.tick_params(axis="x", rotation=90)
    return figure


def _grid(ax: Axes, mask: Tensor, rows: str = "query", cols: str = "key") -> None:
    """A mask alone in its axes, filled where it is True."""
    _mask(ax, 0, 0, mask)
    ax.set_aspect("equal")
    ax.set(xticks=[], yticks=[], xlabel=cols, ylabel=rows)
    ax.xaxis.set_label_position("top")
    for spine in ax.spines.values():
        spine.set_visible(False)

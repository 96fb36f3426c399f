"""Drawings of chapter 10, in practice: what is kept, what is computed, what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from ..masks import causal_mask
from ..plots import BLUE, COLOURS, GREEN, ORANGE, arrow, box, canvas, curves

GREY = "#8a8a8a"


def _cell(ax: Axes, x: float, y: float, size: float, colour: str, height: float = 0.0) -> None:
    face = colour if colour == "none" else colour + "88"
    ax.add_patch(Rectangle((x, y), size, height or size, facecolor=face, edgecolor=GREY, lw=0.7))


def _grid(ax: Axes, x: float, y: float, colours: Sequence[Sequence[str]], size: float) -> None:
    """A matrix of coloured cells, its upper left corner at (x, y)."""
    for i, row in enumerate(colours):
        for j, colour in enumerate(row):
            _cell(ax, x + size * j, y - size * (i + 1), size, colour)


def memory(parameters: float, caches: Mapping[str, float], most: int = 8) -> Figure:
    """GiB of the caches of 1 to `most` users, beside the level line of the parameters."""
    figure, ax = plt.subplots(figsize=(4.3, 2.9), layout="constrained")
    users = range(1, most + 1)
    curves(users, {name: [one * u for u in users] for name, one in caches.items()}, ax=ax,
           xlabel="users, 32,768 tokens each", ylabel="GiB", log="y")  # fmt: skip
    ax.axhline(parameters, color="k", lw=1.2)
    ax.text(most, parameters / 1.1, "parameters", ha="right", va="top")
    ax.set_yticks([0.5, 2, 8, 32, 128], ["0.5", "2", "8", "32", "128"])
    ax.minorticks_off()
    ax.set_ylim(0.4, 900)
    ax.legend(ncols=1, loc="upper left", title=None)
    return figure


def new_row(words: Sequence[str], weights: Tensor) -> Figure:
    """The scores of all steps: old rows are done, the new one is computed; keys are kept."""
    n, size, left, top = len(words), 0.27, 1.05, 4.25
    ax = canvas(4.4, 5.5)
    seen = causal_mask(n).tolist()
    colours = [["none" if not seen[i][j] else ORANGE if i == n - 1 else GREY for j in range(n)]
               for i in range(n)]  # fmt: skip
    for j, word in enumerate(words):
        ax.text(left + size * (j + 0.5), top + 0.06, word, rotation=90, ha="center", va="bottom",
                fontsize=11)  # fmt: skip
        ax.text(left - 0.08, top - size * (j + 0.5), word, ha="right", va="center", fontsize=11)
    _grid(ax, left, top, colours, size)
    ax.text(left + size * n + 0.08, top - size * (n - 0.5), "new", va="center", fontsize=11)
    for row, name in ((0, "k"), (1, "v")):
        y = top - size * n - 0.45 - 0.36 * row
        for j in range(n):
            _cell(ax, left + size * j, y, size, ORANGE if j == n - 1 else BLUE)
        ax.text(left - 0.08, y + size / 2, name, ha="right", va="center", fontsize=12)
    ax.text(left + size * n + 0.08, top - size * n - 0.49, "the\ncache", va="center", fontsize=11)
    best = int(weights.argmax())
    ax.text(left + size * (best + 0.5), top - size * (n - 0.5), "×", ha="center", va="center",
            fontsize=13)  # fmt: skip
    ax.text(0.05, 0.08, "grey: never needed again; blue: kept;\norange: computed for the new word",
            va="bottom", fontsize=11)  # fmt: skip
    return plt.gcf()


def tiles(n: int = 8, block: int = 2, now: tuple[int, int] = (2, 1)) -> Figure:
    """The score matrix in blocks: done, in work, to come, and never computed."""
    size, left, top = 0.34, 0.95, 3.05
    ax = canvas(4.4, 3.75)
    row, column = now
    for i in range(n):
        for j in range(n):
            a, b = i // block, j // block
            if b > a:
                colour = "none"
            elif (a, b) == now:
                colour = ORANGE
            else:
                colour = GREY if (a, b) < now else BLUE
            _cell(ax, left + size * j, top - size * (i + 1), size, colour)
    _cell(ax, left + size * block * column, top + 0.1, size * block, ORANGE, 0.22)
    _cell(ax, 0.62, top - size * block * (row + 1), 0.22, ORANGE, size * block)
    ax.text(left + size * block * (column + 0.5), top + 0.36, "block of $K$, $V$", ha="center",
            va="bottom", fontsize=11)  # fmt: skip
    ax.text(0.56, top - size * block * (row + 0.5), "block\nof $Q$", ha="right", va="center",
            fontsize=11)  # fmt: skip
    where = left + size * n + 0.12
    for y, colour, text in ((2.7, GREY, "gone"), (2.2, ORANGE, "in work"), (1.7, BLUE, "to come"),
                            (1.2, "none", "skipped")):  # fmt: skip
        _cell(ax, where, y - 0.1, 0.2, colour)
        ax.text(where + 0.28, y, text, va="center", fontsize=11)
    return plt.gcf()


def online(steps: Sequence[tuple[Sequence[float], float, float, float, float]]) -> Figure:
    """The walk through the blocks: (scores, factor, maximum, sum, output) after each."""
    ax = canvas(4.4, 1.28 * len(steps) + 0.15)
    for i, (scores, factor, top, total, out) in enumerate(steps):
        y = 1.28 * (len(steps) - i) - 0.55
        text = ", ".join(f"{s:g}" for s in scores)
        box(ax, 0.72, y, f"scores\n{text}", width=1.24, height=0.74, colour=BLUE)
        arrow(ax, (1.38, y), (1.78, y))
        box(ax, 3.08, y, f"max {top:g}   sum {total:.3f}\noutput {out:.3f}", width=2.5, height=0.74,
            colour=ORANGE)  # fmt: skip
        if i:
            arrow(ax, (3.08, y + 0.92), (3.08, y + 0.4))
            text = f"sum, output × {factor:.3f}"
            ax.text(2.96, y + 0.65, text, ha="right", va="center", fontsize=11)
    return plt.gcf()


def shares(models: Mapping[str, tuple[float, float, float]]) -> Figure:
    """The share of n x n work over n. For each model (projections, the rest, per pair) of a token.

    A dot marks where the pairs equal the projections, a square where they equal all the rest.
    """
    figure, ax = plt.subplots(figsize=(4.3, 3.1), layout="constrained")
    lengths = torch.logspace(7, 17, 200, base=2)
    for i, (name, (projections, rest, pair)) in enumerate(models.items()):
        share = pair * lengths / (pair * lengths + projections + rest)
        ax.plot(lengths, 100 * share, label=name, color=COLOURS[i], ls=("-", "--")[i % 2])
        for cost, mark in ((projections, "o"), (projections + rest, "s")):
            n = cost / pair
            y = 100 * cost / (cost + projections + rest)
            ax.plot(n, y, mark, color=COLOURS[i], ms=7)
            right = mark == "s"
            ax.annotate(f"{n:,.0f}", (n, y), xytext=(-7 if right else 8, 5 if right else -12),
                        ha="right" if right else "left", textcoords="offset points")  # fmt: skip
    ax.set_xscale("log", base=2)
    ax.set_xticks([2**e for e in (8, 11, 14, 17)], ["256", "2,048", "16,384", "131,072"])
    ax.minorticks_off()
    ax.set(xlabel="tokens n", ylabel="share of attention, %", ylim=(0, 105))
    ax.legend(loc="upper left")
    return figure


def kept(masks: Mapping[str, Tensor]) -> Figure:
    """A few masks side by side; the last row's open columns are what a cache must hold."""
    figure, axes = plt.subplots(1, len(masks), figsize=(4.4, 2.15), layout="constrained")
    for ax, (name, mask) in zip(axes, masks.items(), strict=True):
        n = mask.shape[-1]
        for i, j in mask.nonzero().tolist():
            colour = ORANGE if i == n - 1 else BLUE
            ax.add_patch(Rectangle((j, i), 1, 1, facecolor=colour + "aa", edgecolor="none"))
        ax.add_patch(Rectangle((0, 0), n, n, fill=False, edgecolor=GREY, lw=0.8))
        ax.set(xlim=(-0.2, n + 0.2), ylim=(n + 0.2, -0.2), aspect="equal", xticks=[], yticks=[])
        ax.set_title(name)
        ax.set_xlabel(f"keeps {int(mask[-1].sum())}")
        for spine in ax.spines.values():
            spine.set_visible(False)
    return figure


def formats(types: Mapping[str, tuple[int, int]]) -> Figure:
    """The bits of number formats: sign, exponent, fraction."""
    ax = canvas(4.4, 0.62 * len(types) + 0.5)
    unit, left = 0.108, 0.88
    for i, (name, (exponent, fraction)) in enumerate(types.items()):
        y = 0.62 * (len(types) - i) - 0.2
        ax.text(left - 0.08, y + 0.14, name, ha="right", va="center", fontsize=11)
        at = left
        for count, colour in ((1, GREY), (exponent, ORANGE), (fraction, BLUE)):
            for _ in range(count):
                _cell(ax, at, y, unit, colour, 0.28)
                at += unit
    for x, colour, text in ((0.9, GREY, "sign"), (1.75, ORANGE, "exponent"),
                            (3.05, BLUE, "digits")):  # fmt: skip
        _cell(ax, x, 0.06, 0.16, colour)
        ax.text(x + 0.22, 0.14, text, va="center", fontsize=11)
    return plt.gcf()


def batching(lengths: Sequence[int]) -> Figure:
    """Texts of these lengths padded into a batch, and packed into one row with its mask."""
    ax = canvas(4.4, 4.35)
    size, widest = 0.24, max(lengths)
    ax.text(0.05, 4.2, "padded", va="center", fontsize=12)
    for b, length in enumerate(lengths):
        for j in range(widest):
            colour = COLOURS[b] if j < length else "none"
            _cell(ax, 0.05 + size * j, 3.8 - 0.3 * b, size, colour)
    y = 3.8 - 0.3 * len(lengths) - 0.45
    ax.text(0.05, y + 0.42, "packed", va="center", fontsize=12)
    owner = [b for b, length in enumerate(lengths) for _ in range(length)]
    for j, b in enumerate(owner):
        _cell(ax, 0.05 + size * j, y, size, COLOURS[b])
    small = 0.115
    for i, b in enumerate(owner):
        for j in range(i + 1):
            colour = COLOURS[b] if owner[j] == b else "none"
            _cell(ax, 1.4 + small * j, y - 0.15 - small * (i + 1), small, colour)
    ax.text(1.28, y - 0.9, "its mask", ha="right", va="center", fontsize=12)
    return plt.gcf()


def card(lines: Sequence[tuple[str, str, str]]) -> Figure:
    """A model card with notes: (entry, value, what it tells)."""
    ax = canvas(4.4, 0.52 * len(lines) + 0.5)
    height = 0.52 * len(lines) + 0.34
    ax.add_patch(Rectangle((0.03, 0.06), 2.22, height, facecolor=BLUE + "14", edgecolor=BLUE))
    for i, (entry, value, note) in enumerate(lines):
        y = 0.52 * (len(lines) - i) - 0.08
        ax.text(0.13, y, entry, va="center", fontsize=11)
        ax.text(2.15, y, value, va="center", ha="right", fontsize=11)
        ax.text(2.4, y, note, va="center", fontsize=11, color=GREEN)
    return plt.gcf()

"""The figures of chapter 5, on positions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import torch
from matplotlib.figure import Figure
from torch import Tensor

from ..plots import COLOURS, DIVERGING, heatmap
from ..positions import sinusoidal_encoding

MARKERS = ["o", "s", "^", "D", "v", "P", "X"]


def two_orders(first: Tensor, second: Tensor, words: Sequence[str], order: list[int]) -> Figure:
    """The weights of one sentence in two orders, side by side; first, second (n, n)."""
    fig, axes = plt.subplots(1, 2, figsize=(5.6, 2.3), layout="constrained")
    heatmap(first, words, words, ax=axes[0], vmax=0.6)
    moved = [words[i] for i in order]
    heatmap(second, moved, moved, ax=axes[1], vmax=0.6, row_label=None)
    return fig


def clocks(d_model: int = 8, positions: int = 9, hand: int = 3, base: float = 10000.0) -> Figure:
    """One dial for each pair of columns: where its hand stands at positions 0, 1, 2, ..."""
    pairs = d_model // 2
    fig, axes = plt.subplots(1, pairs, figsize=(5.6, 2.2), layout="constrained")
    for pair, ax in enumerate(axes):
        frequency = base ** (-2 * pair / d_model)
        round_ = [2 * math.pi * t / 100 for t in range(101)]
        colour = COLOURS[pair]
        ax.plot([math.sin(t) for t in round_], [math.cos(t) for t in round_], "k", linewidth=1)
        at = [p * frequency for p in range(positions)]
        ax.plot([math.sin(t) for t in at], [math.cos(t) for t in at], "o", color=colour, ms=4)
        if pair == 0:
            for p, t in enumerate(at):
                if p < 7:
                    ax.text(
                        1.24 * math.sin(t), 1.24 * math.cos(t), p, ha="center", va="center",
                        fontsize=10,
                    )  # fmt: skip
        x, y = math.sin(hand * frequency), math.cos(hand * frequency)
        ax.plot([0, x], [0, y], color=colour, linewidth=3, solid_capstyle="round")
        ax.set_title(f"columns {2 * pair}, {2 * pair + 1}", fontsize=11)
        ax.text(
            0, -1.76, f"once round in\n{2 * math.pi / frequency:,.1f}", ha="center", va="center",
            fontsize=11,
        )  # fmt: skip
        ax.set(xlim=(-1.42, 1.42), ylim=(-2.2, 1.42), aspect="equal")
        ax.set_axis_off()
    return fig


def encoding_map(n: int = 64, d_model: int = 64, base: float = 10000.0) -> Figure:
    """The encoding as a heatmap: a row for each position, a column for each dimension."""
    fig, ax = plt.subplots(figsize=(5.4, 3.5), layout="constrained")
    image = ax.imshow(
        sinusoidal_encoding(n, d_model, base).numpy(), cmap=DIVERGING, vmin=-1, vmax=1,
        aspect="auto", interpolation="nearest",
    )  # fmt: skip
    ax.set(xlabel="column: fast pairs on the left, slow on the right", ylabel="position")
    bar = fig.colorbar(image, ax=ax, ticks=[-1, 0, 1], fraction=0.05, pad=0.02)
    bar.outline.set_visible(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return fig


def products(d_model: int = 64, reach: int = 60, bases: Sequence[float] = (100.0, 1e4)) -> Figure:
    """PE[p] . PE[p'] against p' - p, for some bases."""
    fig, ax = plt.subplots(figsize=(5.4, 2.8), layout="constrained")
    offset = range(-reach, reach + 1)
    for base, dash in zip(bases, ["--", "-"], strict=True):
        pe = sinusoidal_encoding(2 * reach + 1, d_model, base)
        ax.plot(offset, pe @ pe[reach], dash, label=f"base {base:g}")
    ax.axhline(0, color="k", linewidth=0.8)
    ax.set(xlabel="offset of the two positions", ylabel="dot product")
    ax.legend()
    return fig


def trained_short(
    results: Mapping[str, Mapping[str, Tensor]], lengths: Sequence[int], trained: int
) -> Figure:
    """Accuracy against length for each task and scheme; results[task][scheme] (lengths, seeds)."""
    fig, axes = plt.subplots(1, len(results), figsize=(5.6, 4.2), sharey=True, layout="constrained")
    for ax, (task, schemes) in zip(axes, results.items(), strict=True):
        for i, (scheme, right) in enumerate(schemes.items()):
            shift = 2 ** (0.05 * (i - len(schemes) / 2))  # side by side, to be told apart
            x = torch.tensor(lengths) * shift
            mean, low, high = right.mean(1), right.amin(1), right.amax(1)
            ax.errorbar(
                x, mean, torch.stack([mean - low, high - mean]).clamp_min(0), marker=MARKERS[i],
                color=(COLOURS + ["#777777"])[i], markersize=6, linewidth=1.5, elinewidth=2,
                label=scheme,
            )  # fmt: skip
        ax.axhline(0.1, color="k", linewidth=0.8, linestyle=":")
        ax.set_xscale("log", base=2)
        ax.minorticks_off()
        ax.set_xticks(lengths, [f"{n}\ntrained" if n == trained else str(n) for n in lengths])
        ax.set(title=task, xlabel="length", ylim=(0, 1.04))
    axes[0].set_ylabel("share right")
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=10)
    return fig

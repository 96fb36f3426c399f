"""Drawings of chapter 1: what recurrence and convolution remember, reach and cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from torch import Tensor

from attention.plots import BLUE, GREEN, ORANGE, PURPLE, arrow, canvas

LAYERS = [BLUE, ORANGE, PURPLE, GREEN]  # plain recurrence, two LSTMs, attention
DASHES = ["-", "--", "-.", (0, (1, 1))]


def chain(factor: float) -> Figure:
    """A recurrence over six words; what is left of the first fades by `factor` a step."""
    ax = canvas(4.4, 2.05)
    words = "The cat sat on the mat".split()
    xs = [0.4 + 0.72 * i for i in range(len(words))]
    for i, (x, word) in enumerate(zip(xs, words, strict=True)):
        ax.text(x, 0.16, word, ha="center", va="center", fontsize=12)
        ax.add_patch(FancyBboxPatch(
            (x - 0.21, 0.92), 0.42, 0.42, boxstyle="round,pad=0,rounding_size=0.06",
            facecolor=BLUE + f"{int(200 * factor**i):02x}", edgecolor=BLUE, linewidth=1.5,
        ))  # fmt: skip
        ax.text(x, 1.13, f"$h_{i + 1}$", ha="center", va="center", fontsize=12)
        ax.text(x, 1.55, f"{factor**i:.2f}" if i else "1", ha="center", va="center", fontsize=11)
        arrow(ax, (x, 0.32), (x, 0.9))
        if i:
            arrow(ax, (xs[i - 1] + 0.2, 1.13), (x - 0.2, 1.13), colour=BLUE)
    ax.text(0.19, 1.88, "left of the first word:", ha="left", va="center", fontsize=11)
    return plt.gcf()


def forgetting(measured: Mapping[str, Tensor]) -> Figure:
    """The effect of each word on the last output, one curve a layer, on a logarithmic axis."""
    fig, ax = plt.subplots(figsize=(4.4, 3.9))
    for (name, effect), dash, colour in zip(measured.items(), DASHES, LAYERS, strict=True):
        ax.plot(range(1, len(effect) + 1), effect, linestyle=dash, color=colour, label=name)
    decades = math.floor(math.log10(min(effect.min().item() for effect in measured.values())))
    ax.set(yscale="log", ylim=(10.0**decades, 30), xlim=(1, len(effect)))
    ax.set(xlabel="position of the word", ylabel="effect on the last output")
    ax.set_xticks([1, 10, 20, 30, 40, 50])
    ax.minorticks_off()
    ax.legend(loc="lower right", fontsize=11)
    return fig


def factors(first: Mapping[float, float]) -> Figure:
    """The effect of the first word on the last state against the size of W_h."""
    fig, ax = plt.subplots(figsize=(4.4, 3.1))
    ax.plot(list(first), list(first.values()), "o-", color=BLUE, markersize=7)
    ax.axhline(1, color="k", linewidth=0.8, linestyle=":")
    ax.text(1.0, 3, "1: as large as the change", fontsize=11, va="bottom")
    ax.set(yscale="log", ylim=(1e-19, 1e8), xlabel="$W_h$ multiplied by")
    ax.set_ylabel("effect of word 1")
    ax.minorticks_off()
    return fig


def first_word(right: Mapping[str, Sequence[float]], texts: Sequence[str]) -> Figure:
    """The share of right answers, one group of bars for each kind of text."""
    fig, ax = plt.subplots(figsize=(4.4, 3.6))
    wide = 0.8 / len(right)
    for i, (name, shares) in enumerate(right.items()):
        at = [j + (i - (len(right) - 1) / 2) * wide for j in range(len(texts))]
        ax.bar(at, [100 * share for share in shares], wide * 0.9, label=name,
               facecolor=LAYERS[i] + "80", edgecolor=LAYERS[i])  # fmt: skip
    ax.axhline(25, color="k", linewidth=0.8, linestyle=":")
    ax.set_xticks(range(len(texts)), list(texts))
    ax.set(ylim=(0, 100), ylabel="right answers, %")
    ax.tick_params(axis="x", length=0)
    ax.legend(loc="lower left", bbox_to_anchor=(-0.12, 1.02), fontsize=11, ncol=2,
              columnspacing=1.0, handlelength=1.2)  # fmt: skip
    return fig


def facts(
    right: Mapping[str, Sequence[float]], counts: Sequence[int], later: Mapping[str, float]
) -> Figure:
    """The share of facts recalled against how many there are, one curve a layer.

    later: what a layer of `right` recalls of the most facts after more training, a hollow mark.
    """
    fig, ax = plt.subplots(figsize=(4.4, 3.3))
    for i, (name, shares) in enumerate(right.items()):
        colour = (GREEN, BLUE, ORANGE, PURPLE)[i]
        percent = [100 * share for share in shares]
        ax.plot(range(len(counts)), percent, linestyle=DASHES[i], marker="o", color=colour)
        ax.text(len(counts) - 0.85, percent[-1], name, fontsize=11, va="center")
        if name in later:
            ax.plot(len(counts) - 1, 100 * later[name], "D", color=colour, markerfacecolor="w")
    ax.axhline(25, color="k", linewidth=0.8, linestyle=":")
    ax.set_xticks(range(len(counts)), [str(m) for m in counts])
    ax.set(xlim=(-0.2, len(counts) + 0.9), ylim=(0, 105))
    ax.set(xlabel="facts to keep", ylabel="right answers, %")
    return fig


def timing(took: Mapping[str, Sequence[float]], lengths: Sequence[int]) -> Figure:
    """Milliseconds against the length of the text, both on logarithmic axes."""
    fig, ax = plt.subplots(figsize=(4.4, 3.1))
    for (name, times), colour, dash in zip(took.items(), (BLUE, GREEN), ("o-", "s--"), strict=True):
        ax.plot(list(lengths), list(times), dash, color=colour, label=name)
    ax.set(xscale="log", yscale="log", xlabel="words in the text", ylabel="milliseconds")
    ax.set_xticks(list(lengths), [f"{n:,}" for n in lengths])
    ax.minorticks_off()
    ax.legend(fontsize=11)
    return fig


def reach(ways: Mapping[str, Sequence[tuple[int, int]]], start: int, goal: int) -> Figure:
    """What a mark at `start` reaches after each layer: (first, last) position, a bar a layer."""
    step, y = 0.15, 0.5
    low = min(first for spans in ways.values() for first, _ in spans)
    high = max(last for spans in ways.values() for _, last in spans)
    height = y + sum(len(spans) * step + 0.55 for spans in ways.values())
    ax = canvas(4.4, height)
    unit = 4.2 / (high - low + 1)

    def at(position: float) -> float:
        return 0.1 + unit * (position - low + 0.5)

    for (name, spans), colour in zip([*ways.items()][::-1], (GREEN, ORANGE, BLUE), strict=True):
        bottom = y
        for first, last in spans:
            ax.barh(y + step / 2, at(last + 0.5) - at(first - 0.5), 0.8 * step,
                    left=at(first - 0.5), facecolor=colour + "80", edgecolor=colour)  # fmt: skip
            y += step
        for position in (start, goal):
            ax.plot([at(position)] * 2, [bottom, y], color="k", linewidth=1, linestyle=":")
        ax.text(0.1, y + 0.14, f"{name}: {len(spans)} layers", fontsize=11.5, va="center")
        y += 0.55
    for position in (start, goal):
        ax.text(at(position), 0.32, f"word {position}", ha="center", va="center", fontsize=11)
    return plt.gcf()

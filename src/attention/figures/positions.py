"""Drawings of chapter 5, positional encoding."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc, Rectangle
from torch import Tensor

from ..plots import (
    BLUE,
    COLOURS,
    DIVERGING,
    GREEN,
    ORANGE,
    PURPLE,
    RED,
    arrow,
    box,
    canvas,
    heatmap,
    vectors,
)  # fmt: skip
from ..positions import alibi_bias, sinusoidal_encoding, t5_buckets

MARKERS = ["o", "s", "^", "D", "v", "P", "X"]


def two_orders(first: Tensor, second: Tensor, words: Sequence[str], order: list[int]) -> Figure:
    """The weights of one sentence in two orders, one below the other; first, second (n, n)."""
    fig, axes = plt.subplots(2, 1, figsize=(3.4, 5.0), layout="constrained")
    heatmap(first, words, words, ax=axes[0], vmax=0.6)
    moved = [words[i] for i in order]
    heatmap(second, moved, moved, ax=axes[1], vmax=0.6)
    return fig


def as_a_bag(outs: Mapping[str, tuple[Tensor, Tensor]], words: Sequence[str]) -> Figure:
    """Outputs in two orders, the first two words swapped; outs[title] = two tensors (n, d)."""
    fig, axes = plt.subplots(len(outs), 2, figsize=(4.4, 3.9), layout="constrained")
    swapped = [words[1], words[0], *words[2:]]
    for line, (title, pair) in zip(axes, outs.items(), strict=True):
        for ax, x, names in zip(line, pair, (words, swapped), strict=True):
            vectors(x, names, [""] * x.shape[1], ax=ax, reach=3)
            last = Rectangle((0, 2), x.shape[1], 1, fill=False, ec="k", lw=2, clip_on=False)
            ax.add_patch(last)
        line[0].set_title(title, fontsize=12, loc="left")
    return fig


def steps(lengths: Sequence[int] = (5, 101)) -> Figure:
    """Positions divided by the last one, for short and long sentences: what one step is worth."""
    fig, axes = plt.subplots(len(lengths), 1, figsize=(4.3, 2.2), layout="constrained", sharex=True)
    for ax, n, colour in zip(axes, lengths, COLOURS, strict=False):
        ax.plot([p / (n - 1) for p in range(n)], [0] * n, "o", color=colour, ms=8 if n < 20 else 3)
        ax.set_title(f"{n} tokens: one step is {1 / (n - 1):g}", loc="left")
        ax.set(yticks=[], ylim=(-1, 1), xticks=[0, 0.25, 0.5, 0.75, 1])
        ax.spines["left"].set_visible(False)
    axes[-1].set_xlabel("position divided by the last position")
    return fig


def clocks(d_model: int = 8, positions: int = 9, hand: int = 3, base: float = 10000.0) -> Figure:
    """One dial for each pair of columns: where its hand stands at positions 0, 1, 2, ..."""
    fig, axes = plt.subplots(2, d_model // 4, figsize=(4.3, 5.3), layout="constrained")
    for pair, ax in enumerate(axes.flat):
        speed = base ** (-2 * pair / d_model)
        colour = COLOURS[pair]
        at = [p * speed for p in range(positions)]
        _dial(ax)
        ax.plot([math.sin(t) for t in at], [math.cos(t) for t in at], "o", color=colour, ms=5)
        for p, t in enumerate(at if pair == 0 else []):
            if p < 7:
                ax.text(1.24 * math.sin(t), 1.24 * math.cos(t), p, ha="center", va="center")
        x, y = math.sin(hand * speed), math.cos(hand * speed)
        ax.plot([0, x], [0, y], color=colour, linewidth=3, solid_capstyle="round")
        ax.set_title(f"columns {2 * pair} and {2 * pair + 1}", fontsize=12)
        ax.text(0, -1.55, f"{2 * math.pi / speed:,.1f} positions a turn", ha="center", va="center",
                fontsize=11)  # fmt: skip
        ax.set(xlim=(-1.42, 1.42), ylim=(-1.7, 1.42))
    fig.set_layout_engine("constrained", hspace=0.12)  # each line below its own dial
    return fig


def _dial(ax: Axes) -> None:
    """An empty dial of radius 1."""
    turn = [2 * math.pi * t / 100 for t in range(101)]
    ax.plot([math.sin(t) for t in turn], [math.cos(t) for t in turn], "k", linewidth=1)
    ax.set(aspect="equal")
    ax.set_axis_off()


def encoding_map(n: int = 64, d_model: int = 64, base: float = 10000.0) -> Figure:
    """The encoding as a heatmap: a row for each position, a column for each dimension."""
    fig, ax = plt.subplots(figsize=(4.4, 3.5), layout="constrained")
    image = ax.imshow(
        sinusoidal_encoding(n, d_model, base).numpy(), cmap=DIVERGING, vmin=-1, vmax=1,
        aspect="auto", interpolation="none",
    )  # fmt: skip
    ax.set(xlabel="column: fast on the left, slow on the right", ylabel="position")
    bar = fig.colorbar(image, ax=ax, ticks=[-1, 0, 1], fraction=0.05, pad=0.02)
    bar.outline.set_visible(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return fig


def products(
    d_model: int = 64, near: int = 60, far: int = 500, bases: Sequence[float] = (100.0, 1e4)
) -> Figure:
    """PE[i] . PE[j] for some bases: against near offsets i - j, and against far distances."""
    fig, axes = plt.subplots(2, 1, figsize=(4.4, 4.8), layout="constrained")
    for base, dash in zip(bases, ["--", "-"], strict=True):
        product = sinusoidal_encoding(far + 1, d_model, base)
        product = product @ product[0]
        both_ways = [product[abs(x)] for x in range(-near, near + 1)]
        axes[0].plot(range(-near, near + 1), both_ways, dash, label=f"base {base:,.0f}")
        axes[1].plot(range(far + 1), product, dash, lw=1.2)
    for ax in axes:
        ax.axhline(0, color="k", linewidth=0.8)
        ax.set_ylabel("dot product")
    axes[0].set_xlabel("offset $i - j$")
    axes[1].set_xlabel("distance $|i - j|$")
    axes[0].legend(fontsize=11)
    return fig


def turns(
    d_model: int = 64, bases: Sequence[float] = (100.0, 1e4, 5e5), length: int = 512
) -> Figure:
    """Positions for one full turn of each hand, for some bases, beside the length of a text."""
    fig, ax = plt.subplots(figsize=(4.4, 3.3), layout="constrained")
    pairs = range(d_model // 2)
    for base, dash, colour in zip(bases, ["--", "-", "-."], COLOURS, strict=False):
        ax.plot(pairs, [2 * math.pi * base ** (2 * p / d_model) for p in pairs], dash, color=colour,
                label=f"base {base:,.0f}")  # fmt: skip
    ax.axhline(length, color="k", linewidth=1, linestyle=":")
    ax.text(d_model / 2 - 1, length * 1.25, f"{length} tokens", ha="right", fontsize=11)
    ax.set(
        yscale="log", xlabel="pair of columns", ylabel="positions for one full turn", ylim=(3, 2e7)
    )
    ax.legend(fontsize=11, loc="upper left")
    return fig


def room(found: Mapping[str, Mapping[int, float]]) -> Figure:
    """Share of positions read back from word + position, for each width; found[kind][width]."""
    fig, ax = plt.subplots(figsize=(4.3, 2.9), layout="constrained")
    for (kind, shares), marker, colour in zip(
        found.items(), MARKERS, (ORANGE, BLUE), strict=False
    ):  # fmt: skip
        ax.plot(list(shares), list(shares.values()), f"-{marker}", color=colour, label=kind, ms=7)
    widths = list(next(iter(found.values())))
    ax.set_xscale("log", base=2)
    ax.minorticks_off()
    ax.set_xticks(widths, [str(d) for d in widths])
    ax.set(xlabel="width $d$", ylabel="positions read back", ylim=(0, 1.04))
    ax.legend(fontsize=11, loc="center left", bbox_to_anchor=(0, 0.72))
    return fig


def where() -> Figure:
    """A layer of attention, and the three points at which a position can enter it."""
    ax = canvas(4.4, 4.5)
    box(ax, 1.35, 0.55, "word vectors", width=1.7, colour=BLUE, fontsize=12)
    box(ax, 0.75, 1.75, "$Q$", width=0.8, colour=PURPLE, fontsize=12)
    box(ax, 1.95, 1.75, "$K$", width=0.8, colour=PURPLE, fontsize=12)
    box(ax, 1.35, 2.95, "scores", width=1.7, colour=ORANGE, fontsize=12)
    box(ax, 1.35, 4.1, "weights", width=1.7, colour=GREEN, fontsize=12)
    for start, end in (((1.15, 0.8), (0.8, 1.5)), ((1.55, 0.8), (1.9, 1.5)),
                       ((0.8, 2.0), (1.15, 2.7)), ((1.9, 2.0), (1.55, 2.7)),
                       ((1.35, 3.2), (1.35, 3.85))):  # fmt: skip
        arrow(ax, start, end)
    notes = (
        (0.55, "add a vector:", "sinusoidal, learned", 2.25),
        (1.75, "turn them:", "rotary", 2.4),
        (2.95, "add a bias:", "T5, ALiBi", 2.25),
    )
    for y, what, names, x in notes:
        ax.text(2.9, y + 0.13, what, va="center", fontsize=12)
        ax.text(2.9, y - 0.15, names, va="center", fontsize=12)
        arrow(ax, (2.85, y), (x, y), colour=RED)
    return plt.gcf()


def bucket_widths(num_buckets: int = 32, max_distance: int = 128, reach: int = 150) -> Figure:
    """Which bucket a distance falls into: exact at first, then wider and wider."""
    distance = torch.arange(reach)
    bucket = t5_buckets(distance, num_buckets, max_distance, bidirectional=False)
    fig, ax = plt.subplots(figsize=(4.4, 3.0), layout="constrained")
    ax.step(distance, bucket, where="mid", color=BLUE)
    ax.axvspan(-2, num_buckets // 2 - 0.5, color=GREEN, alpha=0.15, lw=0)
    ax.text(19, 3, "a bucket for each distance\nup to 15, then wider ones", fontsize=11)
    ax.set(xlabel="distance $i - j$", ylabel="bucket", xlim=(-2, reach), ylim=(0, num_buckets))
    return fig


def alibi_tables(num_heads: int = 8, heads: Sequence[int] = (0, 3), n: int = 5) -> Figure:
    """ALiBi's table of biases for a steep head and for a flatter one."""
    bias = alibi_bias(num_heads, n) + 0.0  # no minus before a zero
    fig, axes = plt.subplots(len(heads), 1, figsize=(3.7, 5.2), layout="constrained")
    names = [str(i) for i in range(n)]
    for ax, head in zip(axes, heads, strict=True):
        heatmap(bias[head], names, names, ax=ax, vmin=-2, vmax=2, fmt=".2f", row_label="query i",
                col_label="key j", title=f"slope 1/{2 ** (head + 1)}")  # fmt: skip
    return fig


def two_arrows(
    places: Sequence[tuple[int, int]] = ((0, 0), (5, 2), (8, 5), (8, 6)), speed: float = 1.0
) -> Figure:
    """q = k = [1, 0], each turned by its position: the angle between them is what stays."""
    fig, axes = plt.subplots(2, 2, figsize=(4.3, 5.1), layout="constrained")
    for ax, (i, j) in zip(axes.flat, places, strict=True):
        _dial(ax)
        low, high = sorted((math.degrees(i * speed), math.degrees(j * speed)))
        ax.add_patch(Arc((0, 0), 0.9, 0.9, theta1=low, theta2=high, color=GREEN, lw=3))
        for p, colour, name in ((i, BLUE, "q"), (j, ORANGE, "k")):
            x, y = math.cos(p * speed), math.sin(p * speed)
            wide = 7 if name == "q" and i == j else 2.5  # both are seen where the arrows agree
            ax.annotate("", (x, y), (0, 0), arrowprops={
                "arrowstyle": "-|>", "color": colour, "lw": wide, "shrinkA": 0, "shrinkB": 0,
                "mutation_scale": 10})  # fmt: skip
            shift = 0.16 if i == j else 0.0  # two names side by side where the arrows agree
            ax.text(1.22 * x, 1.22 * y + (shift if name == "q" else -shift), name, ha="center",
                    va="center", fontsize=12)  # fmt: skip
        cosine = f"{math.cos((i - j) * speed):.3f}".replace("-", "−")
        ax.set_title(f"query at {i}, key at {j}", fontsize=12)
        ax.text(0, -1.6, f"score cos {abs(i - j) * speed:g} = {cosine}", ha="center", va="center",
                fontsize=12)  # fmt: skip
        ax.set(xlim=(-1.45, 1.45), ylim=(-1.75, 1.35))
    fig.set_layout_engine("constrained", hspace=0.12)
    return fig


def rotary_pairs(speeds: Sequence[float] = (1.0, 0.1, 0.01), reach: int = 60) -> Figure:
    """What one pair with q = k adds to the score, against the offset, for some speeds."""
    fig, ax = plt.subplots(figsize=(4.4, 2.9), layout="constrained")
    offset = torch.linspace(0, reach, 10 * reach + 1)
    for speed, dash in zip(speeds, ["-", "--", "-."], strict=False):
        ax.plot(offset, torch.cos(offset * speed), dash, label=f"ω = {speed:g}")
    ax.plot([3], [math.cos(3)], "o", color=BLUE, ms=7)
    ax.annotate("by hand", (3, math.cos(3)), (5, -1.25), fontsize=11)
    ax.set(xlabel="offset $i - j$", ylabel="score of the pair", ylim=(-1.4, 1.1))
    ax.legend(fontsize=11, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.22))
    return fig


def trained_short(
    results: Mapping[str, Mapping[str, Tensor]], lengths: Sequence[int], trained: int,
    limits: Mapping[str, Sequence[float]],
) -> Figure:  # fmt: skip
    """Accuracy against length for each task and scheme; results[task][scheme] (lengths, seeds).

    limits[task]: what one who knows the past only as a bag of words can reach, for each length.
    """
    fig, axes = plt.subplots(2, 1, figsize=(4.4, 7.2), sharex=True, layout="constrained")
    for ax, (task, schemes) in zip(axes, results.items(), strict=True):
        ends = {}
        for i, (scheme, right) in enumerate(schemes.items()):
            shift = 2 ** (0.05 * (i - len(schemes) / 2))  # side by side, to be told apart
            x = torch.tensor(lengths) * shift
            mean, low, high = right.mean(1), right.amin(1), right.amax(1)
            colour = (COLOURS + ["#777777"])[i]
            ax.errorbar(
                x, mean, torch.stack([mean - low, high - mean]).clamp_min(0), marker=MARKERS[i],
                color=colour, markersize=6, linewidth=1.5, elinewidth=2,
            )  # fmt: skip
            ends[scheme] = (float(x[-1]), float(mean[-1]), colour)
        ax.plot(lengths, limits[task], "k--", linewidth=1.2)
        ends["limit of a bag"] = (lengths[-1], limits[task][-1], "k")
        ax.plot([lengths[0] * 0.75, lengths[-1]], [0.1, 0.1], "k:", linewidth=0.8)  # guessing
        _name_ends(ax, ends, at=lengths[-1] * 1.6)
        ax.set_xscale("log", base=2)
        ax.minorticks_off()
        ax.set_xticks(lengths, [f"{n}\ntrained" if n == trained else str(n) for n in lengths])
        ax.set(title=task, ylabel="share right", ylim=(0, 1.04), xlim=(lengths[0] * 0.75, 480))
    axes[-1].set_xlabel("length")
    return fig


def _name_ends(
    ax: Axes, ends: Mapping[str, tuple[float, float, str]], at: float, gap: float = 0.075
) -> None:
    """Write each line's name beside its last point; ends[name] = (x, y, colour)."""
    low = -math.inf
    for name, (x, y, colour) in sorted(ends.items(), key=lambda end: end[1][1]):
        low = max(y, low + gap)
        ax.plot([x, at], [y, low], color=colour, linewidth=0.7, linestyle=":")
        ax.text(at * 1.04, low, name, va="center", fontsize=11)


def never_met(bias: Tensor, buckets: Tensor, met: int) -> Figure:
    """A T5 model's biases, mean of its heads, against the distance; buckets beyond `met` unused.

    bias (num_buckets, num_heads), buckets (n,) of the distances 0 to n - 1.
    """
    mean = bias.mean(-1)[buckets]
    fig, ax = plt.subplots(figsize=(4.4, 2.9), layout="constrained")
    distance = torch.arange(len(buckets))
    known = buckets <= met
    ax.plot(distance[known], mean[known], "o", color=BLUE, ms=4, label="bucket met in training")
    ax.plot(distance[~known], mean[~known], "s", color=RED, ms=3, label="never met")
    ax.axhline(0, color="k", linewidth=0.8)
    ax.set(xlabel="distance $i - j$", ylabel="mean learned bias")
    ax.legend(fontsize=11, loc="lower right")
    return fig


def rotary_met(by_hand: Tensor, trained: int) -> Figure:
    """A rotary model's mean score against the offset, and hand 1's share; by_hand (n, hands)."""
    fig, ax = plt.subplots(figsize=(4.4, 3.2), layout="constrained")
    score = by_hand.sum(-1)
    ax.axvspan(0, trained - 1, color=GREEN, alpha=0.15, lw=0)
    ax.plot(score, color=BLUE, lw=1.2, label="all four hands")
    ax.plot(by_hand[:, 1], "--", color=ORANGE, lw=2, label="hand 1")
    highest = sorted(score.topk(4).indices.tolist())
    for n, x in enumerate([int(score[:trained].argmax()), *highest]):
        ax.plot([x], [score[x]], "o", color=BLUE, ms=4)
        side = 0 if n == 0 else (7, -7)[n % 2]  # neighbours lean away from each other
        ax.annotate(str(x), (x, float(score[x])), (side, 4), textcoords="offset points",
                    ha="center", fontsize=11)  # fmt: skip
    ax.axhline(0, color="k", linewidth=0.8)
    ax.set(xlabel="offset $i - j$", ylabel="mean score")
    ax.margins(y=0.12)
    ax.legend(fontsize=11, loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2)
    return fig

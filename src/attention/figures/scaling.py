"""Drawings of chapter 3, scaled dot-product attention."""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from attention.functional import softmax, softmax_jacobian
from attention.plots import (
    BLUE,
    COLOURS,
    GREEN,
    ORANGE,
    PURPLE,
    RED,
    arrow,
    box,
    canvas,
    heatmap,
)

WORDS = ["I", "love", "math"]


def pipeline() -> Figure:
    """The four steps from Q, K, V to the output, with the shape of every matrix."""
    ax = canvas(4.3, 5.7)
    inputs = [("$Q$", 0.62, "$n_q \\times d_k$", BLUE), ("$K$", 1.82, "$n_k \\times d_k$", ORANGE),
              ("$V$", 3.55, "$n_k \\times d_v$", GREEN)]  # fmt: skip

    def step(x: float, y: float, text: str, shape: str, width: float, colour: str) -> None:
        # One text a line: the page's font is narrower, and only single lines stay centred.
        box(ax, x, y, "", width=width, height=0.72, colour=colour)
        ax.text(x, y + 0.15, text, ha="center", va="center", fontsize=12)
        ax.text(x, y - 0.17, shape, ha="center", va="center", fontsize=12)

    for name, x, shape, colour in inputs:
        step(x, 5.25, name, shape, 1.1, colour)
    for y, text in ((4.15, "compare: $S = QK^\\top$"), (3.15, "scale: $S / \\sqrt{d_k}$"),
                    (2.15, "normalise each row: $A$")):  # fmt: skip
        step(1.22, y, text, "$n_q \\times n_k$", 2.3, PURPLE)
    step(2.6, 1.05, "average: $O = AV$", "$n_q \\times d_v$", 2.1, RED)
    arrow(ax, (0.62, 4.89), (0.9, 4.5))
    arrow(ax, (1.82, 4.89), (1.54, 4.5))
    arrow(ax, (1.22, 3.8), (1.22, 3.5))
    arrow(ax, (1.22, 2.8), (1.22, 2.5))
    arrow(ax, (1.22, 1.8), (2.1, 1.4))
    arrow(ax, (3.55, 4.89), (3.1, 1.4), bend=-0.1)
    arrow(ax, (2.6, 0.7), (2.6, 0.3))
    ax.text(2.6, 0.15, "one new vector for each query", ha="center", va="center", fontsize=12)
    return plt.gcf()


def three_shares() -> Figure:
    """Two scores, turned into shares in three ways."""
    scores = torch.tensor([112.0, 96.0], dtype=torch.float64)
    ways = [("divide by the sum", scores / scores.sum()), ("softmax", softmax(scores)),
            ("÷ 8, then softmax", softmax(scores / 8))]  # fmt: skip
    fig, ax = plt.subplots(figsize=(4.3, 2.5))
    for y, (_, shares) in enumerate(ways):
        left = 0.0
        for share, colour, hatch in zip(shares.tolist(), (BLUE, ORANGE), ("", "//"), strict=True):
            ax.barh(y, share, left=left, height=0.62, facecolor=colour + "55", edgecolor=colour,
                    hatch=hatch, linewidth=1.2)  # fmt: skip
            if share > 0.05:
                ax.text(left + share / 2, y, f"{100 * share:.0f} %", ha="center", va="center")
            left += share
    ax.set_yticks(range(3), [name for name, _ in ways])
    ax.invert_yaxis()
    ax.tick_params(length=0)
    ax.set_xticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.text(0.0, -0.62, "Thinking (112)", ha="left", va="center", color="k")
    ax.text(1.0, -0.62, "Machines (96)", ha="right", va="center", color="k")
    ax.set(xlim=(0, 1), ylim=(2.5, -0.9))
    return fig


def shapes(n: int = 4, d_k: int = 2, d_v: int = 3) -> Figure:
    """The matrices of the formula as blocks whose sides are their shapes."""
    ax = canvas(4.3, 3.9)
    cell = 0.3

    def block(x: float, y: float, rows: int, cols: int, name: str, colour: str) -> None:
        for i in range(rows):
            for j in range(cols):
                ax.add_patch(Rectangle((x + j * cell, y - (i + 1) * cell), cell, cell,
                             facecolor=colour + "26", edgecolor=colour, linewidth=1))  # fmt: skip
        ax.text(x + cols * cell / 2, y + 0.16, name, ha="center", va="center", fontsize=12)

    def word(x: float, y: float, text: str) -> None:
        ax.text(x, y, text, ha="center", va="center", fontsize=12)

    block(0.1, 3.45, n, d_k, "$Q$", BLUE)
    word(0.93, 2.85, "×")
    block(1.12, 3.15, d_k, n, "$K^\\top$", ORANGE)
    word(2.55, 2.85, "=")
    block(2.8, 3.45, n, n, "scores $S$", PURPLE)
    word(0.4, 2.05, "$n \\times d_k$")
    word(1.72, 2.3, "$d_k \\times n$")
    word(3.4, 2.05, "$n \\times n$")
    block(0.1, 1.5, n, n, "weights $A$", PURPLE)
    word(1.53, 0.9, "×")
    block(1.75, 1.5, n, d_v, "$V$", GREEN)
    word(2.88, 0.9, "=")
    block(3.1, 1.5, n, d_v, "output", RED)
    word(0.7, 0.1, "$n \\times n$")
    word(2.2, 0.1, "$n \\times d_v$")
    word(3.55, 0.1, "$n \\times d_v$")
    return plt.gcf()


def angles() -> Figure:
    """One query and three keys: what the dot product makes of angle and length."""
    fig, ax = plt.subplots(figsize=(4.3, 3.9))
    q = (1.0, 0.0)
    keys = [((1.0, 0.0), ORANGE, (0.75, -0.28)), ((1.0, 1.0), ORANGE, (0.28, 1.18)),
            ((3.0, 3.0), ORANGE, (1.75, 2.78))]  # fmt: skip
    ax.annotate("", q, (0, 0), arrowprops={"arrowstyle": "-|>", "color": BLUE, "lw": 9,
                                                   "shrinkA": 0, "shrinkB": 0})  # fmt: skip
    for key, colour, place in reversed(keys):
        ax.annotate("", key, (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2,
                                                 "shrinkA": 0, "shrinkB": 0})  # fmt: skip
        ax.plot([key[0], key[0]], [0, key[1]], ":", color=colour, lw=1.4)
        score = q[0] * key[0] + q[1] * key[1]
        ax.text(*place, f"key [{key[0]:.0f}, {key[1]:.0f}]: {score:.0f}", ha="center",
                va="center", fontsize=12)  # fmt: skip
    ax.text(-0.35, 0.33, "query", ha="center", va="center", fontsize=12)
    ax.axhline(0, color="k", lw=0.6)
    ax.set(xlim=(-0.7, 3.4), ylim=(-0.6, 3.2))
    ax.set_aspect("equal")
    ax.set_xticks([1, 2, 3])
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.spines["bottom"].set_visible(False)
    return fig


def pronoun_weights(scores: Tensor, words: list[str], factors: dict[str, float]) -> Figure:
    """What "it" gives to every word, for scores multiplied by several factors."""
    fig, axes = plt.subplots(len(factors), 1, figsize=(4.3, 4.6), sharex=True)
    for ax, (name, factor) in zip(axes, factors.items(), strict=True):
        weights = softmax(scores * factor)
        ax.bar(range(len(words)), weights.tolist(), color=BLUE + "99", edgecolor=BLUE)
        for i, weight in enumerate(weights.tolist()):
            if weight > 0.15:
                ax.text(i, weight + 0.03, f"{weight:.3f}", ha="center", fontsize=11)
        ax.text(len(words) - 0.5, 1.0, name, ha="right", va="center", fontsize=12)
        ax.set(ylim=(0, 1.15))
        ax.set_yticks([0, 1])
    axes[-1].set_xticks(range(len(words)), words, rotation=60, ha="right", fontsize=11)
    fig.tight_layout(h_pad=0.6)
    return fig


def math_steps(scores: Tensor, weights: Tensor) -> Figure:
    """Scores, scaled scores and weights of "I love math", one below the other."""
    fig, axes = plt.subplots(3, 1, figsize=(3.4, 6.6))
    for ax, (values, title, fmt, top) in zip(
        axes,
        ((scores, "$S = QK^\\top$", ".0f", 2.0), (scores / math.sqrt(2), "÷ √2", ".3f", 2.0),
         (weights, "softmax: $A$", ".3f", 1.0)),
        strict=True,
    ):  # fmt: skip
        heatmap(values, WORDS, WORDS, ax=ax, fmt=fmt, vmax=top, row_label=title, col_label=None)
    fig.tight_layout(h_pad=1.2)
    return fig


def math_plane(v: Tensor, out: Tensor, weights: Tensor) -> Figure:
    """Where the three outputs lie between the three values."""
    fig, ax = plt.subplots(figsize=(4.3, 4.1))
    ax.plot(*v.T.tolist(), "-", color="k", lw=0.8)
    for word, value in zip(WORDS, v.tolist(), strict=True):
        ax.plot(*value, "s", color=GREEN, markersize=11)
        ax.annotate(f"value of {word}", value, (12, -12), textcoords="offset points", fontsize=12)
    places = {"I": (-14, 10), "love": (-16, -14), "math": (-4, 24)}
    for word, point in zip(WORDS, out.tolist(), strict=True):
        ax.plot(*point, "o", color=RED, markersize=6)
        ax.annotate(word, point, places[word], textcoords="offset points", fontsize=12, ha="right",
                    arrowprops={"arrowstyle": "-", "color": RED, "lw": 0.8})  # fmt: skip
    ax.set(xlim=(0, 7.3), ylim=(0.8, 6.9), xlabel="first number", ylabel="second number")
    return fig


def competition() -> Figure:
    """Three scores on the exponential curve, and what becomes of them."""
    fig, ax = plt.subplots(figsize=(4.3, 3.4))
    s = torch.linspace(-0.6, 2.3, 100)
    ax.plot(s, s.exp(), color="k", lw=1.4)
    shares = softmax(torch.tensor([2.0, 1.0, 0.0])).tolist()
    for score, share, colour in zip((2, 1, 0), shares, (BLUE, ORANGE, GREEN), strict=True):
        height = math.exp(score)
        ax.bar(score, height, width=0.36, color=colour + "55", edgecolor=colour)
        ax.text(score - 0.23, height + 0.25, f"{height:.2f}", ha="right", va="center", fontsize=12)
        ax.text(score, height / 2 if height > 2 else 1.9 if score == 0 else 1.35,
                f"{100 * share:.0f} %", ha="center", va="center", fontsize=12)  # fmt: skip
    ax.set(xlabel="score s", ylabel="eˢ", ylim=(0, 9))
    ax.set_xticks([0, 1, 2])
    return fig


def answers() -> Figure:
    """How much a weight answers to its own score: a (1 - a)."""
    fig, ax = plt.subplots(figsize=(4.3, 3.0))
    a = torch.linspace(0, 1, 101)
    ax.plot(a, a * (1 - a), color=BLUE)
    ax.plot([0.5], [0.25], "o", color=BLUE)
    ax.annotate("1/4, the most", (0.5, 0.25), (0, 8), textcoords="offset points", ha="center",
                fontsize=12)  # fmt: skip
    for end, place, side, text in ((0, 0.17, "left", "left out"), (1, 0.83, "right", "decided")):
        ax.plot([end], [0], "o", color=RED, clip_on=False)
        ax.text(place, 0.03, text, ha=side, fontsize=12)
    ax.set(xlabel="weight a", ylabel="a (1 − a)", ylim=(0, 0.3), xlim=(0, 1))
    ax.set_yticks([0, 0.1, 0.2])
    return fig


def spread(samples: int = 20000, seed: int = 0) -> Figure:
    """Histograms of raw and scaled scores for three widths."""
    generator = torch.Generator().manual_seed(seed)
    fig, axes = plt.subplots(3, 1, figsize=(4.3, 4.8), sharex=True, sharey=True)
    bins = [i / 2 for i in range(-80, 81)]
    for ax, d_k in zip(axes, (4, 64, 256), strict=True):
        q, k = (torch.randn(samples, d_k, generator=generator) for _ in range(2))
        s = (q * k).sum(-1)
        ax.hist(s.numpy(), bins, density=True, histtype="stepfilled", color=ORANGE + "66",
                edgecolor=ORANGE, label="$q \\cdot k$")  # fmt: skip
        ax.hist((s / math.sqrt(d_k)).numpy(), bins, density=True, histtype="step", color=BLUE,
                lw=2, label="$q \\cdot k / \\sqrt{d_k}$")  # fmt: skip
        ax.text(38, 0.3, f"$d_k = {d_k}$", ha="right", va="center", fontsize=12)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
    axes[0].legend(fontsize=11, loc="upper left")
    axes[-1].set(xlabel="score", xlim=(-40, 40))
    fig.tight_layout(h_pad=0.5)
    return fig


def decided(found: dict[tuple[int, str], float]) -> Figure:
    """The share of queries that are decided before training, in per cent, raw and scaled."""
    lengths = sorted({n for n, _ in found})
    fig, ax = plt.subplots(figsize=(4.3, 2.7))
    for shift, (name, colour, hatch) in zip(
        (-0.2, 0.2), (("raw", ORANGE, "//"), ("scaled", BLUE, "")), strict=True
    ):
        bars = ax.bar([i + shift for i in range(len(lengths))], [found[n, name] for n in lengths],
                      width=0.36, facecolor=colour + "66", edgecolor=colour, hatch=hatch,
                      label=f"{name} scores")  # fmt: skip
        ax.bar_label(bars, fmt="%.0f %%", fontsize=11, padding=2)
    ax.set_xticks(range(len(lengths)), [f"{n} keys" for n in lengths])
    ax.set(ylabel="decided queries, %", ylim=(0, 100))
    ax.legend(fontsize=11)
    return fig


def makers() -> Figure:
    """Three ways from the scores 2, 1, 0 to weights."""
    scores = torch.tensor([2.0, 1.0, 0.0])
    ways = {"softmax": softmax(scores), "sparsemax": torch.tensor([1.0, 0.0, 0.0]),
            "sigmoid": torch.sigmoid(scores)}  # fmt: skip
    fig, axes = plt.subplots(1, 3, figsize=(4.3, 2.5), sharey=True)
    for ax, (name, weights), colour in zip(axes, ways.items(), (BLUE, ORANGE, GREEN), strict=True):
        bars = ax.bar(range(3), weights.tolist(), color=colour + "66", edgecolor=colour)
        ax.bar_label(bars, fmt="%.2f", fontsize=11, padding=2)
        ax.set_xticks(range(3), ["2", "1", "0"])
        ax.set_title(name)
        ax.set(ylim=(0, 1.15))
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
    axes[1].set_xlabel("score")
    fig.tight_layout(w_pad=0.3)
    return fig


def untrained(weights: Tensor) -> Figure:
    """The same 4 x 4 weights twice: colours stretched to their range, and from 0 to 1."""
    tokens = [f"t{i}" for i in range(4)]
    fig, axes = plt.subplots(2, 1, figsize=(4.2, 6.0))
    low, high = weights.min().item(), weights.max().item()
    for ax, (vmin, vmax, title) in zip(
        axes,
        ((low, high, f"colours from {low:.2f} to {high:.2f}"), (0, 1, "colours from 0 to 1")),
        strict=True,
    ):
        heatmap(weights, tokens, tokens, ax=ax, vmin=vmin, vmax=vmax, title=title, colorbar=True)
    fig.tight_layout(h_pad=2)
    return fig


def walks(pairs: int = 8, width: int = 256, seed: int = 2) -> Figure:
    """Sums of q_c k_c of random vectors on their way, between plus and minus the root of c."""
    generator = torch.Generator().manual_seed(seed)
    q, k = (torch.randn(pairs, width, generator=generator) for _ in range(2))
    sums = torch.cat([torch.zeros(pairs, 1), (q * k).cumsum(-1)], dim=1)  # (pairs, width + 1)
    fig, ax = plt.subplots(figsize=(4.3, 3.4))
    for i, walk in enumerate(sums.tolist()):
        ax.plot(range(width + 1), walk, color=COLOURS[i % len(COLOURS)], lw=1.1)
    c = torch.arange(width + 1)
    for sign in (1, -1):
        ax.plot(c, sign * c.sqrt(), "--", color="k", lw=1.8)
    ax.text(width + 4, math.sqrt(width), "√c", ha="left", va="center", fontsize=12)
    ax.text(width + 4, -math.sqrt(width), "−√c", ha="left", va="center", fontsize=12)
    ax.axhline(0, color="k", lw=0.6)
    ax.set(xlabel="products added, c", ylabel="sum so far", xlim=(0, width))
    ax.set_xticks([0, 64, 128, 192, 256])
    ax.set_yticks([-32, -16, 0, 16, 32], ["−32", "−16", "0", "16", "32"])
    return fig


def mind_steps(gap: float, divisor: float = 1.0) -> float:
    """Steps of size 1 on a gap of raw scores until its sign is about to change.

    Two keys have the values 0 and 1, the output should be 1 and starts at p = softmax of
    -gap / divisor. A step moves the gap by p (1 - p)² / divisor, so the number of steps is close
    to the integral of divisor² (1 + eᶻ)³ / eᶻ over the scaled gap z.

    >>> round(mind_steps(2.0, 1.0)), round(mind_steps(16.0, 8.0))
    (15, 990)
    """
    z = gap / divisor
    area = math.expm1(z) + 3 * z - 3 * math.expm1(-z) - math.expm1(-2 * z) / 2
    return divisor**2 * area


def _duration(seconds: float) -> str:
    """In the largest unit of which there is one."""
    units = (("years", 365.25 * 86400), ("days", 86400), ("hours", 3600), ("min", 60))
    unit, size = next((u for u in units if seconds >= u[1]), ("s", 1))
    return f"{seconds / size:.0f} {unit}"


def change_of_mind(width: int = 64, gaps: tuple[float, ...] = (16.0, 2 * math.sqrt(128))) -> Figure:
    """How many steps a wrong choice takes to undo, by its gap, with and without the division.

    The dots have their time written at them, at ten steps a second.
    """
    fig, ax = plt.subplots(figsize=(4.3, 3.6))
    x = torch.linspace(0.5, 25, 99).tolist()
    for i, (divisor, colour, style, name) in enumerate(
        ((1.0, ORANGE, "--", "raw scores"), (math.sqrt(width), BLUE, "-", "divided by 8"))
    ):
        ax.plot(x, [mind_steps(gap, divisor) for gap in x], style, color=colour, label=name)
        for gap in gaps:
            y = mind_steps(gap, divisor)
            ax.plot([gap], [y], "o", color=colour)
            ax.annotate(_duration(y / 10), (gap, y), (-7, 4) if i == 0 else (0, 9),
                        textcoords="offset points", ha="right" if i == 0 else "center",
                        fontsize=12)  # fmt: skip
    ax.set(yscale="log", xlabel="gap between the two raw scores", ylabel="training steps",
           xlim=(0, 25), ylim=(1, 3e11))  # fmt: skip
    ax.set_yticks([1, 1e3, 1e6, 1e9], ["1", "1,000", "1 million", "1 billion"])
    ax.minorticks_off()
    ax.legend(fontsize=11, loc="upper left")
    return fig


def uneven_gradient(samples: int = 2000, keys: int = 3, seed: int = 0) -> Figure:
    """How far apart the queries' gradients are: the 10th to the 90th percentile, by d_k."""
    widths = [2**i for i in range(10)]
    generator = torch.Generator().manual_seed(seed)
    ends = torch.tensor([0.1, 0.9])
    found = {"raw": [], "scaled": []}
    for d_k in widths:
        q = torch.randn(samples, 1, d_k, generator=generator)
        k = torch.randn(samples, keys, d_k, generator=generator)
        s = (q * k).sum(-1)  # (samples, keys)
        for name, divisor in (("raw", 1.0), ("scaled", math.sqrt(d_k))):
            slope = softmax_jacobian(softmax(s, divisor)).abs().amax((1, 2)) / divisor
            found[name].append(slope.quantile(ends).tolist())
    fig, ax = plt.subplots(figsize=(4.3, 3.4))
    for name, colour, hatch, label in (
        ("raw", ORANGE, "//", "raw scores"),
        ("scaled", BLUE, "", "divided by $\\sqrt{d_k}$"),
    ):
        low, high = zip(*found[name], strict=True)
        ax.fill_between(widths, low, high, facecolor=colour + "55", edgecolor=colour, hatch=hatch,
                        label=label)  # fmt: skip
    ax.text(500, 1.2, "quickest tenth", ha="right", va="center", fontsize=12)
    ax.text(28, 5e-6, "slowest tenth", ha="right", va="center", fontsize=12)
    ax.set(xscale="log", yscale="log", xlabel="$d_k$", ylabel="largest derivative by q · k",
           ylim=(1e-9, 6), xlim=(1, 512))  # fmt: skip
    ax.set_xticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
    ax.set_yticks([1e-9, 1e-6, 1e-3, 1], ["10⁻⁹", "10⁻⁶", "0.001", "1"])
    ax.minorticks_off()
    ax.legend(fontsize=11, loc="lower left")
    return fig


def work(d_model: int = 512) -> Figure:
    """Operations per token in one layer, part by part, as the sequence grows."""
    lengths = [2**i for i in range(7, 15)]
    square = d_model**2
    fig, ax = plt.subplots(figsize=(4.3, 4.2))
    for name, each, colour, style in (
        ("both together: $24d^2$", 24 * square, "k", ":"),
        ("feed-forward: $16d^2$", 16 * square, BLUE, "--"),
        ("projections: $8d^2$", 8 * square, GREEN, "-."),
    ):
        ax.plot(lengths, [each] * len(lengths), style, color=colour, label=name)
    ax.plot(lengths, [4 * n * d_model for n in lengths], "-", color=ORANGE,
            label="scores + average: $4nd$")  # fmt: skip
    places = ((2, (8, -17), "left"), (6, (-6, 8), "right"))
    for factor, place, side in places:
        n, height = factor * d_model, 4 * factor * square
        ax.plot([n], [height], "o", color=ORANGE, markersize=7)
        ax.annotate(f"$n = {factor}d$ = {n:,}", (n, height), xytext=place, ha=side,
                    textcoords="offset points")  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="tokens $n$", ylabel="operations per token")
    ax.set(ylim=(2e5, 2e9))
    ax.set_xticks([128, 512, 2048, 8192], ["128", "512", "2,048", "8,192"])
    ax.minorticks_off()
    ax.legend(fontsize=10, loc="upper left")
    return fig

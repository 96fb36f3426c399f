"""Drawings of chapter 3, scaled dot-product attention."""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import torch
from matplotlib.figure import Figure
from torch import Tensor

from attention.functional import softmax, softmax_jacobian
from attention.plots import BLUE, GREEN, ORANGE, PURPLE, RED, arrow, box, canvas, heatmap

WORDS = ["I", "love", "math"]


def pipeline() -> Figure:
    """The four steps from Q, K, V to the output, with the shape of every matrix."""
    ax = canvas(4.3, 5.7)
    inputs = [("Q", 0.62, "$n_q \\times d_k$", BLUE), ("K", 1.82, "$n_k \\times d_k$", ORANGE),
              ("V", 3.55, "$n_k \\times d_v$", GREEN)]  # fmt: skip

    def step(x: float, y: float, text: str, shape: str, width: float, colour: str) -> None:
        # One text a line: the page's font is narrower, and only single lines stay centred.
        box(ax, x, y, "", width=width, height=0.72, colour=colour)
        ax.text(x, y + 0.15, text, ha="center", va="center", fontsize=12)
        ax.text(x, y - 0.17, shape, ha="center", va="center", fontsize=12)

    for name, x, shape, colour in inputs:
        step(x, 5.25, name, shape, 1.1, colour)
    for y, text in ((4.15, "compare: S = Q Kᵀ"), (3.15, "scale: S / √dₖ"),
                    (2.15, "normalise each row: A")):  # fmt: skip
        step(1.22, y, text, "$n_q \\times n_k$", 2.3, PURPLE)
    step(2.6, 1.05, "average: O = A V", "$n_q \\times d_v$", 2.1, GREEN)
    arrow(ax, (0.62, 4.89), (0.9, 4.5))
    arrow(ax, (1.82, 4.89), (1.54, 4.5))
    arrow(ax, (1.22, 3.8), (1.22, 3.5))
    arrow(ax, (1.22, 2.8), (1.22, 2.5))
    arrow(ax, (1.22, 1.8), (2.1, 1.4))
    arrow(ax, (3.55, 4.89), (3.1, 1.4), bend=-0.1)
    arrow(ax, (2.6, 0.7), (2.6, 0.3))
    ax.text(2.6, 0.15, "one new vector for each query", ha="center", va="center", fontsize=12)
    return plt.gcf()


def math_weights(weights: Tensor) -> Figure:
    """The 3 x 3 weights of "I love math"."""
    fig, ax = plt.subplots(figsize=(3.3, 2.6))
    heatmap(weights, WORDS, WORDS, ax=ax)
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


def spread_and_gradient(samples: int = 2000, keys: int = 3, seed: int = 0) -> Figure:
    """How the scores spread, and how the softmax loses its gradient, as d_k grows."""
    widths = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    generator = torch.Generator().manual_seed(seed)
    spread, shifted, gradient, scaled = [], [], [], []
    for d_k in widths:
        q = torch.randn(samples, 1, d_k, generator=generator)
        k = torch.randn(samples, keys, d_k, generator=generator)
        s = (q * k).sum(-1)  # (samples, keys)
        spread.append(s.std().item())
        shifted.append(((q + 1) * (k + 1)).sum(-1)[:, 0].std().item())
        for scores, row in ((s, gradient), (s / math.sqrt(d_k), scaled)):
            row.append(softmax_jacobian(softmax(scores)).abs().amax((1, 2)).median().item())
    fig, (top, bottom) = plt.subplots(2, 1, figsize=(4.2, 6.2), sharex=True)
    top.plot(widths, spread, "o", color=BLUE, label="measured, mean 0")
    top.plot(widths, [math.sqrt(d) for d in widths], "-", color=BLUE, label="√dₖ")
    top.plot(widths, shifted, "s", color=ORANGE, label="measured, mean 1")
    top.plot(widths, [math.sqrt(3 * d) for d in widths], "--", color=ORANGE,
             label="√(3 dₖ)")  # fmt: skip
    top.set(xscale="log", yscale="log", ylabel="standard deviation of a score")
    top.legend(fontsize=10)
    bottom.plot(widths, gradient, "-o", color=RED, label="raw scores")
    bottom.plot(widths, scaled, "--s", color=GREEN, label="divided by √dₖ")
    bottom.set(xlabel="$d_k$", ylabel="largest Jacobian entry (median)", ylim=(0, 0.26))
    bottom.set_xticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
    bottom.minorticks_off()
    bottom.legend(fontsize=10, loc="lower left")
    fig.tight_layout(h_pad=1.5)
    return fig


def work(d_model: int = 512) -> Figure:
    """Operations per token in one layer, part by part, as the sequence grows."""
    lengths = [2**i for i in range(7, 15)]
    square = d_model**2
    fig, ax = plt.subplots(figsize=(4.3, 4.2))
    for name, each, colour, style in (
        ("both below: $24d^2$", 24 * square, "k", ":"),
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

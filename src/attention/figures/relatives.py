"""Diagrams of chapter 9: three shapes of a transformer, cross-attention, beams, wirings."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from attention.plots import BLUE, GREEN, ORANGE, PURPLE, arrow, box, canvas

__all__ = ["applications", "batch", "beams", "cross", "family", "forcing", "shapes", "wirings"]
GREY = "#808080"


def _grid(ax: Axes, x: float, y: float, rows: int, columns: int, causal: bool, colour: str) -> None:
    """Which query (row) may attend to which key: cells of 0.2 inches, upper left at (x, y)."""
    for i in range(rows):
        for j in range(columns):
            on = not causal or j <= i
            ax.add_patch(Rectangle(
                (x + 0.2 * j, y - 0.2 * (i + 1)), 0.2, 0.2, linewidth=0.8, edgecolor=GREY,
                facecolor=colour + "80" if on else "none",
            ))  # fmt: skip


def family() -> Figure:
    """Encoder only, decoder only, both: what goes in, who may attend to whom, what comes out."""
    ax = canvas(4.4, 4.0)
    for y, name, text, task in (
        (3.86, "encoder only", "every token sees every token", "classify, tag, search"),
        (2.56, "decoder only", "each token sees itself and the past", "write"),
        (1.26, "both", "the source whole, the target's past", "translate"),
    ):
        ax.text(0.05, y, name, va="center", fontsize=12, weight="bold")
        ax.text(1.45, y, text, va="center", fontsize=11)
        ax.text(3.35, y - 0.62, task, va="center", ha="left", fontsize=11, wrap=True)
    _grid(ax, 0.5, 3.66, 4, 4, False, BLUE)
    arrow(ax, (1.55, 3.26), (3.2, 3.26))
    _grid(ax, 0.5, 2.36, 4, 4, True, ORANGE)
    arrow(ax, (1.55, 1.96), (3.2, 1.96))
    _grid(ax, 0.05, 1.06, 4, 4, False, BLUE)
    _grid(ax, 1.1, 1.06, 3, 4, False, PURPLE)
    _grid(ax, 2.15, 1.06, 3, 3, True, ORANGE)
    arrow(ax, (2.85, 0.66), (3.2, 0.66))
    for x, text in ((0.45, "encoder"), (1.5, "cross"), (2.45, "decoder")):
        ax.text(x, 0.1, text, ha="center", va="center", fontsize=11)
    return plt.gcf()


def cross(weights: Tensor, writes: Sequence[str], reads: Sequence[str]) -> Figure:
    """Target queries below, source tokens above, lines as wide as the weights (n_q, n_k)."""
    ax = canvas(4.4, 2.9)
    xs = [0.75 + 1.45 * j for j in range(len(reads))]
    qs = [1.25 + 1.9 * i for i in range(len(writes))]
    for x, word in zip(xs, reads, strict=True):
        box(ax, x, 2.55, word, width=0.9, height=0.4, colour=BLUE)
    for i, (q, word) in enumerate(zip(qs, writes, strict=True)):
        colour = (GREEN, PURPLE)[i]
        box(ax, q, 0.35, word, width=1.5, height=0.4, colour=colour)
        for j, x in enumerate(xs):
            weight = float(weights[i, j])
            ax.plot([q, x], [0.57, 2.33], color=colour, linewidth=0.8 + 8 * weight, alpha=0.8,
                    solid_capstyle="butt", zorder=0)  # fmt: skip
            side = (-1, 1)[i] * (0.22 + 0.13 * weight)  # beside its line
            ax.text(x - 0.1 * (x - q) + side, 2.15, f"{weight:.1f}", ha="center", va="center",
                    fontsize=11, color=colour)  # fmt: skip
    return plt.gcf()


def shapes() -> Figure:
    """Q times the keys, the weights times V: which sides come from the target, which from X."""
    ax = canvas(4.4, 2.7)

    def block(
        x: float, y: float, rows: int, columns: int, colour: str, name: str, shape: str
    ) -> None:
        for i in range(rows):
            for j in range(columns):
                ax.add_patch(Rectangle((x + 0.22 * j, y - 0.22 * (i + 1)), 0.22, 0.22,
                                       facecolor=colour + "40", edgecolor=colour))  # fmt: skip
        middle = x + 0.11 * columns
        ax.text(middle, y + 0.13, name, ha="center", va="center", fontsize=12)
        ax.text(middle, y - 0.22 * rows - 0.14, shape, ha="center", va="center", fontsize=11)

    block(0.15, 2.2, 2, 2, ORANGE, "$Q$", "(2, 2)")
    ax.text(0.85, 1.98, "·", ha="center", va="center", fontsize=16)
    block(1.15, 2.2, 2, 3, BLUE, "$K^T$", "(2, 3)")
    ax.text(2.28, 1.98, "softmax", ha="center", va="bottom", fontsize=11)
    arrow(ax, (1.9, 1.92), (2.72, 1.92))
    block(2.95, 2.2, 2, 3, PURPLE, "weights", "(2, 3)")
    ax.text(0.25, 0.75, "weights", ha="left", va="center", fontsize=11)
    block(0.95, 0.98, 2, 3, PURPLE, "", "(2, 3)")
    ax.text(1.85, 0.75, "·", ha="center", va="center", fontsize=16)
    block(2.05, 0.98, 3, 2, BLUE, "$V$", "(3, 2)")
    ax.text(2.75, 0.75, "=", ha="center", va="center", fontsize=13)
    block(3.1, 0.98, 2, 2, ORANGE, "output", "(2, 2)")
    return plt.gcf()


def batch(rows: Sequence[Sequence[str]], pad: str = "<pad>") -> Figure:
    """Sentences of a batch as rows of equal length, the padding empty."""
    n, width = max(map(len, rows)), 4.3
    cell = width / n
    ax = canvas(4.4, 0.42 * len(rows) + 0.1)
    for i, row in enumerate(rows):
        for j, word in enumerate([*row, *[pad] * (n - len(row))]):
            left, bottom = 0.05 + cell * j, 0.42 * (len(rows) - 1 - i) + 0.08
            empty = word == pad
            ax.add_patch(Rectangle((left, bottom), cell - 0.04, 0.34, linewidth=0.9,
                                   facecolor="none" if empty else BLUE + "33", edgecolor=GREY,
                                   linestyle=":" if empty else "-"))  # fmt: skip
            ax.text(left + cell / 2 - 0.02, bottom + 0.17, "pad" if empty else word, ha="center",
                    va="center", fontsize=10.5, style="italic" if empty else "normal")  # fmt: skip
    return plt.gcf()


def forcing(words: Sequence[str]) -> Figure:
    """The decoder's input below, the wanted output above, shifted by one."""
    ax = canvas(4.4, 1.75)
    given, wanted = ["<start>", *words], [*words, "<end>"]
    step = 3.5 / len(given)
    ax.text(0.02, 1.45, "wanted", va="center", fontsize=11)
    ax.text(0.02, 0.3, "given", va="center", fontsize=11)
    for i, (below, above) in enumerate(zip(given, wanted, strict=True)):
        x = 0.72 + step * (i + 0.5)
        box(ax, x, 0.3, below, width=step - 0.08, height=0.4, colour=BLUE)
        box(ax, x, 1.45, above, width=step - 0.08, height=0.4, colour=GREEN)
        arrow(ax, (x, 0.52), (x, 1.23))
        if i:
            arrow(ax, (x - step + 0.1, 1.23), (x - 0.1, 0.52), colour=GREY, style="-", width=0.9)
    return plt.gcf()


def beams(tree: dict[tuple[str, ...], dict[str, float]], kept: set[tuple[str, ...]]) -> Figure:
    """Two steps of a search: the words after <start>, then after each; `kept` is framed."""
    ax = canvas(4.4, 4.1)
    first = tree[()]
    leaves = [(a, b) for a in first for b in tree[a,]]
    height = 3.9 / len(leaves)
    ys = {leaf: 4.0 - height * (k + 0.5) for k, leaf in enumerate(leaves)}
    box(ax, 0.42, 2.05, "<start>", width=0.74, height=0.4, colour=GREEN)
    beside = ((-0.01, 0.2), (0.21, 0.06), (-0.2, -0.06))  # each number beside its arrow
    for (a, p), (right, up) in zip(first.items(), beside, strict=True):
        own = [ys[leaf] for leaf in leaves if leaf[0] == a]
        y = sum(own) / len(own)
        arrow(ax, (0.8, 2.05), (1.45, y))
        box(ax, 1.85, y, a, width=0.76, height=0.4, colour=ORANGE if (a,) in kept else GREY)
        ax.text(1.09 + right, 2.05 + 0.45 * (y - 2.05) + up, f"{p:g}", ha="center", va="center",
                fontsize=11)  # fmt: skip
        for b, p_next in tree[a,].items():
            at = ys[a, b]
            arrow(ax, (2.24, y), (2.8, at), width=1.0)
            box(ax, 3.14, at, b, width=0.66, height=min(0.36, height - 0.06),
                colour=ORANGE if (a, b) in kept else GREY)  # fmt: skip
            ax.text(3.55, at, f"{p * p_next:.3g}", ha="left", va="center", fontsize=11)
    return plt.gcf()


def wirings() -> Figure:
    """Three ways to join an image and a text: by a product, by cross-attention, as a prefix."""
    ax = canvas(4.4, 4.3)
    for y, title in ((4.15, "two encoders, one dot product"), (2.75, "cross-attention"),
                     (1.3, "one sequence")):  # fmt: skip
        ax.text(0.05, y, title, va="center", fontsize=12, weight="bold")
    for y, name, colour in ((3.8, "image encoder", BLUE), (3.28, "text encoder", ORANGE)):
        box(ax, 0.95, y, name, width=1.6, height=0.38, colour=colour)
        arrow(ax, (1.76, y), (2.5, y))
        ax.text(2.95, y, "(1, d)", ha="center", va="center", fontsize=11)
        arrow(ax, (3.3, y), (3.75, 3.54))
    ax.text(4.05, 3.54, "match", ha="center", va="center", fontsize=11)
    box(ax, 0.95, 2.38, "image encoder", width=1.6, height=0.38, colour=BLUE)
    box(ax, 2.95, 1.78, "text decoder", width=1.9, height=0.38, colour=ORANGE)
    ax.plot([1.76, 2.95], [2.38, 2.38], color=PURPLE, linewidth=1.8)
    arrow(ax, (2.95, 2.38), (2.95, 1.98), colour=PURPLE, width=1.8)
    ax.text(3.05, 2.3, "$K$, $V$ (16, $d$)", ha="left", va="center", fontsize=11)
    ax.text(0.95, 1.78, "text (5, d)", ha="center", va="center", fontsize=11)
    arrow(ax, (1.45, 1.78), (1.98, 1.78))
    for k in range(13):
        colour = BLUE if k < 8 else ORANGE
        ax.add_patch(Rectangle((0.1 + 0.25 * k, 0.72), 0.21, 0.3, facecolor=colour + "50",
                               edgecolor=colour))  # fmt: skip
    ax.text(1.1, 0.55, "patches (16, d)", ha="center", va="center", fontsize=11)
    ax.text(2.75, 0.55, "text (5, d)", ha="center", va="center", fontsize=11)
    arrow(ax, (3.38, 0.87), (3.62, 0.87))
    ax.text(4.02, 0.87, "decoder", ha="center", va="center", fontsize=11)
    ax.text(2.2, 0.2, "(21, d), the patches as a prefix", ha="center", va="center", fontsize=11)
    return plt.gcf()


def applications() -> Figure:
    """What goes in, the transformer, what comes out: a map of uses."""
    ax = canvas(4.4, 5.0)
    rows = (
        ("words", "encoder", "label, tag, search", BLUE),
        ("words", "decoder", "more words, code", ORANGE),
        ("words", "both", "translation", PURPLE),
        ("patches", "encoder", "what is in the image", BLUE),
        ("sound frames", "both", "what was said", PURPLE),
        ("patches + words", "decoder", "answer, caption", ORANGE),
        ("amino acids", "encoder", "protein structure", BLUE),
        ("moves, returns", "decoder", "the next move", ORANGE),
    )
    for x, text in ((0.75, "tokens in"), (2.2, "type"), (3.55, "what comes out")):
        ax.text(x, 4.82, text, ha="center", va="center", fontsize=12, weight="bold")
    for k, (tokens, kind, out, colour) in enumerate(rows):
        y = 4.4 - 0.58 * k
        box(ax, 0.75, y, tokens, width=1.4, height=0.4, colour=GREEN)
        box(ax, 2.2, y, kind, width=0.9, height=0.4, colour=colour)
        arrow(ax, (1.46, y), (1.74, y))
        arrow(ax, (2.66, y), (2.86, y))
        ax.text(2.9, y, out, ha="left", va="center", fontsize=11)
    return plt.gcf()

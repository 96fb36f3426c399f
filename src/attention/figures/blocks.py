"""Diagrams of chapter 7: the block, before and after the norm moved, and the whole of 2017."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from attention.plots import BLUE, GREEN, ORANGE, PURPLE, arrow, box, canvas

Point = tuple[float, float]


def _plus(ax: Axes, x: float, y: float) -> Point:
    ax.plot([x], [y], "o", markersize=15, markerfacecolor="none", markeredgecolor="k")
    ax.text(x, y - 0.01, "+", ha="center", va="center", fontsize=13)
    return x, y


def _skip(ax: Axes, x: float, low: float, high: float, side: float) -> None:
    """The residual path: out at `low`, around the sub-layer, into the sum at `high`."""
    ax.plot([x, x + side, x + side], [low, low, high], color="k", linewidth=1.4)
    arrow(ax, (x + side, high), (x + (0.12 if side > 0 else -0.12), high))


def _up(ax: Axes, x: float, low: float, high: float) -> None:
    arrow(ax, (x, low), (x, high))


def _block(ax: Axes, x: float, title: str, norm_first: bool) -> None:
    ax.text(x, 0.18, "x", ha="center", va="center", style="italic", fontsize=12)
    y = 0.3
    for name, colour in (("attention", BLUE), ("feed-forward", ORANGE)):
        below = y
        first, second = (("norm", GREEN), (name, colour))
        if norm_first:
            box(ax, x, y + 0.58, first[0], width=1.4, height=0.36, colour=first[1])
            box(ax, x, y + 1.16, second[0], width=1.4, height=0.36, colour=second[1])
            _up(ax, x, below, y + 0.40)
            _up(ax, x, y + 0.76, y + 0.98)
            total = y + 1.64
            _up(ax, x, y + 1.34, total - 0.12)
        else:
            box(ax, x, y + 0.58, second[0], width=1.4, height=0.36, colour=second[1])
            _up(ax, x, below, y + 0.40)
            total = y + 1.06
            _up(ax, x, y + 0.76, total - 0.12)
            box(ax, x, y + 1.54, first[0], width=1.4, height=0.36, colour=first[1])
            _up(ax, x, total + 0.12, y + 1.36)
        _plus(ax, x, total)
        _skip(ax, x, below + 0.16, total, 0.95)
        y = total + 0.12 if norm_first else y + 1.72
    _up(ax, x, y, y + 0.3)
    ax.text(x, 4.42, title, ha="center", va="center", fontsize=12)


def one_block() -> Figure:
    """An encoder block twice: normalised after each sum (2017), and before each sub-layer."""
    ax = canvas(4.4, 4.6)
    _block(ax, 0.95, "post-norm (2017)", norm_first=False)
    _block(ax, 3.2, "pre-norm (today)", norm_first=True)
    figure = ax.get_figure()
    assert isinstance(figure, Figure)
    return figure


def _stack(
    ax: Axes, x: float, parts: list[tuple[str, str]], side: float, top: float
) -> list[float]:
    """Sub-layers from below to above, each with its residual path; returns their heights."""
    heights, y = [], 1.0
    for name, colour in parts:
        _up(ax, x, y, y + 0.34)
        box(ax, x, y + 0.58, name, width=1.6, height=0.48, colour=colour, fontsize=11)
        _up(ax, x, y + 0.82, y + 0.98)
        _plus(ax, x, y + 1.1)
        _skip(ax, x, y + 0.14, y + 1.1, side)
        heights.append(y + 0.58)
        y += 1.22
    _up(ax, x, y, top)
    return heights


def encoder_decoder() -> Figure:
    """The transformer of 2017: an encoder, a decoder, and the one path between them."""
    ax = canvas(4.4, 6.0)
    left, right = 1.0, 3.36
    _stack(ax, left, [("self-attention", BLUE), ("feed-forward", ORANGE)], -0.94, 4.0)
    heights = _stack(
        ax, right,
        [("masked\nself-attention", BLUE), ("cross-attention", PURPLE), ("feed-forward", ORANGE)],
        0.94, 4.95,
    )  # fmt: skip
    for x, text in ((left, "embed + positions"), (right, "embed + positions")):
        box(ax, x, 0.72, text, width=1.6, height=0.36, colour=GREEN, fontsize=11)
        _up(ax, x, 0.32, 0.54)
        _up(ax, x, 0.90, 1.04)
    for x, top in ((left, 3.44), (right, 4.66)):  # what is repeated
        ax.add_patch(FancyBboxPatch(
            (x - 0.99, 0.98), 1.98, top - 0.98, boxstyle="round,pad=0,rounding_size=0.09",
            facecolor="none", edgecolor="#808080", linewidth=0.9, linestyle="--",
        ))  # fmt: skip
    ax.text(left, 0.18, "the grey cat", ha="center", va="center", style="italic")
    ax.text(right, 0.18, "<start> le chat", ha="center", va="center", style="italic")
    ax.text(left, 4.42, "encoder,\n6 times", ha="center", va="center", fontsize=12)
    # from the top of the encoder into the middle of the decoder
    middle = (left + right) / 2
    ax.plot([left, middle, middle], [4.0, 4.0, heights[1]], color=PURPLE, linewidth=1.8)
    arrow(ax, (middle, heights[1]), (right - 0.8, heights[1]), colour=PURPLE, width=1.8)
    ax.text(middle - 0.08, 3.74, "$K$, $V$", ha="right", va="center")
    ax.text(right - 0.1, heights[1] - 0.37, "$Q$", ha="right", va="center")
    box(ax, right, 5.15, "linear, softmax", width=1.6, height=0.36, colour=GREEN, fontsize=11)
    _up(ax, right, 5.33, 5.62)
    ax.text(right, 5.76, "le chat gris", ha="center", va="center", style="italic")
    ax.text(right - 1.26, 4.98, "decoder,\n6 times", ha="center", va="center", fontsize=12)
    figure = ax.get_figure()
    assert isinstance(figure, Figure)
    return figure

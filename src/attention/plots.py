"""Heatmaps, curves and diagrams in the book's style.

Figures are SVG. Text and axes are black, which the website turns into the colour of the page's
text, and the background stays transparent: one drawing serves light, dark and print.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from torch import Tensor

# Okabe and Ito's colours, told apart by colour-blind readers too, less black and yellow;
# the mid tones keep a contrast of 3 : 1 on white and on the dark theme's background.
BLUE, ORANGE, GREEN, RED, SKY, PURPLE = COLOURS = [
    "#0072B2", "#D55E00", "#009E73", "#CC3311", "#3D9BD1", "#AA4499",
]  # fmt: skip
# One hue for weights, two for signed numbers, as in the explorers; the more, the less of the page
# shows through. The website gives hues and numbers lighter or darker tones on a dark page.
ABOVE, BELOW = "#0f58a0", "#9a3c00"
INK, INK_BETWEEN, INK_DEEP = "#010101", "#020202", "#fefefe"
SEQUENTIAL = LinearSegmentedColormap.from_list("attention", [to_rgba(ABOVE, 0), to_rgba(ABOVE)])
DIVERGING = LinearSegmentedColormap.from_list(
    "signed numbers",
    [(0, to_rgba(BELOW)), (0.5, to_rgba(BELOW, 0)), (0.5, to_rgba(ABOVE, 0)), (1, to_rgba(ABOVE))],
    N=512,
)


def use_book_style() -> None:
    """Set matplotlib to the book's style for this session; a notebook then shows SVG."""
    if SEQUENTIAL.name not in mpl.colormaps:
        mpl.colormaps.register(SEQUENTIAL)
    mpl.rcParams.update(
        {
            "figure.figsize": (6.4, 3.4),
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "savefig.facecolor": "none",
            "savefig.bbox": "tight",
            "svg.fonttype": "none",
            "svg.hashsalt": "attention",  # the same figure gives the same file
            "mathtext.fontset": "stix",  # as the formulas of the text
            "font.size": 11,
            "axes.titlesize": 11,
            "axes.labelsize": 11,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.prop_cycle": cycler(color=COLOURS),
            "lines.linewidth": 2,
            "legend.frameon": False,
            "image.cmap": SEQUENTIAL.name,
        }
    )
    try:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("svg")
    except (ImportError, AttributeError):  # not in a notebook
        pass


def heatmap(
    weights: Tensor | Sequence[Sequence[float]],
    rows: Sequence[str] | None = None,
    cols: Sequence[str] | None = None,
    *,
    ax: Axes | None = None,
    title: str | None = None,
    vmin: float | None = 0.0,
    vmax: float | None = 1.0,
    fmt: str | None = ".3f",
    row_label: str | None = "query",
    col_label: str | None = "key",
    colorbar: bool = False,
) -> Axes:
    """Draw a matrix with its numbers: rows are queries, columns are keys.

    weights (n_q, n_k). The scale runs from `vmin` to `vmax`, 0 to 1 unless told, so that two
    heatmaps can be compared; a `vmin` below zero gives signed numbers two hues, around zero.
    The more, the stronger the colour. `fmt=None` leaves the numbers out. Returns the axes.
    ValueError if weights is not a matrix or the labels do not fit it.
    """
    values = np.asarray(_numbers(weights), dtype=float)
    if values.ndim != 2:
        raise ValueError(f"weights must be a matrix (n_q, n_k); got shape {values.shape}")
    for name, labels, size in (("rows", rows, values.shape[0]), ("cols", cols, values.shape[1])):
        if labels is not None and len(labels) != size:
            raise ValueError(f"{name} must name all {size}; got {len(labels)} names")
    if ax is None:
        size = 0.62 if fmt else 0.4
        ax = plt.subplots(
            figsize=(1.4 + size * values.shape[1], 1.1 + size * 0.8 * values.shape[0])
        )[1]
    cmap = SEQUENTIAL
    if vmin is not None and vmin < 0:
        cmap, vmax = DIVERGING, max(-vmin, vmax or 0.0)
        vmin = -vmax
    image = ax.pcolormesh(
        values, cmap=cmap, vmin=vmin, vmax=vmax, edgecolors="#8a8a8a66", linewidth=0.6
    )
    ax.set_aspect("auto" if fmt else "equal")
    ax.invert_yaxis()
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    n_rows, n_cols = values.shape
    for set_ticks, labels, n in ((ax.set_xticks, cols, n_cols), (ax.set_yticks, rows, n_rows)):
        names = range(n) if labels is None else labels
        set_ticks([i + 0.5 for i in range(n)], [str(name) for name in names])
    if row_label:
        ax.set_ylabel(row_label)
    if col_label:
        ax.set_xlabel(col_label, labelpad=8)
    if title:
        ax.set_title(title)
    if fmt:
        for i, row in enumerate(values):
            for j, value in enumerate(row):
                number = format(value, fmt).replace("-", "−")
                colour = _ink(image.cmap(image.norm(value))[3])
                ax.text(
                    j + 0.5, i + 0.5, number, ha="center", va="center", color=colour, fontsize=10
                )  # fmt: skip
    if colorbar:
        plt.colorbar(image, ax=ax, fraction=0.046, pad=0.04)
    return ax


def _ink(opacity: float) -> str:
    """The colour of a number on a cell of this opacity: a contrast of 4.5 : 1 or more.

    On a dark page white gives way to black at 0.614, on a light one black to white at 0.804.
    """
    return INK if opacity < 0.614 else INK_BETWEEN if opacity < 0.804 else INK_DEEP


def curves(
    x: Sequence[float] | Tensor,
    series: Mapping[str, Sequence[float] | Tensor],
    *,
    ax: Axes | None = None,
    xlabel: str = "",
    ylabel: str = "",
    title: str | None = None,
    log: str = "",
) -> Axes:
    """Draw named curves over x, told apart by colour and by dash; `log` may hold "x" and "y".

    ValueError if it holds something else.
    """
    if not isinstance(log, str) or set(log) - {"x", "y"}:
        raise ValueError(f'log must be "", "x", "y" or "xy"; got {log!r}')
    ax = ax or plt.subplots()[1]
    dashes = ["-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1))]
    for i, (name, y) in enumerate(series.items()):
        ax.plot(_numbers(x), _numbers(y), label=name, linestyle=dashes[i % len(dashes)])
    if "x" in log:
        ax.set_xscale("log")
    if "y" in log:
        ax.set_yscale("log")
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if title:
        ax.set_title(title)
    if len(series) > 1:
        ax.legend()
    return ax


def _numbers(x: Sequence | Tensor):
    """What Matplotlib takes: a tensor, wherever it is and whatever its type, becomes an array."""
    return x.detach().cpu().double().numpy() if isinstance(x, Tensor) else x


def canvas(width: float, height: float) -> Axes:
    """Empty axes in units of inches, for a diagram made of `box` and `arrow`."""
    ax = plt.subplots(figsize=(width, height))[1]
    ax.set(xlim=(0, width), ylim=(0, height))
    ax.set_axis_off()
    ax.set_position((0, 0, 1, 1))
    return ax


def box(
    ax: Axes, x: float, y: float, text: str, *, width: float = 1.2, height: float = 0.5,
    colour: str = BLUE, fontsize: float = 11,
) -> tuple[float, float]:  # fmt: skip
    """Draw a box around its centre (x, y) and return the centre."""
    corner = (x - width / 2, y - height / 2)
    outline = FancyBboxPatch(
        corner, width, height, boxstyle="round,pad=0,rounding_size=0.08",
        facecolor=colour + "26", edgecolor=colour, linewidth=1.5,
    )  # fmt: skip
    ax.add_patch(outline)
    ax.text(x, y, text, ha="center", va="center", fontsize=fontsize)
    return x, y


def arrow(
    ax: Axes, start: tuple[float, float], end: tuple[float, float], *, colour: str = "k",
    bend: float = 0.0, width: float = 1.4, style: str = "-|>",
) -> None:  # fmt: skip
    """Draw an arrow from start to end; `bend` bows it, `width` is its line width in points."""
    ax.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle=style,
            mutation_scale=12,
            linewidth=width,
            color=colour,
            connectionstyle=f"arc3,rad={bend}",
            shrinkA=2,
            shrinkB=2,
        )  # fmt: skip
    )


def vectors(
    x: Tensor | Sequence[Sequence[float]],
    rows: Sequence[str],
    cols: Sequence[str],
    *,
    ax: Axes | None = None,
    title: str | None = None,
    reach: float = 1.0,
) -> Axes:
    """Draw vectors as rows of coloured cells, one colour above zero and one below.

    x (n, d), one row a token; rows and cols name tokens and features; the scale runs from
    -reach to reach. Returns the axes; errors as `heatmap`.
    """
    return heatmap(
        x, rows, cols, ax=ax, title=title, vmin=-reach, vmax=reach, fmt=".1f", row_label=None,
        col_label=None,
    )  # fmt: skip

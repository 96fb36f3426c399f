"""The drawings of chapter 7 that show vectors, measurements and training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from attention.plots import (
    BLUE,
    COLOURS,
    GREEN,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    arrow,
    canvas,
    heatmap,
    vectors,
)  # fmt: skip

__all__ = [
    "depth", "forget", "losses", "memory", "norm_axis", "noticed", "question",
    "rules", "stream", "unit",
]  # fmt: skip
GREY = "#808080"
STYLES = {  # one colour and one dash for each kind of stack, in all figures
    "neither": (ORANGE, "--"), "norm only": (GREEN, "-."), "sum only": (RED, ":"),
    "sum and norm": (BLUE, "-"), "pre-norm": (BLUE, "-"), "post-norm": (ORANGE, "--"),
    "warm-up": (PURPLE, "-."),
}  # fmt: skip


def _style(name: str) -> dict[str, Any]:
    """How the curve of a stack is drawn: by its kind; the shallower of two is thinner."""
    colour, dash = next(style for kind, style in STYLES.items() if name.endswith(kind))
    if name.startswith("2 "):
        colour, dash = SKY, (0, (5, 1))
    return {"color": colour, "linestyle": dash, "linewidth": 2.6 if name[:2] == "36" else 1.6}


def question(cases: Mapping[str, tuple[float, float]]) -> Figure:
    """Four cases in the plane of "alive" and "state", and where the first unit says yes."""
    figure, ax = plt.subplots(figsize=(4.2, 3.2), layout="constrained")
    ax.fill([0, 2, 2], [1, 1, -1], color=BLUE, alpha=0.18, linewidth=0)
    ax.plot([-0.6, 2], [1.6, -1], color=BLUE, linewidth=1.5)
    ax.text(1.95, 0.62, "alive + state > 1", ha="right", va="center")
    for name, (x, y) in cases.items():
        ax.plot([x], [y], "o", color=ORANGE if name == "cat, tired" else "k", markersize=7)
        ax.text(x + 0.08, y + 0.1, name, ha="left", va="bottom")
    ax.fill([0, -0.6, 2, 2, -0.4], [1, 1.6, 1.6, 1, 1], color=BLUE, alpha=0.18, linewidth=0)
    ax.set(xlim=(-0.4, 2.0), ylim=(-1.4, 1.6), xlabel="alive", ylabel="state")
    ax.set_xticks([0, 1])
    ax.set_yticks([-1, 0, 1])
    return figure


def _cells(ax: Axes, x: float, y: float, values: Tensor, size: float = 0.44) -> None:
    """A block of coloured cells with numbers, its upper left corner at (x, y)."""
    for i, row in enumerate(values.tolist()):
        for j, value in enumerate(row):
            colour = BLUE if value > 0 else ORANGE
            corner = (x + j * size, y - (i + 1) * size)
            ax.add_patch(Rectangle(
                corner, size, size, facecolor=colour + ("55" if value else "00"),
                edgecolor=GREY, linewidth=0.8,
            ))  # fmt: skip
            text = f"{value:g}".replace("-", "−")
            ax.text(corner[0] + size / 2, corner[1] + size / 2, text, ha="center", va="center")


def memory(
    x: Tensor, w_1: Tensor, hidden: Tensor, w_2: Tensor, out: Tensor, names: Sequence[str]
) -> Figure:
    """One token through the network: the columns of W_1 ask, the rows of W_2 answer.

    x (5,), w_1 (5, 2), hidden (2,), w_2 (2, 5), out (5,), names of the 5 features.
    """
    size, left, ax = 0.44, 1.7, canvas(4.4, 6.0)
    middle = left + 1.5 * size

    def label(y: float, text: str, x: float = left) -> None:
        ax.text(x - 0.12, y, text, ha="right", va="center", fontsize=12)

    def down(y: float) -> None:
        arrow(ax, (middle + size, y), (middle + size, y - 0.12))

    for j, name in enumerate(names):
        ax.text(left + (j + 0.5) * size, 5.92, name, ha="center", va="top", rotation=90)
    _cells(ax, left, 5.3, x[None])
    label(5.08, "$x$")
    down(4.83)
    _cells(ax, middle, 4.68, w_1)
    for i, name in enumerate(names):
        label(4.68 - (i + 0.5) * size, name, middle)
    label(3.58, "$W_1$\ntwo columns,\ntwo questions", 1.34)
    ax.text(middle + 0.98, 3.58, "add\n$b_1 = -1$,\nkeep what\nis positive", ha="left", va="center")
    down(2.45)
    _cells(ax, middle, 2.3, hidden[None])
    label(2.08, "hidden", middle)
    down(1.83)
    _cells(ax, left, 1.68, w_2)
    label(1.24, "$W_2$\ntwo rows,\ntwo answers")
    down(0.77)
    _cells(ax, left, 0.62, out[None])
    label(0.4, "output")
    return ax.get_figure()  # type: ignore[return-value]


def forget(alone: Tensor, added: Tensor, cases: Sequence[str], names: Sequence[str]) -> Figure:
    """What the network returns, and what is left when it is added to the input, (4, 5) each."""
    figure, axes = plt.subplots(2, 1, figsize=(4.3, 4.3), layout="constrained")
    panels = ((axes[0], alone, "FFN(x)"), (axes[1], added, "x + FFN(x)"))
    for ax, x, title in panels:
        vectors(x, cases, names, ax=ax)
        ax.set_title(title, fontsize=12)
    return figure


def noticed(changes: Mapping[str, Tensor]) -> Figure:
    """Which tokens changed when one did: one row a layer, one column a token."""
    ax = plt.subplots(figsize=(4.2, 1.7), layout="constrained")[1]
    rows = torch.stack([change.double() for change in changes.values()])
    tokens = [f"token {i}" if i == 2 else str(i) for i in range(rows.shape[1])]
    heatmap(rows, list(changes), tokens, ax=ax, fmt=None, row_label=None, col_label=None)
    ax.set_aspect("auto")
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            if value:
                ax.text(j + 0.5, i + 0.5, "✓", ha="center", va="center", color="#fefefe")
    return ax.get_figure()  # type: ignore[return-value]


def depth(probes: Mapping[str, Sequence[Sequence[float]]]) -> Figure:
    """Three panels over the block: size of the stream, of the gradient, and how unlike tokens are.

    probes: for each kind three lists, one number a block.
    """
    figure, axes = plt.subplots(3, 1, figsize=(4.3, 6.6), sharex=True, layout="constrained")
    titles = (
        "size of the stream",
        "gradient (← backwards)",
        "difference between tokens",
    )
    ranges = ((1e-2, 1e4), (1e-6, 1e5), (1e-18, 30))
    for i, (ax, title, ylim) in enumerate(zip(axes, titles, ranges, strict=True)):
        for kind, probe in probes.items():
            ax.plot(range(len(probe[i])), probe[i], label=kind, **_style(kind))
        ax.set_yscale("log")
        ax.set(ylim=ylim, title=title, xlabel="block" if i == 2 else "")
    axes[0].legend(loc="upper left", ncols=2)
    return figure


def losses(
    runs: Mapping[str, Sequence[float]],
    log: bool = False,
    unlike: Mapping[str, Sequence[float]] | None = None,
) -> Figure:
    """The loss over the training steps of several runs, and the blind guess among eight.

    unlike: how much the tokens differ at each step of the same runs; it gets a panel below.
    """
    figure, axes = plt.subplots(
        2 if unlike else 1, 1, figsize=(4.3, 5.0 if unlike else 3.2), sharex=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    panels = [(axes[0, 0], runs, "loss (nats)")]
    if unlike:
        panels.append((axes[1, 0], unlike, "difference between tokens"))
    for ax, series, title in panels:
        for name, values in series.items():
            ax.plot(range(1, len(values) + 1), values, label=name, **_style(name))
        ax.set(ylabel=title)
    ax = axes[0, 0]
    ax.axhline(torch.tensor(8.0).log().item(), color=GREY, linewidth=0.9, zorder=0.5)
    ax.set_xlim(0, max(map(len, runs.values())))
    if log:
        ax.set_yscale("log")
    else:
        ax.set_ylim(-0.05, max(2.6, *(1.05 * max(values) for values in runs.values())))
    if unlike:
        axes[1, 0].set_yscale("log")
    axes[-1, 0].set_xlabel("step")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper left", ncols=2, fontsize=11)
    return figure


def norm_axis(before: Tensor, after: Tensor, tokens: Sequence[str]) -> Figure:
    """Tokens by features, before and after the norm, with the row that is normalised framed."""
    figure, axes = plt.subplots(2, 1, figsize=(4.3, 4.4), layout="constrained")
    features = [f"f{c}" for c in range(before.shape[1])]
    for ax, x, title in ((axes[0], before, "before"), (axes[1], after, "after the norm")):
        mean, spread = x.mean(-1, keepdim=True), x.std(-1, keepdim=True, unbiased=False)
        shown = torch.cat([x, mean.round(decimals=6) + 0.0, spread], dim=-1)
        heatmap(shown, tokens, [*features, "mean", "std"], ax=ax, vmin=-4, vmax=4, fmt=".1f",
                row_label=None, col_label=None)  # fmt: skip
        ax.set_title(title, fontsize=12)
        width = before.shape[1]
        ax.add_patch(Rectangle((0, 1), width, 1, fill=False, edgecolor=GREEN, linewidth=3))
        ax.axvline(width, color="k", linewidth=1.2)
    return figure


def stream(shares: Mapping[str, Tensor], places: Sequence[str], names: Sequence[str]) -> Figure:
    """What the vector of "it" says after each sub-layer, one panel for each sentence.

    shares: for each sentence (len(places), 2), the probabilities of the two names.
    """
    figure, axes = plt.subplots(2, 1, figsize=(4.3, 4.4), sharex=True, layout="constrained")
    for ax, (title, share) in zip(axes, shares.items(), strict=True):
        for k, (name, style) in enumerate(zip(names, ("o-", "s--"), strict=True)):
            ax.plot(range(len(places)), share[:, k].tolist(), style, label=name, color=COLOURS[k])
        ax.set(title=title, ylim=(-0.05, 1.05), ylabel="probability")
    axes[1].set_xticks(range(len(places)), places)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=2)
    return figure


def unit(feelings: Tensor, features: Tensor, labels: Sequence[str]) -> Figure:
    """Histogram of what one hidden unit receives at "it", for the two kinds of adjective."""
    figure, ax = plt.subplots(figsize=(4.3, 2.6), layout="constrained")
    both = torch.cat([feelings, features])
    bins = torch.linspace(both.min().item() - 0.05, both.max().item() + 0.05, 41).tolist()
    for k, (x, label) in enumerate(zip((feelings, features), labels, strict=True)):
        ax.hist(x.tolist(), bins=bins, color=COLOURS[k], alpha=0.75, label=label,
                hatch=("", "//")[k], edgecolor="k", linewidth=0.3)  # fmt: skip
    ax.axvline(0, color="k", linewidth=1.2)
    ax.set(xlabel="what the unit receives (ReLU cuts at 0)", ylabel="sentences")
    figure.legend(loc="outside upper left", ncols=2)
    return figure


def rules(probabilities: Mapping[str, Tensor], words: Sequence[str]) -> Figure:
    """One panel for each rule: the probabilities it draws from."""
    figure, axes = plt.subplots(
        len(probabilities), 1, figsize=(4.2, 4.8), sharex=True, sharey=True, layout="constrained"
    )
    for ax, (name, p) in zip(axes, probabilities.items(), strict=True):
        bars = ax.bar(range(len(words)), p.tolist(), color=BLUE, width=0.7)
        ax.bar_label(bars, [f"{value:.3f}" if value else "0" for value in p.tolist()])
        ax.set(ylim=(0, 0.85), yticks=[])
        ax.text(1, 0.82, name, transform=ax.transAxes, ha="right", va="top", fontsize=12)
        ax.spines["left"].set_visible(False)
    axes[-1].set_xticks(range(len(words)), words)
    return figure

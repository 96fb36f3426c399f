"""The drawings of chapter 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from ..plots import (
    BLUE,
    COLOURS,
    GREEN,
    ORANGE,
    PURPLE,
    SEQUENTIAL,
    arrow,
    box,
    canvas,
    heatmap,
    vectors,
)  # fmt: skip

GREY = "#808080"


def _name(i: int, per_layer: int) -> str:
    """The name of the i-th head: L1H0 is head 0 of layer 1."""
    return f"L{i // per_layer}H{i % per_layer}"


def fixed_ratio(tired: Tensor, warm: Tensor) -> Figure:
    """Random heads: the weight of "cat", and the ratio cat to mat, with either ending.

    tired, warm (draws, 2): the weights that "it" gives to cat and mat.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(4.4, 2.6), layout="constrained")
    for ax, x, y, title in (
        (left, tired[:, 0], warm[:, 0], "weight of cat"),
        (right, tired[:, 0] / tired[:, 1], warm[:, 0] / warm[:, 1], "cat ÷ mat"),
    ):
        ax.plot(x[:50], y[:50], "o", color=BLUE, markersize=4, alpha=0.6)  # enough to see it
        ax.set(title=title, xlabel="ends in tired", ylabel="ends in warm")
    low, high = 1e-2, 1e2
    right.plot([low, high], [low, high], color="k", linewidth=0.8, linestyle=":")
    right.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    left.plot([0, 1], [0, 1], color="k", linewidth=0.8, linestyle=":")
    left.set(xlim=(0, 0.8), ylim=(0, 0.8))
    return figure


def parallel_heads() -> Figure:
    """Three heads side by side: project, attend, concatenate, project."""
    ax = canvas(4.3, 5.1)
    middle = 2.15
    ax.text(middle, 4.95, "every head reads all of $X$", ha="center", va="center", fontsize=12)
    box(ax, middle, 4.5, r"$X$   ($n \times d_{\mathrm{model}}$)", width=2.2, fontsize=12)
    for r, (x, colour) in enumerate(zip((0.7, 2.15, 3.6), (BLUE, ORANGE, GREEN), strict=True)):
        arrow(ax, (middle + 0.5 * (r - 1), 4.25), (x, 3.75))
        box(ax, x, 3.5, f"$Q_{r}, K_{r}, V_{r}$", width=1.3, colour=colour, fontsize=12)
        arrow(ax, (x, 3.25), (x, 2.93))
        box(ax, x, 2.6, f"its own $A_{r}$", width=1.3, height=0.64, colour=colour, fontsize=12)
        centre = middle + 1.0 * (r - 1)
        arrow(ax, (x, 2.28), (centre, 1.67))
        box(ax, centre, 1.4, rf"head$_{r}$", width=1.0, colour=colour, fontsize=12)
    ax.text(0.02, 1.9, r"each $n \times d_v$", ha="left", va="center", fontsize=11)
    ax.text(0.02, 1.4, "joined", ha="left", va="center", fontsize=11)
    ax.text(3.7, 1.4, r"$n \times h d_v$", ha="left", va="center", fontsize=11)
    arrow(ax, (middle, 1.15), (middle, 0.6))
    ax.text(middle + 0.12, 0.87, r"$W^O$ mixes the heads", ha="left", va="center", fontsize=11)
    box(ax, middle, 0.33, r"$O$   ($n \times d_{\mathrm{model}}$)", width=2.2, colour=PURPLE,
        fontsize=12)  # fmt: skip
    return plt.gcf()


def rows_side_by_side(rows: Tensor, words: Sequence[str], names: Sequence[str]) -> Figure:
    """Rows of weights of one query, (rows, n), in one heatmap with their numbers."""
    ax = plt.subplots(figsize=(4.4, 0.5 * len(names) + 1.0))[1]
    heatmap(rows, names, words, ax=ax, fmt=".2f", row_label=None, col_label=None)
    for text in ax.texts:
        text.set_fontsize(9)
    plt.setp(ax.get_xticklabels(), rotation=50, ha="left", rotation_mode="anchor")
    return plt.gcf()


def output_blocks(heads: Sequence[Tensor], blocks: Sequence[Tensor]) -> Figure:
    """Concat(head_0, head_1) W^O as a sum: one block of W^O for each head, in the same colour."""
    ax = canvas(4.4, 3.5)
    size, top = 0.44, 2.9

    def cells(x: float, y: float, values: Tensor, colour: str, digits: int) -> None:
        for i, row in enumerate(values.tolist()):
            for j, value in enumerate(row):
                ax.add_patch(Rectangle(
                    (x + size * j, y - size * (i + 1)), size, size,
                    facecolor=colour + "30", edgecolor=colour, linewidth=1.2,
                ))  # fmt: skip
                ax.text(x + size * (j + 0.5), y - size * (i + 0.5),
                        f"{value:.{digits}f}".replace("-", "−"), ha="center", va="center",
                        fontsize=11)  # fmt: skip

    x, wide = 0.05, size * len(heads[0])
    y = top
    for r, (head, block, colour) in enumerate(zip(heads, blocks, (BLUE, ORANGE), strict=True)):
        cells(x + wide * r, top, head[None], colour, 1)
        ax.text(x + wide * (r + 0.5), top + 0.13, rf"head$_{r}$", ha="center", va="bottom",
                fontsize=12)  # fmt: skip
        cells(2.3, y, block, colour, 0)
        ax.text(2.3 + size * block.shape[1] + 0.1, y - size * len(block) / 2, rf"$W^O_{r}$",
                ha="left", va="center", fontsize=12)  # fmt: skip
        y -= size * len(block)
    ax.text(2.07, top - size / 2, "×", ha="center", va="center", fontsize=14)
    ax.text(2.3 + size, top + 0.13, "$W^O$", ha="center", va="bottom", fontsize=12)
    low = 0.62
    for r, (head, block, colour) in enumerate(zip(heads, blocks, (BLUE, ORANGE), strict=True)):
        at = 0.35 + 1.35 * r
        ax.text(at - 0.2, low - size / 2, "=+"[r], ha="center", va="center", fontsize=14)
        cells(at, low, (head @ block)[None], colour, 1)
        ax.text(at + size, low + 0.13, rf"head$_{r} W^O_{r}$", ha="center", va="bottom",
                fontsize=12)  # fmt: skip
    ax.text(2.9, low - size / 2, "=", ha="center", va="center", fontsize=14)
    total = torch.stack([h @ block for h, block in zip(heads, blocks, strict=True)]).sum(0)
    cells(3.1, low, total[None], PURPLE, 1)
    ax.text(3.1 + size, low + 0.13, "$O$", ha="center", va="bottom", fontsize=12)
    return plt.gcf()


def dotted(ax: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    """A thin dotted arrow: where the query of a head comes from."""
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "linestyle": ":", "color": BLUE,
                                            "shrinkA": 2, "shrinkB": 2})  # fmt: skip


def stream() -> Figure:
    """The residual streams of three words: a head reads from one and adds to another."""
    ax = canvas(4.4, 4.7)
    streams = {"cat": (0.55, ORANGE), "it": (2.2, BLUE), "tired": (3.85, GREEN)}
    for word, (x, colour) in streams.items():
        ax.plot([x, x], [0.55, 4.15], color=colour, linewidth=9, alpha=0.35,
                solid_capstyle="butt")  # fmt: skip
        arrow(ax, (x, 4.1), (x, 4.4), colour=colour, width=2)
        box(ax, x, 0.3, word, width=0.85, colour=colour, fontsize=12)
    ax.text(2.2, 4.52, "to the answer", ha="center", va="center", fontsize=12)
    it = streams["it"][0]
    for layer, (source, base, what) in enumerate(
        (("tired", 0.95, "+ wanted"), ("cat", 2.55, "+ alive − place"))
    ):
        x, colour = streams[source]
        name = f"L{layer}H0"
        ax.text(2 * it - (x + it) / 2, base + 0.5, f"layer {layer}", fontsize=12, ha="center",
                va="center")  # fmt: skip
        middle = (x + it) / 2
        box(ax, middle, base + 0.5, name, width=0.85, height=0.46, colour=colour, fontsize=12)
        arrow(ax, (x, base), (middle + 0.12 * (x - it), base + 0.28), colour=colour, width=2)
        ax.text(x + (0.12 if x < it else -0.12), base - 0.17, "read", fontsize=12, va="center",
                ha="left" if x < it else "right")  # fmt: skip
        side = 1 if x < it else -1
        dotted(ax, (it, base + 0.12), (middle + 0.43 * side, base + 0.42))
        ax.text(it + 0.13 * side, base + 0.1, ("query: pronoun", "query: wanted")[layer],
                fontsize=12, va="center", ha="left" if x < it else "right")  # fmt: skip
        arrow(ax, (middle - 0.12 * (x - it), base + 0.72), (it, base + 1.0), colour=colour, width=2)
        ax.text(it + (0.13 if x < it else -0.13), base + 1.08, what, fontsize=12, va="center",
                ha="left" if x < it else "right")  # fmt: skip
    return plt.gcf()


def plan_found(panels: Mapping[str, tuple[Tensor, Tensor]]) -> Figure:
    """The plan of a trained model, drawn like `stream`; the width of an arrow is the weight.

    panels {title: (weight of L0H3 on the adjective, weights of layer 1 on animal and place)}.
    """
    tall = 3.7
    ax = canvas(4.4, tall * len(panels))
    streams = {"animal": (0.42, ORANGE), "place": (1.27, PURPLE), "it": (2.75, BLUE),
               "adjective": (3.9, GREEN)}  # fmt: skip
    it = streams["it"][0]
    for p, (title, (alarm, nouns)) in enumerate(panels.items()):
        base = tall * (len(panels) - 1 - p)
        for word, (x, colour) in streams.items():
            ax.plot([x, x], [base + 0.45, base + 2.75], color=colour, linewidth=9, alpha=0.35,
                    solid_capstyle="butt")  # fmt: skip
            ax.text(x, base + 0.25, word, ha="center", va="center", fontsize=12)
        arrow(ax, (it, base + 2.65), (it, base + 2.95), colour=BLUE, width=2)
        answer = ("animal", "place")[int(nouns.argmax())]
        ax.text(it, base + 3.07, f"to the answer: {answer}", ha="center", va="center", fontsize=12)
        ax.text(2.2, base + 3.42, title, ha="center", va="center", fontsize=12, weight="bold")
        for name, low, sources, weights, at in (
            ("L0H3", 0.6, ["adjective"], [float(alarm)], 3.32),
            ("L1H0–3", 1.75, ["animal", "place"], nouns.tolist(), 2.02),
        ):
            box(ax, at, base + low + 0.4, name, width=0.8, height=0.42, colour=GREY, fontsize=12)
            for source, weight in zip(sources, weights, strict=True):
                x, colour = streams[source]
                if weight > 0.02:
                    side = at + (0.2 if x > at else -0.2)
                    arrow(ax, (x, base + low - 0.1), (side, base + low + 0.17), colour=colour,
                          width=0.5 + 4 * weight)  # fmt: skip
                    arrow(ax, (at, base + low + 0.62), (it, base + low + 0.85), colour=colour,
                          width=0.5 + 4 * weight)  # fmt: skip
        dotted(ax, (it, base + 1.75), (2.42, base + 2.15))  # the query of layer 1
        said = "+ alarm" if alarm > 0.5 else "no alarm"
        ax.text(it + 0.15, base + 1.55, said, ha="left", va="center", fontsize=12)
    return plt.gcf()


def two_steps(panels: Mapping[str, tuple[Tensor, Tensor]], words: Sequence[str]) -> Figure:
    """Who "it" reads in each of two layers; the width of an arrow is the weight.

    panels {last word: (weights in layer 0, weights in layer 1)}, each (n,).
    """
    ax = canvas(4.4, 2.35 * len(panels))
    it = list(words).index("it")
    across = [0.22 + 0.44 * j for j in range(len(words))]
    for p, (ending, layers) in enumerate(panels.items()):
        base = 2.35 * (len(panels) - 1 - p) + 0.62
        names = [*words[:-1], ending]
        for j, word in enumerate(names):
            ax.text(across[j], base - 0.1, word, rotation=45, ha="right", va="top", fontsize=11)
        for layer, (weights, colour) in enumerate(zip(layers, (ORANGE, BLUE), strict=True)):
            low, high = base + 0.75 * layer, base + 0.75 * (layer + 1)
            ax.text(0.0, (low + high) / 2, f"layer {layer}", ha="left", va="center", fontsize=11)
            for j, weight in enumerate(weights.tolist()):
                ax.plot(across[j], low, "o", color=GREY, markersize=3.5)
                if weight > 0.02:
                    arrow(ax, (across[j], low), (across[it], high), colour=colour,
                          width=0.5 + 4 * weight)  # fmt: skip
            ax.plot(across[it], high, "o", color="k", markersize=5)
        ax.plot([across[it]] * 2, [base, base + 1.5], color=GREY, linewidth=1, linestyle=":")
    return plt.gcf()


def it_in_the_stream(states: Tensor, names: Sequence[str], features: Sequence[str]) -> Figure:
    """The vector of one word, (states, d), before and after the layers."""
    ax = plt.subplots(figsize=(4.4, 0.42 * len(names) + 1.0))[1]
    vectors(states, names, features, ax=ax)
    plt.setp(ax.get_xticklabels(), rotation=35, ha="left", rotation_mode="anchor")
    return plt.gcf()


def reshape_of_heads() -> Figure:
    """Three tokens of six numbers cut into two heads: the right way, and view alone."""
    ax = canvas(4.4, 4.9)
    colours, size = (BLUE, ORANGE, GREEN), 0.34

    def grid(x: float, y: float, cells: Sequence[Sequence[tuple[int, int]]], title: str) -> None:
        ax.text(x, y + 0.12, title, ha="left", va="bottom", fontsize=11)
        for i, row in enumerate(cells):
            for j, (token, column) in enumerate(row):
                ax.add_patch(Rectangle(
                    (x + size * j, y - size * (i + 1)), size, size, linewidth=1.0,
                    facecolor=colours[token] + ("70" if column < 3 else "22"),
                    edgecolor=colours[token],
                ))  # fmt: skip
                ax.text(x + size * (j + 0.5), y - size * (i + 0.5), f"{token}{'abcdef'[column]}",
                        ha="center", va="center", fontsize=11)  # fmt: skip

    flat = [(i, j) for i in range(3) for j in range(6)]
    grid(1.15, 4.6, [flat[6 * i : 6 * i + 6] for i in range(3)], "$XW^Q$: 3 tokens, 6 columns")
    arrow(ax, (1.5, 3.53), (1.0, 3.07))
    arrow(ax, (2.85, 3.53), (3.4, 3.07))
    ax.text(0.05, 2.93, "view, then transpose", ha="left", va="center", fontsize=12)
    ax.text(2.75, 2.93, "view alone: wrong", ha="left", va="center", fontsize=12)
    for r in range(2):
        own = [[(i, 3 * r + c) for c in range(3)] for i in range(3)]
        grid(0.3, 2.5 - 1.42 * r, own, f"head {r}")
        taken = flat[9 * r : 9 * r + 9]
        grid(3.0, 2.5 - 1.42 * r, [taken[3 * i : 3 * i + 3] for i in range(3)], f"head {r}")
    return plt.gcf()


def ranks(scores: Tensor, weights: Tensor) -> Figure:
    """The singular values of scores, of their softmax, and of its logarithm, largest first."""
    figure, ax = plt.subplots(figsize=(4.4, 3.0), layout="constrained")
    for (name, x), colour, style in zip(
        {"scores $S$": scores, r"$\log A$": weights.log(), "weights $A$": weights}.items(),
        (BLUE, ORANGE, GREEN), ("-", "--", ":"), strict=True,
    ):  # fmt: skip
        values = torch.linalg.svdvals(x)
        values = values / values[0]
        ax.plot(range(1, len(values) + 1), values, color=colour, linestyle=style, label=name)
    ax.set(yscale="log", xlim=(1, 24), ylim=(1e-9, 3),
           xlabel="which singular value", ylabel="size (largest = 1)")  # fmt: skip
    ax.legend(loc="center right")
    return figure


def rows_of_it(rows: Sequence[Tensor], tokens: Sequence[Sequence[str]]) -> Figure:
    """The weights of one query in every head, (heads, n), a panel for each sentence."""
    figure, axes = plt.subplots(
        len(rows), 1, figsize=(4.4, 2.7 * len(rows) + 0.6), layout="constrained"
    )
    for ax, weights, words in zip(axes, rows, tokens, strict=True):
        heads, n = weights.shape
        image = ax.pcolormesh(weights.numpy(), cmap=SEQUENTIAL, vmin=0, vmax=1)
        ax.invert_yaxis()
        ax.set_xticks([j + 0.5 for j in range(n)], words, rotation=50, ha="right")
        ax.set_yticks([i + 0.5 for i in range(heads)], [_name(i, heads // 2) for i in range(heads)])
        ax.axhline(heads / 2, color="k", linewidth=1)
        ax.set(title=f"“… because it was too {words[-1]}”")
        ax.tick_params(length=0)
        for spine in ax.spines.values():
            spine.set_visible(False)
    bar = figure.colorbar(image, ax=list(axes), location="bottom", fraction=0.03, pad=0.02)
    bar.set_label("weight that “it” gives")
    return figure


def weight_against_loss(weight: Sequence[float], loss: Sequence[float], base: float) -> Figure:
    """One point a head: how much it looks at the referent, and what its absence costs."""
    figure, ax = plt.subplots(figsize=(4.4, 3.3), layout="constrained")
    per_layer = len(weight) // 2
    for i, (x, y) in enumerate(zip(weight, loss, strict=True)):
        colour, marker = ((BLUE, "o"), (ORANGE, "s"))[i // per_layer]
        name = f"layer {i // per_layer}" if i % per_layer == 0 else None
        ax.plot(x, y, marker, color=colour, markersize=8, label=name)
        ax.annotate(
            _name(i, per_layer), (x, y), textcoords="offset points", xytext=(6, 5), fontsize=10,
        )  # fmt: skip
    ax.axhline(base, color="k", linestyle=":", linewidth=1.4)
    ax.text(1.0, base * 0.86, "all heads on", ha="right", va="top", fontsize=11)
    ax.set_yscale("log")
    ax.set(
        xlim=(-0.03, 1.12), ylim=(base * 0.4, max(loss) * 3),
        xlabel="mean weight from “it” to what it means\n(right: looks at the answer)",
        ylabel="loss with the head off\n(low: not needed)",
    )  # fmt: skip
    ax.legend(loc="upper right")
    return figure


def adjective_weights(animal: Tensor, place: Tensor) -> Figure:
    """What "it" gives to the adjective in each head of layer 0, by what is meant, (heads,) each."""
    figure, ax = plt.subplots(figsize=(4.4, 2.9), layout="constrained")
    for shift, weights, colour, hatch, name in (
        (-0.2, animal, BLUE, "", "animal meant"), (0.2, place, ORANGE, "//", "place meant"),
    ):  # fmt: skip
        bars = ax.bar(
            [i + shift for i in range(len(weights))], weights.tolist(), width=0.38,
            facecolor=colour + "66", edgecolor=colour, hatch=hatch, label=name,
        )  # fmt: skip
        ax.bar_label(bars, fmt="%.2f", fontsize=11, padding=2)
    ax.set_xticks(range(len(animal)), [f"L0H{i}" for i in range(len(animal))])
    ax.set(ylim=(0, 1.15), ylabel="weight of the adjective")
    ax.set_yticks([0, 0.5, 1])
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def answer_shares(
    shares: Mapping[str, Sequence[Sequence[float]]], titles: Sequence[str] = (
        "animal meant", "place meant",
    ),
) -> Figure:  # fmt: skip
    """Stacked bars: how often the animal, the place and neither is answered.

    shares {name of the experiment: for each title (animal, place, neither)}, each from 0 to 1.
    """
    names = list(shares)
    figure, axes = plt.subplots(
        1, len(titles), figsize=(4.4, 0.34 * len(names) + 1.3), sharey=True, layout="constrained"
    )
    for p, (ax, title) in enumerate(zip(axes, titles, strict=True)):
        for i, name in enumerate(names):
            left = 0.0
            for share, colour, what in zip(
                shares[name][p], (BLUE, ORANGE, GREY), ("animal", "place", "neither"), strict=True,
            ):  # fmt: skip
                ax.barh(
                    i, share, left=left, color=colour + "b0", edgecolor=colour,
                    linewidth=0.6, label=what if i == p == 0 else None,
                )  # fmt: skip
                left += share
        ax.set(title=title, xlim=(0, 1))
        ax.set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"])
        for label, side in zip(ax.get_xticklabels(), ("left", "center", "right"), strict=True):
            label.set_ha(side)
        ax.set_yticks(range(len(names)), names)
        ax.tick_params(length=0)
        ax.invert_yaxis() if p == 0 else None
    figure.legend(loc="outside lower center", ncols=3, title="the model answers")
    return figure


def shared_heads() -> Figure:
    """Eight query heads with eight, two and one heads of keys and values."""
    ax = canvas(4.4, 5.2)
    rows = (("multi-head", 8), ("grouped-query", 2), ("multi-query", 1))
    step = 0.54
    for i, (name, groups) in enumerate(rows):
        top = 4.5 - 1.7 * i
        text = f"{name}: {groups} of keys and values"
        ax.text(0.05, top + 0.42, text, ha="left", va="center", fontsize=12)
        share = 8 // groups
        for r in range(8):
            group = r // share
            x = 0.3 + step * r
            centre = 0.3 + step * (group * share + (share - 1) / 2)
            colour = COLOURS[group % 4]
            ax.plot([x, centre], [top - 0.2, top - 0.62], color=colour, linewidth=1.4)
            box(ax, x, top, "$Q$", width=0.4, height=0.38, colour=colour, fontsize=12)
        for group in range(groups):
            centre = 0.3 + step * (group * share + (share - 1) / 2)
            box(ax, centre, top - 0.8, "KV", width=0.46, height=0.38, colour=COLOURS[group % 4],
                fontsize=12)  # fmt: skip
    return plt.gcf()

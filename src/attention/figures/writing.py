"""Drawings of chapter 8, a model that writes: tokens, batches, and the growing program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from ..byte_pairs import BytePairs
from ..plots import BLUE, COLOURS, GREEN, ORANGE, arrow, box, canvas, heatmap

GREY = "#8a8a8a"
DASHES = ("-", "--", "-.", ":", (0, (5, 1)))


def shown(piece: str) -> str:
    """A piece of text with its spaces made visible, and the end of a line."""
    return piece.replace(" ", "·").replace("\n", "↵")


def first_merges(tokens: BytePairs, text: str, count: int = 10) -> Figure:
    """The first merges: the two pieces, the piece they make, and how often the pair occurred."""
    whole = [BytePairs(tokens.merges[: i + 1]).encode(text) for i in range(count)]
    often = [int((ids == 256 + i).sum()) for i, ids in enumerate(whole)]
    ax = canvas(4.3, 0.36 * count + 0.35)
    top = 0.36 * count + 0.2
    for x, name in ((0.75, "pair"), (2.05, "new piece"), (2.72, "occurs")):
        ax.text(x, top, name, ha="center" if x < 2.5 else "left", va="center", fontsize=11)
    for i, (a, b) in enumerate(tokens.merges[:count]):
        y = top - 0.36 * (i + 1) + 0.05
        left, right, new = (shown(p) for p in tokens.pieces([a, b, 256 + i]))
        ax.text(0.0, y, f"{i + 1}", va="center", fontsize=11)
        box(ax, 0.5, y, left, width=0.42, height=0.28, colour=GREY)
        box(ax, 1.0, y, right, width=0.42, height=0.28, colour=GREY)
        arrow(ax, (1.26, y), (1.76, y))
        box(ax, 2.05, y, new, width=0.54, height=0.28, colour=BLUE)
        width = 0.95 * often[i] / often[0]
        ax.add_patch(Rectangle((2.72, y - 0.09), width, 0.18, facecolor=BLUE, alpha=0.6))
        ax.text(2.78 + width, y, f"{often[i]:,}", va="center", fontsize=11)
    return plt.gcf()


def pieces(tokens: BytePairs, text: str, counts: Sequence[int]) -> Figure:
    """One text cut into tokens after few and after many merges."""
    cell = 4.3 / len(text)
    ax = canvas(4.4, 0.72 * len(counts))
    for row, count in enumerate(counts):
        cut = BytePairs(tokens.merges[:count])
        y = 0.72 * (len(counts) - row) - 0.5
        parts = cut.pieces(cut.encode(text))
        ax.text(0.05, y + 0.31, f"{count} merges: {len(parts)} tokens", va="center", fontsize=11)
        x = 0.05
        for i, part in enumerate(parts):
            width = cell * len(part)
            ax.add_patch(Rectangle((x, y - 0.15), width, 0.3, lw=1.1, edgecolor=GREY,
                         facecolor=(BLUE if i % 2 else ORANGE) + "30"))  # fmt: skip
            for j, letter in enumerate(part):
                ax.text(x + cell * (j + 0.5), y, shown(letter), ha="center", va="center",
                        fontsize=11)  # fmt: skip
            x += width
    return plt.gcf()


def lengths(counts: Sequence[int], characters: Sequence[float]) -> Figure:
    """How many characters a token holds on average, over the number of merges."""
    ax = plt.subplots(figsize=(4.2, 2.5), layout="constrained")[1]
    ax.plot(counts, characters, "o-")
    for i, shift in ((0, (20, -8)), (-1, (0, 7))):
        ax.annotate(f"{characters[i]:.1f}", (counts[i], characters[i]), shift,
                    textcoords="offset points", ha="center")  # fmt: skip
    ax.set(xlabel="merges", ylabel="characters a token", ylim=(0, max(characters) * 1.2))
    return ax.get_figure()  # type: ignore[return-value]


def windows(starts: Sequence[int], length: int, total: int, lines: int = 8) -> Figure:
    """A batch: short windows at random positions of the whole text, drawn as a ribbon."""
    ax = canvas(4.3, 0.3 * lines + 0.1)
    per_line = total / lines
    for line in range(lines):
        y = 0.3 * (lines - line) - 0.2
        ax.add_patch(Rectangle((0.05, y), 4.2, 0.16, facecolor=GREY, alpha=0.25, lw=0))
    for start in starts:
        line, at = divmod(start, per_line)
        y = 0.3 * (lines - line) - 0.2
        width = max(4.2 * length / per_line, 0.035)
        ax.add_patch(
            Rectangle((0.05 + 4.2 * at / per_line, y - 0.04), width, 0.24, facecolor=BLUE, lw=0)
        )
    return plt.gcf()


def gradient(p: Sequence[float], answer: int, words: Sequence[str]) -> Figure:
    """Probabilities, the answer, and their difference: how the loss changes with each logit."""
    figure, axes = plt.subplots(1, 3, figsize=(4.3, 2.1), sharey=True, layout="constrained")
    y = [float(i == answer) for i in range(len(p))]
    both = [a - b for a, b in zip(p, y, strict=True)]
    for ax, values, name in zip(axes, (p, y, both), ("$p$", "$y$", "$p - y$"), strict=True):
        bars = [ORANGE if value < 0 else GREEN if ax is axes[1] else BLUE for value in values]
        ax.barh(words, values, color=bars, height=0.6)
        ax.set(title=name, xlim=(-1.5, 1.3) if ax is axes[2] else (0, 1.6))
        ax.axvline(0, color="k", lw=0.9)
        ax.set_xticks([])
        ax.spines["bottom"].set_visible(False)
        for i, value in enumerate(values):
            right = value >= 0
            ax.text(value + (0.04 if right else -0.04), i, f"{value:.2f}".replace("-", "−"),
                    ha="left" if right else "right", va="center", fontsize=10.5)  # fmt: skip
        ax.tick_params(length=0)
    axes[0].invert_yaxis()
    return figure


def losses(
    runs: Mapping[str, Sequence[float]], ylim: tuple[float, float], smooth: int = 1,
    marks: Mapping[str, float] | None = None,
) -> Figure:  # fmt: skip
    """Training losses of several runs over the steps, each the mean of the last `smooth` steps."""
    figure, ax = plt.subplots(figsize=(4.3, 3.1), layout="constrained")
    for i, (name, loss) in enumerate(runs.items()):
        mean = [sum(loss[max(0, j + 1 - smooth) : j + 1]) / min(j + 1, smooth)
                for j in range(len(loss))]  # fmt: skip
        ax.plot(range(1, len(mean) + 1), mean, linestyle=DASHES[i % 5], color=COLOURS[i],
                label=name, lw=1.8)  # fmt: skip
    for name, value in (marks or {}).items():
        ax.axhline(value, color=GREY, lw=0.9, zorder=0.5)
        ax.text(1, value, name, va="bottom", fontsize=11)
    ax.set(xlabel="step", ylabel="training loss (nats)", ylim=ylim)
    figure.legend(loc="outside upper left", ncols=2, fontsize=11)
    return figure


def clipped(runs: Mapping[str, Sequence[float]], limit: float) -> Figure:
    """The length of the gradient at each step of each run, and the limit for longer ones."""
    figure, ax = plt.subplots(figsize=(4.3, 2.9), layout="constrained")
    for i, (name, norms) in enumerate(runs.items()):
        ax.plot(range(1, len(norms) + 1), norms, lw=1.4, color=COLOURS[2 * i], label=name,
                linestyle=DASHES[2 * i])  # fmt: skip
    ax.axhline(limit, color=ORANGE, ls="--", lw=1.6)
    ax.text(max(map(len, runs.values())), limit, "limit", ha="right", va="bottom")
    ax.set(xlabel="step", ylabel="length of the gradient", ylim=(0, None))
    figure.legend(loc="outside upper left", ncols=2)
    return figure


def grown(rows: Mapping[str, float], counted: Mapping[str, float]) -> Figure:
    """The held-out loss after each addition, with what counting alone reaches."""
    figure, ax = plt.subplots(figsize=(4.3, 0.36 * len(rows) + 0.9), layout="constrained")
    names, values = list(rows), list(rows.values())
    ax.plot(values, names, ":", color=GREY, lw=1.2, zorder=1)
    ax.plot(values, names, "o", color=BLUE, ms=7)
    for i, value in enumerate(values):
        ax.text(max(values) + 0.12, i, f"{value:.2f}", va="center", ha="left", fontsize=11)
    for i, (name, value) in enumerate(counted.items()):
        ax.axvline(value, color=ORANGE, ls=("--", ":")[i % 2], lw=1.6, label=name, zorder=0.5)
    every = [*values, *counted.values()]
    ax.set(xlim=(min(every) - 0.12, max(every) + 0.42), xlabel="held-out loss (nats a token)")
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    figure.legend(loc="outside upper left", ncols=2)
    return figure


def kinds(steps: Sequence[int], curves: Mapping[str, Sequence[float]]) -> Figure:
    """The held-out loss of each kind of token over the training steps."""
    figure, ax = plt.subplots(figsize=(4.3, 3.3), layout="constrained")
    for i, (name, values) in enumerate(curves.items()):
        ax.plot(steps, values, linestyle=DASHES[i % 5], marker="o", ms=3.5, label=name,
                color=COLOURS[i])  # fmt: skip
    ax.set(xlabel="training step", ylabel="held-out loss (nats)", ylim=(0, None))
    figure.legend(loc="outside upper left", ncols=2)
    return figure


def by_context(far: Mapping[str, tuple[Sequence[int], Sequence[float]]]) -> Figure:
    """The held-out loss over the number of tokens that a model can see, one curve a model."""
    figure, ax = plt.subplots(figsize=(4.3, 2.9), layout="constrained")
    for i, (name, (seen, losses)) in enumerate(far.items()):
        ax.plot(seen, losses, linestyle=DASHES[i], marker="o", ms=4, color=COLOURS[i], label=name)
    most = max(max(seen) for seen, _ in far.values())
    ticks = [2**i for i in range(20) if 2**i <= most]
    ax.set_xscale("log", base=2)
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.set(xlabel="tokens that it can see", ylabel="held-out loss (nats)")
    ax.minorticks_off()
    figure.legend(loc="outside upper left", ncols=2)
    return figure


def head_scores(scores: Tensor) -> Figure:
    """One score between 0 and 1 for each head: blocks as rows, heads as columns."""
    figure, ax = plt.subplots(figsize=(3.4, 2.6), layout="constrained")
    heatmap(scores, ax=ax, fmt=".2f", row_label="block", col_label="head")
    return figure


def runs_of_words(copied: Mapping[str, Sequence[int]]) -> Figure:
    """The longest run of words that each text shares with the training text, a row a kind."""
    figure, axes = plt.subplots(len(copied), 1, figsize=(4.2, 1.2 * len(copied) + 0.5),
                                sharex=True, sharey=True, layout="constrained")  # fmt: skip
    top = max(max(lengths) for lengths in copied.values())
    for i, (ax, (name, lengths)) in enumerate(zip(axes, copied.items(), strict=True)):
        often = [list(lengths).count(n) for n in range(top + 1)]
        ax.bar(range(top + 1), often, facecolor=COLOURS[i] + "88", edgecolor=COLOURS[i])
        ax.set(title=name, ylabel="samples", xlim=(0.3, top + 0.7))
    axes[-1].set(xlabel="longest run of copied words")
    return figure

"""Chapter 10: what is measured on the reader's device, what was recorded, and its curves."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.figure import Figure

from ..plots import BLUE, COLOURS, GREEN, ORANGE, curves, heatmap

# `python benchmarks/speed.py` on a quiet machine: two cores of an AMD EPYC, PyTorch 2.13, float32.
MACHINE = "two cores of an AMD EPYC, PyTorch 2.13, float32"
TOKEN_MS = {2048: (1.778, 104.774)}  # n: (with the cache, without), one layer of 8 heads
PEAK_MIB = {  # n: (fused, plain) for one head of width 64; plain was not tried beyond 8,192
    1024: (1.4, 8.2), 4096: (2.1, 128.9), 8192: (3.2, 513.8), 16384: (5.2, None),
    32768: (9.3, None),
}  # fmt: skip

# `python scripts/ablations.py`: small models on the tales, each with one new part
ABLATION = json.loads(Path(__file__).with_name("ablation.json").read_text("utf-8"))


def milliseconds(run: Callable[[], object], repeats: int = 5) -> float:
    """The least time of a few runs, in ms; waits for a GPU to finish."""

    def wait() -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    best = float("inf")
    for _ in range(repeats):
        wait()
        start = time.perf_counter()
        run()
        wait()
        best = min(best, time.perf_counter() - start)
    return 1000 * best


def token_times(here: Mapping[int, tuple[float, float]]) -> Figure:
    """Time of one new token, here[n] = (with the cache, without)."""
    figure, ax = plt.subplots(figsize=(4.3, 2.9), layout="constrained")
    lines = {name: [pair[i] for pair in here.values()] for i, name in ((1, "without"), (0, "with"))}
    curves(list(here), lines, ax=ax, xlabel="tokens so far", ylabel="ms for the next token",
           log="xy")  # fmt: skip
    _lengths(ax, list(here))
    ax.set_yticks([1, 10, 100], ["1", "10", "100"])
    ax.legend(title="cache")
    return figure


def times(measured: Mapping[str, Mapping[int, float]]) -> Figure:
    """Milliseconds over n for each way to compute attention."""
    figure, ax = plt.subplots(figsize=(4.3, 2.9), layout="constrained")
    lengths = list(next(iter(measured.values())))
    curves(lengths, {name: list(line.values()) for name, line in measured.items()}, ax=ax,
           xlabel="tokens n", ylabel="ms", log="xy")  # fmt: skip
    _lengths(ax, lengths)
    ax.set_yticks([1, 10, 100], ["1", "10", "100"])
    return figure


def peaks(here: Mapping[str, Mapping[int, float]]) -> Figure:
    """The recorded peak memory, and on a GPU also what was measured there."""
    figure, ax = plt.subplots(figsize=(4.3, 2.9), layout="constrained")
    for i, name in ((1, "plain"), (0, "fused")):
        line = {n: pair[i] for n, pair in PEAK_MIB.items() if pair[i] is not None}
        ax.plot(list(line), list(line.values()), "o-", color=ORANGE if i else BLUE,
                label=f"{name}, recorded")  # fmt: skip
    for i, (name, line) in enumerate(here.items()):
        ax.plot(list(line), list(line.values()), "s--", color=COLOURS[2 + i], label=f"{name}, here")
    ax.set(xscale="log", yscale="log", xlabel="tokens n", ylabel="MiB at the peak")
    _lengths(ax, list(PEAK_MIB))
    ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    ax.legend()
    return figure


def _lengths(ax, lengths: Sequence[int]) -> None:
    shown = lengths if len(lengths) < 5 else lengths[::2]
    ax.set_xticks(shown, [f"{n:,}" for n in shown])
    ax.minorticks_off()


def by_bits(losses: Mapping[str, Mapping[int, float]], full: float) -> Figure:
    """The loss over the bits of a weight, and that of the model as stored."""
    figure, ax = plt.subplots(figsize=(4.3, 2.9), layout="constrained")
    bits = list(next(iter(losses.values())))
    curves(bits, {name: list(line.values()) for name, line in losses.items()}, ax=ax,
           xlabel="bits a weight", ylabel="loss on held-out tales (nats)")  # fmt: skip
    ax.axhline(full, color="k", lw=1.2, ls=":")
    ax.text(bits[0], full, "as stored", va="bottom", ha="left")
    ax.set_xticks(bits)
    ax.set_ylim(full - 0.1, full + 1.3)
    ax.invert_xaxis()
    return figure


def ablation(rows: Mapping[str, Mapping[str, Any]]) -> Figure:
    """The held-out loss of each run, one dot a seed, a line through the mean; the first row's band.

    rows: as in `ABLATION`.
    """
    figure, ax = plt.subplots(figsize=(4.3, 4.2), layout="constrained")
    for y, (name, row) in enumerate(rows.items()):
        losses = [run["held_out"] for run in row["runs"]]
        colour = BLUE if y == 0 else GREEN if name == "all four" else ORANGE
        ax.plot(losses, [y] * len(losses), "o", ms=8, color=colour, alpha=0.8)
        ax.plot([sum(losses) / len(losses)] * 2, [y - 0.32, y + 0.32], color="k", lw=1.5)
        if y == 0:
            ax.axvspan(min(losses), max(losses), color=BLUE, alpha=0.15, lw=0)
    ax.set_yticks(range(len(rows)), list(rows))
    ax.invert_yaxis()
    ax.grid(axis="y", color="#8a8a8a55")
    ax.set(xlabel="loss on held-out tales (nats)")
    return figure


def routing(rows: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Which share of the choices the experts of each layer get, the busiest first; mean of runs."""
    figure, axes = plt.subplots(len(rows), 1, figsize=(4.3, 2.3 * len(rows)), layout="constrained")
    for ax, (name, row) in zip(axes, rows.items(), strict=True):
        runs = torch.tensor([run["shares"] for run in row["runs"]])  # (runs, layers, experts)
        shares = 100 * runs.sort(-1, descending=True).values.mean(0)
        heatmap(shares, [str(i) for i in range(len(shares))], ["1st", "2nd", "3rd", "4th"], ax=ax,
                vmax=50, fmt=".0f", row_label="layer", col_label="", title=name)  # fmt: skip
    return figure


def recall(found: Mapping[str, Mapping[int, float]]) -> Figure:
    """How many of n stored pairs are found again."""
    figure, ax = plt.subplots(figsize=(4.3, 2.8), layout="constrained")
    lengths = list(next(iter(found.values())))
    curves(lengths, {name: [100 * x for x in line.values()] for name, line in found.items()},
           ax=ax, xlabel="pairs stored", ylabel="found again, %", log="x")  # fmt: skip
    _lengths(ax, lengths)
    ax.set_ylim(0, 105)
    return figure

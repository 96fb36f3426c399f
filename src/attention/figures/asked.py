"""Figures that a question asks about: the reader puts a mark on their axis."""

from __future__ import annotations

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from torch import Tensor

from attention.functional import softmax
from attention.plots import BLUE


def ask_place(ax: Axes) -> Figure | SubFigure:
    """Let the line of a question run along this x-axis, from end to end; return the figure."""
    if ax.get_xscale() != "linear":
        raise ValueError(f"ax must have a linear x-axis; got {ax.get_xscale()}")
    low, high = ax.get_xlim()
    ax.patch.set_gid(f"place_{low:g}_{high:g}")  # book/_ext/question_figures.py reads it
    return ax.figure


def weight_by_score(rivals: list[float]) -> tuple[Tensor, Tensor]:
    """Scores of one key and the weights it gets beside these rivals, (1201,) each."""
    score = torch.linspace(-4, 8, 1201, dtype=torch.float64)
    others = torch.tensor(rivals, dtype=torch.float64).expand(len(score), -1)
    return score, softmax(torch.cat([score[:, None], others], 1))[:, 0]


def one_weight(rivals: list[float]) -> Figure | SubFigure:
    """The weight of a key against its own score."""
    _, ax = plt.subplots(figsize=(3.6, 2.4))
    ax.plot(*weight_by_score(rivals), color=BLUE)
    ax.set(xlabel="score of the key", ylabel="its weight", xlim=(-4, 8), ylim=(0, 1.05))
    return ask_place(ax)


def turning_score(speed: float) -> Figure | SubFigure:
    """The score of a pair with q = k against the offset."""
    _, ax = plt.subplots(figsize=(3.6, 2.4))
    offset = torch.linspace(-6, 12, 361)
    ax.plot(offset, torch.cos(offset * speed), color=BLUE)
    ax.set(xlabel="offset $i - j$", ylabel="score of the pair", xlim=(-6, 12), ylim=(-1.1, 1.1))
    ax.set_xticks(range(-6, 13, 3))
    return ask_place(ax)

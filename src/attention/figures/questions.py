"""The drawing of chapter 11, questions: three levels, one after the other."""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..plots import BLUE, GREEN, ORANGE, arrow, canvas

# a level: its name, what it asks you to do, what with
LEVELS = (
    ("Easy", "say what it is", "words, shapes, one small sum"),
    ("Moderate", "derive and compute", "formulas, counts, lines of code"),
    ("Hard", "judge it", "what breaks, what if, how to test it"),
)


def roadmap() -> Figure:
    """Three steps down to the right: what an easy, a moderate and a hard question asks for."""
    width, height, aside, down = 3.2, 0.82, 0.55, 1.06
    ax = canvas(4.4, 3.06)
    levels = zip(LEVELS, (GREEN, BLUE, ORANGE), strict=True)
    for k, ((name, task, parts), colour) in enumerate(levels):
        left, bottom = 0.05 + aside * k, 2.18 - down * k
        ax.add_patch(
            Rectangle(
                (left, bottom), width, height, facecolor=colour + "26", edgecolor=colour, lw=1.5
            )
        )
        ax.text(left + 0.12, bottom + 0.56, name, va="center", fontsize=12, fontweight="bold")
        ax.text(left + 1.15, bottom + 0.56, task, va="center", fontsize=12)
        ax.text(left + 0.12, bottom + 0.23, parts, va="center", fontsize=12)
        if k:
            corner = left + width - aside
            start = (corner, bottom + down + 0.45)
            arrow(ax, start, (corner + aside / 2, bottom + height), bend=-0.4)
    return plt.gcf()

"""Rotary positions (chapter 5): two arrows that turn with their positions, and their score."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from attention.positions import rotary

from ._base import COLOURS, Explorer, Number, Whole, figure, short

LAST = 40


class RotaryArrows(Explorer):
    """One pair of columns: a query and a key of length 1, each turned by its position.

    Traits, to read and to set: `i` and `j`, the positions of query and key (0 to 40), `omega`,
    the turn for each position in radians (0.01 to 3), `content`, the angle from the key to the
    query before any turn, in degrees (-180 to 180).

    >>> RotaryArrows(i=5, j=2).score
    -0.9899924966004454
    """

    name = "rotary_arrows"
    title = "Two arrows that turn"

    i = Whole(5, 0, LAST)
    j = Whole(2, 0, LAST)
    omega = Number(1.0, 0.01, 3)
    content = Number(0.0, -180, 180)

    def _turned(self, angle: float, position: int) -> Tensor:
        start = torch.tensor([[math.cos(angle), math.sin(angle)]], dtype=torch.float64)
        return rotary(start, torch.tensor([self.omega * position], dtype=torch.float64))[0]

    @property
    def query(self) -> Tensor:
        """The query, turned by omega · i, (2,)."""
        return self._turned(math.radians(self.content), self.i)

    @property
    def key(self) -> Tensor:
        """The key, turned by omega · j, (2,)."""
        return self._turned(0.0, self.j)

    @property
    def score(self) -> float:
        """The dot product of both: the cosine of the angle between them."""
        return (self.query @ self.key).item()

    @property
    def scores(self) -> Tensor:
        """The score at the offsets i - j from -40 to 40, (81,)."""
        offset = torch.arange(-LAST, LAST + 1, dtype=torch.float64)
        return torch.cos(math.radians(self.content) + self.omega * offset)

    @property
    def caption(self) -> str:
        score = short(round(self.score, 12) + 0.0)  # a right angle is 0
        turns = [math.degrees(self.omega * position) for position in (self.i, self.j)]
        return (
            f"A query at position {self.i}, turned by {short(turns[0], 1)}°, and a key at position "
            f"{self.j}, turned by {short(turns[1], 1)}°. Their score is {score}, and "
            f"the same wherever the offset is {short(self.i - self.j)}."
        )

    def still(self) -> Any:
        fig, (left, right) = figure(6.4, 2.8, ncols=2)
        round_ = torch.linspace(0, 2 * math.pi, 100)
        left.plot(round_.cos(), round_.sin(), "k", lw=0.8)
        for name, tip, colour in (("q", self.query, COLOURS[0]), ("k", self.key, COLOURS[1])):
            x, y = tip.tolist()
            left.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "->", "lw": 2.5,
                                                         "color": colour})  # fmt: skip
            left.text(1.2 * x, 1.2 * y, name, ha="center", va="center")
        left.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4), aspect="equal")
        left.set_axis_off()
        left.set_title("turned by their positions", fontsize=10)
        right.plot(range(-LAST, LAST + 1), self.scores, color=COLOURS[2])
        right.plot([self.i - self.j], [self.score], "o", color=COLOURS[0], ms=8)
        right.set(xlabel="offset i − j", ylim=(-1.1, 1.1))
        right.set_title("score", fontsize=10)
        right.spines[["top", "right"]].set_visible(False)
        return fig

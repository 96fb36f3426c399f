"""The online softmax (chapter 10): scores in blocks; maximum, sum and output on the way."""

from __future__ import annotations

import math
from typing import Any

import torch
import traitlets
from torch import Tensor

from ._base import Explorer, Row, Whole, draw_heatmap, figure, short


class OnlineSoftmax(Explorer):
    """Softmax and average in one pass over blocks of keys, with three numbers kept on the way.

    Traits, to read and to set: `scores` and `values` (equally many, 1 to 12 numbers within ±1000
    and ±99), `block` (keys in a block, 1 to 12), `step` (blocks read so far, at most the last).
    `steps` has a tuple for each block: (factor, maximum, sum, output) after it, the factor being
    what the old sum and output were multiplied by.

    >>> w = OnlineSoftmax(scores=[1, 2, 4, 3], values=[4, 0, 2, 6], block=2)
    >>> [round(x, 3) for x in w.steps[-1]]
    [0.135, 4.0, 1.553, 4.406]
    """

    name = "online_softmax"
    title = "The online softmax"

    scores = Row([1.0, 2.0, 0.0, 1.0, 2.0, 0.0, 1.0, 8.0], limit=1000, most=12)
    values = Row([4.0, 0.0, 3.0, 5.0, 1.0, 2.0, 4.0, -2.0], limit=99, most=12)
    block = Whole(2, 1, 12)
    step = Whole(1, 0, 12)

    @traitlets.validate("scores", "values")
    def _check_lengths(self, proposal: Any) -> list:
        rows = {"scores": self.scores, "values": self.values}
        rows[proposal["trait"].name] = proposal["value"]
        sizes = {name: len(row) for name, row in rows.items()}
        if len(set(sizes.values())) > 1:
            raise traitlets.TraitError(
                f"scores and values must have equally many numbers; got {sizes['scores']} and "
                f"{sizes['values']}"
            )
        return proposal["value"]

    @property
    def steps(self) -> list[tuple[float, float, float, float]]:
        """(factor, maximum, sum, output) after each block."""
        top, total, out, found = -math.inf, 0.0, 0.0, []
        for start in range(0, len(self.scores), self.block):
            part = slice(start, start + self.block)
            new = max(top, *self.scores[part])
            factor = math.exp(top - new)
            e = [math.exp(s - new) for s in self.scores[part]]
            total = total * factor + sum(e)
            out = out * factor + sum(x * v for x, v in zip(e, self.values[part], strict=True))
            top = new
            found.append((factor, top, total, out))
        return found

    @property
    def now(self) -> int:
        """How many blocks have been read: `step`, or all if there are fewer."""
        return min(self.step, len(self.steps))

    @property
    def shares(self) -> Tensor:
        """e^(score − maximum so far) of each key, 0 for those not read yet: (n,), float64."""
        scores = torch.tensor(self.scores, dtype=torch.float64)
        if not self.now:
            return torch.zeros_like(scores)
        shares = (scores - self.steps[self.now - 1][1]).clamp_max(0).exp()
        shares[self.now * self.block :] = 0
        return shares

    @property
    def out(self) -> float:
        """The output over all keys: the last output divided by the last sum."""
        _, _, total, out = self.steps[-1]
        return out / total

    @property
    def caption(self) -> str:
        rows = [
            f"block {i + 1}: factor {factor:.3f}, maximum {short(top)}, sum {total:.3f}, output "
            f"{short(out)}"
            for i, (factor, top, total, out) in enumerate(self.steps)
        ]
        return (
            f"Scores {', '.join(map(short, self.scores))} with values "
            f"{', '.join(map(short, self.values))} in blocks of {self.block}. {'; '.join(rows)}. "
            f"Divided by the sum, the output is {short(self.out)}."
        )

    def still(self) -> Any:
        fig, ax = figure(6.4, 0.34 * len(self.steps) + 0.8)
        names = [str(i) for i in range(len(self.scores))]
        table, scores = [], torch.tensor(self.scores, dtype=torch.float64)
        for i, (_, top, _, _) in enumerate(self.steps):
            row = (scores - top).clamp_max(0).exp()
            row[(i + 1) * self.block :] = 0
            table.append(row.tolist())
        rows = [f"block {i + 1}, m = {short(step[1])}" for i, step in enumerate(self.steps)]
        draw_heatmap(ax, table, rows, names, "e^(score − m) of each key, after each block")
        return fig

"""Paths between words (chapter 1): recurrence, convolution, attention, from first to last."""

from __future__ import annotations

from typing import Any

import traitlets

from ._base import Explorer, Whole, figure, whole

KINDS = ["recurrence", "convolution", "attention"]
WIDTHS = [16, 32, 64, 128, 256, 512, 1024]


class Paths(Explorer):
    """How many steps lie between the first word and the last, and what moving along costs.

    Traits, to read and to set: `n` (2 to 64 words), `kernel` (2 to 7), `dilated`, `d_model`
    (16, 32, ... 1024). `counts` gives, for each kind of layer, the layers needed until the last
    output knows of the first word, the steps that wait for one another within a layer, the path
    length, and the multiply-adds that carry something from one position to another.

    >>> Paths(n=64, kernel=3).counts["convolution"]["path"]
    32
    """

    name = "paths"
    title = "Paths between words"

    n = Whole(16, 2, 64)
    kernel = Whole(3, 2, 7)
    dilated = traitlets.Bool(False).tag(sync=True)
    d_model = traitlets.Int(512).tag(sync=True)

    @traitlets.validate("d_model")
    def _check_width(self, proposal: Any) -> int:
        width = whole(proposal["value"], "d_model", 1, 1024)
        if width not in WIDTHS:
            raise traitlets.TraitError(f"d_model must be one of {WIDTHS}; got {width}")
        return width

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """layers, steps, path and work of each kind, as the page shows them."""
        n, d, layers, field = self.n, self.d_model, 0, 1
        while field < n:
            field += (self.kernel - 1) * (self.kernel**layers if self.dilated else 1)
            layers += 1
        return {
            "recurrence": {"layers": 1, "steps": n, "path": n, "work": n * d * d},
            "convolution": {
                "layers": layers, "steps": 1, "path": layers,
                "work": layers * self.kernel * n * d * d,
            },
            "attention": {"layers": 1, "steps": 1, "path": 1, "work": 2 * n * n * d},
        }  # fmt: skip

    @property
    def caption(self) -> str:
        counts = self.counts
        kind = f"{'dilated ' if self.dilated else ''}convolution with a window of {self.kernel}"
        return (
            f"Among {self.n} words the first reaches the last after "
            f"{counts['recurrence']['path']} steps by recurrence, "
            f"{counts['convolution']['path']} by {kind}, and 1 by attention."
        )

    def still(self) -> Any:
        fig, axes = figure(6.6, 4.0, nrows=3)
        n, counts = self.n, self.counts
        for ax, kind, colour in zip(axes, KINDS, ("#0072b2", "#d55e00", "#009e73"), strict=True):
            layers = counts[kind]["layers"]
            for layer in range(layers + 1):
                ax.plot(range(n), [layer] * n, ".", color="#5a5f66", ms=4)
            if kind == "recurrence":
                route = [(0, 0), *((i, 1) for i in range(n))]
            elif kind == "attention":
                route = [(0, 0), (n - 1, 1)]
            else:
                route, at = [(0, 0)], 0
                for layer in range(layers):
                    stride = self.kernel**layer
                    if self.dilated:
                        at += (n - 1) // stride % self.kernel * stride
                    else:
                        at += min(self.kernel - 1, n - 1 - at)
                    route.append((at, layer + 1))
            ax.plot(*zip(*route, strict=True), color=colour, lw=2.5)
            path = counts[kind]["path"]
            ax.set_title(f"{kind}: {path} step{'' if path == 1 else 's'}", fontsize=10, loc="left")
            ax.set_axis_off()
        return fig

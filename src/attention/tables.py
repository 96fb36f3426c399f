"""A table of numbers, drawn by the page or the notebook that shows it."""

from __future__ import annotations

import html
from collections.abc import Sequence

from torch import Tensor

from . import _checks as check


class Table:
    """Rows of text, set as a table in a page or notebook and as plain columns in a terminal."""

    def __init__(self, cells: list[list[str]], rows: list[str], columns: list[str], corner: str):
        self.cells, self.rows, self.columns, self.corner = cells, rows, columns, corner

    def _repr_html_(self) -> str:
        def head(text: str, scope: str) -> str:
            return f'<th scope="{scope}">{html.escape(text)}</th>' if text else "<td></td>"

        # what is read as a sentence is set as text
        said = [' class="said"' if max(map(len, column)) > 24 else "" for column in zip(
            *self.cells, strict=True)]  # fmt: skip
        top = (head(self.corner, "col") if self.rows else "") + "".join(
            head(name, "col").replace("<th", f"<th{as_text}", 1)
            for name, as_text in zip(self.columns, said, strict=False)
        )
        body = ""
        for i, line in enumerate(self.cells):
            side = head(self.rows[i], "row") if self.rows else ""
            cells = (
                f"<td{as_text}>{html.escape(cell)}</td>"
                for cell, as_text in zip(line, said, strict=True)
            )
            body += f"<tr>{side}{''.join(cells)}</tr>"
        first = f"<thead><tr>{top}</tr></thead>" if self.columns else ""
        return f'<table class="numbers">{first}<tbody>{body}</tbody></table>'

    def __repr__(self) -> str:
        lines = [[*([self.corner] if self.rows else []), *self.columns]] if self.columns else []
        for i, line in enumerate(self.cells):
            lines.append([*([self.rows[i]] if self.rows else []), *line])
        wide = [max(len(line[j]) for line in lines) for j in range(len(lines[0]))]
        return "\n".join(
            "  ".join(cell.rjust(w) for cell, w in zip(line, wide, strict=True)) for line in lines
        )


def table(
    values: Tensor | Sequence[Sequence[object]],
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    *,
    decimals: int = 3,
    corner: str = "",
) -> Table:
    """Show numbers (and words) as a table; the last line of a cell.

    values (n_rows, n_columns), a tensor or lists that may mix numbers and words; rows and columns
    name them; corner is the heading above the rows' names. Floats get `decimals` places, integers
    none. ValueError if the names do not fit.

    >>> import torch
    >>> table(torch.tensor([[0.5, 0.25]]), ["it"], ["cat", "mat"], corner="query")
    query    cat    mat
       it  0.500  0.250
    """
    check.count("decimals", decimals, least=0)
    data = values.detach().cpu().tolist() if isinstance(values, Tensor) else list(values)
    if not data or not all(isinstance(line, (list, tuple)) and line for line in data):
        raise ValueError("values must be rows of cells, at least one of each; got " + repr(values))
    if len({len(line) for line in data}) > 1:
        raise ValueError(f"values must have rows of one length; got {[len(x) for x in data]}")
    for name, names, size in (("rows", rows, len(data)), ("columns", columns, len(data[0]))):
        if names is not None and len(names) != size:
            raise ValueError(f"{name} must name all {size}; got {len(names)} names")

    def cell(value: object) -> str:
        if isinstance(value, Tensor) and value.ndim == 0:
            value = value.item()
        return f"{value:.{decimals}f}".replace("-", "−") if isinstance(value, float) else str(value)

    return Table(
        [[cell(value) for value in line] for line in data],
        [str(name) for name in rows or []],
        [str(name) for name in columns or []],
        corner,
    )

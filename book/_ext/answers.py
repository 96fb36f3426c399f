"""An exercise's answer as code, with its solution and without, and the notebooks that hold it.

Shared by the notebook builder and by scripts/, which run without Sphinx.
"""

import hashlib
import os
import re
import textwrap

import nbformat
from nbformat.v4 import new_notebook

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"


def shown(name: str, environ=os.environ) -> bool:
    """Whether the book has its ANSWERS, or its HINTS: yes, unless the environment says 0."""
    value = environ.get(name, "").strip()
    if value not in ("", "0", "1"):
        raise ValueError(f"{name} must be 0 (without) or 1 (with, as without a word); got {value}")
    return value != "0"


def stub(source: str, title: str) -> str:
    """An answer's cell with what stands between the solution's markers taken out."""
    line = f'raise NotImplementedError("write your answer here: {title}")'.replace("\\", r"\\")

    def blank(match: re.Match) -> str:
        return match[1] + line + "\n"

    pattern = rf"^([ \t]*){BEGIN}[ \t]*\n.*?^[ \t]*{END}[ \t]*(?:\n|\Z)"
    text, count = re.subn(pattern, blank, source, flags=re.S | re.M)
    if not count or BEGIN in text or END in text:
        raise ValueError(f"an answer's cell must stand between {BEGIN} and {END}; got:\n{source}")
    return text.rstrip()


def unmarked(source: str) -> str:
    """An answer's cell without the markers."""
    return "\n".join(x for x in source.splitlines() if x.strip() not in (BEGIN, END)).strip()


def gentle(check: str) -> str:
    """The check's cell for a chapter that must run through with its exercises not yet done."""
    return (
        f"try:\n{textwrap.indent(check.strip(), '    ')}\n"
        'except AssertionError as hint:\n    print(f"Not yet: {hint}")'
    )


def notebook(cells: list[nbformat.NotebookNode], name: str) -> nbformat.NotebookNode:
    """Cells as a notebook with ids that depend on nothing but their content."""
    seen: dict[str, int] = {}
    for cell in cells:
        digest = hashlib.sha256((cell.cell_type + cell.source).encode()).hexdigest()[:12]
        seen[digest] = seen.get(digest, 0) + 1
        cell.id = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "colab": {"name": f"{name}.ipynb"}}
    made = new_notebook(cells=cells, metadata=metadata)
    nbformat.validate(made)
    return made

"""A small book with questions of every type, for the tests of questions."""

import base64
import copy
import os
import shutil
import subprocess
import sys
from pathlib import Path

from bs4 import BeautifulSoup
from filelock import FileLock

ROOT = Path(__file__).parents[1]

HEAD = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
# One

"""
PAGE = (
    HEAD
    + """
```{code-cell} python
:tags: [remove-cell]
import numpy as np
from myst_nb import glue

glue("first", np.float64(0.9) + 0.0001, display=False)
glue("rows", (np.arange(24.0).reshape(2, 12) / 8).tolist(), display=False)
```

See {ref}`check-output` and [the guess](#guess-self).

```{guess} Which *word*?
:name: guess-self
:type: choice
:answer: 3
Which word does *it* match best?

- *cat*
- *mat*, $a \\cdot b$
- *it* itself

=== answer
*it* itself: a vector has the largest product with itself, $x \\cdot x$.

=== hint 1
No other vector is nearer.
```

```{check}
:name: check-output
:type: number
:answer: glue:first
:tolerance: 0.01
:unit: points
The weights are 0.6, 0.3, 0.1. What is the first number?

=== answer
Weigh and add.

=== hint 2.5
You averaged with equal weights.
```

```{check}
:name: check-rows
:type: matrix
:answer: glue:rows
:tolerance: 0.001
The matrix?

=== answer
Divide by 8.
```

```{interview} In words
:name: check-why
:type: open
Why?

=== answer
Because **of** this:

- one
- two
```

```{check}
:name: check-two
:type: choice
:answer: 1, 2
Which are true?

- yes
- yes too
- $\\frac{1}{8}$

=== answer
The first two.
```
"""
)
TWO = (
    HEAD.replace("One", "Two")
    + """
```{code-cell} python
1 + 1
```

```{guess} On a line
:name: guess-place
:type: place
:min: -1
:max: 1
:step: 0.1
:unit: m
:answer: 0.3
:tolerance: 0.05
Where is the peak?

=== answer
Near 0.3.

=== hint 0
Not in the middle.
```


(a-section)=
## A section

Words.

```{exercise} An exercise
:label: ex-two
:class: star-1 minutes-5
Do it.
```

## Another section

```{check}
:name: check-far
:type: number
:answer: 4
How many?

![A dot](dot.png)

=== answer
See [the section](#a-section).
```
"""
)
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
GLOSSARY = """# Words

```{glossary}
head
  One of several attentions, of width $d_k$.

mask
  What may not be seen.
```
"""
CONFIG = f"""
import sys
sys.path.insert(0, {str(ROOT / "book" / "_ext")!r})
extensions = [
    "myst_nb", "sphinx_exercise", "maths", "site_address", "exercises", "questions",
    "question_pages", "notebooks", "offline", "accessible",
]
html_title = "A book"
html_theme = "sphinx_book_theme"
root_doc = "other"
html_math_renderer = "temml"
html_static_path = [{str(ROOT / "book" / "_static")!r}]
html_css_files = ["maths.css", "book.css"]
templates_path = [{str(ROOT / "book" / "_templates")!r}]
nb_execution_mode = "force"
nb_execution_raise_on_error = True
myst_enable_extensions = ["dollarmath"]
suppress_warnings = ["myst.domains"]
"""


# To start Sphinx takes longer than to build a few pages: all builders in one process.
SPHINX = """
import sys
sys.modules["rfc3987_syntax"] = None  # 39 grammars that would be compiled, to check web addresses
from sphinx.cmd.build import main
folder, *builders = sys.argv[1:]
for builder in builders:
    said = f"{folder}/{builder}.txt"
    made = ["-q", "-b", builder, "-w", said, "-d", f"{folder}/trees", f"{folder}/source"]
    if main([*made, f"{folder}/out/{builder}"]):
        sys.exit(1)
"""


def sphinx(folder: Path, *builders: str, **env: str) -> dict[str, str]:
    """Build the small book into out/ by these builders; return what Sphinx warned of in each."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("ATTENTION_", "GITHUB_"))}
    done = subprocess.run(
        [sys.executable, "-c", SPHINX, folder, *builders],
        env=plain | {"NO_COLOR": "1"} | env, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {builder: (folder / f"{builder}.txt").read_text("utf-8") for builder in builders}


def book(folder: Path, **pages: str) -> Path:
    toctree = "\n".join(pages)
    other = f"# Other\n\n```{{toctree}}\n{toctree}\n```\n"
    source = folder / "source"
    source.mkdir(parents=True)
    for name, text in {"other": other, **pages}.items():
        (source / f"{name}.md").write_text(text, "utf-8")
    (source / "conf.py").write_text(CONFIG)
    (source / "dot.png").write_bytes(base64.b64decode(DOT))
    return folder


def words(tag) -> str:
    """The text of a tag, its formulas without spaces."""
    tag = copy.copy(tag)
    for formula in tag.select("math"):
        formula.replace_with(formula.get_text())
    return " ".join(tag.get_text(" ").split())


def built(tmp_path_factory) -> Path:
    """The folder of a small book with pages of every sort, built once for all who look at it."""
    top = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        top = top.parent  # which the processes of a run share
    folder = top / "questions"
    with FileLock(f"{folder}.lock"):
        if not (folder / "whole").exists():
            shutil.rmtree(folder, ignore_errors=True)
            build(folder)
            (folder / "whole").touch()
    return folder


def build(folder: Path) -> None:
    review = (ROOT / "book" / "review.md").read_text("utf-8")
    book(folder, one=PAGE, two=TWO, words=GLOSSARY, review=review)
    warned = sphinx(folder, "html", "ipynb", "latex", "epub")
    assert warned["html"] == warned["ipynb"] == ""
    assert ".md" not in warned["latex"] + warned["epub"]


def read(folder: Path, name: str) -> BeautifulSoup:
    """A page of it, as HTML."""
    return BeautifulSoup(
        (folder / "out" / "html" / f"{name}.html").read_text("utf-8"), "html.parser"
    )

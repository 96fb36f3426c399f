"""A small course of two exercises, and submissions for it: for the tests and the benchmark."""

import json
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

SETUP = "# @title Set up: use the book's package\nraise SystemExit('the grader skips this cell')"
CODE = (
    "import math\n\nimport torch\n\nfrom attention import attention, softmax\n"
    "from attention.checks import scaling as check\nfrom attention.plots import use_book_style\n\n"
    "use_book_style()"
)
SOFTMAX = '''def my_softmax(x, temperature=1.0):
    """x (..., n) -> weights (..., n)."""
    ### BEGIN SOLUTION
    x = (x - x.amax(-1, keepdim=True)) / temperature
    e = x.exp()
    return e / e.sum(-1, keepdim=True)
    ### END SOLUTION'''
ATTENTION = '''def my_attention(q, k, v):
    """Return out and weights."""
    ### BEGIN SOLUTION
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights
    ### END SOLUTION'''
COURSE = {
    "title": "Week 3",
    "due": "",
    "chapters": {
        "scaling": {
            "title": "Scaled dot-product attention",
            "code": [CODE],
            "exercises": [
                {"id": "ex-softmax", "head": "Exercise 3.1: Softmax", "points": 1,
                 "answer": SOFTMAX, "check": "check.softmax_with_temperature(my_softmax)",
                 "solution": "", "credit": {"extremes": 2}},
                {"id": "ex-why", "head": "Exercise 3.2: Why", "points": 2, "solution": "Because."},
                {"id": "ex-attention", "head": "Exercise 3.3: Attention", "points": 2,
                 "answer": ATTENTION, "check": "check.your_attention(my_attention)",
                 "solution": ""},
            ],
        }
    },
}  # fmt: skip
EXERCISES = {e["id"]: e for e in COURSE["chapters"]["scaling"]["exercises"]}
RIGHT = {key: EXERCISES[key]["answer"] for key in ("ex-softmax", "ex-attention")}
WRONG = {
    "ex-softmax": "def my_softmax(x, temperature=1.0):\n    return x * 0 + 0.5",
    "ex-attention": "def my_attention(q, k, v):\n    return q, k",
}


def course(folder: Path) -> Path:
    path = folder / "grading.json"
    path.write_text(json.dumps(COURSE), "utf-8")
    return path


def hand_in(folder: Path, student: str, answers: dict[str, str], *, first: Sequence[str] = (),
            last: Sequence[str] = (), name: str = "Copy of scaling.ipynb") -> Path:  # fmt: skip
    """A student's notebook, as `make course` wrote it and the student filled it in."""
    cells = [new_markdown_cell("# Week 3"), new_code_cell(SETUP), new_code_cell(CODE)]
    cells += [new_code_cell(x) for x in first if x]
    for key, e in EXERCISES.items():
        cells.append(new_markdown_cell(f"## {e['head']}\n\nThe task."))
        if "check" not in e:
            cells.append(new_markdown_cell(answers.get(key, "*Write your answer here.*")))
            continue
        stub = f'{e["answer"].splitlines()[0]}\n    raise NotImplementedError("write here")'
        cells += [new_code_cell(answers.get(key, stub)), new_code_cell(e["check"])]
    cells += [new_code_cell(x) for x in last if x]
    path = folder / student / name
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=cells), path)
    return path

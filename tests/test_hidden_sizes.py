"""Hidden cases have other sizes than those that students see."""

import re
import sys
from pathlib import Path

import pytest
import torch
from docutils.nodes import make_id

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import exercise_table  # noqa: E402

from attention.checks import _base  # noqa: E402
from attention.checks._base import NotYet, sized  # noqa: E402
from grading import book, marking  # noqa: E402

KNOWN = book.read(ROOT / "_build" / "ipynb" / "exercises.json")
CHECKED = {e.id: (c, e) for c in KNOWN.chapters.values() for e in c.exercises if e.check}
# Their inputs are numbers, lists, words: drawn anew, but of no size that one could write down.
NO_SIZE = {
    "ex-blocks-count", "ex-practice-bytes", "ex-qkv-merge", "ex-writing-decode",
    "ex-writing-induction", "ex-writing-copies",
    "ex-motivation-layers", "ex-scaling-variance", "ex-multi-head-count",
}  # fmt: skip
TRIANGLES = {"ex-qkv-weights", "ex-qkv-aim"}  # drawn anew, of one size
FIXED = {"ex-blocks-one", "ex-multi-head-around", "ex-qkv-ending"}  # a design, without an input


def shapes(args) -> str:
    """The sizes in a call: shapes of tensors, and whole numbers."""
    return str([tuple(a.shape) if isinstance(a, torch.Tensor) else
                a if isinstance(a, int) else shapes(a) if isinstance(a, tuple) else type(a).__name__
                for a in args])  # fmt: skip


def test_cases_grow_all_alike(monkeypatch):
    assert sized((2, (3,), 1.5), 4) == [(2, (3,), 1.5), 4]
    monkeypatch.setattr(_base, "MORE", 2)
    assert sized((2, (3,), 1.5, True, [1]), 4) == [(4, (5,), 1.5, True, [1]), 6]
    assert sized((2, (3,)), keep=(0,), step=2) == [(2, (7,))]


@pytest.mark.parametrize("key", sorted(CHECKED.keys() - NO_SIZE - FIXED - TRIANGLES))
def test_an_answer_for_the_visible_sizes_alone_fails_the_hidden_cases(key):
    chapter, exercise = CHECKED[key]
    answer, seen, learning = book.answer(chapter, exercise), set(), True

    def for_these_sizes(*args, **kwargs):
        if learning:
            seen.add(shapes(args))
        elif shapes(args) not in seen:
            return torch.zeros(1)
        return answer(*args, **kwargs)

    for_these_sizes.__name__ = exercise.called[1]
    marking.check(chapter, exercise, for_these_sizes, 0)
    learning = False
    marking.check(chapter, exercise, for_these_sizes, 0)
    with pytest.raises(NotYet):
        marking.check(chapter, exercise, for_these_sizes, 20_000)


@pytest.mark.parametrize("key", sorted(CHECKED))
def test_the_list_says_whose_inputs_are_fixed(key):
    """What the teacher's list says is what the grader does."""
    chapter, exercise = CHECKED[key]
    answer, seen = book.answer(chapter, exercise), []

    def noted(*args, **kwargs):
        seen.append(shapes(args) if any(map(callable, args)) else repr((args, kwargs)))
        return answer(*args, **kwargs)

    noted.__name__ = exercise.called[1]
    marking.check(chapter, exercise, noted, 0)
    before = seen.copy()
    seen.clear()
    marking.check(chapter, exercise, noted, 20_000)
    assert exercise_table.fixed(chapter.module, exercise.called[0]) == (before == seen)
    assert (key in FIXED) == (before == seen)


@pytest.mark.parametrize("key", sorted(CHECKED))
def test_the_books_answer_passes_hidden_cases(key):
    chapter, exercise = CHECKED[key]
    for offset in (3_000, 20_001, 20_002):
        marking.check(chapter, exercise, book.answer(chapter, exercise), offset)


def test_each_exercise_needs_a_section_of_its_chapter():
    for path in (ROOT / "book").glob("*.md"):
        text = path.read_text("utf-8")
        titles = [re.sub(r"[`*$]", "", t) for t in re.findall(r"^##+ (.*)$", text, re.M)]
        wanted = re.findall(r"^:class:.* needs-(\S+)$", text, re.M)
        assert len(wanted) == len(re.findall(r"^:label: ex-", text, re.M)), path.name
        assert set(wanted) <= set(map(make_id, titles)), path.name

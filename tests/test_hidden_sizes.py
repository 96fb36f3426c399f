"""Hidden cases have other sizes than those that students see."""

from pathlib import Path

import pytest
import torch

from attention.checks import _base
from attention.checks._base import NotYet, sized
from grading import book, marking

KNOWN = book.read(Path(__file__).parents[1] / "_build" / "ipynb" / "exercises.json")
CHECKED = {e.id: (c, e) for c in KNOWN.chapters.values() for e in c.exercises if e.check}
# Their inputs are no tensors of some size: numbers, lists, words, layers, or none at all. Most of
# these are drawn anew by their seed; those that are not are in FIXED.
NO_SIZE = {
    "ex-blocks-count", "ex-practice-bytes", "ex-qkv-merge", "ex-writing-decode",
    "ex-motivation-layers", "ex-scaling-variance", "ex-multi-head-count",
}  # fmt: skip
FIXED = {
    "ex-blocks-one", "ex-multi-head-around", "ex-qkv-ending",  # one design, without an input
    "ex-qkv-weights", "ex-qkv-aim",  # a triangle in the plane
    "ex-writing-induction", "ex-writing-copies",  # texts that each try one mistake
}  # fmt: skip


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


@pytest.mark.parametrize("key", sorted(CHECKED.keys() - NO_SIZE - FIXED))
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
def test_the_books_answer_passes_hidden_cases(key):
    chapter, exercise = CHECKED[key]
    for offset in (3_000, 20_001, 20_002):
        marking.check(chapter, exercise, book.answer(chapter, exercise), offset)

r"""Numbers of one's own: an exercise with other numbers for each student, and their answers.

A hidden cell of the chapter with the metadata `own: ex-LABEL` holds a function `own`. Each of its
parameters is a number of the exercise: the default is the book's, the annotation lists what may be
drawn instead. It returns the answers by part, or None where the numbers do not suit each other.
`own.text` says where the numbers stand: pieces of the exercise's Markdown with {names}, each of
which, with the book's numbers, must stand there exactly once; `own.also` may give numbers that
follow from the drawn ones.

    def own(n: range(20, 90) = 49, factor: [0.4, 0.5, 0.6] = 0.45):
        return {"(a)": factor**n}
    own.text = ["after {n} steps", r"$\gamma = {factor}$"]

Shared by the notebook builder and by scripts/course.py, which runs without Sphinx.
"""

import hashlib
import inspect
import random
from collections.abc import Callable
from typing import Any


def read(source: str) -> Callable[..., Any]:
    """The function `own` of a cell."""
    space: dict[str, Any] = {}
    exec(compile(source, "<own>", "exec"), space)
    return space["own"]


def books(own: Callable[..., Any]) -> dict[str, Any]:
    """The book's own numbers."""
    return {name: p.default for name, p in inspect.signature(own).parameters.items()}


def draw(own: Callable[..., Any], seed: str) -> dict[str, Any]:
    """Numbers for one student: the same for the same seed, never the book's."""
    chance = random.Random(hashlib.sha256(seed.encode()).digest())
    choices = {n: list(p.annotation) for n, p in inspect.signature(own).parameters.items()}
    for _ in range(1000):
        found = {name: chance.choice(some) for name, some in choices.items()}
        if found != books(own) and own(**found) is not None:
            return found
    raise ValueError(f"no numbers of {choices} suit each other")


def written(own: Callable[..., Any], prose: str, values: dict[str, Any]) -> str:
    """The exercise's text with these numbers."""
    also = getattr(own, "also", lambda **_: {})

    def filled(piece: str, values: dict[str, Any]) -> str:
        return piece.format(**values, **also(**values))

    for piece in own.text:
        before = filled(piece, books(own))
        if prose.count(before) != 1:
            raise ValueError(f"{before!r} must stand in it once, not {prose.count(before)} times")
        prose = prose.replace(before, filled(piece, values))
    return prose


def answers(own: Callable[..., Any], values: dict[str, Any]) -> dict[str, str]:
    """The answers by part, as text with four digits."""
    return {part: shown(value) for part, value in own(**values).items()}


def shown(value: Any) -> str:
    """A number with four digits, a whole one with all; numbers in a list; words as they are.

    >>> shown([0.123456, 1234567, "s > 2"])
    '0.1235, 1234567, s > 2'
    """
    if isinstance(value, list | tuple):
        return ", ".join(
            f"[{shown(x)}]" if isinstance(x, list | tuple) else shown(x) for x in value
        )
    return f"{value:.4g}" if isinstance(value, float) else str(value)

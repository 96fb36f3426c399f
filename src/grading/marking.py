"""Points for an answer: the book's own checks here, the student's function in the sandbox."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from attention.checks import _base
from attention.checks._base import NotYet, close

from . import book
from .book import Chapter, Exercise
from .remote import Patience, Remote, Stand, Stopped
from .sandbox import Sandbox
from .submissions import clean

CREDIT = {"shape": 1, "sums": 1, "values": 3, "extremes": 1}  # an exercise may say otherwise
ENDS = "this cell ends the program"
REST = 1  # the weight of everything else that a check asks for
TAKEN = re.compile(r"you were asked to write|which is the answer|you call the finished")


@contextmanager
def seeded(offset: int) -> Iterator[None]:
    """Let the checks draw other random inputs than those that students see, of other sizes."""

    class OtherSeed(torch.Generator):
        def manual_seed(self, seed: int) -> torch.Generator:
            return super().manual_seed(seed + offset)

    if not offset:
        yield
        return
    with (
        mock.patch("torch.Generator", OtherSeed),
        mock.patch.object(_base, "MORE", 1 + offset % 3),
    ):
        yield


def check(chapter: Chapter, exercise: Exercise, function: Any, offset: int) -> None:
    """Run the book's check on a function; NotYet says what is wrong."""
    module = importlib.import_module(f"attention.checks.{chapter.module}")

    @contextmanager
    def without(*finished: Any) -> Iterator[None]:
        function.called.clear()
        yield
        for one in finished:
            name = f"{getattr(one, '__module__', '')}.{one.__name__}"
            bare = one.__name__ if not hasattr(one, "__code__") else name
            if {name, bare} & (function.called | function.names):
                raise NotYet(f"you call the finished {one.__name__}; write it yourself")

    with contextlib.ExitStack() as stack:
        stack.enter_context(seeded(offset))
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        if isinstance(function, Stand):
            # it keeps the time itself: an alarm would come in the middle of a message
            stack.enter_context(mock.patch.object(_base, "time_limit", contextlib.nullcontext))
            if hasattr(module, "without"):
                stack.enter_context(mock.patch.object(module, "without", without))
        getattr(module, exercise.called[0])(function)


# partial credit


@functools.cache
def cases(chapter: Chapter, exercise: Exercise, offset: int) -> list[tuple[Any, Any, Any]]:
    """What a check calls a function with, and what the book's answer gives for it."""
    seen: list[tuple[Any, Any, Any]] = []
    right = book.answer(chapter, exercise)

    def recorder(*args: Any, **kwargs: Any) -> Any:
        before = _copy(args)
        value = right(*args, **kwargs)
        seen.append((before, kwargs, outcome(value, args)))
        return value

    recorder.__name__ = exercise.called[1]
    check(chapter, exercise, recorder, offset)
    return seen


def _copy(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments that a call cannot change; a model and its optimizer stay together."""
    return copy.deepcopy(tuple(a.detach() if isinstance(a, Tensor) else a for a in args))


def outcome(value: Any, args: tuple[Any, ...]) -> Any:
    """What a call gave, and what it made of a model that it was given."""
    models = [a for a in args if isinstance(a, torch.nn.Module)]
    return (
        (value, [p.detach().clone() for m in models for p in m.parameters()]) if models else value
    )


def leaves(value: Any) -> list[Any]:
    """The numbers, words and tensors in nested lists and tuples."""
    if isinstance(value, list | tuple):
        return [x for part in value for x in leaves(part)]
    return [value]


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor):
        return isinstance(b, Tensor) and a.shape == b.shape
    return isinstance(b, type(a)) or isinstance(a, int | float) and isinstance(b, int | float)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor):
        return close(b, a, 1e-4)
    if isinstance(a, float) and isinstance(b, int | float):
        return abs(a - b) <= 1e-4 * (1 + abs(a))
    return bool(type(a) is type(b) and a == b)


def _of_ones(x: Any) -> bool:
    """Whether these are rows of weights, each with a sum of 1."""
    return (
        isinstance(x, Tensor) and x.is_floating_point() and x.ndim > 0
        and close(x.sum(-1), torch.ones_like(x.sum(-1)), 1e-4)
    )  # fmt: skip


def extreme(args: tuple[Any, ...]) -> bool:
    """Whether a call has very large numbers, infinite ones, or a row where nothing is allowed."""
    for a in args:
        if isinstance(a, Tensor) and a.is_floating_point() and a.numel() and a.abs().max() >= 50:
            return True
        if isinstance(a, Tensor) and a.dtype == torch.bool and a.ndim and not a.any(-1).all():
            return True
    return False


def credit(chapter: Chapter, exercise: Exercise, function: Any, offset: int) -> dict[str, bool]:
    """Which properties the answer has, on the inputs of the check with another seed."""
    found: dict[str, bool] = {}
    known = cases(chapter, exercise, offset)
    weights = all(any(map(_of_ones, leaves(value))) for _, _, value in known)

    def note(name: str, holds: bool) -> None:
        found[name] = found.get(name, True) and holds

    for args, kwargs, value in known:
        try:
            used = _copy(args)
            got = outcome(function(*used, **kwargs), used)
        except Stopped:
            raise
        except Exception:  # noqa: BLE001  whatever the answer raises
            got = None
        pairs = list(zip(leaves(value), leaves(got), strict=False))
        whole = len(leaves(value)) == len(leaves(got))
        note("shape", whole and all(_alike(a, b) for a, b in pairs))
        if weights:
            note("sums", whole and all(_of_ones(b) for a, b in pairs if _of_ones(a)))
        hard = "extremes" if extreme(args) else "values"
        note(hard, whole and all(_equal(a, b) for a, b in pairs))
    return found


def share(exercise: Exercise, found: dict[str, bool]) -> float:
    """The part of the points that these properties earn.

    The right shape alone earns nothing, nor do extremes without values: the inputs of these are
    known to students, who could have written the results down.
    """
    if "extremes" in found and not found.get("values", True):
        found = found | {"extremes": False}
    if not any(holds for name, holds in found.items() if name != "shape"):
        return 0.0
    weights = {name: (CREDIT | exercise.credit)[name] for name in found}
    earned = sum(weight for name, weight in weights.items() if found[name])
    return earned / (sum(weights.values()) + REST)


# a submission


def mark(
    sandbox: Sandbox, user: int, chapter: Chapter, cells: list[str], offset: int,
    patience: Patience | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Grade the checked exercises of a chapter: id, points, out of, what was said, properties."""
    patience = patience or Patience()
    left = patience.submission
    notes: dict[int, str] = {}  # a cell's error, by its number
    remote: Remote | None = None
    results = []
    try:
        for exercise in (e for e in chapter.exercises if e.check):
            points, said, found, allowed = 0.0, "", {}, 0.0
            try:
                if left <= 0:
                    raise Stopped("the time for the whole submission was used up before this")
                if remote is None or not remote.alive:
                    remote, again = None, left
                    left = 0.0  # what cells that never end have used up
                    remote = prepared(sandbox, user, cells, notes, again, patience)
                    left = remote.left
                remote.left = allowed = min(left, patience.exercise)
                name = exercise.called[1]
                function = remote.function(name)
                if function is None:
                    wrong = [n for k, n in notes.items() if n and f"def {name}" in cells[k]]
                    raise NotYet(f"there is no function {name}" + "".join(f"; {n}" for n in wrong))
                said, found = judge(chapter, exercise, function, offset)
                part = share(exercise, found) if said else 1.0
                points = round(exercise.points * part, 2)
            except NotYet as stop:
                said = str(stop)
            said = clean(said[:1500])
            if remote is not None:
                left -= allowed - remote.left
            results.append({
                "id": exercise.id, "points": points, "of": exercise.points, "said": said,
                "found": found,
            })  # fmt: skip
    finally:
        if remote is not None:
            remote.stop()
    return results


def judge(
    chapter: Chapter, exercise: Exercise, function: Any, offset: int
) -> tuple[str, dict[str, bool]]:
    """What is wrong, "" if nothing, and the properties of a wrong answer."""
    try:
        for seed in (0, offset, 2 * offset + 1):
            check(chapter, exercise, function, seed)
        return "", {}
    except Stopped:
        raise
    except NotYet as error:
        said = str(error)
    except Exception as error:  # noqa: BLE001  a check met what it was not written for
        said = f"the answer is of a kind that the check cannot read ({type(error).__name__})"
    if TAKEN.search(said) or "is still the stub" in said:
        return said, {}
    try:
        return said, credit(chapter, exercise, function, offset)
    except Stopped as stop:
        return f"{said}; then {stop}", {}


def prepared(
    sandbox: Sandbox, user: int, cells: list[str], notes: dict[int, str], left: float,
    patience: Patience,
) -> Remote:  # fmt: skip
    """A sandbox in which the cells have run, without those that end it, in the seconds left."""
    for _ in range(4):
        remote = Remote(sandbox, user, patience)
        remote.left = left
        for k, source in enumerate(cells):
            if notes.get(k, "").startswith(ENDS):
                continue
            try:
                notes[k] = remote.run(source)
            except Stopped as stop:
                notes[k] = f"{ENDS}: {stop}"
                break
        else:
            return remote
        left = max(remote.left, 0.0)
        remote.stop()
    raise Stopped("; ".join(n for n in notes.values() if n.startswith(ENDS)))

"""What was assigned, from the file that `make course` or `make book` wrote."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"


@dataclass(frozen=True)
class Exercise:
    """One exercise; `check` and `answer` are "" where a person grades it."""

    id: str
    head: str
    points: float
    answer: str = ""
    check: str = ""
    solution: str = ""
    credit: dict[str, int] = field(default_factory=dict, hash=False, compare=False)

    @property
    def called(self) -> tuple[str, str]:
        """The names of the check and of the student's function."""
        found = re.search(r"check\.(\w+)\((\w+)\)", self.check)
        if not found:
            raise ValueError(f"{self.id}: its check's cell must be check.NAME(function)")
        return found[1], found[2]


@dataclass(frozen=True)
class Chapter:
    name: str
    title: str
    code: tuple[str, ...]
    exercises: tuple[Exercise, ...]

    @property
    def module(self) -> str:
        """The chapter's module of attention.checks."""
        found = re.search(r"from attention\.checks import (\w+) as check", "\n".join(self.code))
        return found[1] if found else self.name.replace("-", "_")


@dataclass(frozen=True)
class Course:
    title: str
    due: str
    chapters: dict[str, Chapter]
    keys: dict[str, dict[str, str]] = field(default_factory=dict)  # own answers, by student

    @property
    def digest(self) -> str:
        """Changes when an exercise, a check or the grader does."""
        import attention

        known = hashlib.sha256(repr(sorted(self.chapters.items())).encode())
        folders = [Path(attention.__file__).parent / "checks", Path(__file__).parent]
        for path in sorted(p for folder in folders for p in folder.glob("*.py")):
            known.update(path.read_bytes())
        return known.hexdigest()


def read(path: Path) -> Course:
    """The course in grading.json (of `make course`) or exercises.json (of `make book`)."""
    known = json.loads(path.read_text("utf-8"))
    chapters = {}
    for name, about in known["chapters"].items():
        exercises = tuple(
            Exercise(
                e["id"], e["head"], float(e["points"]), e.get("answer", ""), e.get("check", ""),
                e.get("solution", ""), e.get("credit", {}),
            )
            for e in about["exercises"]
        )  # fmt: skip
        if exercises:
            chapters[name] = Chapter(name, about["title"], tuple(about["code"]), exercises)
    title, due = known.get("title", "Exercises"), known.get("due", "")
    return Course(title, due, chapters, known.get("keys", {}))


@functools.cache
def answer(chapter: Chapter, exercise: Exercise) -> Callable[..., Any]:
    """The book's own answer, as a function of this process."""
    space: dict[str, Any] = {"__name__": "__main__"}
    for source in (*chapter.code, exercise.answer):
        exec(compile(source, f"<{exercise.id}>", "exec"), space)
    return space[exercise.called[1]]

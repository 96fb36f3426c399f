"""What was handed in: whose it is, which chapter, and what stands in it. Nothing is run here."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .book import Chapter, Course

MOST = 20 << 20  # bytes of a notebook
CANVAS = re.compile(r"^(?P<who>[^_]+)_(?:LATE_)?(?P<id>\d+)_\d+_(?P<file>.+)$")
MOODLE = re.compile(r"^(?P<who>.+)_(?P<id>\d+)_assignsubmission_\w+$")
HEAD = re.compile(r"^#+ (Exercise [\d.]+.*)$", re.M)
SETUP = "# @title Set up"


def clean(text: str) -> str:
    """A text that can be written to a file whatever it held."""
    return text.encode("utf-8", "replace").decode()


class Unreadable(Exception):
    """A sentence about why a file is no submission."""


@dataclass
class Submission:
    """One student's file for one chapter."""

    student: str
    path: Path
    chapter: str = ""
    digest: str = ""
    cells: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    trouble: str = ""

    @property
    def key(self) -> str:
        """A name for its files: readable, and no path."""
        plain = re.sub(r"[^\w.-]+", "-", f"{self.student}--{self.chapter}").strip("-.")[:80]
        return f"{plain}-{hashlib.sha256(self.student.encode()).hexdigest()[:8]}"


def found(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every notebook and script below a folder, with its student; links are not followed."""
    for place, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "__")))
        for name in sorted(names):
            path = Path(place) / name
            if name.startswith(".") or path.suffix not in (".ipynb", ".py"):
                continue
            if not stat.S_ISREG(path.lstat().st_mode):
                continue
            inside = path.relative_to(folder).parts
            if len(inside) > 1:
                match = MOODLE.match(inside[0])
                yield clean(match["who"] if match else inside[0]), path
            else:
                match = CANVAS.match(path.stem)
                yield clean(match["who"] if match else path.stem), path


def read(student: str, path: Path, course: Course) -> Submission:
    """A submission from its file; what cannot be read has its `trouble`, in a sentence."""
    made = Submission(student, path)
    try:
        if path.lstat().st_size > MOST:
            raise Unreadable(f"the file has more than {MOST >> 20} MB")
        data = path.read_bytes()
        made.digest = hashlib.sha256(data).hexdigest()
        cells = list(_cells(path, data))
        made.chapter = _chapter(path, cells, course)
        for kind, text in cells:
            if kind == "code" and not text.lstrip().startswith(SETUP):
                made.cells.append(text)
        made.texts = _texts(cells, course.chapters[made.chapter])
    except Unreadable as error:
        made.trouble = str(error)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        made.trouble = f"the file cannot be read ({type(error).__name__})"
    return made


def _cells(path: Path, data: bytes) -> Iterator[tuple[str, str]]:
    text = data.decode("utf-8")
    if path.suffix == ".py":
        yield "code", text
        return
    known = json.loads(text)
    cells = known["cells"] if isinstance(known, dict) and "cells" in known else None
    if not isinstance(cells, list):
        raise Unreadable("this is no notebook of version 4: it has no list of cells")
    for cell in cells:
        source: Any = cell.get("source", "")
        kind = cell.get("cell_type")
        if kind in ("code", "markdown"):
            yield kind, clean("".join(source) if isinstance(source, list) else str(source))


def _chapter(path: Path, cells: list[tuple[str, str]], course: Course) -> str:
    """The chapter whose exercises the file holds; its name only where it holds none."""
    heads = {h.strip() for kind, text in cells if kind == "markdown" for h in HEAD.findall(text)}
    code = "\n".join(text for kind, text in cells if kind == "code")
    names = set(re.findall(r"^def (\w+)\(", code, re.M))

    def fits(chapter: Chapter) -> tuple[int, int, bool]:
        own = {e.called[1] for e in chapter.exercises if e.check}
        module = f"from attention.checks import {chapter.module} " in code
        return (
            len(heads & {e.head for e in chapter.exercises}) + 5 * module, len(names & own),
            chapter.name in path.stem,
        )  # fmt: skip

    best = max(course.chapters.values(), key=fits)
    if not any(fits(best)):
        raise Unreadable("no exercise of this course is in it")
    return best.name


def _texts(cells: list[tuple[str, str]], chapter: Chapter) -> dict[str, str]:
    """What was written, in Markdown or code, under the heading of each exercise without a check."""
    heads = {e.head: e for e in chapter.exercises}
    texts: dict[str, str] = {}
    now = None
    for _, text in cells:
        if match := HEAD.search(text):
            now = heads.get(match[1].strip())
            continue
        if now is not None and not now.check:
            texts[now.id] = (texts.get(now.id, "") + "\n\n" + text).strip()[:20_000]
    return texts

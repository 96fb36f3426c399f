"""Numbers of one's own for the students of a roster: their exercises, and the teacher's key."""

import csv
import html
import importlib.util
import io
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
# What tells students apart, the best first: in Canvas' export, in Moodle's, or in a plain list.
COLUMNS = ["SIS Login ID", "Username", "Email address", "ID number", "Student", "student"]


class Mistake(Exception):
    """A sentence about the roster."""


def extension(name: str) -> ModuleType:
    """A module from beside the notebooks' builder, without what else lies there."""
    path = ROOT / "book" / "_ext" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


OWN = extension("own_numbers")  # how numbers are drawn


@dataclass(frozen=True)
class Student:
    id: str
    name: str
    folder: str

    @property
    def heading(self) -> str:
        """The name as text in Markdown, whatever stands in it."""
        return re.sub(r"([\\`*_\[\]#|$~])", r"\\\1", html.escape(self.name))


def read(path: Path) -> list[Student]:
    """The students of a roster as Canvas or Moodle export it, or with a column student."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            table = csv.DictReader(file)
            rows, header = list(table), [c for c in table.fieldnames or () if c]
    except FileNotFoundError:
        raise Mistake(f"ROSTER must be a file; there is no {path}") from None
    except (UnicodeDecodeError, csv.Error):
        raise Mistake(f"ROSTER must be a CSV file in UTF-8; {path} is none") from None
    column = next((c for c in COLUMNS if c in header), "")
    if not column:
        raise Mistake(
            f"ROSTER must have a column student (or {', '.join(COLUMNS[:-1])}); {path} has "
            f"{', '.join(header) or 'none'}"
        )
    found: dict[str, Student] = {}
    folders: set[str] = set()  # without regard to case, as some file systems are
    for row in rows:
        key = " ".join((row[column] or "").split())
        if not key or key in found or "Points Possible" in row.get("Student", ""):  # Canvas' own
            continue
        name = " ".join((row.get("Student") or row.get("student") or key).split())
        folder = "".join(c if c.isalnum() or c in "._-" else "-" for c in key).strip("-.")[:60]
        plain = folder = folder or "student"
        count = 1
        while folder.casefold() in folders:
            count += 1
            folder = f"{plain}-{count}"
        folders.add(folder.casefold())
        found[key] = Student(key, name, folder)
    if not found:
        raise Mistake(f"ROSTER names no student: the column {column} of {path} is empty")
    return list(found.values())


def with_own(exercise: dict[str, Any], title: str, student: Student) -> dict[str, Any]:
    """An exercise with the student's numbers in its text, and beside it `numbers` and `key`."""
    if "own" not in exercise:
        return exercise
    own = OWN.read(exercise["own"])
    values = OWN.draw(own, f"{title}\n{student.id}\n{exercise['id']}")
    return exercise | {
        "prose": OWN.written(own, exercise["prose"], values),
        "numbers": values,
        "key": OWN.answers(own, values),
    }


def keys(students: list[Student], drawn: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """For the grader: a student's answers by exercise, under every name that is theirs alone."""
    owners = Counter(name for s in students for name in {s.id, s.name, s.folder})
    found = {}
    for s in students:
        said = {e["id"]: "; ".join(": ".join(x) for x in e["key"].items()) for e in drawn[s.id]}
        found |= {name: said for name in (s.id, s.name, s.folder) if owners[name] == 1}
    return found


def cell(text: str) -> str:
    """A text that a spreadsheet would take for a formula stays a text; a number is one."""
    number = re.fullmatch(r"-?[\d., \[\]e+-]+", text)
    return text if number or text[:1] not in tuple("=+-@") else f"'{text}"


def table(students: list[Student], drawn: dict[str, list[dict[str, Any]]]) -> str:
    """The teacher's key as CSV: a row for each student, exercise and part."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["student", "id", "exercise", "numbers", "part", "answer"])
    for s in students:
        for e in drawn[s.id]:
            numbers = json.dumps(e["numbers"], ensure_ascii=False)
            for part, answer in e["key"].items():
                row = [s.name, s.id, e["id"], numbers, part, answer]
                writer.writerow([cell(text) for text in row])
    return out.getvalue()

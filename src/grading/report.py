"""What a run leaves: grades.csv, a row an exercise, a page a student, and what to look at."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from . import lateness
from .book import Course
from .run import write

CANVAS = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}: {student}</title>
<style>
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 44rem; margin: auto; padding: 1rem }}
table {{ border-collapse: collapse }} th, td {{ padding: .3rem .8rem .3rem 0; text-align: left }}
pre {{ white-space: pre-wrap; border-left: 3px solid #999; padding-left: .8rem }}
@media (prefers-color-scheme: dark) {{ body {{ background: #111; color: #eee }} }}
</style>
<h1>{title}</h1>
<p>{student}: <strong>{total:g}</strong> of {of:g} points{note}</p>
{body}
</html>
"""


@dataclass
class Line:
    """One exercise of one student; points None where nobody has graded it yet."""

    exercise: str
    head: str
    points: float | None
    of: float
    said: str = ""
    text: str = ""
    found: dict[str, bool] = field(default_factory=dict)


@dataclass
class Sheet:
    """All of one student."""

    student: str
    lines: list[Line] = field(default_factory=list)
    late: int = 0
    factor: float = 1.0
    trouble: list[str] = field(default_factory=list)
    looks: list[str] = field(default_factory=list)

    @property
    def total(self) -> float:
        """What counts: each exercise after what lateness took."""
        return round(sum(x.points or 0 for x in self.lines), 2)


def lines(
    course: Course, chapter: str, known: dict[str, Any], factor: float,
    by_hand: dict[tuple[str, str], tuple[float, str]], student: str,
) -> list[Line]:  # fmt: skip
    """The lines of a chapter, from its result and from what a person has graded."""
    results = {r["id"]: r for r in known.get("results", ())}
    made = []
    for e in course.chapters[chapter].exercises:
        hand = by_hand.get((student, e.id))
        text = known.get("texts", {}).get(e.id, "")
        if hand is not None:
            made.append(Line(e.id, e.head, round(hand[0] * factor, 2), e.points, hand[1], text))
        elif e.check and e.id in results:
            r = results[e.id]
            points = round(r["points"] * factor, 2)
            said = r["said"] or "Right."
            made.append(Line(e.id, e.head, points, e.points, said, "", r["found"]))
        else:
            points = 0.0 if e.check else None
            said = known.get("trouble") or ("" if e.check else "Not graded yet.")
            made.append(Line(e.id, e.head, points, e.points, said, text))
    return made


def by_hand(path: Path) -> dict[tuple[str, str], tuple[float, str]]:
    """What a person has entered: student and exercise to points and a comment."""
    if not path.exists():
        return {}
    with open(path, newline="", encoding="utf-8-sig") as file:
        try:
            return {
                (row["student"], row["exercise"]): (float(row["points"]), row["comment"] or "")
                for row in csv.DictReader(file)
                if row["points"].strip()
            }
        except (KeyError, ValueError, AttributeError):
            raise lateness.Mistake(
                f"{path} must have the columns student, exercise, points, of, text and comment, "
                "and a number or nothing as points"
            ) from None


def roster(path: Path | None) -> dict[str, dict[str, str]]:
    """Students by every name that stands in their row, as Canvas or Moodle export them."""
    if path is None:
        return {}
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    return {value.strip(): row for row in rows for value in row.values() if value and value.strip()}


def _csv(path: Path, header: list[str], rows: Iterable[list[Any]]) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([[_cell(x) for x in row] for row in rows])
    write(path, out.getvalue())


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula stays a text."""
    plain = isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{value}" if plain else value


def publish(
    course: Course, sheets: list[Sheet], into: Path, known: dict[str, dict[str, str]]
) -> None:
    """Write everything that a teacher opens."""
    of = sum(e.points for c in course.chapters.values() for e in c.exercises)
    grades = []
    for s in sheets:
        row = known.get(s.student, {})
        name = row.get("Student") or s.student
        login = row.get("SIS Login ID") or row.get("Username") or row.get("username") or s.student
        ids = [name, row.get("ID", ""), row.get("SIS User ID") or row.get("ID number") or "", login]
        grades.append([*ids, row.get("Section", ""), f"{s.total:g}"])
    _csv(into / "grades.csv", [*CANVAS, course.title], grades)
    each = [
        [s.student, x.exercise, "" if x.points is None else f"{x.points:g}", f"{x.of:g}", s.late,
         ", ".join(n for n, holds in x.found.items() if holds), x.said]
        for s in sheets for x in s.lines
    ]  # fmt: skip
    columns = ["student", "exercise", "points", "of", "days late", "properties", "said"]
    _csv(into / "exercises.csv", columns, each)
    look = [[s.student, what] for s in sheets for what in [*s.trouble, *s.looks]]
    _csv(into / "look-at.csv", ["student", "what"], look)
    written = [
        [s.student, x.exercise, "", f"{x.of:g}", x.text, "", key(course, s, x, known)]
        for s in sheets for x in s.lines if x.points is None
    ]  # fmt: skip
    _csv(into / "by-hand-todo.csv",
         ["student", "exercise", "points", "of", "text", "comment", "right"], written)  # fmt: skip
    for s in sheets:
        write(into / "feedback" / f"{file_name(s.student)}.html", page(course, s, of))


def key(course: Course, sheet: Sheet, line: Line, known: dict[str, dict[str, str]]) -> str:
    """The right answers where the student had numbers of their own, else ""."""
    names = [sheet.student, *known.get(sheet.student, {}).values()]
    found = next((course.keys[n] for n in names if n in course.keys), {})
    return found.get(line.exercise, "")


def file_name(student: str) -> str:
    """A student's name as that of a file.

    >>> file_name("../Anna Lee")
    'Anna-Lee'
    """
    plain = "".join(c if c.isalnum() or c in "._-" else "-" for c in student)
    return plain.strip("-.")[:80] or "student"


def page(course: Course, sheet: Sheet, of: float) -> str:
    """The feedback for one student; whatever students wrote is shown as text."""
    note = ""
    if sheet.late:
        days = "day" if sheet.late == 1 else "days"
        note = f", {sheet.late} {days} late: each exercise counts {100 * sheet.factor:g} %"
    body = [f"<p>{escape(t)}</p>" for t in sheet.trouble]
    for x in sheet.lines:
        points = "not graded yet" if x.points is None else f"{x.points:g} of {x.of:g}"
        body.append(f"<h2>{escape(x.head)}</h2>\n<p>{points}</p>\n<p>{escape(x.said)}</p>")
        if x.text:
            body.append(f"<pre>{escape(x.text)}</pre>")
        if x.found and (x.points or 0) > 0:
            held = ", ".join(n for n, holds in x.found.items() if holds)
            body.append(f"<p>What holds already: {escape(held)}.</p>")
    return PAGE.format(
        title=escape(course.title), student=escape(sheet.student), total=sheet.total, of=of,
        note=escape(note), body="\n".join(body),
    )  # fmt: skip

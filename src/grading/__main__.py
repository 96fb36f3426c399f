"""The command: `python -m grading FOLDER`, `python -m grading one FILE`, `... gradescope`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from . import book, gradescope, lateness, looks, marking, report, run, sandbox, submissions
from .book import Course

HELP = """\
python -m grading FOLDER                     grade what lies there, into grades/
python -m grading one FILE                   grade one notebook, to the terminal
python -m grading gradescope FOLDER RESULT   the same as results.json of Gradescope
"""


def course(path: Path) -> Course:
    """The course that `make course` wrote, or the whole book."""
    try:
        return book.read(path)
    except FileNotFoundError:
        raise lateness.Mistake(
            f"there is no {path}: run `make course` first, or name its file with COURSE=..."
        ) from None


def everything(options: argparse.Namespace) -> int:
    """Grade a folder and write the reports."""
    known, into = course(options.course), Path(options.into)
    folder = Path(options.folder)
    if not folder.is_dir():
        raise lateness.Mistake(f"SUBMISSIONS must be a folder; there is no {folder}")
    due, percent = lateness.when(options.due or known.due, "DUE"), lateness.rate(options.late)
    times = lateness.times(Path(options.times)) if options.times else {}
    names = report.roster(Path(options.roster) if options.roster else None)
    hand = report.by_hand(into / "by-hand.csv")
    start = time.monotonic()
    found = run.gather(folder, known)
    if not found:
        raise lateness.Mistake(f"{folder} holds no notebook: a folder for each student is expected")
    with sandbox.choose(options.sandbox) as chosen:
        count = run.grade(known, found, chosen, into, options.workers)
        print(f"{count} of {len(found)} graded in {time.monotonic() - start:.0f} s ({chosen.name})")
    sheets: dict[str, report.Sheet] = {}
    same = looks.together(run.result(into, s) for s in found if s.chapter)
    for s in found:
        sheet = sheets.setdefault(s.student, report.Sheet(s.student))
        if s.trouble:
            sheet.trouble.append(f"{s.path.name}: {s.trouble}")
        if not s.chapter:
            continue
        result = run.result(into, s)
        handed_in = times.get(s.student) or datetime.fromtimestamp(s.path.stat().st_mtime)
        late = lateness.days(handed_in, due)
        left = lateness.factor(late, percent)
        sheet.late, sheet.factor = max(sheet.late, late), min(sheet.factor, left)
        sheet.lines += report.lines(known, s.chapter, result, left, hand, s.student)
        sheet.looks += [*result.get("looks", ()), *same.get((s.student, s.chapter), ())]
    for name in dict.fromkeys(row.get("Student", "") for row in names.values()):
        if name and not any(names.get(s) is names[name] for s in sheets):
            sheets[name] = report.Sheet(name, trouble=["nothing was handed in"])

    def name_of(student: str) -> str:
        return names.get(student, {}).get("Student") or student

    report.publish(
        known, sorted(sheets.values(), key=lambda s: name_of(s.student).casefold()), into, names
    )
    print(f"grades.csv, exercises.csv, look-at.csv and feedback/ are in {into}")
    return 0


def one(options: argparse.Namespace) -> int:
    """Grade one file; exit 0 only if all that is checked is right."""
    known = course(options.course)
    made = submissions.read("", Path(options.file), known)
    if made.trouble:
        raise lateness.Mistake(f"{options.file}: {made.trouble}")
    with sandbox.choose(options.sandbox) as chosen:
        found = marking.mark(
            chosen, sandbox.FIRST_USER + 1, known.chapters[made.chapter], made.cells, options.seed
        )
    for r in found:
        print(f"{r['id']:34} {r['points']:5g} of {r['of']:g}  {r['said'] or 'Right.'}")
    print(f"{sum(r['points'] for r in found):g} of {sum(r['of'] for r in found):g} points")
    return 0 if all(not r["said"] for r in found) else 1


def for_gradescope(options: argparse.Namespace) -> int:
    """Grade Gradescope's folder and write its results.json, whatever happens."""
    return gradescope.grade(course(options.course), Path(options.folder), Path(options.result),
                            options.sandbox, options.seed)  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    given = os.environ.get
    words = list(sys.argv[1:] if arguments is None else arguments)
    kinds: dict[str, Callable[[argparse.Namespace], int]] = {
        "one": one, "gradescope": for_gradescope,
    }  # fmt: skip
    kind = kinds.get(words[0] if words else "", everything)
    parser = argparse.ArgumentParser(
        prog="grading", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if kind is everything:
        parser.add_argument("folder")
        parser.add_argument("--into", default=given("INTO") or "grades")
        parser.add_argument("--due", default=given("DUE", ""))
        parser.add_argument("--late", default=given("LATE", ""), help="percent a day")
        parser.add_argument("--times", default=given("TIMES", ""), help="CSV: student,time")
        parser.add_argument("--roster", default=given("ROSTER", ""), help="CSV of Canvas or Moodle")
        parser.add_argument("--workers", type=int, default=int(given("WORKERS") or 0))
    else:
        words = words[1:]
        parser.add_argument("file" if kind is one else "folder")
        if kind is for_gradescope:
            parser.add_argument("result")
        parser.add_argument("--seed", type=int, default=int(given("SEED") or 20_000))
    parser.add_argument("--course", type=Path, default=given("COURSE") or "course/grading.json")
    parser.add_argument("--sandbox", default=given("SANDBOX", ""))
    options = parser.parse_args(words)
    try:
        return kind(options)
    except (lateness.Mistake, sandbox.Missing) as mistake:
        print(mistake, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

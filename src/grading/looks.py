"""What a teacher should look at: changed checks, equal answers, code that reaches out.

Nothing here takes a point away: each is a line in look-at.csv, for a person to judge.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from .book import BEGIN, END, Chapter
from .submissions import Submission

SMALL = 40  # an answer of fewer nodes is often the same without having been copied
REACHES = re.compile(
    r"__torch_function__|__subclasses__|\b(?:setprofile|settrace|sqlite3|subprocess|socket|ctypes"
    r"|multiprocessing|importlib|pickle|urllib|requests|os\.(?:fork|system|popen|kill|walk)"
    r"|gc\.get_objects|inspect\.stack|_getframe)\b|/proc\b|/autograder|grades\.csv|gradebook"
    r"|\b(?:exec|eval|compile|open)\s*\(|(?:torch|math|json|numpy|np)\.\w+\s*=(?!=)"
)


def shape(source: str, name: str) -> str:
    """The function `name` of a source, with names and comments of its own taken out; "" if none."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
    if not functions:
        return ""
    function = functions[-1]
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        function.body = function.body[1:] or [ast.Pass()]
    known: dict[str, str] = {}
    assigned = {n.id for n in ast.walk(function)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}  # fmt: skip
    assigned |= {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id in assigned:
            node.id = known.setdefault(node.id, f"_{len(known)}")
        elif isinstance(node, ast.arg):
            node.arg = known.setdefault(node.arg, f"_{len(known)}")
    if sum(1 for _ in ast.walk(function)) < SMALL:
        return ""
    try:
        return ast.dump(ast.Module(function.body, []))
    except RecursionError:
        return ""


def plain(source: str) -> str:
    """A cell without spaces at its ends and without the markers of a solution."""
    lines = [x.rstrip() for x in source.strip().splitlines() if x.strip() not in (BEGIN, END)]
    return "\n".join(lines)


def alone(chapter: Chapter, submission: Submission) -> list[str]:
    """What catches the eye in one submission."""
    seen, given = [], {plain(c) for c in chapter.code} | {plain(e.check) for e in chapter.exercises}
    here = [plain(c) for c in submission.cells]
    code = "\n".join(here)
    for exercise in (e for e in chapter.exercises if e.check):
        check, function = exercise.called
        calls = [c for c in here if f"check.{check}(" in c]
        if calls and plain(exercise.check) not in calls:
            seen.append(f"{exercise.id}: the cell with its check was changed")
        if not calls:
            seen.append(f"{exercise.id}: the cell with its check is missing")
        if len(re.findall(rf"^def {function}\(", code, re.M)) > 1:
            seen.append(f"{exercise.id}: {function} is defined more than once")
        book = shape(exercise.answer, function)
        if book and any(shape(c, function) == book for c in submission.cells):
            seen.append(f"{exercise.id}: equal to the book's solution, but for names")
    for cell in here:
        if cell not in given:
            for word in sorted({m[0].strip() for m in REACHES.finditer(cell)}):
                seen.append(f"the code holds `{word}`")
    return list(dict.fromkeys(seen))


def forms(chapter: Chapter, submission: Submission) -> dict[str, str]:
    """A fingerprint of each answer that is not the book's."""
    made = {}
    for e in (e for e in chapter.exercises if e.check):
        name = e.called[1]
        found = [shape(c, name) for c in submission.cells]
        last = next((x for x in reversed(found) if x), "")
        if last and last != shape(e.answer, name):
            made[e.id] = hashlib.sha256(last.encode()).hexdigest()
    return made


def together(results: Iterable[dict[str, Any]]) -> dict[tuple[str, str], list[str]]:
    """For each student and chapter: whose answers are equal to theirs."""
    same: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for r in results:
        for exercise, form in r.get("forms", {}).items():
            same[r["chapter"], exercise, form].add(r["student"])
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (chapter, exercise, _), students in same.items():
        for student in sorted(students) if len(students) > 1 else ():
            others = ", ".join(sorted(students - {student})[:5])
            found[student, chapter].append(f"{exercise}: equal, but for names, to {others}")
    return found

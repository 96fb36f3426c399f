"""Make a course from the book's exercises: notebooks for students and teachers, and for nbgrader.

    python scripts/course.py --exercises "scaling masking star-1 star-2" --title "Attention, week 3"

reads what the notebook builder left in _build/ipynb/exercises.json and writes course/:

    student/      the exercises with stubs and checks, nothing else
    students/     with ROSTER: the same for each student, with numbers of their own, and key.csv
    instructor/   the same with answers and remarks
    source/       masters for nbgrader, with points, locked checks and hidden tests
    grading.json  what `make grade` works from, answers included
    nbgrader_config.py, README.md

An option that is not given is taken from the environment (EXERCISES, TITLE, DUE, INTO, ROSTER,
NBGRADER), where `make course EXERCISES=...` puts it. course/ appears whole or not at all.
"""

import argparse
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import environments
import nbformat
import roster
from nbformat.v4 import new_code_cell, new_markdown_cell

ROOT = Path(__file__).parents[1]
NBGRADER = "nbgrader==0.9.6"
ANSWER_HERE = "*Write your answer here.*"

CONFIG = '''"""nbgrader's settings for {title}. Run nbgrader in this folder."""

import os

c = get_config()  # noqa: F821
c.CourseDirectory.root = os.path.dirname(os.path.abspath(__file__))
c.CourseDirectory.course_id = "{slug}"

# A file beside a master is copied into release/, whatever it holds: let only the wheel through.
c.CourseDirectory.include = ["*.whl"]
c.CourseDirectory.ignore = ["*solution*", "*instructor*", "*.ipynb", ".*", "__pycache__"]

c.ClearSolutions.code_stub = {{
    "python": 'raise NotImplementedError("write your answer here")'
}}
c.ClearSolutions.text_stub = "{answer_here}"
c.ClearSolutions.enforce_metadata = True
c.ClearHiddenTests.enforce_metadata = True

# What a submission may take, in seconds a cell; the checks themselves stop an endless loop sooner.
c.ExecutePreprocessor.timeout = 120
c.ExecutePreprocessor.interrupt_on_timeout = True
'''

README = """# {title}

{due}{count} exercises, {points} points, about {minutes} minutes in all.

| Exercise | Chapter | Difficulty | Minutes | Points | Graded |
|---|---|---|--:|--:|---|
{rows}

- `student/`: notebooks with stubs and checks, to hand out unless you grade with nbgrader. No
  solution is in them.
{students}- `instructor/`: the same exercises with answers and remarks. Keep it to yourself.
- `grading.json`: what the grader works from, answers included. Keep it to yourself.
- `source/` and `nbgrader_config.py`: the same again for nbgrader, with hidden tests.

To grade what comes back, in the book's repository, with a folder for each student:

    make grade SUBMISSIONS=submitted COURSE={folder}/grading.json

It runs what students wrote in a sandbox and writes `grades/`. nbgrader does not: its `autograde`
runs students' code as you, with your files within reach. Use it in a container.

With nbgrader (version 0.9.6; `make course NBGRADER=1` installs it into `.venv-nbgrader`, apart
from everything else; put its `bin` first on your PATH), in this folder:

    nbgrader generate_assignment {first}   # writes release/{first}/: hand that out
    nbgrader autograde {first}             # reads submitted/<student>/{first}/{first}.ipynb
    nbgrader generate_feedback {first}
    nbgrader export

Answers that are graded by hand are graded in the browser: start JupyterLab in this folder, from
an environment that has it and nbgrader, and open /formgrader.

Solutions of the book's exercises are public on its website. What this course keeps from students
is the hidden tests: they call the checks with other inputs and sizes.
"""

STUDENTS = """\
- `students/`: the same for each student, with numbers of their own; `key.csv` has the answers.
"""


class Mistake(Exception):
    """A sentence about what was asked for."""


ANSWERS = roster.extension("answers")  # what an answer's cell looks like


# choosing


def choose(chapters: dict[str, Any], wanted: str) -> dict[str, list[dict[str, Any]]]:
    """The chosen exercises by chapter, in the book's order.

    `wanted` names exercises (ex-scaling-temperature) and chapters (scaling), separated by spaces
    or commas. star-1 star-2 keep a chapter's exercises of these difficulties, minutes-15 those of
    at most 15 minutes; without a chapter they choose from all. Nothing wanted: everything.
    """
    words = wanted.replace(",", " ").split()
    known = {e["id"] for chapter in chapters.values() for e in chapter["exercises"]}
    stars, minutes, names, ids = set(), None, [], []
    for word in words:
        if m := re.fullmatch(r"star-([123])", word):
            stars.add(int(m[1]))
        elif m := re.fullmatch(r"minutes-(\d+)", word):
            minutes = int(m[1])
        elif word in chapters:
            names.append(word)
        elif word in known:
            ids.append(word)
        else:
            near = difflib.get_close_matches(word, [*known, *chapters], n=1)
            hint = f"did you mean {near[0]}?" if near else f"chapters: {', '.join(chapters)}"
            raise Mistake(f"EXERCISES names {word}, which is no exercise and no chapter; {hint}")
    if not names and (not ids or stars or minutes is not None):
        names = list(chapters)

    def fits(exercise: dict[str, Any]) -> bool:
        if exercise["id"] in ids:
            return True
        return (not stars or exercise["stars"] in stars) and (
            minutes is None or exercise["minutes"] <= minutes
        )

    chosen = {}
    for name, chapter in chapters.items():
        found = [e for e in chapter["exercises"] if e["id"] in ids or (name in names and fits(e))]
        if found:
            chosen[name] = found
    if not chosen:
        raise Mistake(f"EXERCISES={wanted!r} chooses nothing: no exercise fits all of it")
    return chosen


def due_date(text: str) -> str:
    """A due date as it is written in the notebooks, from 2027-03-01 or 2027-03-01 18:00."""
    if not text.strip():
        return ""
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Mistake(
            f"DUE must be a date like 2027-03-01 or 2027-03-01 18:00; got {text!r}"
        ) from None
    month = f"{when.day} {when:%B %Y}"
    return f"{month}, {when:%H:%M}" if when.hour or when.minute else month


# cells


def local_links(text: str, page: str) -> str:
    """Links into the chapter's notebook lead to its page, or are text where that is not known."""
    link = r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?:([\w-]+)\.ipynb)?(#[^)\s]*)?\)"

    def replace(match: re.Match) -> str:
        if not (match[2] or match[3]) or match[0].startswith("[]"):
            return match[0]
        if not page or match[2]:
            return match[1]
        return f"[{match[1]}]({page}{match[3]})"

    return re.sub(r'<a id="[^"]*"></a>\s*', "", re.sub(link, replace, text))


def grade(cell: Any, grade_id: str, *, points: float = 0, answer: bool, graded: bool) -> Any:
    """Mark a cell for nbgrader: what the student fills in, and what is graded."""
    about = {
        "schema_version": 3,
        "grade_id": grade_id,
        "solution": answer,
        "grade": graded,
        "locked": not answer,
        "task": False,
    }
    cell.metadata["nbgrader"] = about | ({"points": points} if graded else {})
    return cell


def hidden_tests(check: str, module: str) -> str:
    """A check, and for the grader's eyes the same from a fresh import with other inputs and sizes.

    The import is fresh since a submission may have put something else in the check's place.
    """
    again = "\n".join("    " + line for line in check.strip().splitlines())
    return f"""{check.strip()}
### BEGIN HIDDEN TESTS
import importlib
from unittest import mock

import torch


class OtherSeed(torch.Generator):
    def manual_seed(self, seed):
        return super().manual_seed(seed + 20_000)


with mock.patch("torch.Generator", OtherSeed):
    check = importlib.reload(importlib.import_module("attention.checks.{module}"))
    importlib.import_module("attention.checks._base").MORE = 1
{again}
    importlib.import_module("attention.checks._base").MORE = 0
### END HIDDEN TESTS"""


def exercise_cells(exercise: dict[str, Any], page: str, kind: str, module: str) -> list[Any]:
    """The cells of one exercise for `kind`: "student", "instructor" or "source"."""
    points = exercise["points"]
    worth = f"{points} point{'s' if points != 1 else ''}"
    text = f"## {exercise['head']}\n\n{exercise['about']} · {worth}\n\n{exercise['prose']}"
    prose = new_markdown_cell(local_links(text, page))
    remarks = local_links(exercise.get("remarks", ""), page)
    written = local_links(exercise.get("solution", ""), page)
    key = exercise["id"]
    if kind == "source":
        grade(prose, f"{key}-text", answer=False, graded=False)
    cells = [prose]
    if "answer" not in exercise:
        if kind == "student":
            return [*cells, new_markdown_cell(ANSWER_HERE)]
        if kind == "instructor":
            return [*cells, new_markdown_cell(f"**Answer.**\n\n{written}")]
        answer = new_markdown_cell(written or ANSWER_HERE)
        return [*cells, grade(answer, key, points=points, answer=True, graded=True)]
    answer, check = exercise["answer"], exercise["check"]
    if kind == "student":
        stub = ANSWERS.stub(answer, exercise["title"])
        return [*cells, new_code_cell(stub), new_code_cell(check)]
    if kind == "instructor":
        cells += [new_code_cell(ANSWERS.unmarked(answer)), new_code_cell(check)]
        return [*cells, new_markdown_cell(f"**Remarks.**\n\n{remarks}")] if remarks else cells
    return [
        *cells,
        grade(new_code_cell(answer), key, answer=True, graded=False),
        grade(
            new_code_cell(hidden_tests(check, module)),
            f"{key}-check", points=points, answer=False, graded=True,
        ),
    ]  # fmt: skip


def chapter_notebook(
    book: dict[str, Any], name: str, exercises: list[dict[str, Any]], kind: str, title: str,
    due: str,
) -> Any:  # fmt: skip
    """A chapter's exercises as a notebook of one kind."""
    chapter = book["chapters"][name]
    page = f"{book['site']}/{chapter['page']}.html" if book["site"] else ""
    code = chapter["code"]
    found = re.search(r"from attention\.checks import (\w+) as check", "\n".join(code))
    module = found[1] if found else name.replace("-", "_")
    points = sum(e["points"] for e in exercises)
    where = f"[{chapter['title']}]({page})" if page else f"*{chapter['title']}*"
    head = f"# {title}: {chapter['title']}\n\n{points} points" + (f", due {due}" if due else "")
    head += f". The chapter is {where} of *{book['book']}*."
    if kind in ("student", "source"):
        head += (
            " Replace each line that raises `NotImplementedError` by your answer, then run the "
            "check below it: it says at once whether the answer is right, and if not, what to "
            "look at."
        )
    if kind == "instructor":
        head += " **With answers: not for students.**"
    folded = {"cellView": "form", "jupyter": {"source_hidden": True}}
    setup = new_code_cell(chapter["setup"], metadata=folded)
    cells = [new_markdown_cell(head), setup]
    cells += [new_code_cell(source) for source in code]
    for exercise in exercises:
        cells += exercise_cells(exercise, page, kind, module)
    return ANSWERS.notebook(cells, name)


# the course


def own_notebooks(
    book: dict[str, Any], chosen: dict[str, list[dict[str, Any]]], title: str, due: str,
    students: list[roster.Student], into: Path,
) -> dict[str, Any]:  # fmt: skip
    """Write students/ and key.csv, with each student's own numbers; return the grader's keys."""
    drawn: dict[str, list[dict[str, Any]]] = {}
    for student in students:
        folder, mine = into / "students" / student.folder, []
        folder.mkdir(parents=True)
        for name, exercises in chosen.items():
            own = [roster.with_own(e, title, student) for e in exercises]
            mine += [e for e in own if "key" in e]
            heading = f"{title}, {student.heading}"
            made = chapter_notebook(book, name, own, "student", heading, due)
            nbformat.write(made, folder / f"{name}.ipynb")
        drawn[student.id] = mine
    (into / "key.csv").write_text(roster.table(students, drawn), "utf-8")
    return roster.keys(students, drawn)


def grading(
    book: dict[str, Any], chosen: dict[str, list[dict[str, Any]]], title: str, due: str,
    keys: dict[str, Any] | None = None,
) -> str:  # fmt: skip
    """What the grader works from, with the students' own answers."""
    chapters = {
        name: book["chapters"][name] | {"exercises": exercises}
        for name, exercises in chosen.items()
    }
    about = {"title": title, "due": due, "chapters": chapters, "keys": keys or {}}
    return json.dumps(about, indent=1)


def write_course(
    book: dict[str, Any], into: Path, wanted: str = "", title: str = "", due: str = "",
    wheels: Path | None = None, students: list[roster.Student] | None = None,
) -> dict[str, list[dict[str, Any]]]:  # fmt: skip
    """Write the course into the new directory `into`; return the chosen exercises."""
    if into.exists():
        raise Mistake(
            f"{into} exists already and is left as it is; move it away, or choose another place "
            "with INTO=..."
        )
    chosen, by, due = choose(book["chapters"], wanted), due.strip(), due_date(due)
    title = " ".join(title.split()) or "Exercises"
    if students and not any("own" in e for exercises in chosen.values() for e in exercises):
        raise Mistake(
            "ROSTER draws numbers for each student, but none of the chosen exercises has numbers "
            "of one's own; `python scripts/course.py --list` shows which have"
        )
    into.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{into.name}-", dir=into.parent))
    try:
        for name, exercises in chosen.items():
            for kind in ("student", "instructor", "source"):
                made = chapter_notebook(book, name, exercises, kind, title, due)
                folder = fresh / kind / name if kind == "source" else fresh / kind
                folder.mkdir(parents=True, exist_ok=True)
                nbformat.write(made, folder / f"{name}.ipynb")
                if not book["site"] and wheels:  # no address to fetch it from: put it beside
                    for wheel in wheels.glob("*.whl"):
                        shutil.copy(wheel, folder)
        every = [e for exercises in chosen.values() for e in exercises]
        rows = [
            f"| {e['head']} | {book['chapters'][name]['title']} | "
            f"{'★' * e['stars']} | {e['minutes']} | {e['points']} | "
            f"{'by its check' if 'answer' in e else 'by hand'} |"
            for name, exercises in chosen.items()
            for e in exercises
        ]
        keys = own_notebooks(book, chosen, title, due, students, fresh) if students else {}
        (fresh / "grading.json").write_text(grading(book, chosen, title, by, keys), "utf-8")
        slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "course"
        (fresh / "nbgrader_config.py").write_text(
            CONFIG.format(
                title=title.replace('"', "'").replace("\\", "/"), slug=slug,
                answer_here=ANSWER_HERE,
            ),
            "utf-8",
        )  # fmt: skip
        (fresh / "README.md").write_text(
            README.format(
                title=title, due=f"Due {due}. " if due else "", count=len(every),
                points=sum(e["points"] for e in every),
                minutes=sum(e["minutes"] for e in every),
                students=STUDENTS if students else "", rows="\n".join(rows),
                first=next(iter(chosen)), folder=into.name,
            ),
            "utf-8",
        )  # fmt: skip
        fresh.chmod(0o755)
        fresh.rename(into)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    return chosen


# nbgrader


def nbgrader_environment(folder: Path) -> Path:
    """nbgrader apart from everything else; what students write runs on this Python's packages."""
    python = environments.environment(folder, NBGRADER)
    kernel = folder / "share" / "jupyter" / "kernels" / "python3" / "kernel.json"
    kernel.parent.mkdir(parents=True, exist_ok=True)
    launch = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    about = {"argv": launch, "display_name": "Python 3", "language": "python"}
    kernel.write_text(json.dumps(about))
    return python


def nbgrader(python: Path, course: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run nbgrader on a course."""
    path = f"{python.parent}{os.pathsep}{os.environ.get('PATH', '')}"  # it calls alembic by name
    env = os.environ | {"JUPYTER_PREFER_ENV_PATH": "1", "PATH": path}
    return subprocess.run(
        [python, "-m", "nbgrader", *arguments], cwd=course, env=env, capture_output=True, text=True
    )


def main(arguments: list[str] | None = None) -> int:
    given = os.environ.get
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--exercises", default=given("EXERCISES", ""), metavar="WORDS")
    parser.add_argument("--title", default=given("TITLE", ""))
    parser.add_argument("--due", default=given("DUE", ""), metavar="DATE")
    parser.add_argument("--into", default=given("INTO") or ROOT / "course", type=Path)
    parser.add_argument("--roster", default=given("ROSTER", ""), metavar="CSV")
    parser.add_argument("--nbgrader", action="store_true", default=bool(given("NBGRADER")))
    parser.add_argument("--list", action="store_true", help="list the exercises and stop")
    parser.add_argument("--from", dest="source", type=Path, default=ROOT / "_build" / "ipynb")
    options = parser.parse_args(arguments)
    try:
        try:
            book = json.loads((options.source / "exercises.json").read_text("utf-8"))
        except FileNotFoundError:
            raise Mistake("the book's notebooks are not built yet: run `make book` first") from None
        if options.list:
            for name, chapter in book["chapters"].items():
                for e in chapter["exercises"]:
                    kind = "checked" if "answer" in e else "written"
                    kind += ", own numbers" * ("own" in e)
                    print(
                        f"{name:12} {e['id']:34} {'★' * e['stars']:4} {e['minutes']:3} min "
                        f"{e['points']} points, {kind}: {e['title']}"
                    )
            return 0
        wheels = options.source.parent / "wheels"
        students = roster.read(Path(options.roster)) if options.roster else None
        chosen = write_course(
            book, options.into, options.exercises, options.title, options.due, wheels, students
        )
        count = sum(map(len, chosen.values()))
        print(f"{count} exercises from {', '.join(chosen)} are in {options.into}")
        if options.nbgrader:
            python = nbgrader_environment(ROOT / ".venv-nbgrader")
            for name in chosen:
                done = nbgrader(python, options.into, "generate_assignment", name, "--create")
                if done.returncode:
                    raise Mistake(f"nbgrader refused {name}: {done.stderr.strip()[-1500:]}")
            print(f"What students get is in {options.into / 'release'}; nbgrader: {python.parent}")
    except (Mistake, roster.Mistake, environments.Failed) as mistake:
        print(mistake, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Courses made of the book's exercises: what students get, what teachers get, what nbgrader does.

The last test takes one chapter through nbgrader itself, in an environment of its own.
"""

import csv
import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "book" / "_ext"), str(ROOT / "scripts")]

import answers  # noqa: E402
import course  # noqa: E402

BUILT = ROOT / "_build" / "ipynb" / "exercises.json"
assert BUILT.exists(), f"{BUILT} is missing: build the book first (make book)"
BOOK = json.loads(BUILT.read_text("utf-8"))
EXERCISES = {e["id"]: e for c in BOOK["chapters"].values() for e in c["exercises"]}
CHECKED = {key: e for key, e in EXERCISES.items() if "answer" in e}
NAMES = [name for name, chapter in BOOK["chapters"].items() if chapter["exercises"]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A course of everything."""
    into = tmp_path_factory.mktemp("whole") / "course"
    course.write_course(BOOK, into, title="Week 3", due="2027-03-01 18:00")
    return into


def cells(path: Path):
    return nbformat.read(path, as_version=4).cells


# choosing


def exercise(key, stars, minutes, **more):
    return {"id": key, "stars": stars, "minutes": minutes, "points": stars} | more


SMALL = {
    "one": {"exercises": [exercise("ex-a", 1, 5), exercise("ex-b", 3, 20)]},
    "two": {"exercises": [exercise("ex-c", 2, 10)]},
}


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ("", "ex-a ex-b ex-c"),
        ("one", "ex-a ex-b"),
        ("ex-c", "ex-c"),
        ("ex-c,ex-a", "ex-a ex-c"),  # in the book's order
        ("star-1 star-2", "ex-a ex-c"),
        ("minutes-10", "ex-a ex-c"),
        ("one minutes-10", "ex-a"),
        ("one star-3 minutes-20", "ex-b"),
    ],
)
def test_words_choose_exercises(words, chosen):
    found = course.choose(SMALL, words)
    assert [e["id"] for es in found.values() for e in es] == chosen.split()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("ex-aa", "EXERCISES names ex-aa, which is no exercise and no chapter; did you mean ex-a?"),
        ("nothing-like-it", "no exercise and no chapter; chapters: one, two"),
        ("star-4", "EXERCISES names star-4"),
        ("two star-3", "chooses nothing: no exercise fits all of it"),
        ("minutes-1", "chooses nothing"),
    ],
)
def test_a_bad_choice_gets_a_sentence(words, sentence):
    with pytest.raises(course.Mistake) as caught:
        course.choose(SMALL, words)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--exercises", "ex-unknown-one"], "EXERCISES names ex-unknown-one"),
        (["--exercises", "minutes-0"], "chooses nothing"),
        (["--due", "next week"], "DUE must be a date like 2027-03-01"),
        (["--from", "/nowhere"], "run `make book` first"),
    ],
)
def test_a_mistake_is_a_sentence_and_leaves_nothing(options, sentence, tmp_path, capsys):
    assert course.main(["--into", str(tmp_path / "course"), *options]) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert sentence in said
    assert list(tmp_path.iterdir()) == []


def test_an_existing_course_is_left_as_it_is(tmp_path):
    (tmp_path / "course").mkdir()
    (tmp_path / "course" / "mine.txt").write_text("mine")
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "course.py", "--into", tmp_path / "course"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1 and "exists already and is left as it is" in done.stderr
    assert "Traceback" not in done.stderr
    assert [p.name for p in (tmp_path / "course").iterdir()] == ["mine.txt"]


def test_a_course_that_cannot_be_finished_leaves_nothing(tmp_path, monkeypatch):
    made = course.chapter_notebook
    count = iter(range(100))
    monkeypatch.setattr(
        course, "chapter_notebook", lambda *a: made(*a) if next(count) < 2 else 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        course.write_course(BOOK, tmp_path / "course")
    assert list(tmp_path.iterdir()) == []


def test_the_page_for_teachers_lists_every_exercise():
    page = ROOT / "_build" / "html" / "book" / "teach.html"
    rows = BeautifulSoup(page.read_text("utf-8"), "html.parser").select("table tr:has(code)")
    listed = {row.code.text: [cell.text.strip() for cell in row.select("td")][1:] for row in rows}
    for key, e in EXERCISES.items():
        graded = "check" if key in CHECKED else "hand" + ", own numbers" * ("own" in e)
        *about, how, section = listed[key]
        assert about == ["★" * e["stars"], str(e["minutes"]), str(e["points"])]
        assert how.removesuffix(", fixed inputs") == graded and section
    assert [name for name in listed if name.startswith("ex-") and name not in EXERCISES] == []


# what students get


def solution_lines(source: str) -> set[str]:
    """The lines between the markers."""
    inside = source.split(answers.BEGIN)[1].split(answers.END)[0]
    return {line.strip() for line in inside.splitlines() if len(line.strip()) > 8}


def given_lines(name):
    """The lines of code that a student is shown: the chapter's, and those in its exercises."""
    shown = [*BOOK["chapters"][name]["code"]]
    shown += [e["prose"] for e in BOOK["chapters"][name]["exercises"]]
    return {line.strip() for text in shown for line in text.splitlines()}


@pytest.mark.parametrize("name", NAMES)
def test_the_students_notebook_holds_no_solution(whole, name):
    path = whole / "student" / f"{name}.ipynb"
    text, made = path.read_text("utf-8"), cells(path)
    lines = {line.strip() for cell in made for line in cell.source.splitlines()}
    given = given_lines(name)
    for e in BOOK["chapters"][name]["exercises"]:
        if "answer" in e:
            assert not (solution_lines(e["answer"]) - given) & lines, e["id"]
            stub = answers.stub(e["answer"], e["title"])
            assert stub in [c.source for c in made if c.cell_type == "code"]
            assert f'"write your answer here: {e["title"]}"' in stub
        for part in (e.get("solution", ""), e.get("remarks", "")):
            kept = [p.strip() for p in part.split("\n\n") if len(p.strip()) > 20]
            assert not [p for p in kept if p in "\n".join(c.source for c in made)], e["id"]
    for trace in ("SOLUTION", "HIDDEN", "nbgrader", "OtherSeed", '"outputs": [{'):
        assert trace not in text
    assert not any(c.get("outputs") or c.get("execution_count") for c in made)


@pytest.mark.parametrize("name", NAMES)
def test_all_three_kinds_are_whole(whole, name):
    for path in (f"student/{name}", f"instructor/{name}", f"source/{name}/{name}"):
        made = nbformat.read(whole / f"{path}.ipynb", as_version=4)
        nbformat.validate(made)
        text = "\n".join(c.source for c in made.cells if c.cell_type == "markdown")
        assert "# Week 3: " in text and "due 1 March 2027, 18:00" in text
        assert ".ipynb" not in text and "](#" not in text  # links that would lead nowhere
        for e in BOOK["chapters"][name]["exercises"]:
            assert f"## {e['head']}\n\n{e['about']} · {e['points']} point" in text


@pytest.mark.parametrize("name", NAMES)
def test_the_instructors_notebook_holds_every_answer(whole, name):
    text = "\n".join(c.source for c in cells(whole / "instructor" / f"{name}.ipynb"))
    for e in BOOK["chapters"][name]["exercises"]:
        if "answer" in e:
            assert answers.unmarked(e["answer"]) in text
        else:
            page = f"{BOOK['site']}/{BOOK['chapters'][name]['page']}.html"
            answer = course.local_links(e["solution"], page if BOOK["site"] else "")
            assert answer and answer in text


# Each exercise by itself: it finds what the set-up defines, and nothing of another exercise.
RUN = """
import contextlib, io, json, sys, matplotlib
matplotlib.use("Agg")
said = {}
for path in sys.argv[2:]:
    space, prepared = {"__name__": "__main__"}, None
    for k, cell in enumerate(json.load(open(path, encoding="utf-8"))["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            if source.startswith("## "):
                prepared = prepared or dict(space)
                space = dict(prepared)
            continue
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                exec(compile(source, f"cell {k}", "exec"), space)
            result = out.getvalue()
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
        said[f"{path}:{cell['metadata'].get('nbgrader', {}).get('grade_id', k)}"] = result
json.dump(said, open(sys.argv[1], "w"))
"""


@pytest.fixture(scope="module")
def executed(whole, tmp_path_factory) -> dict[str, str]:
    """What each code cell printed or raised; every cell runs, whatever the others did."""
    folder = tmp_path_factory.mktemp("executed")
    report = folder / "report.json"
    paths = [*sorted(whole.glob("source/*/*.ipynb")), *sorted(whole.glob("student/*.ipynb"))]
    subprocess.run([sys.executable, "-c", RUN, report, *paths], check=True, cwd=folder)
    return json.loads(report.read_text())


def test_masters_pass_their_own_checks_hidden_ones_included(whole, executed):
    said = {k: text for k, text in executed.items() if k.startswith(f"{whole}/source/")}
    assert not [key for key, text in said.items() if "Error" in text or "NotYet" in text]
    for key in CHECKED:
        (text,) = [t for k, t in said.items() if k.endswith(f":{key}-check")]
        assert text.count("Right: ") == 2, f"{key}: {text}"  # as printed and hidden


def test_stubs_fail_with_their_own_sentence(whole, executed):
    said = {k: text for k, text in executed.items() if k.startswith(f"{whole}/student/")}
    failed = [text for text in said.values() if text.startswith("NotYet: ")]
    assert len(failed) == len(CHECKED)
    assert all("is still the stub: replace the line that raises" in text for text in failed)
    assert not [t for t in said.values() if "Error" in t and "NotImplementedError" not in t]


def test_hidden_tests_call_a_fresh_check_with_other_inputs():
    call = "check.softmax_with_temperature(f)"
    text = course.hidden_tests(call, "scaling")
    hidden = text.split("### BEGIN HIDDEN TESTS")[1]

    def inputs(source: str) -> set[str]:
        seen = set()

        def right(x, temperature=1.0):
            seen.add(str((x.tolist(), temperature)))
            e = ((x - x.amax(-1, keepdim=True)) / temperature).exp()
            return e / e.sum(-1, keepdim=True)

        exec(source, {"f": right, "check": None})  # the student put None in the check's place
        return seen

    plain = inputs(f"from attention.checks import scaling as check\n{call}")
    assert plain - inputs(hidden) and inputs(hidden) - plain


# nbgrader


def fill(release: Path, into: Path, texts: dict[str, str], first: str = "") -> None:
    """Hand in the released notebook with these cells filled in."""
    made = nbformat.read(release, as_version=4)
    for cell in made.cells:
        key = cell.metadata.get("nbgrader", {}).get("grade_id")
        if key in texts:
            cell.source = texts[key]
        if first and "as check" in cell.source:
            cell.source += "\n" + first
    into.parent.mkdir(parents=True)
    nbformat.write(made, into)


GRADE_BY_HAND = """
import sys
from nbgrader.api import Gradebook
with Gradebook("sqlite:///gradebook.db") as book:
    submission = book.find_submission(sys.argv[1], "right")
    for notebook in submission.notebooks:
        for grade in notebook.grades:
            if grade.needs_manual_grade:
                grade.manual_score, grade.needs_manual_grade = grade.max_score, False
    book.db.commit()
"""


@pytest.mark.notebook
def test_nbgrader_takes_a_chapter_from_master_to_marks(tmp_path):
    name = "scaling"
    exercises = BOOK["chapters"][name]["exercises"]
    checked = [e for e in exercises if "answer" in e]
    assert len(checked) >= 4
    into = tmp_path / "course"
    course.write_course(BOOK, into, name, "Week 3")
    (into / "source" / name / "solutions.txt").write_text("return softmax(x)")  # a slip
    python = course.nbgrader_environment(ROOT / ".venv-nbgrader")

    def grader(*arguments: str) -> None:
        done = course.nbgrader(python, into, *arguments)
        assert done.returncode == 0, done.stderr[-3000:]

    grader("generate_assignment", name, "--create")
    release = into / "release" / name / f"{name}.ipynb"
    assert [p.name for p in release.parent.iterdir()] == [release.name]
    text = "\n".join(cell.source for cell in cells(release))
    given = given_lines(name)
    for e in exercises:
        if "answer" in e:
            leaked = [s for s in solution_lines(e["answer"]) - given if s in text]
            assert not leaked, f"release/ holds {leaked}"
        kept = [p for p in e.get("solution", "").split("\n\n") if len(p) > 20 and p in text]
        assert not kept, f"release/ holds {kept}"
    for trace in ("SOLUTION", "HIDDEN", "OtherSeed"):
        assert trace not in release.read_text("utf-8")

    right = {e["id"]: answers.unmarked(e["answer"]) for e in checked}
    first, second = checked[0]["id"], checked[1]["id"]
    signature = answers.stub(checked[1]["answer"], "x").rsplit("\n", 1)[0]
    partial = {first: right[first], second: f"{signature}\n    return 1"}
    cheat = "class check:\n" + "\n".join(
        f"    {e['check'].split('.')[1].split('(')[0]} = staticmethod(print)" for e in checked
    )
    written = {e["id"]: "Because." for e in exercises if "answer" not in e}
    submitted = into / "submitted"
    fill(release, submitted / "right" / name / release.name, right | written)
    fill(release, submitted / "partial" / name / release.name, partial)
    fill(release, submitted / "stubs" / name / release.name, {})
    fill(release, submitted / "cheat" / name / release.name, {}, first=cheat)

    grader("autograde", name)
    subprocess.run([python, "-c", GRADE_BY_HAND, name], cwd=into, check=True)
    grader("generate_feedback", name)
    grader("export", "--to", "grades.csv")
    with open(into / "grades.csv", newline="") as file:
        rows = {row["student_id"]: row for row in csv.DictReader(file)}
    total = sum(e["points"] for e in exercises)
    assert {float(row["max_score"]) for row in rows.values()} == {total}
    scores = {student: float(row["score"]) for student, row in rows.items()}
    assert scores == {
        "right": total, "partial": checked[0]["points"], "stubs": 0, "cheat": 0,
    }  # fmt: skip
    feedback = (into / "feedback" / "stubs" / name / f"{name}.html").read_text("utf-8")
    assert "is still the stub" in feedback

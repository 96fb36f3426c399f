"""The page `teach`, walked from top to bottom: every command that it names is run, in its order.

They run in a copy of the repository that has the built book, with little to do each: one chapter's
pages, one submission. What is tried elsewhere, because it takes minutes or an environment of its
own, is named in ELSEWHERE with the file that tries it. A command that is new on the page must be
found here, too.
"""

import csv
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import BOOK

ROOT = BOOK.parent
sys.path[:0] = [str(ROOT / "scripts")]

import browser  # noqa: E402

PAGE = (BOOK / "teach.md").read_text("utf-8")
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
COMMAND = re.compile(r"^(?:[A-Z_]+=\S+ )*(make|nbgrader|\.venv/bin/python|apt) [^…]+$")
# the beginning of a command, or a setting in it: the file that tries it, and words that stand there
ELSEWHERE = {
    "nbgrader generate_assignment": ("tests/test_course.py", 'grader("generate_assignment"'),
    "nbgrader autograde": ("tests/test_course.py", 'grader("autograde"'),
    "nbgrader generate_feedback": ("tests/test_course.py", 'grader("generate_feedback"'),
    "nbgrader export": ("tests/test_course.py", 'grader("export"'),
    "NBGRADER=1": ("tests/test_course.py", "course.nbgrader_environment("),
    "ANSWERS=0": ("tests/test_without_answers.py", "ANSWERS"),
    "HINTS=0": ("tests/test_without_answers.py", "HINTS"),
    "ROSTER=students.csv": ("tests/test_roster.py", "students.csv"),
    "apt install bubblewrap": ("scripts/bubblewrap.py", "bubblewrap"),
}


def commands(text: str) -> list[str]:
    """The commands of a page in Markdown, in its order; settings and placeholders are none."""
    found = []
    block = r"```console\n(.*?)```|^    (\S[^\n]*)$|`([^`\n]+)`"
    for console, indented, inline in re.findall(block, text, re.S | re.M):
        lines = console.replace("\\\n", " ").splitlines() or [indented or inline]
        for line in lines:
            line = re.sub(r"\s+#.*|\s+$", "", re.sub(r"\s+", " ", line))
            if COMMAND.match(line) or console:
                found.append(line)
    return list(dict.fromkeys(found))


def test_commands_are_found():
    text = (
        "`make a B=1` and `x`\n```console\nexport P=1\nmake c \\\n    D=2\n```\n"
        "    make e  # f\n\nend `make g`"
    )
    assert commands(text) == ["make a B=1", "export P=1", "make c D=2", "make e", "make g"]
    assert {"make slides", "make figures", "make anki", "make quiz"} <= set(commands(PAGE))


def listed(folder: str) -> list[str]:
    """The names in the first column of the table headed "In `folder/`"."""
    table = re.search(rf"^\| In `{folder}/`.*?(?=\n\n)", PAGE, re.M | re.S)[0]
    rows = table.splitlines()[2:]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


class Clone:
    """A copy of the repository in which the book is built, with a page of it in _site."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name in ("Makefile", "_config.yml", "LICENSE-text.md", "pyproject.toml", "README.md",
                     "requirements.txt", "scripts", "src", "book/_ext"):  # fmt: skip
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_dir():
                ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
                shutil.copytree(ROOT / name, target, ignore=ignore)
            else:
                shutil.copy(ROOT / name, target)
        for name in ("_build", ".venv"):
            (folder / name).symlink_to(ROOT / name)
        for file in [ROOT / "_site/book/scaling.html", *ROOT.glob("_site/_static/book.*.css")]:
            target = folder / file.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)

    def run(self, command: str) -> str:
        """Run a line of the page; fail unless it succeeds."""
        # the book is built and its environment made: `make book` itself is the fixture's
        line = re.sub(r"\bmake ", f"make -o book -o install RUN={shlex.quote(sys.executable)} ",
                      command)  # fmt: skip
        env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
        done = subprocess.run(
            line, shell=True, cwd=self.folder, capture_output=True, text=True, timeout=300,
            env=env | {"PYTHONPATH": str(self.folder / "src"), "PYTHONWARNINGS": "ignore"},
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}"
        return done.stdout

    def has(self, *names: str) -> None:
        missing = [name for name in names if not (self.folder / name).exists()]
        assert not missing, f"{missing} is not there"


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    return Clone(tmp_path_factory.mktemp("clone"))


def hand_in(clone: Clone) -> None:
    """One student hands in the right answers; one notebook lies in the repository's folder."""
    answered = clone.folder / "course" / "instructor" / "scaling.ipynb"
    target = clone.folder / "submitted" / "anna" / "Copy of scaling.ipynb"
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(answered, target)
    shutil.copy(answered, clone.folder / "scaling.ipynb")


def made_course(clone: Clone) -> None:
    clone.has(*(f"course/{name}" for name in listed("course")), "course/student/scaling.ipynb")
    hand_in(clone)


def graded(clone: Clone) -> None:
    clone.has(*(f"grades/{name}" for name in listed("grades")))
    with open(clone.folder / "grades" / "exercises.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if "anna" in row.values()]
    assert rows, "nobody was graded"


# the beginning of a command: what must be there after it
WALKED = {
    "make course": made_course,
    "make gradescope": lambda clone: clone.has("dist/gradescope.zip"),
    "make grade": graded,
    ".venv/bin/python -m grading one": lambda clone: None,
    "make slides": lambda clone: clone.has("_site/slides/scaling.html"),
    "make figures": lambda clone: clone.has(
        *(f"_site/figures/{name}" for name in ("index.html", "scaling-map.pdf", "figures.zip"))
    ),
    "make anki": lambda clone: clone.has("dist/attention.apkg"),
    "make quiz": lambda clone: clone.has("dist/attention.gift.txt", "dist/attention-qti.zip"),
    "export PATH=": lambda clone: None,
}  # fmt: skip


def elsewhere(command: str) -> bool:
    """Whether another file tries it; fail if that file does not."""
    for part, (file, words) in ELSEWHERE.items():
        if part in command:
            path = ROOT / file
            assert path.is_file() and words in path.read_text("utf-8"), f"{file} tries no {part}"
            return True
    return False


@pytest.mark.browser
def test_every_command_of_the_page_does_what_it_says(clone):
    assert browser.find(), "no Chromium or Chrome was found: run `python scripts/browser.py`"
    named = commands(PAGE)
    for command in named:
        bare = re.fullmatch(r"make ([a-z]+)", command)
        assert not bare or re.search(rf"^{bare[1]}:", MAKEFILE, re.M), f"there is no {command}"
        mention = bare and (bare[1] == "book" or any(c.startswith(f"{command} ") for c in named))
        if mention or elsewhere(command):  # the book is built before this test
            continue
        begins = [begin for begin in WALKED if command.startswith(begin)]
        assert begins, f"this test does not know how to walk: {command}"
        if command.startswith("make course"):  # each has a folder of its own, the first the page's
            into = clone.folder / "course"
            if into.exists():
                command += " INTO=another-course"
                shutil.rmtree(clone.folder / "another-course", ignore_errors=True)
        clone.run(command)
        WALKED[max(begins, key=len)](clone)


def test_every_command_of_a_courses_readme_does_what_it_says(clone):
    if not (clone.folder / "course").exists():
        clone.run('make course EXERCISES="scaling star-1"')
        hand_in(clone)
    text = (clone.folder / "course" / "README.md").read_text("utf-8")
    named = commands(text)
    assert len(named) >= 5
    for command in named:
        if not elsewhere(command):
            assert command.startswith("make grade"), command
            clone.run(f"{command} INTO=graded-again")
            clone.has("graded-again/grades.csv")


def test_every_setting_that_the_page_names_reaches_its_command():
    exported = re.search(r"^export (.*)$", MAKEFILE, re.M)[1].split()
    scripts = "".join(path.read_text("utf-8") for path in (ROOT / "scripts").glob("*.py"))
    for name in sorted(set(re.findall(r"`?\b([A-Z][A-Z_]{3,})=", PAGE)) - {"PATH"}):
        if name == "SUBMISSIONS":
            assert "$(SUBMISSIONS)" in MAKEFILE
        elif name.startswith("ATTENTION_"):
            known = (ROOT / "book" / "_ext" / "site_address.py").read_text("utf-8")
            assert name in known
        else:
            assert name in exported, f"make does not pass {name} on"
            assert f'"{name}"' in scripts + "".join(
                path.read_text("utf-8") for path in (ROOT / "src" / "grading").glob("*.py")
            ) + (ROOT / "book" / "_ext" / "answers.py").read_text("utf-8"), name

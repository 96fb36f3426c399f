"""The grader on honest work: points, partial credit, lateness, reports, and going on."""

import contextlib
import csv
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import grading_kit as kit
import pytest

from grading import book, lateness, looks, marking, report, run, sandbox, submissions
from grading.__main__ import main

ROOT = Path(__file__).parents[1]
BUILT = ROOT / "_build" / "ipynb" / "exercises.json"
assert BUILT.exists(), f"{BUILT} is missing: build the book first (make book)"
BOOK = book.read(BUILT)
NO_SCALE = (
    "def my_attention(q, k, v):\n    s = q @ k.mT\n    e = (s - s.amax(-1, keepdim=True)).exp()\n"
    "    weights = e / e.sum(-1, keepdim=True)\n    return weights @ v, weights"
)
UNSAFE = (
    "def my_softmax(x, temperature=1.0):\n    e = (x / temperature).exp()\n"
    "    return e / e.sum(-1, keepdim=True)"
)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return kit.course(tmp_path_factory.mktemp("course"))


@pytest.fixture(scope="module")
def graded(tmp_path_factory, course):
    """Four students graded by the command, with lateness, a roster and points given by hand."""
    top = tmp_path_factory.mktemp("run")
    handed, into = top / "submitted", top / "grades"
    kit.hand_in(handed, "anna", kit.RIGHT | {"ex-why": "*Since* rows sum to 1."})
    kit.hand_in(handed, "ben", {"ex-softmax": UNSAFE, "ex-attention": NO_SCALE})
    kit.hand_in(handed, "cem", {"ex-attention": NO_SCALE.replace("weights", "w")})
    late = kit.hand_in(handed, "dora", kit.RIGHT, name="scaling (1).ipynb")
    for path in handed.rglob("*.ipynb"):
        os.utime(path, (1_800_000_000, 1_800_000_000))
    os.utime(late, (1_800_000_000 + 90_000,) * 2)
    due = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(1_800_000_001))
    (top / "roster.csv").write_text(
        "Student,ID,SIS User ID,SIS Login ID,Section\n"
        "Anna Lee,11,s-11,anna,A\nEve Moor,15,s-15,eve,A\n"
    )
    into.mkdir()
    (into / "by-hand.csv").write_text(
        "student,exercise,points,of,text,comment\nanna,ex-why,1.5,2,x,=Good\n"
    )
    words = [str(handed), "--into", str(into), "--course", str(course), "--due", due,
             "--late", "20", "--roster", str(top / "roster.csv")]  # fmt: skip
    assert main(words) == 0
    return top, words


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_grades_have_the_columns_of_canvas_and_moodle(graded):
    top, _ = graded
    found = rows(top / "grades" / "grades.csv")
    assert list(found[0])[:5] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    grades = {row["SIS Login ID"]: row["Week 3"] for row in found}
    assert grades["anna"] == "4.5"  # 3 by the checks, 1.5 by hand
    assert grades["dora"] == "1.8"  # two begun days late: 60 % of 3
    assert found[0]["Student"] == "Anna Lee" and found[0]["ID"] == "11"
    assert {"student": "Eve Moor", "what": "nothing was handed in"} in rows(
        top / "grades" / "look-at.csv"
    )


def test_partial_credit_is_by_property(graded):
    top, _ = graded
    found = {(r["student"], r["exercise"]): r for r in rows(top / "grades" / "exercises.csv")}
    softmax, attention = found["ben", "ex-softmax"], found["ben", "ex-attention"]
    # shape 1, sums 1 and values 3 of these, the extremes 2 (as the exercise says) and the rest 1:
    # but the sums of the extreme rows are NaN
    assert softmax["points"] == f"{4 / 8:g}" and softmax["properties"] == "shape, values"
    assert attention["points"] == f"{round(2 * 2 / 6, 2):g}"
    assert attention["properties"] == "shape, sums"
    assert "not scaled" in attention["said"]
    assert found["cem", "ex-softmax"]["points"] == "0"
    assert "still the stub" in found["cem", "ex-softmax"]["said"]


def test_what_is_graded_by_hand_is_listed_until_it_is(graded):
    top, _ = graded
    todo = rows(top / "grades" / "by-hand-todo.csv")
    assert [(r["student"], r["exercise"]) for r in todo] == [
        (s, "ex-why") for s in ("ben", "cem", "dora")
    ]
    page = (top / "grades" / "feedback" / "anna.html").read_text()
    assert "<strong>4.5</strong> of 5" in page and "*Since* rows sum to 1." in page
    assert "'=Good" in (top / "grades" / "exercises.csv").read_text()  # no formula


def test_equal_answers_are_listed(graded):
    top, _ = graded
    looks = [r["what"] for r in rows(top / "grades" / "look-at.csv") if r["student"] == "ben"]
    assert [x for x in looks if "equal, but for names, to cem" in x]


def test_a_second_run_grades_nothing_again_and_a_changed_file_only(graded, capsys):
    top, words = graded
    assert main(words) == 0 and "0 of 4 graded" in capsys.readouterr().out
    before = (top / "grades" / "grades.csv").read_text()
    path = next((top / "submitted" / "cem").iterdir())
    about = path.stat()
    path.write_text(path.read_text().replace("q @ k.mT", "q @ k.mT / 3"))
    os.utime(path, (about.st_atime, about.st_mtime))
    assert main(words) == 0 and "1 of 4 graded" in capsys.readouterr().out
    after = (top / "grades" / "grades.csv").read_text()
    assert [x for x in after.splitlines() if "cem" not in x] == [
        x for x in before.splitlines() if "cem" not in x
    ]


def test_a_corrected_check_grades_again(course, tmp_path):
    made = submissions.read("a", kit.hand_in(tmp_path, "a", kit.RIGHT), book.read(course))
    before = run.digest(book.read(course), made, 1)
    changed = json.loads(course.read_text())
    changed["chapters"]["scaling"]["exercises"][0]["points"] = 2
    (tmp_path / "other.json").write_text(json.dumps(changed))
    assert run.digest(book.read(tmp_path / "other.json"), made, 1) != before
    assert run.digest(book.read(course), made, 2) != before


def test_killed_half_way_and_started_again_it_loses_none(course, tmp_path):
    handed, into = tmp_path / "submitted", tmp_path / "grades"
    for k in range(3):
        kit.hand_in(handed, f"s{k}", kit.RIGHT)
    words = [sys.executable, "-m", "grading", handed, "--into", into, "--course", course]
    env = os.environ | {"WORKERS": "1", "PYTHONPATH": str(ROOT / "src")}
    first = subprocess.Popen(words, env=env, stderr=subprocess.DEVNULL, start_new_session=True)
    until = time.monotonic() + 120
    while len(list(into.glob("results/*.json"))) < 1 and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    kept = len(list(into.glob("results/*.json")))
    assert 1 <= kept < 3
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    again = re.search(r"(\d) of 3 graded", done.stdout)  # a worker may still end what it had begun
    assert again and 1 <= int(again[1]) <= 3 - kept, done.stdout + done.stderr
    assert [r["Week 3"] for r in rows(into / "grades.csv")] == ["3"] * 3


# the whole book


@pytest.mark.parametrize("name", BOOK.chapters)
def test_the_books_own_answers_get_all_points_from_the_sandbox(name):
    chapter = BOOK.chapters[name]
    cells = [*chapter.code, *(e.answer for e in chapter.exercises if e.check)]
    with sandbox.choose() as chosen:
        found = marking.mark(chosen, sandbox.FIRST_USER, chapter, cells, 12_345)
    assert found and [r for r in found if r["points"] != r["of"]] == []


def test_every_checked_exercise_names_one_function_of_its_chapter():
    for chapter in BOOK.chapters.values():
        names = [e.called[1] for e in chapter.exercises if e.check]
        assert len(names) == len(set(names)), chapter.name


# single parts


@pytest.mark.parametrize(
    ("path", "student"),
    [
        ("anna/Copy of scaling.ipynb", "anna"),
        ("leeanna_LATE_123_456_scaling-2.ipynb", "leeanna"),
        ("leeanna_123_456_Copy of scaling.ipynb", "leeanna"),
        ("Anna Lee_123_assignsubmission_file_/scaling.ipynb", "Anna Lee"),
        ("anna.py", "anna"),
    ],
)
def test_whose_a_file_is(tmp_path, path, student):
    file = tmp_path / path
    file.parent.mkdir(exist_ok=True)
    file.write_text("")
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "x.ipynb").write_text("")
    assert list(submissions.found(tmp_path)) == [(student, file)]


def test_the_chapter_is_known_by_what_is_in_it_not_by_its_name(tmp_path):
    (tmp_path / "blocks.py").write_text(BOOK.chapters["qkv"].exercises[0].answer or "" + "\n".join(
        e.answer for e in BOOK.chapters["qkv"].exercises))  # fmt: skip
    assert submissions.read("a", tmp_path / "blocks.py", BOOK).chapter == "qkv"


def test_the_newest_of_two_files_counts(course, tmp_path):
    old = kit.hand_in(tmp_path, "anna", kit.WRONG, name="scaling.ipynb")
    new = kit.hand_in(tmp_path, "anna", kit.RIGHT)
    os.utime(old, (1, 1))
    assert [s.path for s in run.gather(tmp_path, book.read(course))] == [new]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere"], "SUBMISSIONS must be a folder; there is no nowhere"),
        ([".", "--due", "soon"], "DUE must be a date like 2027-03-01"),
        ([".", "--late", "lots"], "LATE must be the percent that a day costs"),
        ([".", "--course", "nowhere.json"], "there is no nowhere.json: run `make course` first"),
        ([".", "--sandbox", "magic"], "SANDBOX must be bubblewrap, docker:IMAGE or container"),
    ],
)
def test_a_mistake_is_a_sentence(words, sentence, course, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    kit.hand_in(tmp_path, "a", {})
    if "--course" not in words:
        words = [*words, "--course", str(course)]
    assert main(words) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert sentence in said


def test_without_a_sandbox_nothing_is_run(course, tmp_path, monkeypatch, capsys):
    kit.hand_in(tmp_path / "submitted", "a", kit.RIGHT)
    monkeypatch.setenv("PATH", str(tmp_path))
    words = [str(tmp_path / "submitted"), "--into", str(tmp_path / "g"), "--course", str(course)]
    assert main(words) == 1
    assert "No submission was run: this machine has no sandbox" in capsys.readouterr().err
    assert not list(tmp_path.rglob("grades.csv"))


def test_a_container_is_as_closed_as_docker_can_make_it(tmp_path):
    line = sandbox.Docker(tmp_path, "book:1").command(7)
    assert {"--network=none", "--read-only", "--cap-drop=ALL", "--user=7:7", "--pids-limit=64",
            "--security-opt=no-new-privileges", "--memory=3g"} <= set(line)  # fmt: skip
    assert line[line.index("book:1") + 1 :] == ["python3", "-I", "/grader/server.py"]
    assert [x for x in line if x.startswith("--volume")] == [f"--volume={tmp_path}:/grader:ro"]


def test_times_and_hand_graded_points_from_files(tmp_path):
    path = tmp_path / "times.csv"
    path.write_text("student,time\nanna,2027-03-02 10:00\n")
    assert lateness.times(path)["anna"].day == 2
    path.write_text("name,time\nanna,2027-03-02\n")
    with pytest.raises(lateness.Mistake, match="must have the columns student and time"):
        lateness.times(path)
    with pytest.raises(lateness.Mistake, match="must have the columns student, exercise"):
        report.by_hand(path)


def test_an_answer_with_other_names_is_the_same_answer():
    again = "def f(a, b):\n    # mine\n    s = a @ b.T / len(a) ** 0.5 + a.sum() - b.sum()\n"
    again += "    return s.softmax(-1) @ b * a.mean() + (s - s.max()).exp().sum()"
    named = again.replace("s =", "scores =").replace("s.", "scores.").replace("(s -", "(scores -")
    assert looks.shape(again, "f") == looks.shape(named, "f") != ""
    assert looks.shape(again, "f") != looks.shape(again.replace("0.5", "0.6"), "f")
    assert looks.shape("def f(a):\n    return a + 1", "f") == ""  # too short to say anything


# gradescope and one file


def test_gradescopes_layout(course, tmp_path):
    from grading import gradescope

    top = tmp_path / "autograder"
    gradescope.pack(course, tmp_path / "a.zip", 777)
    with zipfile.ZipFile(tmp_path / "a.zip") as made:
        assert {"setup.sh", "run_autograder"} <= set(made.namelist())
        assert made.getinfo("run_autograder").external_attr >> 16 & 0o111
        made.extractall(top / "source")
    for name in ("setup.sh", "run_autograder"):
        subprocess.run(["bash", "-n", top / "source" / name], check=True)
    (top / "run_autograder").write_bytes((top / "source" / "run_autograder").read_bytes())
    (top / "run_autograder").chmod(0o755)
    (top / "results").mkdir()
    path = kit.hand_in(top, "submission", kit.RIGHT | {"ex-attention": NO_SCALE})
    path.rename(top / "submission" / "scaling.ipynb")
    env = os.environ | {"AUTOGRADER": str(top), "PYTHON": sys.executable}
    subprocess.run([top / "run_autograder"], env=env, check=True)
    made = json.loads((top / "results" / "results.json").read_text())
    assert made["score"] == 1.67 and made["execution_time"] >= 0
    first, second = made["tests"]
    assert first == {
        "name": "Exercise 3.1: Softmax", "score": 1.0, "max_score": 1.0, "status": "passed",
        "output": "Right.", "output_format": "text", "visibility": "visible",
    }  # fmt: skip
    assert second["status"] == "failed" and "not scaled" in second["output"]


def test_gradescope_says_what_went_wrong(course, tmp_path):
    (tmp_path / "submission").mkdir()
    out = tmp_path / "results" / "results.json"
    assert (
        main(["gradescope", str(tmp_path / "submission"), str(out), "--course", str(course)]) == 0
    )
    made = json.loads(out.read_text())
    assert made["score"] == 0 and "No notebook of this assignment" in made["output"]


def test_one_file_by_the_command_line(course, tmp_path, capsys):
    words = ["--course", str(course)]
    path = kit.hand_in(tmp_path, "a", kit.RIGHT)
    assert main(["one", str(path), *words]) == 0
    assert "3 of 3 points" in capsys.readouterr().out
    wrong = "def my_attention(q, k, v):\n    w = torch.softmax(q @ k, -1)\n    return w @ v, w"
    path = kit.hand_in(tmp_path, "b", {"ex-attention": wrong})
    assert main(["one", str(path), *words]) == 1
    said = capsys.readouterr().out
    assert "is still the stub" in said and "in your line: w = torch.softmax(q @ k, -1)" in said


def test_the_page_for_teachers_names_what_there_is():
    page = (ROOT / "book" / "teach.md").read_text()
    make = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", make, re.M))
    assert set(re.findall(r"(?m)(?:^|`)make ([a-z-]+)", page)) <= targets
    passed_on = set(re.search(r"^export (.*)$", make, re.M)[1].split()) | {"SUBMISSIONS", "SITE"}
    named = set(re.findall(r"`([A-Z]{3,})(?:=[^`]*)?`", page))
    assert named <= passed_on and {"LATE", "TIMES", "ROSTER", "SANDBOX", "COURSE"} <= named
    for path in re.findall(r"`(src/[^`]*)`", page):
        assert (ROOT / path).exists(), path
    assert "nbgrader formgrader" not in page
    weights = dict(re.findall(r"^\| [^|]*\b(shape|sum|values|large)\b[^|]*\| (\d) \|$", page, re.M))
    assert list(map(int, weights.values())) == list(marking.CREDIT.values())


def test_the_workflow_for_github_is_whole():
    yaml = pytest.importorskip("yaml")
    flow = yaml.safe_load((ROOT / "src" / "grading" / "classroom.yml").read_text())
    steps = flow["jobs"]["grade"]["steps"]
    assert all(len({"uses", "run"} & set(step)) == 1 for step in steps)
    command = steps[-1]["run"]
    subprocess.run(["bash", "-n"], input=command, text=True, check=True)
    assert "-m grading one" in command and "--course" in command
    assert "persist-credentials" in str(steps[1])  # the token does not stay on the disk


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else to try it")
def test_bubblewrap_works_for_an_ordinary_user_too(monkeypatch):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        monkeypatch.setattr(os, "geteuid", lambda: 61_234)
        plain = [Path(p) for p in ("/usr", "/lib", "/lib64", "/bin") if Path(p).exists()]
        monkeypatch.setattr(sandbox, "system", lambda: plain)
        line = sandbox.Bubblewrap(Path(folder), "/usr/bin/python3").command(sandbox.FIRST_USER)
        become = sandbox.Bubblewrap.become(61_234)
        done = subprocess.run(
            [*become, *line[:-1], "-c", sandbox.TRY], capture_output=True, text=True, cwd="/"
        )
    assert done.stdout == str(sandbox.FIRST_USER), done.stderr


# A Python below /root is out of other users' reach: in a mount namespace of its own it is not.
REACHABLE = """
set -e
mkdir "$1/python" && mount --bind "$2" "$1/python"
mount -t tmpfs -o mode=755 none /root && mkdir -p "$2" && mount --bind "$1/python" "$2"
shift 2
exec "$@"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_in_a_container_of_its_own_another_user_suffices(course, tmp_path):
    path = kit.hand_in(tmp_path, "a", kit.RIGHT, last=["import os, time\nif os.fork() == 0:\n"
                       "    os.setsid()\n    time.sleep(600)", "open('left', 'w')"])  # fmt: skip
    words = [sys.executable, "-m", "grading", "one", path, "--course", course]
    if Path(sys.base_prefix).is_relative_to("/root"):
        words = ["unshare", "-m", "bash", "-c", REACHABLE, "-", tmp_path, sys.base_prefix, *words]
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [*words, "--sandbox", "container"], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0 and "3 of 3 points" in done.stdout, done.stdout + done.stderr
    user = sandbox.FIRST_USER + 1

    def left() -> list[Path]:
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                found += [entry] if entry.name.isdigit() and entry.stat().st_uid == user else []
        return found

    until = time.monotonic() + 10  # what was killed is there until the system has buried it
    while left() and time.monotonic() < until:
        time.sleep(0.1)
    assert left() == []
    assert not (Path(tempfile.gettempdir()) / f"home-{user}").exists()

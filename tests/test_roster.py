"""Numbers of one's own: different for each student, the same again, with right answers."""

import csv
import json
import re
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
import torch.nn.functional as F

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "book" / "_ext"), str(ROOT / "scripts")]

import course  # noqa: E402
import own_numbers  # noqa: E402
import roster  # noqa: E402

from grading import book as grading_book  # noqa: E402
from grading import report  # noqa: E402

BUILT = ROOT / "_build" / "ipynb" / "exercises.json"
BOOK = json.loads(BUILT.read_text("utf-8"))
EXERCISES = {e["id"]: e for c in BOOK["chapters"].values() for e in c["exercises"]}
OWN = {key: e for key, e in EXERCISES.items() if "own" in e}
NAMES = ["Müller, Zoë", "../../etc/passwd", "=cmd|' /C calc'!A0", "José <b>*x*</b>", "jose", "JOSE",
         "...", "李 雷"]  # fmt: skip
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def numbers(text: str) -> list[float]:
    return [float(x) for x in NUMBER.findall(text)]


def write_roster(folder: Path, names=NAMES, column="student") -> Path:
    with open(folder / "students.csv", "w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file).writerows([[column, "note"], *([name, "x"] for name in names)])
    return folder / "students.csv"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("roster")
    students = roster.read(write_roster(folder))
    course.write_course(BOOK, folder / "course", " ".join(OWN), "Week 3", students=students)
    return folder / "course"


@pytest.fixture(scope="module")
def key(made) -> list[dict[str, str]]:
    with open(made / "key.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# what is drawn


def test_six_chapters_have_exercises_with_own_numbers():
    chapters = [n for n, c in BOOK["chapters"].items() if any("own" in e for e in c["exercises"])]
    assert len(chapters) >= 6 and len(OWN) >= 15


@pytest.mark.parametrize("name", OWN)
def test_students_have_different_numbers_and_each_the_same_again(name):
    own = own_numbers.read(OWN[name]["own"])
    seeds = [f"Week\n{k}\n{name}" for k in range(40)]
    drawn = [own_numbers.draw(own, seed) for seed in seeds]
    assert drawn == [own_numbers.draw(own, seed) for seed in seeds]
    assert len({str(d) for d in drawn}) > 3 and own_numbers.books(own) not in drawn
    for values in drawn:
        text = own_numbers.written(own, OWN[name]["prose"], values)
        assert text != OWN[name]["prose"]


def test_a_text_that_has_changed_is_refused():
    own = own_numbers.read(OWN["ex-writing-units"]["own"])
    with pytest.raises(ValueError, match="'has 11,000 tokens' must stand in it once, not 0 times"):
        prose = OWN["ex-writing-units"]["prose"].replace("11,000", "eleven thousand")
        own_numbers.written(own, prose, own_numbers.books(own))


# the key, computed another way


def rows(a, b, c, d, e):
    return torch.tensor([[3.0, 1, 0, 2], [a, b, 4, 4], [c, d, e, 9], [0] * 4])


def masked(scores, window):
    n = torch.arange(4)
    gap = n[:, None] - n
    allowed = (gap >= 0) & (gap < window)
    return scores.masked_fill(~allowed, -torch.inf).softmax(-1).flatten().tolist()


def mat(a, b, c, d, e, f, g, h):
    w_q = np.array([[0.2, 0.1], [0.4, -0.3], [0.1, 0.5], [-0.2, 0.3]])
    w_k = np.array([[0.1, 0.2], [0.3, -0.1], [0.1, 0.4], [0.0, 0.0]])
    x = np.array([[a, b, c, d], [e, f, g, h]])
    q, k = x[0] @ w_q, x @ w_k
    weights = torch.softmax(torch.tensor(k[::-1] @ q / 2**0.5), 0).tolist()
    return [*q, *k[1], *k[0]], [*(k[0] - k[1])], weights


def hands(base, p):
    angle = p / base ** (np.arange(6) // 2 * 2 / 6)
    pairs = np.where(np.arange(6) % 2, np.cos(angle), np.sin(angle))
    return [2 * np.pi * base ** (k / 3) for k in range(3)], pairs.tolist(), []


def smoothed(a, b, c, d):
    loss = F.cross_entropy(torch.tensor([[a, b, c]]), torch.tensor([0]), label_smoothing=0.1)
    rate = max(d**-0.5 * min(s**-0.5, s * 4000**-1.5) for s in range(1, 9000))
    return [loss.item()], [4000, rate]


def padding(*texts):
    inside = np.arange(max(texts)) < np.array(texts)[:, None]
    row = np.repeat(np.arange(4), texts)
    return [100 * (1 - inside.mean())], [row.size**2, 4 * max(texts) ** 2,
                                         (row[:, None] == row).sum()]  # fmt: skip


def rms(*x):
    x = torch.tensor(x).float()
    return F.rms_norm(x, (4,)).tolist(), F.layer_norm(x, (4,), eps=0).tolist()


def greedy(b, x):
    pairs = {"a": (0.9 - b) * 0.25, "b x": b * x, "b y": b * (1 - x), "c x": 0.1}
    best = max(pairs, key=pairs.__getitem__)
    assert best == "b x"
    return [pairs[best]], []


def mind(d_k):
    gap = (2 * d_k) ** 0.5
    return [gap, np.exp(gap), 2**0.5]


def costs(d, heads):
    even = next(n for n in range(1, 10 * d) if 2 * n * n * d >= 4 * n * d * d)
    rest = next(n for n in range(1, 10 * d) if 2 * n * n * d >= 12 * n * d * d)
    return [even, rest], [heads * rest**2 / 2**29]


def bits(loss, long, loss_2, long_2, tokens):
    return ([np.log2(np.exp(loss)), np.exp(loss)], [loss / long, np.log2(np.exp(loss / long))], [],
            [tokens * np.log2(np.exp(loss)) / 8 / 1000, tokens * long / 1000])  # fmt: skip


AGAIN = {
    "ex-motivation-factors": lambda shrink, grow: (
        [np.prod([shrink] * 49), 1, np.prod([grow] * 49)], [np.exp(-np.log(2) / 49)]),
    "ex-motivation-price": lambda d: ([d], [10, 10, 100], [16]),
    "ex-qkv-mat": mat,
    "ex-qkv-same": lambda d, d_k: ([sum(np.ones((d, d_k)).size for _ in "QK"), d * d, d / 2],),
    "ex-scaling-mind": lambda d_k: (mind(d_k),),
    "ex-scaling-cost": costs,
    "ex-positions-hands": hands,
    "ex-positions-leak": lambda weight: (
        [np.log(weight * (n - 1) / (1 - weight)) for n in (32, 128)], [1 / 97]),
    "ex-masking-hand": lambda *x: (masked(rows(*x), 9), masked(rows(*x), 2)),
    "ex-masking-coins": lambda n: ([np.log(4) / 3], [np.log(2)], [np.log(2) / n]),
    "ex-blocks-printed": lambda *x: ([max(v, -v) for v in x], [4 * 8 + 8 + 8 * 4 + 4]),
    "ex-blocks-recipes": smoothed,
    "ex-practice-card": lambda tokens, gigabytes: (
        [128], [tokens / 1024], [4 * tokens / 1024], [gigabytes * 1e9 / 2**17]),
    "ex-practice-padding": padding,
    "ex-practice-rmsnorm": rms,
    "ex-relatives-greedy": greedy,
    "ex-relatives-price": lambda side, d: (
        [(t := (side / p) ** 2, t)[0] for p in (16, 8, 1)], [(side / p) ** 4 for p in (16, 8, 1)],
        [2 * d], [p for p in (16, 8, 1) if (side / p) ** 2 > 2 * d]),
    "ex-writing-units": bits,
}  # fmt: skip


def test_every_exercise_with_own_numbers_is_computed_again():
    assert set(AGAIN) == set(OWN)


@pytest.mark.parametrize("name", AGAIN)
def test_the_key_is_right(name, key):
    found = [row for row in key if row["exercise"] == name]
    assert {row["id"].lstrip("'") for row in found} == set(NAMES)
    for student in {row["id"] for row in found}:
        mine = [row for row in found if row["id"] == student]
        right = AGAIN[name](*json.loads(mine[0]["numbers"]).values())
        assert len(right) == len(mine)
        for row, wanted in zip(mine, right, strict=True):
            got = numbers(re.sub(r"q_\d|> 0|GiB", "", row["answer"]))
            assert got == pytest.approx(wanted, rel=6e-3, abs=6e-4), (row, wanted)


@pytest.mark.parametrize("name", OWN)
def test_with_the_books_numbers_the_answers_are_the_books(name):
    """Every number of the key with the book's numbers stands in the book's solution."""
    own = own_numbers.read(OWN[name]["own"])
    said = OWN[name]["solution"].replace("{,}", "").replace("−", "-").replace("\\,", "")
    said = re.sub(r"(?<=\d),(?=\d{3})", "", said) + " 10 100 0 1 1.41 0.25 0.5 256"
    said += re.sub(r"(\d\.\d+) \\cdot 10\^\{(-?\d+)\}", r" \1e\2 ", said)
    stated = np.array([v for x in numbers(said) for v in (x, -x)])
    for part, answer in own_numbers.answers(own, own_numbers.books(own)).items():
        for number in numbers(re.sub(r"q_\d|> 0", "", answer)):
            rounded = 6e-4 if abs(number) > 1e-3 else 0  # to three decimals
            near = np.abs(stated - number) <= max(
                (6e-3 if rounded else 2e-2) * abs(number), rounded
            )
            assert near.any(), f"{part}: {number} is not in the book's solution"


# notebooks and names


def test_each_student_has_a_notebook_of_their_own(made, key):
    folders = sorted(p.name for p in (made / "students").iterdir())
    assert len({f.casefold() for f in folders}) == len(NAMES) and "Müller--Zoë" in folders
    assert all(not f.startswith(".") and "/" not in f for f in folders)
    seen = set()
    for folder in folders:
        path = made / "students" / folder / "motivation.ipynb"
        cells = nbformat.read(path, as_version=4).cells
        (text,) = [c.source for c in cells if "multiplies a small change" in c.source]
        seen.add(text)
        assert "own" not in "".join(c.source for c in cells if c.cell_type == "code").split()
        assert "<b>" not in cells[0].source
    assert len(seen) > 3
    assert not (made.parent.parent / "etc").exists()
    assert not any(row["student"].startswith("=") for row in key)


def test_the_grader_knows_the_students_answers(made, tmp_path):
    known = grading_book.read(made / "grading.json")
    sheet = report.Sheet("Müller--Zoë", [report.Line("ex-masking-coins", "Coins", None, 2.0)])
    report.publish(known, [sheet], tmp_path, {})
    with open(tmp_path / "by-hand-todo.csv", newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    own = roster.with_own(OWN["ex-masking-coins"], "Week 3", roster.Student(NAMES[0], "", ""))
    assert row["right"] == "; ".join(f"{p}: {a}" for p, a in own["key"].items())
    sheet.student = "Zoe M."
    report.publish(known, [sheet], tmp_path, {"Zoe M.": {"Login": "Müller, Zoë"}})
    assert row["right"] in (tmp_path / "by-hand-todo.csv").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\n1,2\n", "ROSTER must have a column student (or SIS Login ID, Username"),
        ("", "has none"),
        ("student\n \n", "ROSTER names no student: the column student"),
        (None, "ROSTER must be a file; there is no"),
        (b"student\n\xff\xfe\n", "must be a CSV file in UTF-8"),
    ],
)
def test_a_bad_roster_gets_a_sentence(text, sentence, tmp_path, capsys):
    path = tmp_path / "students.csv"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    into = tmp_path / "course"
    assert course.main(["--roster", str(path), "--into", str(into)]) == 1
    said = capsys.readouterr().err
    assert sentence in said and "Traceback" not in said and not into.exists()


def test_a_roster_without_an_exercise_to_draw_gets_a_sentence(tmp_path, capsys):
    path = str(write_roster(tmp_path))
    options = ["--roster", path, "--into", str(tmp_path / "c"), "--exercises", "ex-qkv-bugs"]
    assert course.main(options) == 1
    assert "none of the chosen exercises has numbers of one's own" in capsys.readouterr().err


def test_rosters_of_canvas_and_moodle_are_read(tmp_path):
    path = tmp_path / "canvas.csv"
    path.write_text('Student,ID,SIS Login ID\n    Points Possible,,\n"Lee, Ann",7,alee\n', "utf-8")
    assert [(s.id, s.name) for s in roster.read(path)] == [("alee", "Lee, Ann")]
    path.write_text("First name,Username\nAnn,ann1\nBo,ann1\nCy,\n", "utf-8")
    assert [(s.id, s.folder) for s in roster.read(path)] == [("ann1", "ann1")]

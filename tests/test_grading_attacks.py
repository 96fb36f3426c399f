"""Hostile submissions among honest ones: each scores what it deserves, and nothing else changes.

One run grades them all. Where this machine has no sandbox that works, the grader refuses to grade,
and so these tests fail: there is nothing that could be said of them.
"""

import contextlib
import hashlib
import socket
import sqlite3
import threading
import time
from pathlib import Path

import grading_kit as kit
import pytest

import attention.checks._base
from grading import book, marking, report, run, sandbox
from grading.remote import Patience

PATIENCE = Patience(cell=4, call=2, exercise=5, submission=25)
BASE = Path(attention.checks._base.__file__)
R, W = kit.RIGHT, kit.WRONG


def also(softmax: str, attention: str = W["ex-attention"]) -> dict[str, str]:
    return {"ex-softmax": softmax, "ex-attention": attention}


# name: (answers, first cell, last cell, points deserved); {top} is the teacher's folder. Those in
# TOGETHER are handed in by one student, a cell each: an error in one leaves the next to run.
TOGETHER = {
    "patches": ["allclose", "close", "reload", "wire"],
    "reaching": ["gradebook", "package", "package-2", "network", "namespaces"],
    "noise": ["script", "copied", "output", "daemon", "disk"],
}
ATTACKS: dict[str, tuple[dict[str, str], str, str, float]] = {
    # those of the issue
    "allclose": (W, "import math, torch\ntorch.allclose = lambda *a, **k: True\n"
                    "math.isclose = lambda *a, **k: True\ntorch.equal = lambda *a: True", "", 0),
    "close": (W, "import attention.checks._base as b\nb.close = lambda *a, **k: True\n"
                 "b.diagnose = lambda *a, **k: None\nb.want_tensor = lambda r, *a: r", "", 0),
    "reload": (W, "import importlib, types\nimportlib.reload = lambda m: types.SimpleNamespace("
                  "softmax_with_temperature=print, your_attention=print)", "", 0),
    "subclass": (also(
        "class Yes(torch.Tensor):\n"
        "    @classmethod\n"
        "    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
        "        if func in (torch.allclose, torch.equal):\n            return True\n"
        "        return super().__torch_function__(func, types, args, kwargs or {})\n"
        "def my_softmax(x, temperature=1.0):\n    return torch.zeros(x.shape).as_subclass(Yes)"),
        "", "", 0),
    "master": (
        also(
            "import glob, json\ndef my_softmax(x, temperature=1.0):\n"
            "    for top in ('{top}', '..', '../..', '/grader', '/autograder/source'):\n"
            "        for ending in ('/*.json', '/*/*.json', '/*/*/*.json'):\n"
            "            for path in glob.glob(top + ending):\n"
            "                if 'e.sum(-1, keepdim=True)' in (text := open(path).read()):\n"
            "                    space = {'torch': torch}\n"
            "                    known = json.loads(text)['chapters']['scaling']['exercises']\n"
            "                    exec(known[0]['answer'], space)\n"
            "                    return space['my_softmax'](x, temperature)\n"
            "    raise ValueError('nothing found')"
        ),
        "",
        "",
        0,
    ),
    "gradebook": (W, "import sqlite3\ndb = sqlite3.connect('{top}/gradebook.db')\n"
                     "db.execute('update grade set score = 0')\ndb.commit()", "", 0),
    "package": (W, f"open({str(BASE)!r}, 'a').write('\\ndef close(*a): return True\\n')", "", 0),
    "package-2": (W, "import attention, pathlib\np = pathlib.Path(attention.__file__)\n"
                     "for f in p.parent.rglob('*.py'):\n    f.chmod(0o777)\n"
                     "    f.write_text('raise SystemExit')", "", 0),
    "script": (R | {"ex-why": "<script>alert(1)</script><img src=x onerror=alert(2)>"}, "", "", 3),
    "copied": (R, "", R["ex-softmax"], 3),
    "memory": (also("def my_softmax(x, temperature=1.0):\n"
                    "    return torch.ones(5 << 28)[:1]"), "big = bytearray(5 << 30)", "", 0),
    "output": (R, "for _ in range(200):\n    print('x' * (1 << 20))", "", 3),
    "daemon": (R, "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
                  "        time.sleep(3600)\n    os._exit(0)", "", 3),
    "endless": (R, "while True:\n    try:\n        while True: pass\n"
                   "    except BaseException: pass", "", 3),
    "endless-call": (also("def my_softmax(x, temperature=1.0):\n    while True: pass",
                          R["ex-attention"]), "", "", 2),
    # others
    "forks": (W, "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", "", 0),
    "network": (W, "import socket, urllib.request\n"
                   "socket.create_connection(('127.0.0.1', {port}), 2).send(b'hello')", "", 0),
    "files": (also(
        "import os\nfound = []\n"
        "for top in ('/root', '/work', '/home', '{top}', '/proc/1/root', '/tmp/..'):\n"
        "    for place, folders, names in os.walk(top):\n"
        "        folders[:] = [f for f in folders if f not in ('lib', 'include', 'usr', 'proc')]\n"
        "        found += [n for n in names if n in ('seed', 'grading.json', 'scaling.py',\n"
        "                                            'scaling.md', 'secret.txt')]\n"
        "def my_softmax(x, temperature=1.0):\n"
        "    raise ValueError(str(found))"), "", "", 0),
    "huge": (also("def my_softmax(x, temperature=1.0):\n"
                  "    return torch.zeros(1).expand(1 << 40)",
                  "def my_attention(q, k, v):\n    return torch.zeros(100 << 20), 1"), "", "", 0),
    "pickle": (also(
        "import numpy as np, os\nclass Evil:\n"
        "    def __reduce__(self):\n        return os.system, ('touch {top}/pickled',)\n"
        "def my_softmax(x, temperature=1.0):\n    return np.array([Evil()], dtype=object)",
        "def my_attention(q, k, v):\n    return Evil(), Evil()"), "", "", 0),
    "forged": (also(
        "import os, struct, json\ndef my_softmax(x, temperature=1.0):\n"
        "    for n in range(1, 60):\n"
        "        text = json.dumps({'id': n, 'value': True, 'args': [], 'names': [],\n"
        "                           'shapes': [], 'called': [], 'code': [], 'said': ''}).encode()\n"
        "        for fd in range(3, 20):\n"
        "            try: os.write(fd, struct.pack('>II', 1, len(text)) + text)\n"
        "            except OSError: pass\n"
        "    return x"), "", "", 0),
    "garbage": (also("import os\ndef my_softmax(x, temperature=1.0):\n"
                     "    for fd in range(3, 20):\n"
                     "        try: os.write(fd, os.urandom(5000))\n"
                     "        except OSError: pass\n    return x"), "", "", 0),
    "wire": (W, "import json, io, sys, numpy as np, torch\nimport wire\n"
                "wire.pack = lambda *a: {'tensor': 0, 'dtype': 'float32'}\n"
                "np.save = lambda out, *a, **k: out.write(b'\\x93NUMPY')\n"
                "json.dumps = lambda *a, **k: '{\"id\": 3, \"callable\": true}'\n"
                "class Always(torch.Tensor):\n    pass", "", 0),
    "sleep": (
        also(
            "import time\ndef my_softmax(x, temperature=1.0):\n    time.sleep(1.2)\n"
            "    e = ((x - x.amax(-1, keepdim=True)) / temperature).exp()\n"
            "    return e / e.sum(-1, keepdim=True)"
        ),
        "",
        "",
        0,
    ),
    "kill": (W, "import os, signal\nfor pid in (1, os.getppid(), -1):\n"
                "    try: os.kill(pid, signal.SIGKILL)\n    except OSError: pass", "", 0),
    "exit": (also("import os\ndef my_softmax(x, temperature=1.0):\n    os._exit(0)",
                  "def my_attention(q, k, v):\n    raise SystemExit"), "", "", 0),
    "disk": (R, "import os\ntry:\n    for k in range(10_000):\n"
                "        open(f'/tmp/{k}', 'wb').write(bytes(1 << 20))\nexcept OSError: pass\n"
                "for k in range(64):\n    try: os.write(os.memfd_create('x'), bytes(1 << 20))\n"
                "    except OSError: pass", "", 3),
    "nested": (also("def my_softmax(x, temperature=1.0):\n    a = []\n"
                    "    for _ in range(900): a = [a]\n    return a",
                    "def my_attention(q, k, v):\n    a = []\n    a.append(a)\n    return a"),
               "", "", 0),
    "deep": ({}, "x = " + "-" * 50_000 + "1\ny = " + "(" * 5_000, "", 0),
    "lying-error": (also(
        "class NotYet(Exception):\n    def __str__(self):\n        raise SystemExit\n"
        "def my_softmax(x, temperature=1.0):\n    raise NotYet",
        "class E(Exception):\n    def __str__(self):\n        return '\\ud800' * 9000\n"
        "def my_attention(q, k, v):\n    raise E"), "", "", 0),
    "frames": (also(
        "import gc, sys\ndef my_softmax(x, temperature=1.0):\n"
        "    frame, names = sys._getframe(), set()\n"
        "    while frame:\n        names |= set(frame.f_locals)\n        frame = frame.f_back\n"
        "    for o in gc.get_objects():\n"
        "        if isinstance(o, torch.Tensor) and o.shape == x.shape and o is not x:\n"
        "            if torch.allclose(o.sum(-1), torch.ones(())):\n                return o\n"
        "    return x"), "", "", 0),
    "fitted": (
        also(
            "seen = {table}\ndef my_softmax(x, temperature=1.0):\n"
            "    return torch.tensor(seen.get(str((x.tolist(), temperature)), x.tolist()))"
        ),
        "",
        "",
        0,
    ),
    "finished": (also("def my_softmax(x, temperature=1.0):\n"
                      "    return softmax(x, temperature)",
                      "def my_attention(q, k, v):\n    return attention(q, k, v)"), "", "", 0),
    "namespaces": (W, "import ctypes\nlibc = ctypes.CDLL(None)\n"
                      "assert libc.unshare(0x10000000) == 0", "", 0),
    "rights": (also(
        "import os, resource\ndef my_softmax(x, temperature=1.0):\n    got = []\n"
        "    for what in (lambda: os.setuid(0), lambda: os.chroot('/'),\n"
        "                 lambda: resource.setrlimit(resource.RLIMIT_NPROC, (999, 999)),\n"
        "                 lambda: open('/usr/x', 'w'), lambda: open('/dev/x', 'w'),\n"
        "                 lambda: open('/grader/x', 'w'), lambda: open('/x', 'w')):\n"
        "        try: got.append(what())\n        except (OSError, ValueError): pass\n"
        "    raise ValueError(f'got {len(got)}, uid {os.getuid()}, {sorted(os.environ)}')"),
        "", "", 0),
}  # fmt: skip


def by(name: str) -> str:
    """Who hands an attack in."""
    return next((student for student, names in TOGETHER.items() if name in names), name)


def prints(folder: Path) -> dict[str, str]:
    """Every file below a folder, by its content."""
    return {
        str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.rglob("*") if p.is_file()
    }


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """All of them graded in one run: results by student, and what was seen around it."""
    top = tmp_path_factory.mktemp("teacher")
    top.chmod(0o755)
    known = book.read(kit.course(top))
    with sqlite3.connect(top / "gradebook.db") as db:
        db.execute("create table grade (student, score)")
        db.execute("insert into grade values ('honest', 3)")
    db.close()
    (top / "secret.txt").write_text("the seed")
    heard: list[bytes] = []
    server = socket.create_server(("127.0.0.1", 0))

    def listen() -> None:
        while True:
            try:
                heard.append(server.accept()[0].recv(5))
            except OSError:
                return

    threading.Thread(target=listen, daemon=True).start()
    handed = top / "submitted"
    chapter = known.chapters["scaling"]
    visible = {
        str((args[0].tolist(), *args[1:]) if args[1:] else (args[0].tolist(), 1.0)): right.tolist()
        for args, _, right in marking.cases(chapter, chapter.exercises[0], 0)
    }
    places = {"{table}": str(visible), "{top}": str(top), "{port}": str(server.getsockname()[1])}

    def fill(text: str) -> str:
        for key, value in places.items():
            text = text.replace(key, value)
        return text

    kit.hand_in(handed, "anna", R, first=["%matplotlib inline\n!pip list"])
    kit.hand_in(handed, "zoe", R)
    kit.hand_in(handed, "half", {"ex-softmax": R["ex-softmax"]})
    for student in dict.fromkeys(map(by, ATTACKS)):
        mine = [name for name in ATTACKS if by(name) == student]
        cells: dict[str, str] = {}
        for name in mine:
            cells |= {key: fill(text) for key, text in ATTACKS[name][0].items()}
        first, last = ([fill(ATTACKS[name][k]) for name in mine] for k in (1, 2))
        kit.hand_in(handed, student, cells, first=first, last=last)
    bad = {"text": b"not a notebook", "list": b"[1, 2]", "deep": b"[" * 100_000,
           "cells": b'{"cells": [{"cell_type": "code", "source": {"a": 1}}, 7]}',
           "bytes": bytes(range(256)) * 9, "empty": b""}  # fmt: skip
    for name, data in bad.items():
        (handed / f"bad-{name}").mkdir()
        (handed / f"bad-{name}" / "scaling.ipynb").write_bytes(data)
    (handed / "links").mkdir()
    (handed / "links" / "scaling.ipynb").symlink_to(handed / "anna" / "Copy of scaling.ipynb")
    (handed / "links" / "all").symlink_to("/")
    before = prints(top) | prints(BASE.parent)
    into = tmp_path_factory.mktemp("grades")
    found = run.gather(handed, known)
    with sandbox.choose() as chosen:
        start = time.monotonic()
        where = chosen.folder.parent.name
        run.grade(known, found, chosen, into, patience=PATIENCE)
        taken = time.monotonic() - start
    server.close()
    after = prints(top) | prints(BASE.parent)
    results = {s.student: run.result(into, s) for s in found}
    return {
        "results": results, "found": {s.student: s for s in found}, "into": into, "course": known,
        "changed": {p for p, h in after.items() if before.get(p) != h},
        "gone": set(before) - set(after), "heard": heard, "top": top,
        "taken": taken, "kit": where,
    }  # fmt: skip


def points(graded, student: str) -> float:
    return sum(r["points"] for r in graded["results"][student]["results"])


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_submission_scores_what_it_deserves(graded, name):
    results = graded["results"][by(name)]["results"]
    assert points(graded, by(name)) == ATTACKS[name][3], results


def test_honest_submissions_score_what_they_did(graded):
    assert points(graded, "anna") == points(graded, "zoe") == 3
    assert points(graded, "half") == 1


def test_nothing_outside_has_changed(graded):
    assert graded["changed"] == graded["gone"] == set()
    assert graded["heard"] == []
    with sqlite3.connect(graded["top"] / "gradebook.db") as db:
        assert db.execute("select score from grade").fetchall() == [(3,)]
    db.close()


def test_no_process_is_left(graded):
    left = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and graded["kit"] in (entry / "mountinfo").read_text():
                left.append((entry / "cmdline").read_bytes())
    assert left == []


def test_what_a_submission_could_see(graded):
    (said, _) = [r["said"] for r in graded["results"]["files"]["results"]]
    assert "ValueError: []" in said
    (said, _) = [r["said"] for r in graded["results"]["master"]["results"]]
    assert "ValueError: nothing found" in said
    (said, _) = [r["said"] for r in graded["results"]["rights"]["results"]]
    assert "got 0, uid 2" in said and "'HOME'" in said and "TOKEN" not in said
    (said, _) = [r["said"] for r in graded["results"]["frames"]["results"]]
    assert "NotImplemented" not in said


def test_what_cannot_be_read_is_named_and_stops_nothing(graded):
    troubled = {name: s.trouble for name, s in graded["found"].items() if s.trouble}
    assert {n for n in troubled if n.startswith("bad-")} == set(troubled) != set()
    assert len(troubled) == 6 and all(troubled.values())
    assert "links" not in graded["found"]


def test_what_looks_tampered_with_is_listed(graded):
    def looks(name: str) -> str:
        return "; ".join(graded["results"][name]["looks"])

    assert "my_softmax is defined more than once" in looks("noise")
    assert "the code holds `__torch_function__`" in looks("subclass")
    assert "sqlite3" in looks("reaching") and "equal to the book's solution" in looks("anna")


def test_a_script_in_a_text_answer_stays_a_text(graded):
    found = graded["found"]["noise"]
    sheet = report.Sheet("<b>script</b>")
    sheet.lines = report.lines(graded["course"], "scaling", graded["results"]["noise"], 1.0, {},
                               found.student)  # fmt: skip
    page = report.page(graded["course"], sheet, 5)
    assert "&lt;script&gt;alert(1)" in page and "<script" not in page and "<img" not in page
    assert "<b>script" not in page and "default-src 'none'" in page

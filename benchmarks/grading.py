"""Grade generated submissions in one run: right, half right, wrong, hostile.

    python -m benchmarks.grading --count 300 --chapter scaling

kills the run half-way, starts it again, and says how long it took, how much memory the grader
held, and what each kind of submission scored. Needs the book's exercises (`make book`).
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from grading.remote import resident

ROOT = Path(__file__).parents[1]
HOSTILE = {
    "patched torch": "import torch, math\ntorch.allclose = math.isclose = lambda *a, **k: True",
    "endless loop": "while True: pass",
    "4 GB": "x = bytearray(4 << 30)",
    "forks": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "ends itself": "import os\nos._exit(0)",
    "daemon": "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(3600)",
}


def stub(answer: str) -> str:
    return answer.split("\n")[0] + '\n    raise NotImplementedError("write here")'


def hand_in(folder: Path, chapter: dict[str, Any], kind: str, k: int) -> None:
    """One submission of a kind, numbered."""
    checked = [e for e in chapter["exercises"] if "answer" in e]
    how = list(HOSTILE)[k % len(HOSTILE)]
    cells = list(chapter["code"])
    if kind == "hostile":
        cells.append(HOSTILE[how])
    for i, e in enumerate(checked):
        name = e["check"].partition("(")[2].rstrip(")")
        answer = e["answer"]
        if kind == "half right" and i % 2:
            answer = stub(answer)
        elif kind in ("wrong", "hostile"):
            answer = f"def {name}(*a, **k):\n    return torch.full((3,), {k}.0)"
        cells += [answer, e["check"]]
    path = folder / f"{kind.replace(' ', '-')}-{k:03d}" / "notebook.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(new_notebook(cells=[new_code_cell(c) for c in cells]), path)


def start(words: list[Any]) -> subprocess.Popen[str]:
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen(
        words, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--chapter", default="scaling")
    parser.add_argument("--kill", type=float, default=0.5, help="the part graded when it is killed")
    options = parser.parse_args()
    book = json.loads((ROOT / "_build" / "ipynb" / "exercises.json").read_text("utf-8"))
    chapter = book["chapters"][options.chapter]
    with tempfile.TemporaryDirectory() as top:
        handed, into = Path(top) / "submitted", Path(top) / "grades"
        course = Path(top) / "grading.json"
        course.write_text(json.dumps({"title": "B", "chapters": {options.chapter: chapter}}))
        kinds = ["right", "half right", "wrong", "hostile"]
        for k in range(options.count):
            hand_in(handed, chapter, kinds[k % 4], k // 4)
        words = [sys.executable, "-m", "grading", handed, "--into", into, "--course", course]
        begin, most, killed = time.monotonic(), 0, 0
        run = start(words)
        while run.poll() is None:
            most = max(most, resident(run.pid))
            done = len(list(into.glob("results/*.json")))
            if not killed and done >= options.kill * options.count:
                run.send_signal(signal.SIGKILL)
                run.wait()
                killed = len(list(into.glob("results/*.json")))
                run = start(words)
            time.sleep(0.5)
        seconds = time.monotonic() - begin
        print((run.stdout.read() if run.stdout else "").splitlines()[0])
        print(f"killed after {killed}, started again; {seconds:.0f} s in all, "
              f"{seconds / options.count:.2f} s a submission; memory of the whole run, sandboxes "
              f"included, at most {most >> 20} MB")  # fmt: skip
        scores: dict[str, list[float]] = defaultdict(list)
        for path in into.glob("results/*.json"):
            known = json.loads(path.read_text())
            kind = known["student"].rpartition("-")[0]
            scores[kind].append(sum(r["points"] for r in known["results"]))
        print(f"{'kind':12} {'graded':>6} {'least':>6} {'most':>6}")
        for kind, found in sorted(scores.items()):
            print(f"{kind:12} {len(found):6} {min(found):6g} {max(found):6g}")
        print(f"{sum(map(len, scores.values()))} of {options.count} have a result")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""An autograder for Gradescope: the zip it wants, and the results.json it reads.

The layout is Gradescope's: /autograder/source holds the unpacked zip, /autograder/submission what
a student handed in, and run_autograder leaves /autograder/results/results.json. A container there
holds one submission, so another user and limits suffice where bubblewrap is not allowed.
"""

from __future__ import annotations

import json
import time
import zipfile
from pathlib import Path
from typing import Any

from . import lateness, marking, run, sandbox
from .book import Course

SETUP = """#!/usr/bin/env bash
set -euo pipefail
apt-get update
apt-get install -y --no-install-recommends python3 python3-venv python3-pip bubblewrap util-linux
python3 -m venv /opt/grading
/opt/grading/bin/pip install --no-cache-dir {requirements}
"""
RUN = """#!/usr/bin/env bash
# AUTOGRADER and PYTHON are Gradescope's places unless somebody tries this elsewhere.
top=${AUTOGRADER:-/autograder}
chmod 700 "$top/source" "$top/submission" "$top/results"
export PYTHONPATH="$top/source/package"
cd "$top/source"
exec "${PYTHON:-/opt/grading/bin/python}" -m grading gradescope \\
    "$top/submission" "$top/results/results.json" --course grading.json --seed SEED
"""
REQUIREMENTS = "numpy tqdm matplotlib ipywidgets anywidget torch"


def pack(course_file: Path, path: Path, seed: int, requirements: str = REQUIREMENTS) -> None:
    """Write the autograder's zip: scripts, package, grader, exercises."""
    import attention

    source = Path(attention.__file__).parents[1]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:

        def add(name: str, text: str | bytes, mode: int) -> None:
            about = zipfile.ZipInfo(name, (2027, 1, 1, 0, 0, 0))
            about.external_attr, about.compress_type = mode << 16, zipfile.ZIP_DEFLATED
            made.writestr(about, text)

        add("setup.sh", SETUP.format(requirements=requirements), 0o755)
        add("run_autograder", RUN.replace("SEED", str(seed)), 0o755)
        add("grading.json", course_file.read_text("utf-8"), 0o600)
        for package in ("attention", "grading"):
            for file in sorted((source / package).rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".js":
                    inside = file.relative_to(source)
                    add(f"package/{inside}", file.read_bytes(), 0o644)


def tests(course: Course, chapter: str, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Gradescope's list of tests, one an exercise that is checked."""
    heads = {e.id: e.head for e in course.chapters[chapter].exercises}
    return [
        {
            "name": heads[r["id"]], "score": r["points"], "max_score": r["of"],
            "status": "passed" if not r["said"] else "failed",
            "output": r["said"] or "Right.", "output_format": "text", "visibility": "visible",
        }
        for r in found
    ]  # fmt: skip


def grade(course: Course, folder: Path, result: Path, wanted: str, seed: int) -> int:
    """Grade all chapters in a folder; results.json is written in any case."""
    start = time.monotonic()
    made: dict[str, Any] = {"tests": [], "visibility": "visible", "stdout_visibility": "hidden"}
    try:
        found = run.gather(folder, course)
        said = [f"{s.path.name}: {s.trouble}" for s in found if s.trouble]
        good = {s.chapter: s for s in found if not s.trouble}
        if not good:
            said.append("No notebook of this assignment was found among the files.")
        else:
            with _sandbox(wanted) as chosen:
                for name, s in good.items():
                    marks = marking.mark(
                        chosen, sandbox.FIRST_USER + 1, course.chapters[name], s.cells, seed
                    )
                    made["tests"] += tests(course, name, marks)
        made["output"] = "\n".join(said)
    except (lateness.Mistake, sandbox.Missing, OSError) as error:
        made["output"] = f"The grader could not run: {error}"
    made["execution_time"] = round(time.monotonic() - start)
    made["score"] = round(sum(t["score"] for t in made["tests"]), 2)
    result.parent.mkdir(parents=True, exist_ok=True)
    run.write(result, json.dumps(made, indent=1))
    return 0


def _sandbox(wanted: str):
    """Bubblewrap where it may run; else another user, in this container of one submission."""
    if not wanted:
        try:
            with sandbox.choose("bubblewrap"):
                wanted = "bubblewrap"
        except sandbox.Missing:
            wanted = "container"
    return sandbox.choose(wanted)

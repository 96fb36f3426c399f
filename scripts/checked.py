"""Count what holds the book together, for its page "What is checked": book/checked.json.

    python scripts/checked.py       # or: make checked; needs a built book, takes a minute

The tests are counted by collecting them, as pytest does before it runs them; what stands on the
pages is counted there. tests/test_page_checked.py fails when the file has fallen behind.
"""

import ast
import datetime
import fnmatch
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import mutants

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "book" / "checked.json"
GROUPS = {  # the first that fits a test's file; what fits none is of the package
    "examples": ["src/*"],
    "pages": ["test_page_*", "test_prose", "test_api", "test_findable", "test_publish"],
    "exercises": ["test_checks*"],
    "questions": ["test_questions*", "test_decks"],
    "oracle": ["test_oracle", "test_properties"],
    "refusals": ["test_bad_input"],
    "explorers": ["test_widgets*", "test_attention_view", "test_journey", "test_explorers"],
    "browsers": ["test_site", "test_engines"],
    "notebooks": ["test_notebooks", "test_jupyterlab"],
    "grading": ["test_grading*", "test_course", "test_lateness"],
    "building": ["test_build", "test_install", "test_escape", "test_addresses", "test_imports"],
    "package": ["*"],
}


def group(file: str) -> str:
    name = file if file.startswith("src/") else Path(file).stem
    return next(
        g for g, patterns in GROUPS.items() if any(fnmatch.fnmatch(name, p) for p in patterns)
    )


def tests(collected: Counter[str]) -> dict[str, int]:
    """The number of tests in each group, from the number in each file."""
    found = Counter(dict.fromkeys(GROUPS, 0))
    for file, count in collected.items():
        found[group(file)] += count
    return dict(found) | {"all": sum(found.values())}


def sentences(source: str) -> int:
    """How many sentences of a page a test computes and looks for."""
    return sum(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
        and getattr(node.func, "id", getattr(node.func, "attr", "")) in ("says", "printed")
        for node in ast.walk(ast.parse(source))
    )  # fmt: skip


def written() -> dict[str, int]:
    """What is counted on the pages and in the tests as they are written."""
    text = "\n".join(page.read_text("utf-8") for page in sorted((ROOT / "book").glob("*.md")))
    cells = re.findall(r"^```\{code-cell\}.*?^```$", text, flags=re.S | re.M)
    claims = r"^\s*(?:assert |(?:torch\.testing\.)?assert_close\()"
    return {
        "glued": len(re.findall(r"\{glue:\w+\}`", text)),
        "sentences": sum(
            sentences(path.read_text("utf-8")) for path in (ROOT / "tests").glob("test_*.py")
        ),
        "cells": len(cells),
        "asserts": sum(len(re.findall(claims, cell, flags=re.M)) for cell in cells),
        "figures": len(re.findall(r"^ +name: fig-", text, flags=re.M)),
        "asked": len(re.findall(r"^`{3,}\{(?:guess|check|interview)\}", text, flags=re.M)),
        "answers": len(re.findall(r"^:answer: glue:", text, flags=re.M)),
        "set": len(re.findall(r"^`{3,}\{exercise(?:-start)?\}", text, flags=re.M)),
        "solved": text.count("### BEGIN SOLUTION"),
        "mutants": sum(
            len(list(mutants.mutants((ROOT / f"src/attention/{name}.py").read_text("utf-8"))))
            for name in mutants.TESTS
        ),
        "excused": len(mutants.excuses()),
    }


def main() -> int:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--no-header"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout[-3000:], file=sys.stderr)
        return 1
    collected = Counter(re.findall(r"^([\w/]+\.py)::", done.stdout, flags=re.M))
    day = datetime.date.today().isoformat()
    record = {"day": day, "tests": tests(collected), "written": written()}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    print(f"{RECORD.relative_to(ROOT)}: {record['tests']['all']:,} tests")
    return 0


if __name__ == "__main__":
    sys.exit(main())

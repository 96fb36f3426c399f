"""Change each exercise's solution by one operator, number or term; name what its check lets pass.

    python scripts/mutate_answers.py scaling        # this chapter; without a name, all
    python scripts/mutate_answers.py --most 15

The changes are those of scripts/mutants.py, and a sum without one of its terms. Those in
tests/mutants_answers.txt, each with the reason why it is right as well, are expected to pass.
"""

import argparse
import ast
import importlib
import math
import os
import random
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import mutants
import torch
import torch.nn.functional as F
from torch import nn

import attention

ROOT = Path(__file__).parents[1]
EXCUSED = ROOT / "tests" / "mutants_answers.txt"
CELL = re.compile(r"^```\{code-cell\} python\n(.*?)^```$", re.S | re.M)
ASKED = re.compile(r"^check\.(\w+)\((\w+)\)$", re.M)
LIMIT = 30.0


def answers() -> Iterator[tuple[str, str, str, str]]:
    """Chapter, check, function and source of every solution that has a check."""
    for page in sorted((ROOT / "book").glob("*.md")):
        cells = CELL.findall(page.read_text("utf-8"))
        for cell, asked in zip(cells, cells[1:], strict=False):
            for check, function in ASKED.findall(asked):
                yield page.stem.replace("-", "_"), check, function, cell


def fewer_terms(node: ast.AST) -> Iterator[ast.AST]:
    """The changes of scripts/mutants.py, and each side of a sum, difference or product alone."""
    yield from everything(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
        yield node.left
        yield node.right


everything = mutants.changes
mutants.changes = fewer_terms


def passes(chapter: str, check: str, function: str, source: str) -> bool:
    """Whether the check takes the function of this source, in a process of its own."""
    sys.stdout.flush()
    if not (pid := os.fork()):
        status = 1
        try:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            space = {"torch": torch, "math": math, "F": F, "nn": nn}
            space |= {"attention": attention.attention}
            exec(source, space)
            getattr(importlib.import_module(f"attention.checks.{chapter}"), check)(space[function])
            status = 0
        finally:
            os._exit(status)
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER")
    parser.add_argument("--most", type=int, help="as many mutants of a solution, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    every = [x for x in answers() if not asked.chapters or x[0] in asked.chapters]
    if not every:
        parser.error(f"CHAPTER must have exercises with checks; got {' '.join(asked.chapters)}")
    lines = EXCUSED.read_text("utf-8").splitlines() if EXCUSED.exists() else []
    excused = {x for x in lines if x and x[0] not in "# "}
    torch.set_num_threads(1)
    print(
        "| Exercise | Mutants | Run | Noticed | Excused | Passed |",
        "|---|--:|--:|--:|--:|--:|",
        sep="\n",
    )
    wrong = []
    for chapter, check, function, source in every:
        if not passes(chapter, check, function, source):
            sys.exit(f"{chapter}.{check}: the solution itself does not pass")
        found = {f"{chapter}.{check}{name}": new for name, new in mutants.mutants(source)}
        drawn = set(found)
        if asked.most and len(found) > asked.most:
            drawn = set(random.Random(asked.seed).sample(sorted(found), asked.most))
        alive = [x for x in found if x in drawn and passes(chapter, check, function, found[x])]
        faults = [x for x in alive if x not in excused]
        counts = (
            len(found),
            len(drawn),
            len(drawn) - len(alive),
            len(alive) - len(faults),
            len(faults),
        )
        print(
            f"| {chapter}.{check} | " + " | ".join(map(str, counts)) + " |",
            *faults,
            sep="\n",
            flush=True,
        )
        wrong += faults
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

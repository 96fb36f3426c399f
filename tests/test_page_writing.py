"""The program that chapter 8 prints runs by itself; its numbers and claims are what it computes."""

import ast
import math
import re
import subprocess
import sys

import matplotlib
import pages
import pytest
import torch
import torch.nn.functional as F

from attention import BytePairs, learn_merges, tales

TEXT = (pages.BOOK / "writing.md").read_text("utf-8")
CELLS = re.findall(r"^```\{code-cell\} python\n(.*?)^```$", TEXT, flags=re.S | re.M)
(PROGRAM,) = [cell for cell in CELLS if "BLOCKS = " in cell]


def says(template, *values):
    pages.printed("writing", template, *values)


def test_the_program_runs_alone(tmp_path):
    """From the printed page, shortened, in its own process, away from the book's folder."""
    assert 100 <= len([line for line in PROGRAM.splitlines() if line.strip()]) <= 115
    short, count = re.subn(r"(STEPS, BATCH, TOP, WARMUP, CLIP =) 400,", r"\1 30,", PROGRAM)
    assert count == 1
    file = tmp_path / "program.py"
    file.write_text("import torch\ntorch.set_num_threads(1)\n" + short)
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    first, *rest = done.stdout.splitlines()
    loss = float(re.fullmatch(r"held-out loss (\d\.\d\d) nats a token", first)[1])
    assert 4.5 < loss < 6.3 < math.log(len(tales().tokens))  # it has begun to learn
    assert "\n".join(rest).startswith("One day")


def test_the_program_imports_the_text_and_nothing_else_of_the_book():
    taken = [
        (node.module, [alias.name for alias in node.names])
        for node in ast.walk(ast.parse(PROGRAM))
        if isinstance(node, ast.ImportFrom)
    ]
    assert ("attention", ["tales"]) in taken
    assert [module for module, _ in taken if module.startswith("attention")] == ["attention"]
    given, built = (
        set(),
        set(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__),
    )
    for node in ast.walk(ast.parse(PROGRAM)):  # and it uses no name from the cells above
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            given.add(node.name)
        elif isinstance(node, ast.arg):
            given.add(node.arg)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            given |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            given.add(node.id)
    used = {
        node.id for node in ast.walk(ast.parse(PROGRAM))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }  # fmt: skip
    assert used <= given | built, used - given - built

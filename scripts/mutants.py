"""Change the package by one operator, number or flag at a time; name the changes no test notices.

    python scripts/mutants.py functional masks      # these modules; without a name, all of TESTS
    python scripts/mutants.py --most 60 --workers 1

A mutant runs against its module's own tests and doctests (TESTS), in a process of its own and
on a copy. Those in tests/mutants.txt, each with the reason why it is the same program, are
expected to survive. Fails if another one does, or if one that is excused is gone or killed.
With --most, a module that has more mutants is judged by that many, drawn by --seed, and by all
that are excused.
"""

import argparse
import ast
import contextlib
import copy
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import hypothesis  # noqa: F401  # once, not in every child
import pytest
import torch
import torch._dynamo  # noqa: F401  # what optimizers import

ROOT = Path(__file__).parents[1]
EXCUSED = ROOT / "tests" / "mutants.txt"
TESTS = {
    "masks": ["masks", "functional"],
    "positions": ["positions"],
    "functional": ["functional"],
    "embedding": ["models"],
    "sampling": ["sampling", "models"],
    "multi_head": ["multi_head"],
    "blocks": ["blocks", "models"],
    "models": ["models"],
    "encoder_decoder": ["models"],
    "config": ["blocks", "models"],
    "vocabulary": ["data"],
    "training": ["training"],
    "_checks": ["functional", "masks"],
    "_fits": ["functional", "multi_head", "models"],
    "_fits_models": ["models"],
}
EVERY = ["bad_input"]  # beside those: tests/test_<name>.py
# PyTorch's compiler is slow and hangs in a fork; what looks at names alone kills nothing
SKIP = "not graph and not export and not forgotten and not still_in_the_source"
SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.And: ast.Or,
    ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """The node, changed in each way that applies to it."""
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            if type(op) in SWAPS:
                new = copy.deepcopy(node)
                new.ops[i] = SWAPS[type(op)]()
                yield new
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in SWAPS:
        new = copy.deepcopy(node)
        new.op = SWAPS[type(node.op)]()
        yield new
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        value = node.value
        yield ast.Constant(not value if isinstance(value, bool) else value + 1)


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """Every changed source, with words that name the change wherever its line moves to."""
    tree, seen = ast.parse(source), Counter()

    def visit(node: ast.AST, where: str) -> Iterator[tuple[str, str]]:
        for field, value in ast.iter_fields(node):
            # what a refusal says, and what is not run
            if field in ("annotation", "returns", "type_params") or isinstance(node, ast.Raise):
                continue
            for i, child in enumerate(value if isinstance(value, list) else [value]):
                if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                    continue
                for new in changes(child):
                    name = f"{where}: {ast.unparse(child)} -> {ast.unparse(new)}"
                    seen[name] += 1
                    mark = f" #{seen[name]}" if seen[name] > 1 else ""
                    place = value if isinstance(value, list) else None
                    place.__setitem__(i, new) if place is not None else setattr(node, field, new)
                    yield name + mark, ast.unparse(ast.fix_missing_locations(tree))
                    place.__setitem__(i, child) if place is not None else setattr(
                        node, field, child
                    )
                inner = isinstance(child, ast.FunctionDef | ast.ClassDef)
                yield from visit(child, f"{where}.{child.name}" if inner else where)

    yield from visit(tree, "")


def start(module: str, source: str, folder: Path) -> int:
    """Run the module's tests on a copy of the package with this source; return the process."""
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    try:
        os.setsid()
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.egg-info"))
        changed = folder / "src" / "attention" / f"{module}.py"
        changed.write_text(source, "utf-8")
        os.chdir(folder)
        sys.path.insert(0, str(folder / "src"))
        sys.dont_write_bytecode = True
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        names = ["mutants", *EVERY, *TESTS[module]]  # the quick ones first: one failure is enough
        tests = [ROOT / "tests" / f"test_{name}.py" for name in names]
        options = ["-x", "-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist"]
        options += ["-k", SKIP, "--rootdir", ROOT, "-c", ROOT / "pyproject.toml"]
        options += [changed, *(t for t in tests if t.exists())]
        result = int(pytest.main([str(o) for o in options]))
        if result == 0:
            import attention

            result = 0 if Path(attention.__file__).is_relative_to(folder) else 99
        os._exit(result)
    except BaseException:
        os._exit(98)


def survive(jobs: list[tuple[str, str, str]], limit: float, workers: int) -> dict[str, int]:
    """Each job's exit status by name: 0 where all tests passed, -1 where they never ended."""
    results: dict[str, int] = {}
    running: dict[int, tuple[str, float, Path]] = {}
    todo = list(reversed(jobs))
    while todo or running:
        while todo and len(running) < workers:
            name, module, source = todo.pop()
            folder = Path(tempfile.mkdtemp(prefix="mutant-"))
            running[start(module, source, folder)] = (name, time.monotonic(), folder)
        time.sleep(0.02)
        for pid, (name, since, folder) in list(running.items()):
            late = time.monotonic() - since > limit
            if late:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
            done, status = os.waitpid(pid, 0 if late else os.WNOHANG)
            if done:
                results[name] = -1 if late else os.waitstatus_to_exitcode(status)
                shutil.rmtree(folder, ignore_errors=True)
                del running[pid]
    return results


def named(module: str) -> dict[str, str]:
    """A module's mutants, by name: each one's source."""
    source = (ROOT / "src" / "attention" / f"{module}.py").read_text("utf-8")
    return {module + name: changed for name, changed in mutants(source)}


def excuses() -> set[str]:
    """The names of the mutants that are expected to survive."""
    lines = EXCUSED.read_text("utf-8").splitlines()
    return {x for x in lines if x and x[0] not in "# "}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(TESTS))
    parser.add_argument("--most", type=int, help="as many mutants of a module, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    if unknown := [m for m in asked.modules if m not in TESTS]:
        parser.error(f"MODULE must be one of {', '.join(TESTS)}; got {' '.join(unknown)}")
    torch.set_num_threads(1)
    excused, wrong = excuses(), []
    rows = ["| Module | Mutants | Run | Killed | Excused | Survived |", "|---|--:|--:|--:|--:|--:|"]
    for module in asked.modules or TESTS:
        source = (ROOT / "src" / "attention" / f"{module}.py").read_text("utf-8")
        began = time.monotonic()
        if survive([("unchanged", module, source)], 600, 1) != {"unchanged": 0}:
            sys.exit(f"{module}: its tests fail as it is")
        limit = 4 * (time.monotonic() - began) + 20
        every = named(module)
        mine = {name for name in excused if name.startswith((f"{module}.", f"{module}:"))}
        drawn = set(every)
        if asked.most and len(every) > asked.most:
            drawn = mine | set(random.Random(asked.seed).sample(sorted(every), asked.most))
        jobs = [(name, module, changed) for name, changed in every.items() if name in drawn]
        found = survive(jobs, limit, asked.workers)
        if strange := {name: status for name, status in found.items() if status > 2}:
            sys.exit(f"{module}: no verdict: {strange}")  # pytest's 1 and 2 are failed tests
        alive = {name for name, status in found.items() if status == 0}
        faults = [f"survives: {name}" for name in every if name in alive - mine]
        faults += [f"excused, and no survivor: {name}" for name in sorted(mine - alive)]
        counts = (
            len(every),
            len(found),
            len(found) - len(alive),
            len(alive & mine),
            len(alive - mine),
        )
        rows.append(f"| {module} | " + " | ".join(map(str, counts)) + " |")
        print(rows[-1], *faults, sep="\n", flush=True)
        wrong += faults
    print(*rows, sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

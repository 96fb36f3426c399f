"""The package without the exercises' answers, for the wheel of a book that has none (ANSWERS=0).

The package is the book's subject and stays: a public function that is an exercise's topic
(`attention`, `softmax`, the training loop) is in it as before. What goes is what only a solution or
its check holds: the checks' references give way to recorded values (attention/checks/_recorded.py),
and the figures that only solutions draw are cut out.
"""

import ast
import contextlib
import copy
import importlib
import io
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from torch import Tensor

# Checks that stay as code, since they hold no reference: they look at what an answer does, as many
# answers are right, or compare with the package's own public function.
KEPT = {
    "qkv": ["ending", "weights_from_output"],
    "scaling": ["softmax_with_temperature", "your_attention", "jacobian"],
    "multi_head": ["two_heads", "other_weights"],
    "masking": ["batch", "cheat", "leak"],
    "blocks": ["exactly_one", "pre_norm_block"],
    "writing": ["step", "induction"],
}
FIGURE = re.compile(r"figures\.(\w+)\(")
# Parts of recorded checks that look at what an answer does, and stay as well.
PARTS = {"scaling.online_attention": "_blockwise", "masking.masked_softmax": "_empty_row"}


def _one_answer(args: tuple[Any, ...]) -> bool:
    """Of top-p: whether no two equal probabilities stand where the sum is cut."""
    ranked = args[0].sort(descending=True).values
    left = int((ranked.cumsum(0) - ranked < args[1]).sum())
    return left == len(ranked) or bool(ranked[left - 1] != ranked[left])


def _live_rows(value: Any) -> Any:
    """Of int8: the factors, where a row of zeros may have any."""
    q, s = value
    return q, s.masked_fill((q == 0).all(-1, keepdim=True), float("nan"))


SKIPPED: dict[str, Callable[..., bool]] = {"blocks.top_p": _one_answer}
FREED: dict[str, Callable[..., Any]] = {"in_practice.int8": _live_rows}


# recording


def _leaves(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, list | tuple):
        for k, part in enumerate(value):
            yield from _leaves(part, f"{at}.{k}" if at else str(k))
    else:
        yield at, value


def _public(function: Any) -> str:
    """The name under which a function's module has it."""
    return function.__qualname__.removeprefix("_VariableFunctionsClass.")


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else copy.deepcopy(value)


def record(module: Any, name: str, answer: Callable[..., Any]) -> dict[str, Any]:
    """What the check `name` asks of the book's own answer, as JSON for `_recorded.play`."""
    from attention.checks._recorded import encode

    key = f"{module.__name__.rpartition('.')[2]}.{name}"
    cases: list[dict[str, Any]] = []
    said: list[str] = []
    finished: list[str] = []
    original = {n: getattr(module, n, None) for n in ("call", "close", "diagnose", "without")}
    want = module.want_tensor if hasattr(module, "want_tensor") else None
    now: dict[str, Any] = {}

    def at(tensor: Any) -> list[str]:
        """Where in the last result these numbers stand."""
        return [
            place for place, x in now.get("leaves", ())
            if isinstance(x, Tensor) and isinstance(tensor, Tensor)
            and original["close"](x, tensor, 1e-4)
        ]  # fmt: skip

    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        before = tuple(map(_copied, args)), {k: _copied(v) for k, v in kwargs.items()}
        result = original["call"](function, *args, **kwargs)
        value = FREED.get(key, lambda value: value)(_copied(result))
        now.clear()
        case = {
            "args": encode(before[0]), "kwargs": encode(before[1]), "value": encode(value),
            "without": list(finished), "tolerance": 1e-4, "faults": [], "otherwise": {},
            "names": {},
        }  # fmt: skip
        now.update(leaves=list(_leaves(result)), case=case)
        if SKIPPED.get(key, lambda args: True)(before[0]):
            cases.append(case)
        return result

    def close(a: Any, b: Any, tol: float = 1e-5) -> bool:
        found = original["close"](a, b, tol)
        if found and at(b):
            now["case"]["tolerance"] = max(tol, now["case"]["tolerance"])
        return found

    def diagnose(result: Tensor, right: Tensor, suspects: Any, otherwise: str) -> None:
        original["diagnose"](result, right, suspects, otherwise)
        pairs = suspects.items() if isinstance(suspects, dict) else [(s, v) for v, s in suspects]
        for place in at(right)[:1]:
            now["case"]["faults"] += [
                {"at": place, "value": encode(value), "sentence": sentence}
                for sentence, value in pairs if not original["close"](value, right)
            ]  # fmt: skip
            if " got " not in otherwise and "gives" not in otherwise:  # it speaks of this answer
                now["case"]["otherwise"][place] = otherwise

    def want_tensor(result: Any, shape: Any, what: str = "the result") -> Tensor:
        assert want
        for place, x in now.get("leaves", ()):
            if x is result:
                now["case"]["names"][place] = what
        return want(result, shape, what)

    @contextlib.contextmanager
    def without(*functions: Any) -> Iterator[None]:
        finished[:] = [f"{f.__module__}:{_public(f)}" for f in functions]
        yield
        finished.clear()

    changed = {"call": call, "close": close, "diagnose": diagnose, "without": without,
               "want_tensor": want_tensor, "passed": said.append}  # fmt: skip
    with contextlib.ExitStack() as stack:
        for other, function in changed.items():
            if hasattr(module, other):
                stack.enter_context(mock.patch.object(module, other, function))
        for part in filter(None, [PARTS.get(key)]):
            stack.enter_context(mock.patch.object(module, part, lambda function: None))
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        getattr(module, name)(answer)
    return {"passed": said[0], "cases": cases}


# cutting


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _defined(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return set()


def _pieces(source: str) -> list[tuple[ast.stmt, str]]:
    """The statements of a module with their text, decorators included."""
    lines, made = source.splitlines(), []
    for node in ast.parse(source).body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        made.append((node, "\n".join(lines[first - 1 : node.end_lineno])))
    return made


def check_module(source: str, chapter: str, asked: set[str]) -> str:
    """A chapter's checks: kept ones with all that they use, for the others a call of `play`."""
    pieces = _pieces(source)
    kept = set(KEPT.get(chapter, ())) & asked
    own = set().union(*(_defined(node) for node, _ in pieces))
    wanted = kept | {part for name in asked if (part := PARTS.get(f"{chapter}.{name}"))}
    while True:
        used = {
            n for node, _ in pieces if _defined(node) & wanted for n in _names(node) & own
        } - wanted  # fmt: skip
        if not used:
            break
        wanted |= used
    made = []
    for node, text in pieces:
        name = next(iter(_defined(node)), "")
        if isinstance(node, ast.Import | ast.ImportFrom) or isinstance(node, ast.Expr):
            made.append(text)
        elif name == "__all__":
            made.append(f"__all__ = {sorted(asked)}")
        elif name in asked - kept and isinstance(node, ast.FunctionDef):
            signature = text.split(":\n")[0]
            key, part = f"{chapter}.{name}", PARTS.get(f"{chapter}.{name}")
            body = f'    play("{key}", function{", last=False" if part else ""})\n'
            if part:
                body += f'    {part}(function)\n    passed("right")\n'
            made.append(f'{signature}:\n    """{ast.get_docstring(node)}"""\n{body}')
        elif _defined(node) & wanted:
            made.append(text)
    imports = [k for k, (node, _) in enumerate(pieces) if isinstance(node, ast.ImportFrom)]
    made.insert(max(imports) + 1, "from ._recorded import play")
    return "\n\n".join(made) + "\n"


def cut(source: str, names: set[str]) -> str:
    """A module without these functions."""
    for node, text in _pieces(source):
        if _defined(node) & names:
            source = source.replace(text, "")
    return source


# the whole


def package(source: Path, target: Path, notebooks: Path) -> None:
    """Copy the package from `source` to the new folder `target`, without answers.

    `notebooks` is the folder of the notebooks' builder: exercises.json and the chapters' notebooks,
    which are without solutions themselves.
    """
    from grading import book

    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    known = book.read(notebooks / "exercises.json")
    asked: dict[str, set[str]] = {}
    records = {}
    for chapter in known.chapters.values():
        module = importlib.import_module(f"attention.checks.{chapter.module}")
        for exercise in (e for e in chapter.exercises if e.check):
            name = exercise.called[0]
            asked.setdefault(chapter.module, set()).add(name)
            if name not in KEPT.get(chapter.module, ()):
                answer = book.answer(chapter, exercise)
                records[f"{chapter.module}.{name}"] = record(module, name, answer)
    folder = target / "checks"
    for path in folder.glob("[!_]*.py"):
        made = check_module(path.read_text("utf-8"), path.stem, asked.get(path.stem, set()))
        path.write_text(made, "utf-8")
    (folder / "recorded.json").write_text(json.dumps(records), encoding="utf-8")
    drawn = "\n".join(path.read_text("utf-8") for path in notebooks.rglob("*.ipynb"))
    solved = "\n".join(e.solution for c in known.chapters.values() for e in c.exercises)
    alone = set(FIGURE.findall(solved)) - set(FIGURE.findall(drawn))
    for path in (target / "figures").glob("*.py"):
        path.write_text(cut(path.read_text("utf-8"), alone), encoding="utf-8")


if __name__ == "__main__":
    package(*map(Path, sys.argv[1:]))

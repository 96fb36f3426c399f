"""Who may import whom; what importing the package loads; how long a module may grow."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import attention

PACKAGE = Path(attention.__file__).parent
CORE = {  # module: what it may import of the package, and from outside
    "_checks": (set(), {"torch"}),
    "_fits": ({"_checks"}, {"torch"}),
    "_fits_models": ({"_checks"}, {"torch"}),
    "masks": ({"_checks"}, {"torch"}),
    "positions": ({"_checks"}, {"torch"}),
    "device": (set(), {"torch"}),
    "functional": ({"_checks", "_fits", "masks"}, {"torch"}),
    "sampling": ({"_checks", "functional"}, {"torch"}),
    "multi_head": ({"_checks", "_fits", "functional", "masks", "positions"}, {"torch"}),
    "config": (set(), set()),
    "blocks": ({"_checks", "config", "multi_head"}, {"torch"}),
    "embedding": ({"_checks", "positions"}, {"torch"}),
    "models": (
        {"_checks", "_fits_models", "blocks", "config", "embedding", "multi_head", "sampling"},
        {"torch"},
    ),
    "encoder_decoder": (
        {"_checks", "_fits_models", "blocks", "config", "models", "positions"},
        {"torch"},
    ),
    "training": ({"_checks"}, {"torch", "tqdm"}),
    "vocabulary": ({"_checks"}, {"torch"}),
    "data": ({"_checks", "vocabulary"}, {"torch"}),
    "byte_pairs": ({"_checks"}, {"torch"}),
    "texts": ({"_checks", "byte_pairs"}, {"torch"}),
    "ngrams": ({"_checks"}, {"torch"}),
    "_packed": (set(), {"numpy", "torch"}),
    "pretrained": (
        {"_checks", "_packed", "byte_pairs", "models", "ngrams", "texts", "training"},
        {"numpy", "torch"},
    ),
    "example": (set(), {"torch"}),
    "vision": ({"_checks", "blocks"}, {"torch"}),
    "patching": ({"_checks"}, {"torch"}),
    "tables": ({"_checks"}, {"torch"}),
}
WITHOUT_EXAMPLE = {
    "History",
    "PronounTask",
    "Table",
    "Text",
}  # shown by `train`, `pronoun_task`, `table`, `tales`
CORE["__init__"] = (set(CORE), set())


def imports(source):
    """(inside, outside): modules of the package, and top-level names of others."""
    inside, outside = set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
            inside |= {n.split(".")[1] for n in names if n.startswith("attention.")}
            outside |= {n.split(".")[0] for n in names if not n.startswith("attention.")}
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                inside |= {module.split(".")[0]} if module else {a.name for a in node.names}
            elif module.split(".")[0] == "attention":
                rest = module.split(".")[1:]
                inside |= {rest[0]} if rest else {a.name for a in node.names}
            else:
                outside.add(module.split(".")[0])
    return inside, outside - set(sys.stdlib_module_names)


def code_lines(source):
    """Lines with code on them: neither blank, nor comment, nor docstring."""
    tree = ast.parse(source)
    counted = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.stmt, ast.expr)) and not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            counted |= {node.lineno, node.end_lineno}
    docs = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docs |= set(range(node.lineno, node.end_lineno + 1))
    return len(counted - docs)


@pytest.mark.parametrize("module", CORE)
def test_a_module_imports_only_what_it_may(module):
    inside, outside = imports((PACKAGE / f"{module}.py").read_text())
    may_inside, may_outside = CORE[module]
    assert inside <= may_inside, f"{module} must not import {inside - may_inside}"
    assert outside <= may_outside, f"{module} must not import {outside - may_outside}"


def test_every_module_of_the_package_has_its_rule():
    found = {path.stem for path in PACKAGE.glob("*.py")}
    assert found <= set(CORE) | {"plots"}, "a new module needs a line in CORE"


def test_the_reader_of_imports_sees_all_forms():
    source = "import attention.plots, numpy\nfrom . import data\nfrom .masks import x\n"
    source += "from attention.models import y\nfrom attention import z\nimport os\n"
    assert imports(source) == ({"plots", "data", "masks", "models", "z"}, {"numpy"})


def test_import_attention_stays_light():
    """Neither plots nor widgets, nor what they need, come along."""
    heavy = "matplotlib ipywidgets anywidget IPython attention.plots attention.widgets".split()
    code = f"import sys, attention; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env={"PYTHONPATH": str(PACKAGE.parent), "PATH": ""})  # fmt: skip
    assert done.stdout.strip() == "[]", done.stderr


def test_everything_public_is_exported_and_documented():
    for module in sorted(set(CORE) - {"__init__", "_checks", "_fits", "_fits_models", "_packed"}):
        here = f"attention.{module}"
        things = {
            name: thing for name, thing in vars(sys.modules[here]).items()
            if not name.startswith("_") and getattr(thing, "__module__", "") == here
        }  # fmt: skip
        assert things, f"{module} defines nothing public"
        assert set(things) <= set(attention.__all__), f"{module}: {set(things)}"
        for name, thing in things.items():
            first = (thing.__doc__ or "").split("\n")[0]
            assert first.endswith((".", ":")), f"{module}.{name} lacks a first sentence"
            assert ">>>" in thing.__doc__ or name in WITHOUT_EXAMPLE, f"{name} lacks an example"
    assert list(attention.__all__) == sorted(attention.__all__)
    assert all(hasattr(attention, name) for name in attention.__all__)


@pytest.mark.parametrize("module", sorted(set(CORE) - {"__init__"}))
def test_a_module_can_be_read_in_a_sitting(module):
    lines = code_lines((PACKAGE / f"{module}.py").read_text())
    assert lines <= 135, f"{module} has {lines} lines of code"

"""What every check says of an answer that is no answer yet."""

import importlib
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attention import attention
from attention.checks._base import NotYet, want_whole

BOOK = Path(__file__).parents[1] / "book"

CHAPTERS = [
    "motivation",
    "qkv",
    "scaling",
    "multi_head",
    "positions",
    "masking",
    "blocks",
    "writing",
    "relatives",
    "in_practice",
]
MODULES = [importlib.import_module(f"attention.checks.{chapter}") for chapter in CHAPTERS]
CHECKS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": getattr(module, name)
    for module in MODULES
    for name in module.__all__
}


def my_answer(*args, **kwargs):
    raise NotImplementedError


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (my_answer, "my_answer is still the stub"),
        (lambda *args, **kwargs: None, "forget `return`"),
        (3, "pass the function itself; got int"),
    ],
)
@pytest.mark.parametrize("name", CHECKS)
def test_no_answer_is_told_so(name, answer, sentence):
    with pytest.raises(NotYet, match=sentence):
        CHECKS[name](answer)


@pytest.mark.parametrize("name", CHECKS)
def test_a_constant_is_refused(name):
    with pytest.raises(NotYet):
        CHECKS[name](lambda *args, **kwargs: torch.zeros(1))


class Strange:
    """An answer that no check expects."""


@pytest.mark.parametrize(
    "strange",
    [
        math.nan, math.inf, -math.inf, 10**400, 1j, True, "a", b"a", [], (), {}, Strange(),
        (torch.zeros(2), "a"), ("a", "b"), (math.nan, math.inf), ([], {}), (1, 2, 3),
        ["a", "b", "c"], np.zeros(3), torch.tensor([]), torch.tensor(1j), torch.tensor(False),
        torch.tensor(math.nan), (torch.tensor(1j), torch.tensor(1j)),
    ],
    ids=lambda x: type(x).__name__,
)  # fmt: skip
@pytest.mark.parametrize("name", CHECKS)
def test_a_strange_answer_is_refused_in_a_sentence(name, strange):
    with pytest.raises(NotYet):
        CHECKS[name](lambda *args, **kwargs: strange)


CELL = re.compile(r"^```\{code-cell\} python\n(.*?)^```$", re.S | re.M)
ASKED = re.compile(r"^check\.(\w+)\((\w+)\)$", re.M)


def solutions():
    """The book's own answers, one for each check: {"chapter.check": function}."""
    found = {}
    for page in BOOK.glob("*.md"):
        cells = CELL.findall(page.read_text("utf-8"))
        chapter = page.stem.replace("-", "_")
        for cell, asked in zip(cells, cells[1:], strict=False):
            for check, function in ASKED.findall(asked):
                space = {"torch": torch, "math": math, "F": F, "nn": nn, "attention": attention}
                exec(cell, space)
                found[f"{chapter}.{check}"] = space[function]
    return found


SOLUTIONS = solutions()
FREE = {
    "qkv.ending",
    "masking.cheat",
    "writing.induction",
}  # a design that stays right when it is made stronger


def cast(result, dtype):
    """The same numbers in another type: tensors alone, masks and ids as they are."""
    if isinstance(result, (tuple, list)):
        return type(result)(cast(x, dtype) for x in result)
    is_float = isinstance(result, torch.Tensor) and result.is_floating_point()
    return result.to(dtype) if is_float else result


def test_every_check_has_an_answer_in_the_book():
    assert set(SOLUTIONS) == set(CHECKS)


@pytest.mark.parametrize("name", CHECKS)
def test_a_right_answer_is_right_in_double_precision(name, capsys):
    answer = SOLUTIONS[name]
    CHECKS[name](lambda *args, **kwargs: cast(answer(*args, **kwargs), torch.float64))
    assert capsys.readouterr().out.startswith("Right")


@pytest.mark.parametrize("name", CHECKS)
def test_a_wrong_answer_in_double_precision_is_told_its_fault(name):
    answer, seen = SOLUTIONS[name], []

    def larger(*args, **kwargs):
        result = cast(answer(*args, **kwargs), torch.float64)
        several = result if isinstance(result, (tuple, list)) else [result]
        floats = [x for x in several if isinstance(x, torch.Tensor) and x.is_floating_point()]
        seen.extend(floats)
        change = (lambda x: x * 0.01) if name in FREE else (lambda x: x * 1.5 + 0.1)
        wrong = [change(x) if any(x is y for y in floats) else x for x in several]
        return type(result)(wrong) if isinstance(result, (tuple, list)) else wrong[0]

    try:
        CHECKS[name](larger)
    except NotYet:
        return
    assert not seen, "a wrong answer passed"


@pytest.mark.parametrize("name", CHECKS)
def test_a_complex_answer_is_refused(name):
    answer, seen = SOLUTIONS[name], []

    def in_complex(*args, **kwargs):
        result = answer(*args, **kwargs)
        changed = cast(result, torch.complex64)
        seen.append(changed is not result and repr(changed) != repr(result))
        return changed

    try:
        CHECKS[name](in_complex)
    except NotYet:
        return
    assert not any(seen), "complex numbers passed"


def test_a_whole_number_may_come_as_any_type():
    for number in (3, 3.0, np.int64(3), torch.tensor(3), torch.tensor([3.0])):
        assert want_whole(number, "a number") == 3
    for other in (True, 3.5, math.nan, math.inf, "3", torch.zeros(2), None):
        with pytest.raises(NotYet, match="^a number; got"):
            want_whole(other, "a number")


def test_an_integer_query_is_judged_by_its_weights():
    with pytest.raises(NotYet, match="must be zero|this query gives"):
        CHECKS["qkv.aimed_query"](lambda keys, weights: torch.tensor([1, 2]))

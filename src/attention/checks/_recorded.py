"""The checks of a book without answers: recorded values in place of the code that computes them.

`make book ANSWERS=0` calls each check with the book's own answer and writes down what was asked,
what came, and what each usual mistake would have given. The wheel then holds these records and no
reference implementation.
"""

from __future__ import annotations

import base64
import functools
import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ._base import NotYet, call, close, diagnose, passed, want_number, want_tensor, want_whole
from ._base import without as _without

FILE = Path(__file__).with_name("recorded.json")


def encode(value: Any) -> Any:
    """A value for JSON: numbers, words and None as they are, tensors by their bytes."""
    if isinstance(value, Tensor):
        data = value.detach().contiguous().numpy()
        text = base64.b64encode(data.tobytes()).decode()
        return {"tensor": str(data.dtype), "shape": list(data.shape), "bytes": text}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [encode(x) for x in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(k), encode(v)] for k, v in value.items()]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"value must be of numbers, words and tensors; got {type(value).__name__}")


def decode(value: Any) -> Any:
    """What was encoded."""
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        data = np.frombuffer(base64.b64decode(value["bytes"]), value["tensor"]).copy()
        return torch.from_numpy(data).reshape(value["shape"])
    ((kind, parts),) = value.items()
    if kind == "dict":
        return {decode(k): decode(v) for k, v in parts}
    return {"list": list, "tuple": tuple}[kind](decode(x) for x in parts)


@functools.cache
def _records() -> dict[str, Any]:
    return json.loads(FILE.read_text("utf-8"))


def _finished(name: str) -> Any:
    """A function by its module and name; None where this version has it elsewhere."""
    module, _, path = name.partition(":")
    try:
        return functools.reduce(getattr, path.split("."), importlib.import_module(module))
    except (ImportError, AttributeError):
        return None


def play(name: str, function: Callable[..., Any], last: bool = True) -> None:
    """Check a function by the records of `name`; NotYet says what is wrong."""
    record = _records()[name]
    for case in record["cases"]:
        args, kwargs, wanted = (decode(case[key]) for key in ("args", "kwargs", "value"))
        given = [list(x) if isinstance(x, list) else x for x in args]
        with _without(*(f for f in map(_finished, case["without"]) if f is not None)):
            got = call(function, *args, **kwargs)
        if any(isinstance(x, list) and x != y for x, y in zip(args, given, strict=True)):
            raise NotYet("you changed the list that was given; build a new one")
        words = [*map(_shown, given), *(f"{k}={_shown(v)}" for k, v in kwargs.items())]
        _compare(got, wanted, case, f"called with ({', '.join(words)})", "")
    if last:
        passed(record["passed"])


def _shown(value: Any) -> str:
    if isinstance(value, Tensor) and value.numel() > 6:
        return f"a tensor {tuple(value.shape)}"
    if isinstance(value, Tensor):
        return str([round(x, 3) for x in value.flatten().tolist()])
    return f"({', '.join(map(_shown, value))})" if isinstance(value, tuple) else repr(value)


def _whole(value: Any) -> bool:
    """Whether a tensor stands in it, so that it is compared part by part."""
    parts = value if isinstance(value, list | tuple) else ()
    return isinstance(value, Tensor) or any(map(_whole, parts))


def _compare(got: Any, wanted: Any, case: dict[str, Any], about: str, at: str) -> None:
    """Raise NotYet unless `got` is as `wanted`; `at` says which part of the result this is."""
    what = case["names"].get(at) or (f"part {at} of the result" if at else "the result")
    if isinstance(wanted, Tensor):
        _compare_tensors(got, wanted, case, f"{what} is not right, {about}", at, what)
    elif isinstance(wanted, list | tuple) and _whole(wanted):
        if not isinstance(got, list | tuple) or len(got) != len(wanted):
            raise NotYet(f"{what} must have {len(wanted)} parts; got {type(got).__name__}")
        order = list(case["names"])  # that of the check: a mistake shows first where it arises
        places = [(f"{at}.{k}" if at else str(k), k) for k in range(len(got))]
        places.sort(key=lambda p: order.index(p[0]) if p[0] in order else len(order))
        for place, k in places:
            _compare(got[k], wanted[k], case, about, place)
    elif isinstance(wanted, int | float) and not isinstance(wanted, bool):
        read = want_whole if isinstance(wanted, int) else want_number
        number = read(got, f"{what} must be a {'whole ' * isinstance(wanted, int)}number")
        if abs(number - wanted) > case["tolerance"] * abs(wanted) * isinstance(wanted, float):
            raise NotYet(f"{about} it must give {wanted}; got {number}"[:300])
    else:
        plain = got.tolist() if isinstance(got, Tensor) else got
        plain = list(plain) if isinstance(plain, tuple) else plain
        if type(plain) is not type(wanted) or plain != wanted:
            raise NotYet(f"{about} it must give {wanted!r}; got {got!r}"[:300])


def _compare_tensors(
    got: Any, wanted: Tensor, case: dict[str, Any], otherwise: str, at: str, what: str
) -> None:
    got = want_tensor(got, tuple(wanted.shape), what)
    floats = wanted.is_floating_point()
    exact = wanted.dtype in (torch.bool, torch.int8) or got.dtype == torch.bool
    if not floats and (got.is_floating_point() or exact and got.dtype != wanted.dtype):
        raise NotYet(f"{what} must be of type {wanted.dtype}; got {got.dtype}")
    if floats and wanted.isnan().any():  # whatever stands there is right
        free = wanted.isnan()
        got, wanted = (x.double().masked_fill(free, 0.0) for x in (got, wanted))
    if close(got, wanted, case["tolerance"]):
        return
    told = [f for f in case["faults"] if f["at"] == at]
    diagnose(
        got, wanted, [(decode(f["value"]), f["sentence"]) for f in told],
        case["otherwise"].get(at) or otherwise,
    )  # fmt: skip

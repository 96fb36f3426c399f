"""Refusals, as sentences: which argument, what was wanted, what came. Nothing is computed here."""

import math
import numbers
from collections.abc import Iterable

import torch
from torch import Tensor


def count(name: str, value: int, least: float = 1) -> int:
    symbolic = isinstance(value, torch.SymInt)  # a length left open while a graph is made
    if not symbolic and (isinstance(value, bool) or not isinstance(value, numbers.Integral)):
        raise TypeError(f"{name} must be an integer; got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}; got {value}")
    return value if symbolic else int(value)


def number(name: str, value: float, above: float = -math.inf) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number; got {value!r}")
    if not -math.inf < value < math.inf:  # math.isfinite does not take symbolic numbers
        raise ValueError(f"{name} must be finite; got {value}")
    if value <= above:
        raise ValueError(f"{name} must be greater than {above}; got {value}")


def fraction(name: str, value: float) -> None:
    """A part of the whole that may be 0 but not 1, such as dropout."""
    number(name, value)
    if not 0 <= value < 1:
        raise ValueError(f"{name} must be at least 0 and less than 1; got {value}")


def divides(name: str, value: int, whole_name: str, whole: int) -> None:
    if count(whole_name, whole) % count(name, value):
        raise ValueError(f"{name} must divide {whole_name} = {whole}; got {value}")


def flag(name: str, value: bool) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False; got a {type(value).__name__}")


def one_of(name: str, value: object, choices: Iterable[object]) -> None:
    if value not in list(choices):  # a list compares where a dictionary would hash
        raise ValueError(f"{name} must be one of {list(choices)}; got {value!r}")


def may_hold(condition: Tensor) -> bool:
    """Whether one boolean is True. Where its value cannot be read the answer is yes, it may be.

    That is so while a graph is made, under `torch.func.vmap`, and on tensors without numbers.
    """
    if torch.compiler.is_compiling():
        return True
    try:
        return bool(condition)
    except RuntimeError:
        return True


def dimension(name: str, x: Tensor, dim: int) -> None:
    if x.ndim == 0:
        raise ValueError(f"{name} must have at least one dimension; got a single number")
    count("dim", dim, least=-x.ndim)
    if dim >= x.ndim:
        raise ValueError(f"dim must be from {-x.ndim} to {x.ndim - 1}; got {dim}")


def floating(name: str, x: Tensor) -> None:
    if not isinstance(x, Tensor) or not x.is_floating_point():
        raise TypeError(f"{name} must be a floating-point tensor; got {kind(x)}")


def integers(name: str, x: Tensor) -> None:
    if not isinstance(x, Tensor) or x.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name} must be an integer tensor; got {kind(x)}")


def token_ids(name: str, ids: Tensor, table: Tensor) -> None:
    """ids must be (B, n), each one a row of the table."""
    integers(name, ids)
    if ids.ndim != 2 or ids.shape[1] == 0:
        raise ValueError(f"{name} must be (B, n) with n >= 1; got {shape(ids)}")
    if ids.device != table.device:
        raise ValueError(f"{name} must be on {table.device}, as the model is; got {ids.device}")
    if not may_hold(((ids >= 0) & (ids < len(table))).all()):
        low, high = int(ids.min()), int(ids.max())
        raise ValueError(f"{name} must be from 0 to {len(table) - 1}; got {low} to {high}")


def mask(x: Tensor, name: str = "mask") -> None:
    if not isinstance(x, Tensor) or x.dtype != torch.bool:
        raise TypeError(
            f"{name} must be a boolean tensor, True = may attend; got {kind(x)}"
            + " (an added float is a bias)" * (isinstance(x, Tensor) and x.is_floating_point())
        )
    if x.ndim < 2:
        raise ValueError(f"{name} must be (..., n_q, n_k); got {shape(x)}")


def width(name: str, x: Tensor, d_model: int) -> None:
    """x must be (..., n, d_model), floating, with at least one token."""
    floating(name, x)
    if x.ndim < 2 or x.shape[-1] != d_model or x.shape[-2] == 0:
        raise ValueError(f"{name} must be (..., n, {d_model}), d_model last; got {shape(x)}")


def shape(x: Tensor) -> str:
    return str(tuple(x.shape))


def kind(x) -> str:
    return str(x.dtype) if isinstance(x, Tensor) else type(x).__name__

"""What every check does: call the student's function safely, compare, say what is wrong."""

from __future__ import annotations

import linecache
import math
import numbers
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

SECONDS = 10.0


class NotYet(AssertionError):
    """The answer is not right yet; the message says what to look at."""

    def _render_traceback_(self) -> list[str]:
        """In a notebook show the sentence alone: the traceback would point into the check."""
        return [f"Not yet: {self}"]


class TimeUp(BaseException):
    """The time is over. No Exception, so that an `except Exception` of the student lets it by."""


@contextmanager
def time_limit(seconds: float = SECONDS) -> Iterator[None]:
    """Interrupt an endless loop with a sentence, where the platform can (main thread, POSIX).

    What stops it is raised again fifty times a second: a bare `except:` in the loop catches it only
    while the loop is inside that `try`. Who catches it and returns in the end is late all the
    same. Nothing here stops one long call of compiled code before it returns.
    """
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return
    running, late = True, False

    def stop(*_: Any) -> None:
        nonlocal late
        if running:
            late = True
            raise TimeUp

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.02)
    try:
        yield
    except (TimeUp, Exception, SystemExit):
        running = False
        if not late:
            raise
    finally:
        running = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if late:
        raise NotYet(
            f"your code still ran after {seconds:g} seconds; look for a loop that never ends"
        )


@contextmanager
def without(*references: Callable[..., Any]) -> Iterator[None]:
    """Say so when an answer calls one of these finished functions: a reminder, not a lock.

    It knows them by their code and not by their name: a helper of the same name is welcome.
    """
    names = {getattr(f, "__code__", f): f.__name__ for f in references}
    called: list[str] = []

    def watch(frame: Any, event: str, function: Any) -> None:
        if event == "call" and frame.f_code in names:
            called.append(names[frame.f_code])
        elif event == "c_call" and function in names:
            called.append(names[function])

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(before)
    if called:
        raise NotYet(f"you call the finished {called[0]}; write it yourself")


def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call the student's function on copies of the arguments.

    It draws the same random numbers at every call, so that a verdict never changes from one run
    to the next; the caller's random state is kept as it was.

    Raises NotYet with a sentence if it is not callable, is still the stub, returns None, raises
    (with the line of the student's own that did), exits, runs too long or changes its arguments.
    """
    if not callable(function):
        raise NotYet(f"pass the function itself; got {type(function).__name__}")
    name = getattr(function, "__name__", "your function")
    copies = [a.clone() if isinstance(a, Tensor) else a for a in args]
    state = torch.get_rng_state()
    torch.default_generator.manual_seed(0)
    try:
        with time_limit():
            result = function(*copies, **kwargs)
    except NotYet:
        raise
    except NotImplementedError as error:
        raise NotYet(
            f"{name} is still the stub: replace the line that raises NotImplementedError"
        ) from error
    except SystemExit as error:
        raise NotYet(f"{name} ends the program (exit); return the result instead") from error
    except Exception as error:
        shapes = ", ".join(str(tuple(a.shape)) for a in args if isinstance(a, Tensor))
        raise NotYet(
            f"{name} raised {type(error).__name__}: {error}"
            + _line(function, error)
            + (f" (called with shapes {shapes})" if shapes else "")
        ) from error
    finally:
        torch.set_rng_state(state)
    if result is None:
        raise NotYet(f"{name} returned None; did you forget `return`?")
    for before, after in zip(args, copies, strict=True):
        if isinstance(before, Tensor) and not torch.equal(before.nan_to_num(), after.nan_to_num()):
            raise NotYet(f"{name} changed one of its arguments in place; work on a new tensor")
    return result


def _line(function: Callable[..., Any], error: Exception) -> str:
    """Where the error arose: the deepest line that is the student's own."""
    own = getattr(function, "__globals__", None)
    frames = [x for x in traceback.walk_tb(error.__traceback__) if x[0].f_globals is own]
    if not frames:
        return ""
    frame, number = frames[-1]
    line = linecache.getline(frame.f_code.co_filename, number, frame.f_globals).strip()
    return f" in line {number} of the cell" + (f": {line}" if line else "")


def want_tensor(result: Any, shape: tuple[int, ...], what: str = "the result") -> Tensor:
    """The result as a real tensor of that shape, else NotYet with a sentence.

    Where one number is wanted, shape (), a plain number will do. NaN passes: `diagnose` and
    `no_nan` speak of it.
    """
    if shape == () and is_number(result):
        result = torch.tensor(want_number(result, what), dtype=torch.float64)
    if not isinstance(result, Tensor):
        raise NotYet(f"{what} must be a tensor; got {type(result).__name__}")
    if tuple(result.shape) != tuple(shape):
        raise NotYet(f"{what} must have shape {tuple(shape)}; got {tuple(result.shape)}")
    if result.is_complex():
        raise NotYet(f"{what} is complex; give real numbers")
    return result


def no_nan(result: Tensor, what: str = "the result") -> Tensor:
    """The result, if no entry of it is NaN; else NotYet."""
    if result.is_floating_point() and torch.isnan(result).any():
        raise NotYet(f"{what} contains NaN; where could 0/0 or inf - inf come from?")
    return result


def is_number(result: Any) -> bool:
    """Whether this is one real number, Python's or NumPy's; True and False are none."""
    return isinstance(result, numbers.Real) and not isinstance(result, bool)


def want_number(result: Any, wanted: str) -> float:
    """The result as a float, from Python's, NumPy's or a tensor's one number; else NotYet."""
    number = result.item() if isinstance(result, Tensor) and result.numel() == 1 else result
    if not is_number(number):
        raise NotYet(f"{wanted}; got {type(number).__name__}")
    try:
        value = float(number)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise NotYet(f"{wanted}, a finite one; got {value}")
    return value


def want_whole(result: Any, wanted: str) -> int:
    """The result as an int, also from a float or a tensor that holds one; else NotYet."""
    number = result.item() if isinstance(result, Tensor) and result.numel() == 1 else result
    if is_number(number) and not isinstance(number, numbers.Integral) and number % 1 == 0:
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, numbers.Integral):
        plain = isinstance(number, (bool, float, str))
        raise NotYet(f"{wanted}; got {repr(number) if plain else type(number).__name__}")
    return int(number)


def close(a: Any, b: Any, tol: float = 1e-5) -> bool:
    """Whether two real tensors have one shape and agree to `tol`, relative to their size."""
    if not isinstance(a, Tensor) or not isinstance(b, Tensor) or a.shape != b.shape:
        return False
    if a.is_complex() or b.is_complex():
        return False
    if a.dtype == torch.bool or b.dtype == torch.bool:
        return a.dtype == b.dtype and bool((a == b).all())
    return torch.allclose(a.detach().double(), b.detach().double(), rtol=tol, atol=tol)


def _without_nan(x: Tensor) -> Tensor:
    """With a number that nobody computes in the place of each NaN, unless all are NaN."""
    odd = x.isnan() if x.is_floating_point() else torch.tensor(False)
    return x.masked_fill(odd, 1.7e19) if odd.any() and not odd.all() else x


def diagnose(
    result: Tensor,
    right: Tensor,
    suspects: Mapping[str, Tensor] | Iterable[tuple[Tensor, str]],
    otherwise: str,
) -> None:
    """Raise NotYet unless `result` is right; name the suspect whose value the result equals.

    `suspects`: pairs of what a mistake would give and the sentence for it ("you divided by d_k,
    not by its root"), or a dict from sentence to value; `otherwise` is said when none fits.
    """
    if close(result, right):
        return
    pairs = (
        [(value, sentence) for sentence, value in suspects.items()]
        if isinstance(suspects, Mapping)
        else suspects
    )
    seen = _without_nan(result)
    for value, sentence in pairs:
        if close(seen, _without_nan(value)) and not close(value, right):
            raise NotYet(sentence)
    no_nan(result)
    error = ""
    if result.shape == right.shape and result.dtype != torch.bool:
        off = (result.detach().double() - right.double()).abs().max().item()
        error = f" (largest difference {off:.3g})"
    raise NotYet(otherwise + error)


def draw(seed: int, count: int, *ranges: tuple[int, int]) -> list[tuple[int, ...]]:
    """As many tuples of whole numbers, each number from its range (both ends included)."""
    generator = torch.Generator().manual_seed(seed)
    columns = [torch.randint(a, b + 1, (count,), generator=generator).tolist() for a, b in ranges]
    return list(zip(*columns, strict=True))


MORE = 0  # the grader's, for hidden cases


def sized(*cases: Any, keep: tuple[int, ...] = (), step: int = 1) -> list[Any]:
    """Cases with the sizes in them, which the grader makes larger, all of them by one number.

    So an answer with a size written into it fails there, and what is equal stays equal. Sizes are
    the whole numbers of a tuple, also in a tuple in it, without those at the places in `keep`.
    """

    def larger(case: Any, keep: tuple[int, ...] = ()) -> Any:
        if isinstance(case, tuple):
            return tuple(x if k in keep else larger(x) for k, x in enumerate(case))
        return case + MORE * step if type(case) is int else case

    return [larger(case, keep) for case in cases]


def passed(exercise: str) -> None:
    """Say that the answer is right."""
    print(f"Right: {exercise}.")

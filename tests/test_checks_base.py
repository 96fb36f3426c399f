"""What every check rests on: a time limit that no student's `except` takes for its own."""

import math
import signal
import threading
import time

import numpy as np
import pytest
import torch

from attention.checks import _base
from attention.checks._base import (
    NotYet,
    call,
    diagnose,
    time_limit,
    want_number,
    want_tensor,
    want_whole,
)


def plain():
    while True:
        pass


def catches_exceptions():
    while True:
        try:
            time.sleep(0.001)
        except Exception:
            pass


def catches_everything():
    while True:
        try:
            sum(range(10))
        except:  # noqa: E722
            pass


def cleans_up_slowly():
    try:
        plain()
    finally:
        time.sleep(0.05)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no SIGALRM here")
@pytest.mark.parametrize(
    "endless", [plain, catches_exceptions, catches_everything, cleans_up_slowly]
)
def test_an_endless_answer_is_stopped_whatever_it_catches(monkeypatch, endless):
    monkeypatch.setattr(_base, "time_limit", lambda: time_limit(0.1))
    before = signal.getsignal(signal.SIGALRM)
    give_up = threading.Timer(20, signal.raise_signal, [signal.SIGINT])  # a failure, not a hang
    give_up.start()
    start = time.monotonic()
    try:
        with pytest.raises(NotYet, match=r"^your code still ran after 0.1 seconds; look for"):
            call(endless)
    finally:
        give_up.cancel()
    assert time.monotonic() - start < 10
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_an_answer_in_time_is_left_alone():
    with time_limit(0.2):
        result = 3
    time.sleep(0.3)  # no alarm comes after
    assert result == 3 and call(lambda: 3) == 3


def test_outside_the_main_thread_there_is_no_limit_and_no_error():
    results = []
    thread = threading.Thread(target=lambda: results.append(call(lambda: 3)))
    thread.start()
    thread.join()
    assert results == [3]


def test_a_mistake_is_named_from_pairs_or_a_dict_and_the_right_answer_never():
    one, two, three = (torch.full((2,), float(x)) for x in (1, 2, 3))
    pairs = [(one, "it is right all the same"), (two, "doubled")]
    for suspects in (pairs, {sentence: value for value, sentence in pairs}):
        diagnose(one, one, suspects, "wrong")
        with pytest.raises(NotYet, match="^doubled$"):
            diagnose(two, one, suspects, "wrong")
        with pytest.raises(NotYet, match=r"^wrong \(largest difference 2\)$"):
            diagnose(three, one, suspects, "wrong")


def test_an_error_is_shown_with_the_students_own_line():
    def my_helper(x):
        return x @ torch.ones(5)  # the line

    with pytest.raises(NotYet, match=r"RuntimeError.* in line \d+ of the cell: return x @ .*# the"):
        call(lambda x: my_helper(x), torch.ones(3))


def test_who_ends_the_program_is_told_so():
    def my_answer():
        raise SystemExit(0)

    with pytest.raises(NotYet, match="my_answer ends the program"):
        call(my_answer)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no SIGALRM here")
@pytest.mark.parametrize("otherwise", [lambda: 3, lambda: 1 / 0, lambda: exit()])
def test_who_catches_the_end_of_the_time_is_late_all_the_same(monkeypatch, otherwise):
    def my_answer():
        try:
            plain()
        except BaseException:
            return otherwise()

    monkeypatch.setattr(_base, "time_limit", lambda: time_limit(0.1))
    with pytest.raises(NotYet, match="still ran after"):
        call(my_answer)


def test_numbers_may_be_of_any_kind():
    for number in (2, 2.0, np.float32(2), np.int64(2), torch.tensor(2), torch.tensor([2.0])):
        assert want_number(number, "a number") == 2.0
        assert want_whole(number, "a number") == 2
    for other in (True, math.nan, math.inf, 1j, "2", None, torch.zeros(2), 10**400):
        with pytest.raises(NotYet, match="^a number"):
            want_number(other, "a number")
    assert torch.equal(want_tensor(np.float64(2), ()), torch.tensor(2.0, dtype=torch.float64))


def test_a_mistake_is_named_though_it_gives_nan():
    right, wrong = torch.tensor([1.0, 2.0]), torch.tensor([math.nan, 3.0])
    with pytest.raises(NotYet, match="^the other way round$"):
        diagnose(wrong, right, {"the other way round": wrong.clone()}, "wrong")
    for result in (wrong + 1, wrong * math.nan):
        with pytest.raises(NotYet, match="contains NaN"):
            diagnose(result, right, {"the other way round": wrong}, "wrong")

"""What every check rests on: a time limit that no student's `except` takes for its own."""

import signal
import threading
import time

import pytest
import torch

from attention.checks import _base
from attention.checks._base import NotYet, call, diagnose, time_limit


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

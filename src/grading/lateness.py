"""How much is taken away from what came late."""

from __future__ import annotations

import csv
import math
from datetime import datetime
from pathlib import Path


class Mistake(Exception):
    """A sentence about what was asked for."""


def when(text: str, name: str) -> datetime | None:
    """A date or a time; None for an empty text.

    >>> when("2027-03-01", "DUE")
    datetime.datetime(2027, 3, 1, 23, 59, 59)
    >>> when("2027-03-01 18:00", "DUE").hour
    18
    """
    text = text.strip()
    if not text:
        return None
    try:
        made = datetime.fromisoformat(text)
    except ValueError:
        raise Mistake(
            f"{name} must be a date like 2027-03-01 or 2027-03-01 18:00; got {text!r}"
        ) from None
    return made.replace(hour=23, minute=59, second=59) if len(text) == 10 else made


def rate(text: str) -> float:
    """LATE, the percent that each begun day costs; 0 where nothing is said."""
    try:
        percent = float(text or 0)
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise Mistake(f"LATE must be the percent that a day costs, 0 to 100; got {text!r}")
    return percent


def days(handed_in: datetime, due: datetime | None) -> int:
    """Begun days after the due date.

    >>> days(datetime(2027, 3, 2, 19), datetime(2027, 3, 1, 18))
    2
    """
    late = (handed_in - due).total_seconds() if due else 0
    return max(0, math.ceil(late / 86_400))


def factor(late: int, percent: float) -> float:
    """What is left of the points.

    >>> factor(2, 10), factor(12, 10)
    (0.8, 0.0)
    """
    return max(0.0, round(1 - late * percent / 100, 6))


def times(path: Path) -> dict[str, datetime]:
    """The columns student and time of a file, for when a file's own date says nothing."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    if rows and not {"student", "time"} <= set(rows[0]):
        raise Mistake(f"{path} must have the columns student and time; got {', '.join(rows[0])}")
    return {row["student"]: t for row in rows if (t := when(row["time"], f"time in {path}"))}

# SPDX-License-Identifier: MIT
"""Durations as people write them: `30s`, `1h30m`, `250ms`, a number of seconds, a timedelta."""

import re
from datetime import timedelta

type DurationLike = timedelta | str | float
"""A duration as callers may write it: a timedelta, `30s`, or seconds."""

UNITS = {
    "us": timedelta(microseconds=1),
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
DURATION_MAX = timedelta(days=36_500)

_PART = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m|h|d|w)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")


def duration(value: timedelta | str | float) -> timedelta:
    """Parse a duration. Raises ValueError with examples of how to write one."""
    match value:
        case timedelta():
            length = value
        case bool():
            raise ValueError(_advice(value))
        case int() | float():
            length = _seconds(value)
        case str() if _WHOLE.fullmatch(value):
            length = _parts(value)
        case str() if value.isascii() and value.replace(".", "", 1).isdecimal():
            length = _seconds(float(value))
        case _:
            raise ValueError(_advice(value))
    if not timedelta() <= length <= DURATION_MAX:
        raise ValueError(f"A duration is between 0 and 100 years, not {value!r}.")
    return length


def _parts(text: str) -> timedelta:
    try:
        return sum((float(n) * UNITS[u] for n, u in _PART.findall(text)), timedelta())
    except OverflowError:
        raise ValueError(_advice(text)) from None


def _seconds(value: float) -> timedelta:
    try:
        return timedelta(seconds=value)
    except (OverflowError, ValueError):
        raise ValueError(_advice(value)) from None


def micros(length: timedelta) -> int:
    """Whole microseconds of a duration."""
    return length // timedelta(microseconds=1)


def spoken(length: timedelta) -> str:
    """Returns the shortest text that `duration` parses to the same value."""
    left, parts = micros(length), []
    for unit in ("d", "h", "m", "s", "ms", "us"):
        size = micros(UNITS[unit])
        if left >= size:
            parts.append(f"{left // size}{unit}")
            left %= size
    return "".join(parts) or "0s"


def _advice(value: object) -> str:
    return (
        "Write a duration like '30s', '10m', '1h30m', a number of seconds or a timedelta, "
        f"not {value!r}."
    )

# SPDX-License-Identifier: MIT
"""The events of a run and the usage of its attempts in words."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from byrote.core.log.record import LogEntry
from byrote.django import times as moments

VERDICTS = {
    "S": "success",
    "R": "failure, to be retried",
    "F": "failure",
    "C": "cancelled",
    "Z": "to be continued later",
    "L": "not counted, to be run again",
    "X": "lost with its process",
}
"""The outcome that a worker reports for an attempt, by its letter in the log."""
RENEWED = "Renewed"


class TimelineEntry(msgspec.Struct, frozen=True):
    """One entry of the timeline."""

    kind: str
    at: datetime
    attempt: int
    worker: str | None
    facts: list[str]
    times: int = 1


def entries_of(history: Sequence[LogEntry]) -> list[TimelineEntry]:
    """The entries of the timeline; consecutive renewals of a lease are one entry."""
    entries: list[TimelineEntry] = []
    for event in history:
        last = entries[-1] if entries else None
        if (
            last is not None
            and event.kind == last.kind == RENEWED
            and event.attempt == last.attempt
        ):
            entries[-1] = msgspec.structs.replace(last, at=event.at, times=last.times + 1)
            continue
        data = event.data or {}
        facts = [_fact(name, value) for name, value in data.items() if value is not None]
        entries.append(TimelineEntry(event.kind, event.at, event.attempt, event.worker, facts))
    return entries


def _fact(name: str, value: Any) -> str:
    if name == "reported":
        return f"reported as {VERDICTS.get(value, value)}"
    if name.endswith("_us") and isinstance(value, int):
        length = moments.rough(timedelta(microseconds=value))
        return f"{name.removesuffix('_us').replace('_', ' ')} {length}"
    return f"{name.replace('_', ' ')} {value}"


def usage_of(usage: Mapping[str, Any] | None) -> str:
    """The usage of an attempt in words."""
    if not usage:
        return ""
    parts = {
        "took": _length(usage.get("wall_us")),
        "CPU": _length(usage.get("cpu_us")),
        "peak memory": _size(usage.get("rss_max")),
    }
    return ", ".join(f"{name} {value}" for name, value in parts.items() if value)


def _length(micros: Any) -> str:
    return moments.rough(timedelta(microseconds=micros)) if _is_number(micros) else ""


def _size(size: Any) -> str:
    return f"{size / 2**20:.0f} MiB" if _is_number(size) else ""


def _is_number(value: Any) -> bool:
    # Workers in other languages report these: a number too large for a timedelta is ignored.
    return type(value) is int and 0 <= value < 10**17

# SPDX-License-Identifier: MIT
"""Queries of periodic tasks."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from byrote.core.schedule.schedule import (
    Schedule,
    ScheduleMove,
    StoredSchedule,
    TickResult,
    next_tick,
    row_of,
)
from byrote.store.query import Query, Resend

_encode = msgspec.json.Encoder().encode


SCHEDULES_MAX = 10_000


_FIELDS = (
    "name", "timing", "zone", "task", "version", "spec_json", "spec_hash", "queue", "priority",
    "max_attempts", "timeout_ms", "retry_json", "labels", "unique_key", "jitter_us", "catch_up",
)  # fmt: skip


_STATE = (
    "origin", "next_at", "last_at", "last_run", "runs", "skipped", "paused_at", "fault",
    "changed_at", "now",
)  # fmt: skip


def _planned_from(row: tuple[Any, ...]) -> StoredSchedule:
    said = dict(zip(_FIELDS, row, strict=False))
    if said["labels"] is not None:
        said["labels"] = msgspec.json.decode(said["labels"])
    state = dict(zip(_STATE, row[len(_FIELDS) :], strict=True))
    return StoredSchedule(schedule=Schedule(**said), **state)


def schedules(
    *, name: str | None = None, due: bool = False, limit: int = SCHEDULES_MAX
) -> Query[StoredSchedule]:
    """Periodic tasks: all, the one by a name, or those that are due."""
    return Query("schedules", {"name": name, "due": due, "limit": limit}, _planned_from)


def save_schedule(
    wanted: Schedule, *, next_at: datetime | None, code: str | None = None, replace: bool = False
) -> Query[str]:
    """Keep a periodic task; gives its name, nothing when it stays as it was.

    `code` is what an app's definition of it is known by. A person's (None) takes the place of one
    that is there only if it is to `replace` it.
    """
    args = {**row_of(wanted), "next_at": next_at, "code": code, "replace": replace}
    return Query("save_schedule", args, lambda row: str(row[0]), Resend.ONCE)


def announce(wanted: Schedule, now: datetime) -> Query[str]:
    """Keep a schedule that an app defines, if the app says something else of it than before."""
    return save_schedule(wanted, next_at=next_tick(wanted, after=now), code=wanted.digest)


def tick(turns: Sequence[ScheduleMove]) -> Query[TickResult]:
    """Move schedules on, and accept the runs of their ticks."""
    moves = [
        {"schedule": turn.name, "expected": turn.expected, "following": turn.next_at}
        for turn in turns
    ]
    ticks = [
        {"schedule": one.name, "id": one.id, "at": one.at, "run_after": one.due}
        for turn in turns
        for one in turn.ticks
    ]
    args = {"turns": _encode(moves).decode(), "ticks": _encode(ticks).decode()}
    return Query("tick", args, lambda row: TickResult(*row[:4]))


def pause_schedule(name: str, *, fault: str | None = None) -> Query[str]:
    """Let a periodic task have no more runs for now."""
    return Query("pause_schedule", {"name": name, "fault": fault}, lambda row: str(row[0]))


def resume_schedule(name: str, *, next_at: datetime | None) -> Query[str]:
    """Let a periodic task have runs again."""
    args = {"name": name, "next_at": next_at}
    return Query("resume_schedule", args, lambda row: str(row[0]), Resend.ONCE)


def delete_schedule(name: str) -> Query[bool]:
    """Forget a periodic task; gives whether an app had defined it."""
    return Query("delete_schedule", {"name": name}, lambda row: bool(row[1]), Resend.ONCE)

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


def _stored_from(row: tuple[Any, ...]) -> StoredSchedule:
    fields = dict(zip(_FIELDS, row, strict=False))
    if fields["labels"] is not None:
        fields["labels"] = msgspec.json.decode(fields["labels"])
    state = dict(zip(_STATE, row[len(_FIELDS) :], strict=True))
    return StoredSchedule(schedule=Schedule(**fields), **state)


def schedules(
    *, name: str | None = None, due: bool = False, limit: int = SCHEDULES_MAX
) -> Query[StoredSchedule]:
    """Periodic tasks: all, the one by a name, or those that are due."""
    return Query("schedules", {"name": name, "due": due, "limit": limit}, _stored_from)


def save_schedule(
    schedule: Schedule, *, next_at: datetime | None, code: str | None = None, replace: bool = False
) -> Query[str]:
    """Store a periodic task; returns its name, no row if it is unchanged.

    `code` is the hash of an app's definition. One that a person stores (None) replaces an existing
    one only with `replace`.
    """
    args = {**row_of(schedule), "next_at": next_at, "code": code, "replace": replace}
    return Query("save_schedule", args, lambda row: str(row[0]), Resend.ONCE)


def announce(schedule: Schedule, now: datetime) -> Query[str]:
    """Store a schedule that an app defines, if its definition differs from before."""
    return save_schedule(schedule, next_at=next_tick(schedule, after=now), code=schedule.digest)


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
    """Stop the ticks of a periodic task."""
    return Query("pause_schedule", {"name": name, "fault": fault}, lambda row: str(row[0]))


def resume_schedule(name: str, *, next_at: datetime | None) -> Query[str]:
    """Resume the ticks of a periodic task."""
    args = {"name": name, "next_at": next_at}
    return Query("resume_schedule", args, lambda row: str(row[0]), Resend.ONCE)


def delete_schedule(name: str) -> Query[bool]:
    """Delete a periodic task; returns whether an app had defined it."""
    return Query("delete_schedule", {"name": name}, lambda row: bool(row[1]), Resend.ONCE)

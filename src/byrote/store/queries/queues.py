# SPDX-License-Identifier: MIT
"""Queries of queues: list, depths, pause, resume, settings."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from byrote.core.unserved import Standing, UnservedEnd, UnservedTask
from byrote.store import rows
from byrote.store.queries.log import Position, position_args
from byrote.store.query import Query


def pause(queue: str) -> Query[bool]:
    """Stop claims from a queue; the row says whether it was not paused before."""
    return Query("pause", {"queue": queue}, lambda row: bool(row[2]))


def resume(queue: str) -> Query[bool]:
    """Allow claims from a queue again; the row says whether it was paused."""
    return Query("resume", {"queue": queue}, lambda row: bool(row[2]))


def queues() -> Query[rows.QueueRow]:
    """Every queue with what waits in it."""
    return Query("queues", {}, lambda row: rows.QueueRow(*row))


DEPTH_MAX = 10_000
"""Where counting stops."""


class Depth(msgspec.Struct, frozen=True):
    """How many runs of a task lie in a queue, and how long the first of them has been due."""

    queue: str
    task: str
    version: int
    depth: int
    running: int
    oldest_ready_s: float | None


def depths(
    *,
    queues: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    most: int = DEPTH_MAX,
) -> Query[rows.QueueRow]:
    """Every queue with what lies in it, counted up to `most`; with tasks, what is theirs of it."""
    args: dict[str, Any] = {"queues": None if queues is None else list(queues), "most": most}
    args["tasks"] = None if tasks is None else list(tasks)
    return Query("depths", args, lambda row: rows.QueueRow(*row))


def task_depths(
    *,
    queues: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    most: int = DEPTH_MAX,
) -> Query[Depth]:
    """What lies in each queue, by task."""
    return Query("task_depths", within(queues, tasks) | {"most": most}, lambda row: Depth(*row))


def set_events(queue: str, *, events: str) -> Query[str]:
    """Let a queue tell `all` kinds of events, or `few`."""
    return Query("set_events", {"queue": queue, "events": events}, lambda row: str(row[0]))


class Tally(msgspec.Struct, frozen=True):
    """A count of a window."""

    queue: str
    task: str
    version: int
    measure: str
    bucket: int
    n: int


def count_stats(
    position: Position, *, cursor: str | None, limit: int = 2_000
) -> Query[tuple[int, str | None]]:
    """Count events after a position; gives how many were read, and where it stands now."""
    args = position_args(position) | {"cursor": cursor, "limit": limit}
    return Query("count_stats", args, lambda row: (row[0], row[1]))


def recount(position: Position, *, cursor: str, most: int) -> Query[bool]:
    """Set the depths right, unless there are more than `most` runs; gives whether it was done."""
    args = position_args(position) | {"cursor": cursor, "most": most}
    return Query("recount", args, lambda row: bool(row[0]))


def stats(
    *, window: timedelta, queues: Sequence[str] | None = None, tasks: Sequence[str] | None = None
) -> Query[Tally]:
    """The counts of a window that ends now."""
    return Query("stats", {"window": window} | within(queues, tasks), lambda row: Tally(*row))


def counters() -> Query[tuple[str, str, datetime | None]]:
    """How far those duties came that count; none that has not begun."""
    return Query("counters", {}, lambda row: (row[0], row[1], row[2]))


DEPTH = 200
"""How many runs at the front of each queue are looked at."""


_TASK = ("queue", "task", "version", "since", "waited_s", "known", "unserved_for")


_ENDED = ("id", "queue", "task", "version", "attempt")


_STANDING = (
    "status", "queue", "task", "version", "wait_reason", "due", "paused", "served", "known",
    "tasks", "unserved_for",
)  # fmt: skip


def _unserved_from(row: tuple[Any, ...]) -> UnservedTask:
    return UnservedTask(**dict(zip(_TASK, row, strict=False)))


def note_unserved(*, depth: int = DEPTH) -> Query[UnservedTask]:
    """Note the tasks that no live worker of their queue knows; returns those that are new."""
    return Query("note_unserved", {"depth": depth}, _unserved_from)


def fail_unserved(*, limit: int) -> Query[UnservedEnd]:
    """End runs whose task was unknown for as long as their queue waits."""
    return Query(
        "fail_unserved",
        {"limit": limit},
        lambda row: UnservedEnd(**dict(zip(_ENDED, row, strict=True))),
    )


def unserved_tasks() -> Query[UnservedTask]:
    """The tasks that no live worker of their queue knows, as last noted."""
    return Query("unserved_tasks", {}, _unserved_from)


def why_waiting(run_id: str) -> Query[Standing]:
    """Where an unfinished run stands."""
    return Query(
        "why_waiting",
        {"id": run_id},
        lambda row: Standing(**dict(zip(_STANDING, row, strict=True))),
    )


def set_unserved(queue: str, *, after: timedelta | None) -> Query[str]:
    """Set how long a queue's runs wait for a worker that knows their task; None is for ever."""
    return Query("set_unserved", {"queue": queue, "after": after}, lambda row: str(row[0]))


def within(queues: Sequence[str] | None, tasks: Sequence[str] | None) -> dict[str, Any]:
    """Parameters that narrow an answer to queues and tasks; None stands for all."""
    return {
        "queues": None if queues is None else list(queues),
        "tasks": None if tasks is None else list(tasks),
    }

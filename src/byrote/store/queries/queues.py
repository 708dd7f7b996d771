# SPDX-License-Identifier: MIT
"""Queries of queues: list, depths, pause, resume, settings."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from byrote.core.log.cursor import Cursor
from byrote.core.unserved import Standing, UnservedEnd, UnservedTask
from byrote.store import rows
from byrote.store.queries.log import cursor_args
from byrote.store.query import Query


def pause(queue: str) -> Query[bool]:
    """Stop claims from a queue; returns False if it was paused before."""
    return Query("pause", {"queue": queue}, lambda row: bool(row[2]))


def resume(queue: str) -> Query[bool]:
    """Allow claims from a queue again; returns whether it was paused."""
    return Query("resume", {"queue": queue}, lambda row: bool(row[2]))


def queues() -> Query[rows.QueueRow]:
    """Every queue with its unfinished and dead runs."""
    return Query("queues", {}, lambda row: rows.QueueRow(*row))


DEPTH_MAX = 10_000
"""The number of runs at which counting stops."""


class Depth(msgspec.Struct, frozen=True):
    """How many runs of a task are in a queue, and how long the oldest has been due."""

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
    """Every queue with its runs, counted up to `most`; with tasks, only their runs."""
    args: dict[str, Any] = {"queues": None if queues is None else list(queues), "most": most}
    args["tasks"] = None if tasks is None else list(tasks)
    return Query("depths", args, lambda row: rows.QueueRow(*row))


def task_depths(
    *,
    queues: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    most: int = DEPTH_MAX,
) -> Query[Depth]:
    """The runs in each queue, by task."""
    return Query("task_depths", within(queues, tasks) | {"most": most}, lambda row: Depth(*row))


def set_events(queue: str, *, events: str) -> Query[str]:
    """Log `all` kinds of events of a queue, or `few`."""
    return Query("set_events", {"queue": queue, "events": events}, lambda row: str(row[0]))


class Tally(msgspec.Struct, frozen=True):
    """A count in a window of time."""

    queue: str
    task: str
    version: int
    measure: str
    bucket: int
    n: int


def begin_stats(cursor: Cursor) -> Query[str]:
    """Begin to count events after a cursor; no row if another process has begun."""
    return Query("begin_stats", {"cursor": str(cursor)}, lambda row: str(row[0]))


def count_stats(cursor: Cursor, *, limit: int = 2_000) -> Query[tuple[int, Cursor | None]]:
    """Count events after a cursor; returns how many were read, and the new cursor."""
    args = cursor_args(cursor) | {"cursor": str(cursor), "limit": limit}
    return Query("count_stats", args, lambda row: (row[0], row[1] and Cursor.parse(row[1])))


def recount(cursor: Cursor, *, most: int) -> Query[bool]:
    """Correct the depths, unless there are more than `most` runs; returns whether it did."""
    args = cursor_args(cursor) | {"cursor": str(cursor), "most": most}
    return Query("recount", args, lambda row: bool(row[0]))


def stats(
    *, window: timedelta, queues: Sequence[str] | None = None, tasks: Sequence[str] | None = None
) -> Query[Tally]:
    """The counts of a window that ends now."""
    return Query("stats", {"window": window} | within(queues, tasks), lambda row: Tally(*row))


KEEP_STATS = timedelta(days=2)


def prune_stats(*, keep_stats: timedelta = KEEP_STATS) -> Query[int]:
    """Delete counts of minutes that are past their retention; returns how many."""
    return Query("prune_stats", {"keep_stats": keep_stats}, lambda row: int(row[0]))


def counters() -> Query[tuple[str, str, datetime | None]]:
    """The cursors of the duties that count; only those that have begun."""
    return Query("counters", {}, lambda row: (row[0], row[1], row[2]))


DEPTH = 200
"""How many runs at the front of each queue are read."""


_TASK = ("queue", "task", "version", "since", "waited_s", "known", "unserved_for", "runs")


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
    """Why an unfinished run waits."""
    return Query(
        "why_waiting",
        {"id": run_id},
        lambda row: Standing(**dict(zip(_STANDING, row, strict=True))),
    )


def set_unserved(queue: str, *, after: timedelta | None) -> Query[str]:
    """Set how long a queue's runs wait for a worker that knows their task; None is for ever."""
    return Query("set_unserved", {"queue": queue, "after": after}, lambda row: str(row[0]))


def within(queues: Sequence[str] | None, tasks: Sequence[str] | None) -> dict[str, Any]:
    """Return the parameters that limit an answer to queues and tasks; None stands for all."""
    return {
        "queues": None if queues is None else list(queues),
        "tasks": None if tasks is None else list(tasks),
    }

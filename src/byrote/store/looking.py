# SPDX-License-Identifier: MIT
"""The verbs of those who look on: lists, depths, counts, the log of events."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from byrote.core.answer import Locked
from byrote.core.run import Leased
from byrote.core.state import Status
from byrote.store import rows
from byrote.store.query import Query, Resend

DEPTH_MAX = 10_000
"""Where counting stops."""

_encode = msgspec.json.Encoder().encode


class Place(msgspec.Struct, frozen=True):
    """To which queue and task a run belongs, and of which spec it is."""

    id: str
    queue: str
    task: str
    spec_hash: str


class Brief(msgspec.Struct, frozen=True):
    """A run without its arguments and its result."""

    id: str
    status: Status
    wait_reason: str | None
    queue: str
    task: str
    version: int
    priority: int
    run_after: datetime
    attempts: int
    charged: int
    losses: int
    max_attempts: int
    timeout_ms: int | None
    spec_hash: str
    result_hash: str | None
    errors: list[dict[str, Any]]
    labels: dict[str, str]
    worker_ids: list[str]
    leased_by: str | None
    leased_until: datetime | None
    cancel_requested_at: datetime | None
    replay_of: str | None
    traceparent: str | None
    enqueued_at: datetime
    started_at: datetime | None
    last_attempted_at: datetime | None
    finished_at: datetime | None
    as_of: datetime


class Fact(msgspec.Struct, frozen=True):
    """One event of one run."""

    xid: str
    seq: int
    place: int
    at: datetime
    kind: str
    run: str
    attempt: int
    move: int
    worker: str | None
    data: str | None
    queue: str | None
    """None once the run was forgotten."""
    task: str | None


class Position(msgspec.Struct, frozen=True):
    """A place in the log of events: what lies up to it was read."""

    xid: str
    seq: int


class Tally(msgspec.Struct, frozen=True):
    """A count of a window."""

    queue: str
    task: str
    version: int
    measure: str
    bucket: int
    n: int


class Depth(msgspec.Struct, frozen=True):
    """How many runs of a task lie in a queue, and how long the first of them has been due."""

    queue: str
    task: str
    version: int
    depth: int
    running: int
    oldest_ready_s: float | None


def _brief(row: tuple[Any, ...]) -> Brief:
    fields = list(row)
    fields[1] = Status(fields[1])
    fields[15] = [] if fields[15] is None else msgspec.json.decode(fields[15])
    fields[16] = {} if fields[16] is None else msgspec.json.decode(fields[16])
    return Brief(*fields)


def whereabouts(ids: Sequence[str]) -> Query[Place]:
    """To which queue, task and spec runs belong."""
    return Query("whereabouts", {"ids": list(ids)}, lambda row: Place(*row))


def held(leases: Sequence[tuple[str, str]]) -> Query[Leased]:
    """What a judge needs to know of runs under way, by id and token."""
    sent = _encode([{"id": run, "token": token} for run, token in leases]).decode()
    return Query("held", {"leases": sent}, rows.leased_from("", 0.0, 0.0))


def briefs(
    *,
    status: str | None = None,
    queue: str | None = None,
    task: str | None = None,
    spec_hash: str | None = None,
    labels: Mapping[str, str] | None = None,
    queues: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    before: str | None = None,
    limit: int = 50,
) -> Query[Brief]:
    """The newest runs that match, within some queues and tasks only."""
    args: dict[str, Any] = {"status": status, "queue": queue, "task": task, "hash": spec_hash}
    args["label"] = None if labels is None else _encode(labels).decode()
    args |= {"before": before, "limit": limit} | _within(queues, tasks)
    return Query("briefs", args, _brief)


def dead(
    *,
    queue: str | None = None,
    task: str | None = None,
    queues: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    before: tuple[datetime, str] | None = None,
    limit: int = 50,
) -> Query[Brief]:
    """Dead letters, the latest first."""
    at, run_id = (None, None) if before is None else before
    args: dict[str, Any] = {"queue": queue, "task": task, "before": at, "before_id": run_id}
    return Query("dead", args | {"limit": limit} | _within(queues, tasks), _brief)


def delete_dead(ids: Sequence[str]) -> Query[str | Locked]:
    """Delete dead letters for good."""
    return Query("delete_dead", {"ids": list(ids)}, rows.id_from, Resend.ONCE)


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
    return Query("task_depths", _within(queues, tasks) | {"most": most}, lambda row: Depth(*row))


def ready(queues: Sequence[str]) -> Query[str]:
    """Which of these queues have something to claim."""
    return Query("ready", {"queues": list(queues)}, lambda row: str(row[0]))


def ended(ids: Sequence[str]) -> Query[str]:
    """Which of these runs have come to their end."""
    return Query("ended", {"ids": list(ids)}, lambda row: str(row[0]))


def pulse() -> Query[int]:
    """A number that rises with everything that happens."""
    return Query("pulse", {}, lambda row: int(row[0]))


def bounds() -> Query[int]:
    """The oldest transaction that may still add to the log of events."""
    return Query("bounds", {}, lambda row: int(row[0]))


def stream(position: Position, *, limit: int = 100) -> Query[Fact]:
    """Events after a position; `limit` counts statements, each of which may tell of many runs."""
    return Query("stream", _at(position) | {"limit": limit}, lambda row: Fact(*row))


def facts(run_id: str, *, limit: int = 1_000) -> Query[Fact]:
    """What happened to one run, oldest first."""
    return Query("facts", {"id": run_id, "limit": limit}, lambda row: Fact(*row))


def count_stats(
    position: Position, *, cursor: str | None, limit: int = 2_000
) -> Query[tuple[int, str | None]]:
    """Count events after a position; gives how many were read, and where it stands now."""
    args = _at(position) | {"cursor": cursor, "limit": limit}
    return Query("count_stats", args, lambda row: (row[0], row[1]))


def recount(position: Position, *, cursor: str, most: int) -> Query[bool]:
    """Set the depths right, unless there are more than `most` runs; gives whether it was done."""
    args = _at(position) | {"cursor": cursor, "most": most}
    return Query("recount", args, lambda row: bool(row[0]))


def stats(
    *, window: timedelta, queues: Sequence[str] | None = None, tasks: Sequence[str] | None = None
) -> Query[Tally]:
    """The counts of a window that ends now."""
    return Query("stats", {"window": window} | _within(queues, tasks), lambda row: Tally(*row))


def counting() -> Query[tuple[str, str, datetime | None]]:
    """How far those duties came that count; none that has not begun."""
    return Query("counting", {}, lambda row: (row[0], row[1], row[2]))


def _at(position: Position) -> dict[str, Any]:
    return {"xid": position.xid, "seq": position.seq}


def _within(queues: Sequence[str] | None, tasks: Sequence[str] | None) -> dict[str, Any]:
    return {
        "queues": None if queues is None else list(queues),
        "tasks": None if tasks is None else list(tasks),
    }

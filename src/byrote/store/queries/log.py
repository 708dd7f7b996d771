# SPDX-License-Identifier: MIT
"""Queries that read the event log."""

from datetime import datetime
from typing import Any

import msgspec

from byrote.core.log.record import LogEntry
from byrote.store import rows
from byrote.store.query import Query


class RunFact(msgspec.Struct, frozen=True):
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
    """None if the run was deleted."""
    task: str | None


class Position(msgspec.Struct, frozen=True):
    """A position in the event log: events up to it were read."""

    xid: str
    seq: int


def last_event() -> Query[int]:
    """A number that rises with every event."""
    return Query("last_event", {}, lambda row: int(row[0]))


def stable_xid() -> Query[int]:
    """The oldest transaction that may still add to the event log."""
    return Query("stable_xid", {}, lambda row: int(row[0]))


def stream(position: Position, *, limit: int = 100) -> Query[RunFact]:
    """Events after a position; `limit` counts statements, each of which may have many runs."""
    return Query("stream", position_args(position) | {"limit": limit}, lambda row: RunFact(*row))


def facts(run_id: str, *, limit: int = 1_000) -> Query[RunFact]:
    """The events of one run, oldest first."""
    return Query("facts", {"id": run_id, "limit": limit}, lambda row: RunFact(*row))


def position_args(position: Position) -> dict[str, Any]:
    """Return the parameters of a position."""
    return {"xid": position.xid, "seq": position.seq}


HISTORY_MAX = 500


class TimelineEvent(msgspec.Struct, frozen=True):
    """One event of a run's timeline."""

    at: datetime
    kind: str
    attempt: int
    worker: str | None
    leased_until: datetime | None
    data: dict[str, Any]


def _timeline_from(row: tuple[Any, ...]) -> TimelineEvent:
    at, kind, attempt, worker, leased_until, text = row
    data = {} if text is None else msgspec.json.decode(text)
    return TimelineEvent(at, kind, attempt, worker, leased_until, data)


def timeline(
    run_id: str, *, first: datetime, last: datetime | None, limit: int = HISTORY_MAX
) -> Query[TimelineEvent]:
    """The events of a run between two moments; without `last`, up to now."""
    args = {"id": run_id, "first": first, "last": last, "limit": limit}
    return Query("timeline", args, _timeline_from)


def history(run_id: str, *, at: datetime | None = None) -> Query[LogEntry]:
    """Every move of one run that the log still has, in order, up to a moment."""
    return Query("history", {"id": run_id, "at": at}, rows.entry_from)


def chain(*, limit: int = 1_000) -> Query[int]:
    """Add one link to the chain; returns how many events it has, no row if there were none."""
    return Query("chain", {"limit": limit}, lambda row: int(row[0]))


class Counted(msgspec.Struct, frozen=True):
    """How many runs of a queue and worker had a status at a moment, and since when."""

    queue: str
    status: str
    worker: str | None
    runs: int
    since: datetime


def runs_at(at: datetime) -> Query[Counted]:
    """Count the runs in each queue at a moment, by status and worker."""
    return Query("runs_at", {"at": at}, lambda row: Counted(*row))


class WorkerThen(msgspec.Struct, frozen=True):
    """A worker's events in the hour up to a moment."""

    worker: str
    first_at: datetime
    last_at: datetime
    claimed: int
    ended: int
    lost: int


def workers_at(at: datetime) -> Query[WorkerThen]:
    """Workers with an event in the hour up to a moment."""
    return Query("workers_at", {"at": at}, lambda row: WorkerThen(*row))


class LoggedEvent(msgspec.Struct, frozen=True):
    """One event as it is streamed, of a set of runs."""

    xid: str
    seq: int
    at: datetime
    kind: str
    worker: str | None
    leased_until: datetime | None
    runs: list[str]
    attempts: list[int]
    moves: list[int]
    data: msgspec.Raw | None

    @property
    def cursor(self) -> str:
        """The cursor that makes `events` return what comes after this."""
        return f"{self.xid}.{self.seq}"


BEGINNING = "0.-1"
"""The cursor before all events."""


def events(
    cursor: str, *, kind: str | None = None, run_id: str | None = None, limit: int = 500
) -> Query[LoggedEvent]:
    """Events after a cursor; called from cursor to cursor it returns every event exactly once."""
    xid, _, seq = cursor.partition(".")
    args = {"xid": xid, "seq": int(seq), "kind": kind, "run": run_id, "limit": limit}
    return Query("events", args, _logged_from)


def _logged_from(row: tuple[Any, ...]) -> LoggedEvent:
    data = None if row[-1] is None else msgspec.Raw(row[-1].encode())
    return LoggedEvent(**dict(zip(LoggedEvent.__struct_fields__, (*row[:-1], data), strict=True)))


def cursor(*, back: int) -> Query[str]:
    """The cursor before the last `back` events; no row if there are fewer."""
    return Query("cursor", {"back": back}, lambda row: f"{row[0]}.{row[1]}")

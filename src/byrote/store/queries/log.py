# SPDX-License-Identifier: MIT
"""Queries that read the event log."""

from datetime import datetime
from typing import Any

import msgspec

from byrote.core.log.cursor import Cursor
from byrote.core.log.record import LogEntry
from byrote.store import rows
from byrote.store.query import Query


def last_event() -> Query[int]:
    """A number that rises with every event."""
    return Query("last_event", {}, lambda row: int(row[0]))


def run_history(
    run_id: str, *, at: datetime | None = None, limit: int | None = None
) -> Query[LogEntry]:
    """Every move of one run that the log still has, in order, up to a moment."""
    return Query("run_history", {"id": run_id, "at": at, "limit": limit}, rows.entry_from)


def log_after(
    cursor: Cursor,
    *,
    kind: str | None = None,
    run_id: str | None = None,
    moves: bool = False,
    limit: int = 500,
) -> Query[list[LogEntry]]:
    """Events after a cursor, each as its entries; with `moves`, only those that moved runs.

    Called from cursor to cursor, it returns every event exactly once.
    """
    args = {"kind": kind, "run": run_id, "moves": moves, "limit": limit, "ordinal": cursor.ordinal}

    def read(row: tuple[Any, ...]) -> list[LogEntry]:
        entries = rows.entries_from(row)
        begun = cursor.ordinal is not None and entries[0].seq == cursor.seq
        return entries[cursor.ordinal :] if begun else entries

    return Query("log_after", args | cursor_args(cursor), read)


def cursor(*, back: int) -> Query[Cursor]:
    """The cursor before the last `back` events; no row if there are not more of them."""
    return Query("cursor", {"back": back}, lambda row: Cursor(*row))


def cursor_args(cursor: Cursor) -> dict[str, Any]:
    """Return the parameters of a cursor."""
    return {"xid": str(cursor.xid), "seq": cursor.seq}


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

# SPDX-License-Identifier: MIT
"""Queries of housekeeping: archive, prune, partitions, duties, and how long queues keep runs."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import msgspec

from byrote.core.duration import duration
from byrote.core.errors import BadOption
from byrote.core.ports import replies
from byrote.store import rows
from byrote.store.query import Query


def delete_orphans(
    *, keep_done: timedelta | None = None, limit: int = 5_000
) -> Query[tuple[int, ...]]:
    """Delete one batch of steps, signals, marks and progress of deleted runs; returns counts."""
    args = {"keep_done": keep_done, "limit": limit}
    return Query("delete_orphans", args, lambda row: tuple(map(int, row)))


def archive(*, after: str, limit: int = 5_000) -> Query[replies.Archived]:
    """Move finished runs after a cursor to the archive."""
    return Query("archive", {"after": after, "limit": limit}, lambda row: replies.Archived(*row))


def prune(
    *,
    keep_done: timedelta | None = None,
    keep_dead: timedelta | None = None,
    keep_events: timedelta = timedelta(days=30),
    keep_worker: timedelta = timedelta(hours=1),
    keep_shadow: timedelta = timedelta(days=1),
) -> Query[rows.Pruned]:
    """Delete what is past its retention, by the queues' settings or these overrides."""
    args: dict[str, Any] = {"keep_done": keep_done, "keep_dead": keep_dead}
    args |= {"keep_events": keep_events, "keep_worker": keep_worker, "keep_shadow": keep_shadow}
    return Query("prune", args, lambda row: rows.Pruned(*row))


def prune_memos(*, limit: int = 5_000) -> Query[int]:
    """Delete a batch of remembered results past their retention; returns how many."""
    return Query("prune_memos", {"limit": limit}, lambda row: int(row[0]))


def partition(*, days: int = 14) -> Query[int]:
    """Create the partitions of the coming days."""
    return Query("partition", {"days": days}, lambda row: int(row[0]))


def duties(*, worker: str, every: Mapping[str, timedelta]) -> Query[replies.Duty]:
    """Take every duty that is due."""
    args = {"worker": worker, "duties": list(every), "every": list(every.values())}
    return Query("duties", args, lambda row: replies.Duty(*row))


def save_cursor(*, duty: str, cursor: str | None) -> Query[str]:
    """Store how far a duty has come."""
    return Query("save_cursor", {"duty": duty, "cursor": cursor}, lambda row: str(row[0]))


class Prunable(msgspec.Struct, frozen=True):
    """How much of one table would be deleted now."""

    part: str
    number: int
    """Days for tables partitioned by day, else rows."""
    first: date | None
    last: date | None
    held: int
    """Rows; for days, an estimate."""


def prunable(
    *,
    keep_done: timedelta | None = None,
    keep_dead: timedelta | None = None,
    keep_events: timedelta = timedelta(days=30),
) -> Query[Prunable]:
    """Count what `queries.prune` would delete with the same limits."""
    query = prune(keep_done=keep_done, keep_dead=keep_dead, keep_events=keep_events)
    return Query("prunable", query.args, lambda row: Prunable(*row))


class QueueRetention(msgspec.Struct, frozen=True):
    """How long a queue keeps finished runs and dead letters."""

    queue: str
    keep_done: timedelta
    keep_dead: timedelta
    changed: bool = True
    """Whether either of them was another before."""


type KeepFor = timedelta | str | float | None
"""How long something is kept: None leaves the setting unchanged."""


def read_retention(keep_done: KeepFor, keep_dead: KeepFor) -> dict[str, timedelta | None]:
    """Return both times as `set_retention` takes them; raises BadOption."""
    done, dead = _kept("keep_done", keep_done), _kept("keep_dead", keep_dead)
    if done is not None and done.days < 1:
        raise BadOption("keep_done: ended runs are deleted by whole days; the minimum is 1d.")
    return {"keep_done": done, "keep_dead": dead}


def _kept(name: str, time: KeepFor) -> timedelta | None:
    try:
        found = None if time is None else duration(time)
    except ValueError as error:
        raise BadOption(f"{name}: {error}") from None
    if found is not None and found < timedelta(0):
        raise BadOption(f"{name}: a time is not negative, such as 7d; not {time!r}.")
    return found


def set_retention(
    queues: Sequence[str],
    *,
    keep_done: timedelta | None = None,
    keep_dead: timedelta | None = None,
) -> Query[QueueRetention]:
    """Set how long queues keep finished and dead runs; None leaves a setting unchanged."""
    args = {"queues": list(queues), "keep_done": keep_done, "keep_dead": keep_dead}
    return Query("set_retention", args, lambda row: QueueRetention(*row))

# SPDX-License-Identifier: MIT
"""The verbs of retention: how long queues keep things, and what would go now."""

from collections.abc import Sequence
from datetime import date, timedelta

import msgspec

from byrote.store import queries
from byrote.store.query import Query


class Prunable(msgspec.Struct, frozen=True):
    """How much of one thing would be forgotten now."""

    part: str
    number: int
    """Days for what goes by the day, else rows."""
    first: date | None
    last: date | None
    held: int
    """Rows; of days, about how many."""


def prunable(
    *,
    keep_done: timedelta | None = None,
    keep_dead: timedelta | None = None,
    keep_events: timedelta = timedelta(days=30),
) -> Query[Prunable]:
    """What `queries.prune` would forget with the same limits."""
    told = queries.prune(keep_done=keep_done, keep_dead=keep_dead, keep_events=keep_events)
    return Query("prunable", told.args, lambda row: Prunable(*row))


def keep(
    queues: Sequence[str],
    *,
    keep_done: timedelta | None = None,
    keep_dead: timedelta | None = None,
) -> Query[str]:
    """Say how long queues keep what has ended and what is dead; None leaves it as it is."""
    args = {"queues": list(queues), "keep_done": keep_done, "keep_dead": keep_dead}
    return Query("keep", args, lambda row: str(row[0]))

# SPDX-License-Identifier: MIT
"""Rows without values, for logins that may not see arguments, results and the texts of errors.

Each function takes the query that such a login was refused, and returns the one that shows the same
rows in outline: hidden values are null, and JSON's null for a spec.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import psycopg

from byrote.store.query import Query
from byrote.store.runners.sync import Store

_FILTERS: Final = ("id", "status", "queue", "task", "hash", "label", "before")


def outlines[Row](query: Query[Row]) -> Query[Row]:
    """Return the outline of one run, or of the newest that match."""
    known: dict[str, Any] = {**dict.fromkeys(_FILTERS), "shadow": True, "limit": 1}
    return Query("outlines", {**known, **query.args}, query.read)


def dead_outline[Row](query: Query[Row]) -> Query[Row]:
    """Return the outline of dead letters."""
    return Query("dead_outline", query.args, query.read)


def history_outline[Row](query: Query[Row]) -> Query[Row]:
    """Return the outline of the moves of a run."""
    return Query("history_outline", query.args, query.read)


def progressing_outline[Row](query: Query[Row]) -> Query[Row]:
    """Return the outline of runs under way that report progress."""
    return Query("progressing_outline", query.args, query.read)


def schedules_outline[Row](query: Query[Row]) -> Query[Row]:
    """Return the outline of periodic tasks."""
    return Query("schedules_outline", query.args, query.read)


def steps_outline[Row](query: Query[Row]) -> Query[Row]:
    """Return the outline of the steps of runs."""
    return Query("steps_outline", query.args, query.read)


_OUTLINES: Final[Mapping[str, Callable[[Query[Any]], Query[Any]]]] = {
    "run": outlines,
    "runs": outlines,
    "dead": dead_outline,
    "history": history_outline,
    "progressing": progressing_outline,
    "schedules": schedules_outline,
    "steps": steps_outline,
}


def outline_of[Row](query: Query[Row]) -> Query[Row] | None:
    """Return the query that shows the same rows without values, or None."""
    outline = _OUTLINES.get(query.name)
    return None if outline is None else outline(query)


class ReadingStore(Store):
    """A store for tools that read: a login that may not see values gets the rows without them."""

    def all[Row](
        self, query: Query[Row], *, connection: psycopg.Connection[Any] | None = None
    ) -> list[Row]:
        """Return every row of the answer, in outline where this login may not see all of it."""
        try:
            return super().all(query, connection=connection)
        except psycopg.errors.InsufficientPrivilege:
            outline = outline_of(query)
            if outline is None:
                raise
            return super().all(outline, connection=connection)

# SPDX-License-Identifier: MIT
"""Resolves queries whose answers were lost, so that the caller receives the true outcome.

A connection that breaks leaves open what happened to its statement: the server may receive it
later, be executing it, or have committed it. Therefore the session that could still execute it is
ended first, and waited for (`end_sessions.sql`): after that its outcome no longer changes. Then
the query's `resend` defines how to read the outcome, and only a query without effect is sent again.

Behind a transaction pooler a client does not know its server session. There the scripts below
still wait for a copy that is being executed, by its run's id or by its mark, but cannot call back
one that the pooler has not passed on yet.

All of this is decided here, in scripts without I/O. The two runners, `sync.py` and `aio.py`, wait,
send a query, or run a transaction, as a `RecoveryScript` requests.
"""

import contextlib
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, Protocol

import psycopg

from byrote.core.ports.script import RetryPause
from byrote.store import queries
from byrote.store.queries.enqueue import QueryScript, again
from byrote.store.query import Query, Resend

type Behind = Callable[[list[Any]], Sequence[Query[Any]]]
"""Returns the statements to run after a query for its rows, in the same transaction."""

MARK = "verb"
"""The key in `byrote_once` of the marks of queries that are sent once."""


def known_times(run_id: str) -> Query[int]:
    """Count the rows of a run in all tables together: never more than one."""
    return Query("count_copies", {"id": run_id}, lambda row: int(row[0]))


def end_sessions(pids: Sequence[int]) -> Query[bool]:
    """End sessions of lost connections; returns whether all of them have ended."""
    return Query("end_sessions", {"pids": list(pids)}, lambda row: bool(row[0]))


def ended(pids: Sequence[int]) -> QueryScript[None]:
    """End sessions of lost connections; raises OperationalError if one has not ended yet."""
    if pids and (yield end_sessions(pids)) != [True]:
        raise psycopg.OperationalError("A session that lost its connection has not ended yet.")


class Transaction(NamedTuple):
    """A request to run a script of queries in one transaction, on a separate connection."""

    script: QueryScript[Any]
    lost: list[int]
    """Receives the session of a connection that breaks: it may still commit."""


type RecoveryScript[Done] = Generator[Query[Any] | RetryPause | Transaction, Any, Done]
"""Yields what a runner has to do, receives its result or error, and returns the result."""


class PauseAfter(Protocol):
    """Returns the seconds until the next try; raises if retrying is useless or time is up."""

    def __call__(self, error: psycopg.Error, *, passing: bool = False) -> float:
        """`passing` is whether the error is known to be temporary."""
        ...


def until_committed[Done](
    script: Callable[[bool], QueryScript[Done]],
    pause_after: PauseAfter,
    lost: list[int],
    *,
    after: psycopg.Error | None = None,
    passes: Callable[[psycopg.Error], bool] = lambda _error: False,
) -> RecoveryScript[Done]:
    """Run a script of queries in one transaction; restarts it while the database is in trouble.

    The script receives whether it may have been committed before, and its answer lost. `lost` are
    sessions that may still commit it, `after` is the error of an earlier try. An error for which
    `passes` returns true is retried.
    """
    again = after is not None
    pause = None if after is None else pause_after(after)
    while True:
        if pause is not None:
            yield RetryPause(pause)
        try:
            if lost:
                yield from ended(lost)
                lost.clear()
            done: Done = yield Transaction(script(again), lost)
        except psycopg.Error as error:
            pause, again = pause_after(error, passing=passes(error)), True
        else:
            return done


class Whole:
    """A query with the statements before it and those after it for its rows."""

    def __init__(
        self, query: Query[Any], also: Sequence[Query[Any]], behind: Behind | None
    ) -> None:
        self._query = query
        self._also = also
        self._behind = behind

    def script(self) -> QueryScript[list[Any]]:
        """Run all of them in order; returns the query's rows."""
        for other in self._also:
            _done = yield other
        rows = yield self._query
        for other in () if self._behind is None else self._behind(rows):
            _done = yield other
        return rows


class ByFirst:
    """Runs that were sent together, all or none: the first of them shows if they exist."""

    def __init__(self, first: str | None) -> None:
        self._first = first
        self._refused = False

    def is_known(self) -> QueryScript[bool]:
        """Return whether they had been accepted."""
        return self._first is not None and (yield queries.is_accepted(self._first)) == [True]

    def check_alone(self) -> QueryScript[None]:
        """Raise UniqueViolation if they had been accepted before, and the first one has moved."""
        if self._first is not None and (yield known_times(self._first)) != [1]:
            raise psycopg.errors.UniqueViolation("The run had been accepted before.")

    def passes(self, error: psycopg.Error) -> bool:
        """Return whether an error may only mean that an earlier copy was accepted meanwhile."""
        if self._first is None or not isinstance(error, psycopg.errors.UniqueViolation):
            return False
        before, self._refused = self._refused, True
        return not before


class Resent(ByFirst):
    """A query whose answer was lost; sent again if it had no effect."""

    def __init__(
        self, query: Query[Any], also: Sequence[Query[Any]] = (), behind: Behind | None = None
    ) -> None:
        super().__init__(query.args["first"] if query.resend is Resend.BY_ID else None)
        query = again(query) if query.resend is Resend.AGAIN else query
        self._whole = Whole(query, also, behind)

    def __call__(self, _again: bool) -> QueryScript[list[Any]]:
        """The transaction as a script."""
        if (yield from self.is_known()):
            return []
        rows = yield from self._whole.script()
        yield from self.check_alone()
        return rows


class SentOnce:
    """A query that is sent until it is committed once; returns the rows of that transaction.

    Its rows are read before its transaction is committed. A transaction that finds the mark of an
    earlier one waits for its end; if that was committed, its rows are the answer.
    """

    def __init__(
        self,
        query: Query[Any],
        mark: str,
        also: Sequence[Query[Any]] = (),
        behind: Behind | None = None,
    ) -> None:
        self._whole = Whole(query, also, behind)
        self._mark = mark
        self._rows: list[Any] = []

    def __call__(self, _again: bool) -> QueryScript[list[Any]]:
        """The transaction as a script."""
        if (yield queries.once(self._mark, MARK)) == []:
            return self._rows
        self._rows = yield from self._whole.script()
        return self._rows

    def unmark(self) -> Query[str]:
        """Return the query that deletes the mark, once the answer has been received."""
        return Query("delete_mark", {"id": self._mark, "key": MARK}, lambda row: str(row[0]))


def until_sent_once(once: SentOnce, pause_after: PauseAfter) -> RecoveryScript[list[Any]]:
    """Run a query with its mark until it is committed, and delete the mark."""
    rows = yield from until_committed(once, pause_after, [])
    with contextlib.suppress(psycopg.Error):
        yield once.unmark()
    return rows


def mark_of(jitter: Callable[[], float]) -> str:
    """Return a random UUID."""
    return "-".join(f"{int(jitter() * 16**size):0{size}x}" for size in (8, 4, 4, 4, 12))

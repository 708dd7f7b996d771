# SPDX-License-Identifier: MIT
"""Runs queries over psycopg: once on a given connection, or on a link that heals itself."""

import contextlib
import os
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg.rows import tuple_row

from byrote.core.errors import DatabaseUnreachable, RowLocked, StoreRefused
from byrote.store.connect import DatabaseAddress
from byrote.store.queries.enqueue import (
    ALL_CREATED,
    EnqueueResult,
    QueryScript,
    accept,
    run_script,
)
from byrote.store.query import Query, Resend
from byrote.store.retries import (
    LOCK_NOT_AVAILABLE,
    UNWILLING,
    Remedy,
    advice,
    is_open,
    pause_before,
    remedy,
)
from byrote.store.runners.prepared import PreparedRunner
from byrote.store.runners.resend import Resent, SentOnce, ended, mark_of

_ONCE = Resend.ONCE


def fetch[Row](connection: psycopg.Connection[Any], query: Query[Row]) -> list[Row]:
    """Run a query on this connection, inside whatever transaction it is in."""
    with connection.cursor(binary=True, row_factory=tuple_row) as cursor:
        cursor.execute(query.sql, query.args)
        return [query.read(row) for row in cursor.fetchall()]


class Interrupted(Exception):
    """The connection broke under a statement: whether it took effect is unknown."""


def summary(error: psycopg.Error) -> str:
    """What a server or driver reported, in one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__


LACKS_A_RIGHT = "`byrote doctor`, with the same URL, shows which role this login needs for it."


class WaitLimit:
    """How long somebody who is no worker waits for a database that does not answer."""

    def __init__(self, door: DatabaseAddress, limit_s: float, chance: Callable[[], float]) -> None:
        self._door = door
        self._left_s = limit_s
        self._chance = chance
        self._tries = 1

    def pause_after(self, error: psycopg.Error, *, passing: bool = False) -> float:
        """Seconds until the next try; raises the error if it is no use, or that time is up."""
        if remedy(error) is Remedy.RAISE and not passing:
            if isinstance(error, psycopg.errors.InsufficientPrivilege):
                error.add_note(LACKS_A_RIGHT)
            raise error
        self._tries += 1
        pause = pause_before(self._tries, self._chance)
        self._left_s -= pause
        if self._left_s < 0 and error.sqlstate == LOCK_NOT_AVAILABLE:
            raise row_locked(error) from error
        if self._left_s < 0:
            raise unreachable(self._door, error) from error
        return pause


class Store:
    """Runs queries for producers and tools; gives up after a while, with a reason.

    Idle connections lie on a shelf; no thread watches them, so nothing has to be closed for a
    script to end.
    """

    def __init__(
        self,
        door: DatabaseAddress,
        *,
        chance: Callable[[], float],
        size: int = 8,
        patience_s: float = 10.0,
    ) -> None:
        self.door = door
        self._chance = chance
        self._patience_s = patience_s
        self._room: SimpleQueue[None] = SimpleQueue()
        """One for each connection that may be borrowed; a semaphore takes twenty times longer."""
        for _ in range(size):
            self._room.put(None)
        self._shelf: list[psycopg.Connection[Any]] = []
        self._pids: WeakKeyDictionary[psycopg.Connection[Any], int] = WeakKeyDictionary()
        """The server's process of each connection; libpq forgets it when a connection breaks."""
        self._poster = PreparedRunner()
        self._pid = os.getpid()

    def all[Row](
        self, query: Query[Row], *, connection: psycopg.Connection[Any] | None = None
    ) -> list[Row]:
        """Every row of the answer. A connection of the caller's lends its transaction."""
        if connection is not None:
            return fetch(connection, query)
        if query.resend is _ONCE:
            return self._once(SentOnce(query, mark_of(self._chance)))
        lost: list[int] = []
        try:
            return self._try(query, lost)
        except psycopg.Error as error:
            again = Resent(query)
            return self.within(again, lost, after=error, passes=again.passes)

    def _once(self, once: SentOnce) -> list[Any]:
        rows = self.within(once)
        with contextlib.suppress(psycopg.Error):
            self._try(once.unmark(), [])
        return rows

    def within[Done](
        self,
        script: Callable[[bool], QueryScript[Done]],
        lost: list[int] | None = None,
        *,
        after: psycopg.Error | None = None,
        passes: Callable[[psycopg.Error], bool] = lambda _error: False,
    ) -> Done:
        """Run a script of queries in one transaction; from its start if the database is in trouble.

        The script is given whether it may have been committed before, and its answer lost. `lost`
        are sessions that may still do it, `after` is the error of an earlier try. An error that
        `passes` is no reason to give up.
        """
        lost = [] if lost is None else lost
        patience = WaitLimit(self.door, self._patience_s, self._chance)
        pause = None if after is None else patience.pause_after(after)
        again = after is not None
        while True:
            if pause is not None:
                threading.Event().wait(pause)
            try:
                if lost:
                    self._end(lost)
                with self.borrow(lost) as borrowed, borrowed.transaction():
                    return run_script(script(again), partial(fetch, borrowed))
            except psycopg.Error as error:
                pause, again = patience.pause_after(error, passing=passes(error)), True

    def _end(self, lost: list[int]) -> None:
        with self.borrow() as borrowed:
            run_script(ended(lost), partial(fetch, borrowed))
        lost.clear()

    def accept(
        self, query: Query[Any], *, connection: psycopg.Connection[Any] | None = None
    ) -> EnqueueResult:
        """Enqueue by any statement that does; says who holds the unique keys that were taken."""
        if query.resend is not Resend.AGAIN:
            self.all(query, connection=connection)
            return ALL_CREATED
        return run_script(accept(query), lambda asked: self.all(asked, connection=connection))

    def _try[Row](self, query: Query[Row], lost: list[int]) -> list[Row]:
        with self.borrow(lost) as borrowed:
            if self.door.pooled:
                return fetch(borrowed, query)
            if query.name != "enqueue_one":
                return self._poster.fetch(borrowed, query)
            self._poster.post(borrowed, query)
            return []

    def first[Row](
        self, query: Query[Row], *, connection: psycopg.Connection[Any] | None = None
    ) -> Row | None:
        """The first row of the answer, or None."""
        rows = self.all(query, connection=connection)
        return rows[0] if rows else None

    def borrow(self, lost: list[int] | None = None) -> "Borrowed":
        """A connection for a while. One that breaks is not put back; `lost` gets its session."""
        return Borrowed(self, lost)

    def lend(self) -> psycopg.Connection[Any]:
        """A connection, which must be taken back, whatever becomes of it."""
        self._room.get()
        try:
            return self._take()
        except BaseException:
            self._room.put(None)
            raise

    def take_back(self, connection: psycopg.Connection[Any], *, broken: bool) -> None:
        """Put a connection that was lent on the shelf again, or close it."""
        try:
            if broken:
                connection.close()
            else:
                self._shelf.append(connection)
        finally:
            self._room.put(None)

    def _take(self) -> psycopg.Connection[Any]:
        if self._pid != os.getpid():
            # A fork: these sockets are the parent's, and so they must be left alone, not closed.
            self._shelf, self._pid = [], os.getpid()
        while self._shelf:
            connection = self._shelf.pop()
            if not connection.closed:
                return connection
        connection = self.door.open("client")
        if not self.door.pooled:
            self._pids[connection] = connection.info.backend_pid
        return connection

    def session_of(self, connection: psycopg.Connection[Any]) -> int | None:
        """The server's process that serves a connection, if that is known."""
        return self._pids.get(connection)

    def close(self) -> None:
        """Close every idle connection."""
        while self._shelf:
            self._shelf.pop().close()


class Borrowed:
    """A connection of a store's for as long as a block lasts.

    Once for each enqueue: a class takes a third of the time that a generator does.
    """

    __slots__ = ("_connection", "_lost", "_store")

    def __init__(self, store: Store, lost: list[int] | None = None) -> None:
        self._store = store
        self._lost = lost

    def __enter__(self) -> psycopg.Connection[Any]:
        self._connection = self._store.lend()
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        if kind is not None and self._lost is not None and is_open(error):
            session = self._store.session_of(self._connection)
            self._lost += [] if session is None else [session]
        self._store.take_back(self._connection, broken=kind is not None)


def unreachable(door: DatabaseAddress, error: psycopg.Error) -> DatabaseUnreachable:
    """The error that says where we knocked and what came back."""
    if error.sqlstate in UNWILLING:
        said = f"PostgreSQL at {door.place} refused: {summary(error)}. {advice(error.sqlstate)}"
        return DatabaseUnreachable(said)
    return DatabaseUnreachable(f"PostgreSQL at {door.place} did not answer: {summary(error)}")


def refused(error: psycopg.Error, door: DatabaseAddress) -> StoreRefused:
    """The error for what PostgreSQL will not take."""
    # The primary message only: what follows it may quote the row.
    brief = f"PostgreSQL refused: {error.diag.message_primary or type(error).__name__}"
    if error.sqlstate in UNWILLING:
        said = f"PostgreSQL at {door.place} refused: {summary(error)}. {advice(error.sqlstate)}"
        return StoreRefused(said, f"{brief}. {advice(error.sqlstate)}")
    return StoreRefused(summary(error), brief)


def row_locked(error: psycopg.Error) -> RowLocked:
    """The error for a row that another transaction has locked for too long."""
    brief = "The row is locked by another transaction, and nothing was done; try again."
    return RowLocked(f"{brief} PostgreSQL reported: {summary(error)}", brief)

# SPDX-License-Identifier: MIT
"""Runs queries over psycopg: once on a given connection, or on a link that heals itself."""

import contextlib
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from byrote.core.errors import DatabaseUnreachable, StoreRefused
from byrote.store import queries
from byrote.store.connect import Door
from byrote.store.post import Poster
from byrote.store.query import Query
from byrote.store.trouble import Remedy, pause_before, remedy
from byrote.store.unique import NOTHING_SPECIAL, RESENT, Settled, again, perform, settle


def fetch[Row](connection: psycopg.Connection[Any], query: Query[Row]) -> list[Row]:
    """Run a query on this connection, inside whatever transaction it is in."""
    with connection.cursor(binary=True, row_factory=tuple_row) as cursor:
        cursor.execute(query.sql, query.args)
        return [query.read(row) for row in cursor.fetchall()]


class Interrupted(Exception):
    """The connection broke under a statement: whether it took effect is unknown."""


class Link:
    """One connection of a worker, reconnected for as long as the worker lives.

    A link belongs to one thread. `ask` tells its caller when an answer was lost, so that a claim or
    a finish can find out what became of it; `run` simply asks again, for statements where that is
    harmless.
    """

    def __init__(
        self,
        door: Door,
        purpose: str,
        *settings: str,
        chance: Callable[[], float],
        stopped: Callable[[float], bool],
        notice: Callable[[str, str | None], None] = lambda _what, _error: None,
    ) -> None:
        self._door = door
        self._purpose = purpose
        self._settings = settings
        self._chance = chance
        self._stopped = stopped
        self._notice = notice
        self._connection: psycopg.Connection[Any] | None = None
        self._fetch = fetch if door.pooled else Poster().fetch
        self._troubled = False
        self.on_open: Callable[[psycopg.Connection[Any]], None] = lambda _connection: None

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """The live connection, opened now if need be; raises once the worker has stopped."""
        tries = 1
        while self._connection is None or self._connection.closed:
            try:
                self._connection = self._open()
            except psycopg.Error as error:
                tries += 1
                self._wait_for_better(error, tries)
        return self._connection

    def _open(self) -> psycopg.Connection[Any]:
        connection = self._door.open(self._purpose, *self._settings)
        try:
            self.on_open(connection)
        except psycopg.Error:
            connection.close()
            raise
        return connection

    def ask[Row](self, query: Query[Row]) -> list[Row]:
        """Run a query; Interrupted when its answer was lost."""
        tries = 1
        while True:
            connection = self.connection
            try:
                rows = self._fetch(connection, query)
            except psycopg.Error as error:
                match remedy(error):
                    case Remedy.RAISE:
                        raise refused(error) from error
                    case Remedy.RECONNECT:
                        self.drop()
                        self._trouble(error)
                        raise Interrupted from error
                    case Remedy.RETRY:
                        tries += 1
                        self._wait_for_better(error, tries)
            else:
                if self._troubled:
                    self._troubled = False
                    self._notice(self._purpose, None)
                return rows

    def once[Row](self, query: Query[Row]) -> list[Row]:
        """Run a query and let whoever asked deal with what goes wrong."""
        connection = self.connection
        try:
            return self._fetch(connection, query)
        except psycopg.Error as error:
            raise refused(error) from error

    def run[Row](self, query: Query[Row]) -> list[Row]:
        """Run a query that may safely run twice, until it is answered."""
        while True:
            try:
                return self.ask(query)
            except Interrupted:
                continue

    def _trouble(self, error: psycopg.Error) -> None:
        self._troubled = True
        self._notice(self._purpose, _said(error))

    def _wait_for_better(self, error: psycopg.Error, tries: int) -> None:
        self._trouble(error)
        if self._stopped(pause_before(tries, self._chance)):
            raise unreachable(self._door, error) from error

    def drop(self) -> None:
        """Forget the connection; the next query opens another."""
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
        self._connection = None


class OnLink:
    """Something that has a connection of its own."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def close(self) -> None:
        """Close the connection; the next verb opens another."""
        self._link.drop()


def _said(error: psycopg.Error) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


class Patience:
    """How long somebody who is no worker waits for a database that does not answer."""

    def __init__(self, door: Door, limit_s: float, chance: Callable[[], float]) -> None:
        self._door = door
        self._left_s = limit_s
        self._chance = chance
        self._tries = 1

    def pause_after(self, error: psycopg.Error) -> float:
        """Seconds until the next try; raises the error if it is no use, or that time is up."""
        if remedy(error) is Remedy.RAISE:
            raise error
        self._tries += 1
        pause = pause_before(self._tries, self._chance)
        self._left_s -= pause
        if self._left_s < 0:
            raise unreachable(self._door, error) from error
        return pause


class Store:
    """Runs queries for producers and tools; gives up after a while, with a reason.

    Idle connections lie on a shelf; no thread watches them, so nothing has to be closed for a
    script to end.
    """

    def __init__(
        self, door: Door, *, chance: Callable[[], float], size: int = 8, patience_s: float = 10.0
    ) -> None:
        self.door = door
        self._chance = chance
        self._patience_s = patience_s
        self._room: SimpleQueue[None] = SimpleQueue()
        """One for each connection that may be borrowed; a semaphore takes twenty times longer."""
        for _ in range(size):
            self._room.put(None)
        self._shelf: list[psycopg.Connection[Any]] = []
        self._poster = Poster()
        self._pid = os.getpid()

    def all[Row](
        self, query: Query[Row], *, connection: psycopg.Connection[Any] | None = None
    ) -> list[Row]:
        """Every row of the answer. A connection of the caller's lends its transaction."""
        if connection is not None:
            return fetch(connection, query)
        patience: Patience | None = None
        while True:
            try:
                return self._try(query)
            except psycopg.Error as error:
                patience = patience or Patience(self.door, self._patience_s, self._chance)
                threading.Event().wait(patience.pause_after(error))
                if query.name in queries.ENQUEUES and self.knows(query):
                    return []
                if query.name in RESENT:
                    query = again(query)

    def accept(
        self, query: Query[Any], *, connection: psycopg.Connection[Any] | None = None
    ) -> Settled:
        """Enqueue by any statement that does; says who holds the unique keys that were taken."""
        if query.name not in RESENT:
            self.all(query, connection=connection)
            return NOTHING_SPECIAL
        return perform(settle(query), lambda asked: self.all(asked, connection=connection))

    def _try[Row](self, query: Query[Row]) -> list[Row]:
        with self.borrow() as borrowed:
            if self.door.pooled:
                return fetch(borrowed, query)
            if query.name != "enqueue_one":
                return self._poster.fetch(borrowed, query)
            self._poster.post(borrowed, query)
            return []

    def knows(self, enqueue: Query[Any]) -> bool:
        """Whether an enqueue whose answer was lost had been accepted: it was all of it or none."""
        return self.all(queries.known(enqueue.args["first"]))[0]

    def first[Row](
        self, query: Query[Row], *, connection: psycopg.Connection[Any] | None = None
    ) -> Row | None:
        """The first row of the answer, or None."""
        rows = self.all(query, connection=connection)
        return rows[0] if rows else None

    def borrow(self) -> "Loan":
        """A connection for a while; one that breaks is not put back."""
        return Loan(self)

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
        return self.door.open("client")

    def close(self) -> None:
        """Close every idle connection."""
        while self._shelf:
            self._shelf.pop().close()


class Loan:
    """A connection of a store's for as long as a block lasts.

    Once for each enqueue: a class takes a third of the time that a generator does.
    """

    __slots__ = ("_connection", "_store")

    def __init__(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> psycopg.Connection[Any]:
        self._connection = self._store.lend()
        return self._connection

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._store.take_back(self._connection, broken=kind is not None)


def unreachable(door: Door, error: psycopg.Error) -> DatabaseUnreachable:
    """The error that says where we knocked and what came back."""
    return DatabaseUnreachable(f"PostgreSQL at {door.place} did not answer: {_said(error)}")


def refused(error: psycopg.Error) -> StoreRefused:
    """The error for what PostgreSQL will not take."""
    # The primary message only: what follows it may quote the row.
    brief = f"PostgreSQL refused: {error.diag.message_primary or type(error).__name__}"
    return StoreRefused(_said(error), brief)

# SPDX-License-Identifier: MIT
"""One connection of a worker: it heals itself, and makes lost answers certain."""

import contextlib
from collections.abc import Callable
from typing import Any

import psycopg

from byrote.store.connect import DatabaseAddress
from byrote.store.queries.enqueue import run_script
from byrote.store.query import Query
from byrote.store.retries import (
    DENIED,
    LOCK_NOT_AVAILABLE,
    UNWILLING,
    Remedy,
    is_open,
    pause_before,
    remedy,
)
from byrote.store.runners.prepared import PreparedRunner
from byrote.store.runners.resend import ended
from byrote.store.runners.sync import Interrupted, fetch, refused, row_locked, summary, unreachable


class WorkerConnection:
    """One connection of a worker, reconnected for as long as the worker lives.

    A link belongs to one thread. `ask` raises when an answer was lost; then `certain` runs the
    query that finds out what became of the first. `run` simply asks again, for statements where
    that is harmless. A statement that yields, or a link that does not insist, raises RowLocked
    where a row stays locked.
    """

    def __init__(
        self,
        door: DatabaseAddress,
        purpose: str,
        *settings: str,
        chance: Callable[[], float],
        stopped: Callable[[float], bool],
        notice: Callable[[str, str | None], None] = lambda _what, _error: None,
        impatient: Callable[[], bool] = lambda: False,
        insists: bool = True,
    ) -> None:
        self._door = door
        self._purpose = purpose
        self._settings = settings
        self._chance = chance
        self._stopped = stopped
        self._notice = notice
        self._connection: psycopg.Connection[Any] | None = None
        self._fetch = fetch if door.pooled else PreparedRunner().fetch
        self._impatient = impatient
        self._insists = insists
        self._troubled = False
        self._breaks: dict[str, tuple[int, psycopg.Error]] = {}
        """Statements that broke their connection: how often in a row, and the last error."""
        self._pid = 0
        self._lost: list[int] = []
        """Sessions that may still execute a statement whose answer was lost."""
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
        self._pid = connection.info.backend_pid
        return connection

    def ask[Row](self, query: Query[Row]) -> list[Row]:
        """Run a query; Interrupted when its answer was lost."""
        try:
            return self._ask(query)
        except Interrupted as interrupted:
            if is_open(interrupted.__cause__) and not self._door.pooled:
                self._lost.append(self._pid)
            raise

    def certain[Row](self, query: Query[Row]) -> list[Row]:
        """Run a query that asks what became of those whose answers were lost.

        It is sent when their sessions have ended: what it reads is final.
        """
        tries = 1
        while self._lost:
            try:
                run_script(ended(self._lost), self.run)
                self._lost.clear()
            except psycopg.OperationalError as error:
                tries += 1
                self._wait_for_better(error, tries)
        return self.run(query)

    def _ask[Row](self, query: Query[Row]) -> list[Row]:
        tries = 1
        self._pause_after_breaks(query.name)
        while True:
            connection = self.connection
            try:
                rows = self._fetch(connection, query)
            except psycopg.Error as error:
                if error.sqlstate == LOCK_NOT_AVAILABLE and (query.yields or not self._insists):
                    raise row_locked(error) from error
                match self._remedy(error):
                    case Remedy.RAISE:
                        raise refused(error, self._door) from error
                    case Remedy.RECONNECT:
                        self.drop()
                        self._trouble(error)
                        self._breaks[query.name] = (self._breaks_of(query.name) + 1, error)
                        raise Interrupted from error
                    case Remedy.RETRY:
                        tries += 1
                        self._wait_for_better(error, tries)
            else:
                self._go_well(query.name)
                return rows

    def _remedy(self, error: psycopg.Error) -> Remedy:
        if error.sqlstate in UNWILLING and self._impatient():
            return Remedy.RAISE
        if error.sqlstate == DENIED and self._insists:
            return Remedy.RETRY
        return remedy(error)

    def _breaks_of(self, name: str) -> int:
        return self._breaks[name][0] if name in self._breaks else 0

    def _pause_after_breaks(self, name: str) -> None:
        """Wait before a statement is sent that broke its connection more than once in a row.

        Counted by statement: on a read-only server a claim breaks and the question what became of
        it is answered, as often as one likes.
        """
        if self._breaks_of(name) > 1:
            tries, error = self._breaks[name]
            self._wait_for_better(error, tries)

    def _go_well(self, name: str) -> None:
        if not self._troubled:
            return
        self._breaks.pop(name, None)
        # One that broke once was settled by another statement, or is asked again by its caller.
        if all(times == 1 for times, _ in self._breaks.values()):
            self._troubled = False
            self._notice(self._purpose, None)

    def once[Row](self, query: Query[Row]) -> list[Row]:
        """Run a query and let whoever asked deal with what goes wrong."""
        connection = self.connection
        try:
            return self._fetch(connection, query)
        except psycopg.Error as error:
            raise refused(error, self._door) from error

    def run[Row](self, query: Query[Row]) -> list[Row]:
        """Run a query that may safely run twice, until it is answered."""
        while True:
            try:
                return self._ask(query)
            except Interrupted:
                continue

    def _trouble(self, error: psycopg.Error) -> None:
        self._troubled = True
        self._notice(self._purpose, summary(error))

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


class OnConnection:
    """Something that has a connection of its own."""

    def __init__(self, link: WorkerConnection) -> None:
        self._link = link

    def close(self) -> None:
        """Close the connection; the next verb opens another."""
        self._link.drop()

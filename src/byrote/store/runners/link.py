# SPDX-License-Identifier: MIT
"""One connection of a worker: reconnects by itself, and resolves lost answers."""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg

from byrote.core.ports.script import run_script
from byrote.store.connect import DatabaseAddress
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
from byrote.store.runners.sync import (
    Fetch,
    Interrupted,
    fetch,
    refused,
    row_locked,
    summary,
    unreachable,
)


class WorkerConnection:
    """One connection of a worker, reconnected for as long as the worker lives.

    It belongs to one thread. `ask` raises Interrupted when an answer was lost; then `certain` runs
    the query that reads the outcome of the first. `run` simply sends the query again, for
    statements where that is harmless. A statement that yields, or a connection that does not
    insist, raises RowLocked for a row that stays locked.

    It does not use `until_committed`, which sends a transaction again itself: a worker's claims and
    finishes are resolved by lease tokens in `store/worker.py`, which must learn of a lost answer
    first. And it retries on its one connection, which listens for notifications, until the worker
    stops, where `until_committed` borrows connections and gives up after a time limit.
    """

    def __init__(
        self,
        address: DatabaseAddress,
        purpose: str,
        *settings: str,
        jitter: Callable[[], float],
        stopped: Callable[[float], bool],
        notice: Callable[[str, str | None], None] = lambda _what, _error: None,
        impatient: Callable[[], bool] = lambda: False,
        insists: bool = True,
    ) -> None:
        self._address = address
        self._purpose = purpose
        self._settings = settings
        self._jitter = jitter
        self._stopped = stopped
        self._notice = notice
        self._connection: psycopg.Connection[Any] | None = None
        self._fetch: Fetch = (
            partial(fetch, schema=address.schema) if address.pooled else PreparedRunner().fetch
        )
        self._impatient = impatient
        self._insists = insists
        self._troubled = False
        self._breaks: dict[str, tuple[int, psycopg.Error]] = {}
        """Statements that broke their connection: how often in succession, and the last error."""
        self._pid = 0
        self._lost: list[int] = []
        """Sessions that may still execute a statement whose answer was lost."""
        self.on_open: Callable[[psycopg.Connection[Any]], None] = lambda _connection: None

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """The live connection, opened now if necessary; raises once the worker has stopped."""
        tries = 1
        while self._connection is None or self._connection.closed:
            try:
                self._connection = self._open()
            except psycopg.Error as error:
                tries += 1
                self._wait_for_better(error, tries)
        return self._connection

    def _open(self) -> psycopg.Connection[Any]:
        connection = self._address.open(self._purpose, *self._settings)
        try:
            self.on_open(connection)
        except psycopg.Error:
            connection.close()
            raise
        self._pid = connection.info.backend_pid
        return connection

    def ask[Row](self, query: Query[Row]) -> list[Row]:
        """Run a query; raises Interrupted when its answer was lost."""
        try:
            return self._ask(query)
        except Interrupted as interrupted:
            if is_open(interrupted.__cause__) and not self._address.pooled:
                self._lost.append(self._pid)
            raise

    def certain[Row](self, query: Query[Row]) -> list[Row]:
        """Run a query that reads the outcome of those whose answers were lost.

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
                        raise refused(error, self._address) from error
                    case Remedy.RECONNECT:
                        self.drop()
                        self._trouble(error)
                        self._breaks[query.name] = (self._breaks_of(query.name) + 1, error)
                        raise Interrupted from error
                    case Remedy.RETRY:
                        tries += 1
                        self._wait_for_better(error, tries)
            else:
                self._recover(query.name)
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
        """Wait before sending a statement that broke its connection more than once in succession.

        Counted by statement: on a read-only server every claim breaks, and every query for its
        outcome is answered.
        """
        if self._breaks_of(name) > 1:
            tries, error = self._breaks[name]
            self._wait_for_better(error, tries)

    def _recover(self, name: str) -> None:
        if not self._troubled:
            return
        self._breaks.pop(name, None)
        # One that broke once was resolved by another statement, or its caller sends it again.
        if all(times == 1 for times, _ in self._breaks.values()):
            self._troubled = False
            self._notice(self._purpose, None)

    def once[Row](self, query: Query[Row]) -> list[Row]:
        """Run a query once; raises StoreRefused for any error."""
        connection = self.connection
        try:
            return self._fetch(connection, query)
        except psycopg.Error as error:
            raise refused(error, self._address) from error

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
        if self._stopped(pause_before(tries, self._jitter)):
            raise unreachable(self._address, error) from error

    def drop(self) -> None:
        """Close the connection; the next query opens another."""
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
        self._connection = None


class OnConnection:
    """A part of the store with its own connection."""

    def __init__(self, link: WorkerConnection) -> None:
        self._link = link

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        self._link.drop()

# SPDX-License-Identifier: MIT
"""The runner for threads: once on a given connection, or on a store's own with retries.

How a lost answer is resolved follows from the query (`resend.py`). On the store's own connections
statements are prepared and bypass psycopg's cursor (`prepared.py`), except behind a pooler.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg.rows import tuple_row

from byrote.core.errors import (
    DatabaseRefused,
    DatabaseUnreachable,
    RowLocked,
    StoreRefused,
)
from byrote.core.ports.script import RetryPause, run_script
from byrote.store.callers.errors import UNMIGRATED, CallerErrors, lacks_tables
from byrote.store.callers.sync import caller_of
from byrote.store.connect import DatabaseAddress
from byrote.store.queries.enqueue import (
    NO_CODES,
    Codes,
    EnqueueResult,
    Numbered,
    QueryScript,
    accept,
    until_accepted,
)
from byrote.store.query import Query, Resend
from byrote.store.retries import (
    LOCK_NOT_AVAILABLE,
    UNWILLING,
    Remedy,
    advice,
    is_open,
    login_advice,
    pause_before,
    remedy,
)
from byrote.store.runners.pools import exhausted, lent
from byrote.store.runners.prepared import CAN_POLL, PreparedRunner
from byrote.store.runners.resend import (
    Resent,
    SentOnce,
    Transaction,
    mark_of,
    until_committed,
    until_sent_once,
)

_ONCE = Resend.ONCE


def fetch[Row](
    connection: psycopg.Connection[Any], query: Query[Row], schema: str | None = None
) -> list[Row]:
    """Run a query on this connection, inside its transaction if it is in one.

    `schema` is the one to qualify names with; None where the search path finds them.
    """
    with connection.cursor(binary=True, row_factory=tuple_row) as cursor:
        cursor.execute(query.sql_in(schema), query.args)
        return [query.read(row) for row in cursor.fetchall()]


def fetch_committed[Row](
    connection: psycopg.Connection[Any], query: Query[Row], schema: str | None = None
) -> list[Row]:
    """Run a query on an idle connection of any mode, in its own transaction."""
    if connection.autocommit:
        return fetch(connection, query, schema)
    with connection.transaction():
        return fetch(connection, query, schema)


type Fetch = Callable[[psycopg.Connection[Any], Query[Any]], list[Any]]


def fetch_on[Row](connection: Any, query: Query[Row], schema: str | None) -> list[Row]:
    """Run a query in the transaction of a caller's connection, of psycopg or another library."""
    caller = caller_of(connection)
    with CallerErrors(schema):
        if isinstance(caller, psycopg.Connection):
            return fetch(caller, query, schema)
        return caller.fetch(query, schema)


class Interrupted(Exception):
    """The connection broke under a statement: whether it took effect is unknown."""


def summary(error: psycopg.Error) -> str:
    """Return the message of a server's or driver's error in one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__


def raise_if_unmigrated(error: psycopg.Error, schema: str | None) -> None:
    """Raise SchemaMismatch if a part of Byrote's tables and functions is missing."""
    if error.sqlstate in UNMIGRATED:
        raise lacks_tables(error.diag.message_primary or type(error).__name__, schema) from error


@contextlib.contextmanager
def schema_errors(schema: str | None) -> Iterator[None]:
    """Turn errors about missing tables into SchemaMismatch, with what to do."""
    try:
        yield
    except psycopg.ProgrammingError as error:
        raise_if_unmigrated(error, schema)
        raise


LACKS_A_RIGHT = "`byrote doctor`, with the same URL, shows which role this login needs for it."


class WaitLimit:
    """How long a caller other than a worker waits for a database that does not answer."""

    def __init__(
        self, address: DatabaseAddress, limit_s: float, jitter: Callable[[], float]
    ) -> None:
        self._address = address
        self._deadline = time.monotonic() + limit_s
        self._jitter = jitter
        self._tries = 1

    def pause_after(self, error: psycopg.Error, *, passing: bool = False) -> float:
        """Return the seconds until the next try; raises if retrying is useless or time is up."""
        if remedy(error) is Remedy.RAISE and not passing:
            raise_if_unmigrated(error, self._address.schema)
            if isinstance(error, psycopg.errors.InsufficientPrivilege):
                error.add_note(LACKS_A_RIGHT)
            raise error
        self._tries += 1
        pause = pause_before(self._tries, self._jitter)
        late = time.monotonic() + pause > self._deadline
        if late and error.sqlstate == LOCK_NOT_AVAILABLE:
            raise row_locked(error) from error
        if late:
            raise unreachable(self._address, error) from error
        return pause


class Store:
    """Runs queries for producers and tools; raises after `patience_s` of trouble.

    No thread watches idle connections, so a script can end without closing them.
    """

    def __init__(
        self,
        address: DatabaseAddress,
        *,
        jitter: Callable[[], float],
        size: int = 8,
        patience_s: float = 10.0,
        pool: Any = None,
    ) -> None:
        """`pool` is a ConnectionPool of psycopg_pool, used instead of connections of our own."""
        self.address = address
        self.named_schema = address.named_schema if pool is None else address.schema
        """The schema that statements must name on the connections that are borrowed here."""
        self._jitter = jitter
        self._size = size
        self._patience_s = patience_s
        self._pool = pool
        self._permits: SimpleQueue[None] = SimpleQueue()
        """An item per connection that may be borrowed; a semaphore takes twenty times longer."""
        for _ in range(size):
            self._permits.put(None)
        self._idle: list[psycopg.Connection[Any]] = []
        self._pids: WeakKeyDictionary[psycopg.Connection[Any], int] = WeakKeyDictionary()
        """The server process of each connection; libpq drops it when a connection breaks."""
        self._fetch = self._fetcher()
        self._pid = os.getpid()

    def _fetcher(self) -> Fetch:
        if self._pool is not None:
            return partial(fetch_committed, schema=self.named_schema)
        if self.address.pooled or not CAN_POLL:
            return partial(fetch, schema=self.named_schema)
        return PreparedRunner().fetch

    def all[Row](self, query: Query[Row], *, connection: Any = None) -> list[Row]:
        """Return every row of the answer; on the caller's connection, in its transaction."""
        if connection is not None:
            return fetch_on(connection, query, self.address.schema)
        if query.resend is _ONCE:
            once = SentOnce(query, mark_of(self._jitter))
            return run_script(until_sent_once(once, self._limit().pause_after), self._do)
        lost: list[int] = []
        try:
            return self._try(query, lost)
        except psycopg.Error as error:
            again = Resent(query)
            return self.within(again, lost, after=error, passes=again.passes)

    def within[Done](
        self,
        script: Callable[[bool], QueryScript[Done]],
        lost: list[int] | None = None,
        *,
        after: psycopg.Error | None = None,
        passes: Callable[[psycopg.Error], bool] = lambda _error: False,
    ) -> Done:
        """Run a script of queries in one transaction, as `until_committed` specifies."""
        lost, pause_after = [] if lost is None else lost, self._limit().pause_after
        steps = until_committed(script, pause_after, lost, after=after, passes=passes)
        return run_script(steps, self._do)

    def _limit(self) -> WaitLimit:
        return WaitLimit(self.address, self._patience_s, self._jitter)

    def _do(self, step: Query[Any] | RetryPause | Transaction) -> Any:
        match step:
            case RetryPause(seconds):
                time.sleep(seconds)
            case Transaction(script, lost):
                with self.borrow(lost) as borrowed, borrowed.transaction():
                    return run_script(script, partial(fetch, borrowed, schema=self.named_schema))
            case Query():
                return self._try(step)
        return None

    def accept(self, specs: Sequence[Numbered], codes: Codes = NO_CODES) -> EnqueueResult:
        """Enqueue specs, all or none; returns which runs hold the unique keys that were taken."""
        script = until_accepted(accept(specs, codes))
        return run_script(script, self.all)

    def _try[Row](self, query: Query[Row], lost: list[int] | None = None) -> list[Row]:
        with self.borrow(lost) as borrowed:
            return self._fetch(borrowed, query)

    def first[Row](self, query: Query[Row], *, connection: Any = None) -> Row | None:
        """Return the first row of the answer, or None."""
        rows = self.all(query, connection=connection)
        return rows[0] if rows else None

    def borrow(self, lost: list[int] | None = None) -> "Borrowed":
        """Borrow a connection. One that breaks is closed, and its session appended to `lost`."""
        return Borrowed(self, lost)

    def acquire(self) -> psycopg.Connection[Any]:
        """Return a connection, which must be passed to `take_back`, broken or not.

        Raises PoolExhausted if all are in use for `patience_s`.
        """
        if self._pool is not None:
            return self._lent()
        try:
            self._permits.get(timeout=self._patience_s)
        except Empty:
            raise exhausted(self._size, self._patience_s) from None
        try:
            return self._take()
        except BaseException:
            self._permits.put(None)
            raise

    def take_back(self, connection: psycopg.Connection[Any], *, broken: bool) -> None:
        """Return a connection to the idle ones, or close it if it is broken."""
        if self._pool is not None:
            self._pool.putconn(connection)
            return
        try:
            if broken:
                connection.close()
            else:
                self._idle.append(connection)
        finally:
            self._permits.put(None)

    def _lent(self) -> psycopg.Connection[Any]:
        """Take a connection from the caller's pool, which itself replaces broken ones."""
        connection: psycopg.Connection[Any] = lent(self._pool, self._patience_s)
        if not self.address.pooled:
            self._pids[connection] = connection.info.backend_pid
        return connection

    def _take(self) -> psycopg.Connection[Any]:
        if self._pid != os.getpid():
            # After a fork these sockets belong to the parent: leave them alone, do not close them.
            self._idle, self._pid = [], os.getpid()
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed:
                return connection
        connection = self.address.open("client")
        if not self.address.pooled:
            self._pids[connection] = connection.info.backend_pid
        return connection

    def session_of(self, connection: psycopg.Connection[Any]) -> int | None:
        """Return the server process of a connection, if known."""
        return self._pids.get(connection)

    def close(self) -> None:
        """Close every idle connection; a pool is closed by the caller who made it."""
        while self._idle:
            self._idle.pop().close()


class Borrowed:
    """Context manager that borrows a connection of a store.

    Every enqueue uses one: a class takes a third of the time that a generator does.
    """

    __slots__ = ("_connection", "_lost", "_store")

    def __init__(self, store: Store, lost: list[int] | None = None) -> None:
        self._store = store
        self._lost = lost

    def __enter__(self) -> psycopg.Connection[Any]:
        self._connection = self._store.acquire()
        return self._connection

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        if error_type is not None and self._lost is not None and is_open(error):
            session = self._store.session_of(self._connection)
            self._lost += [] if session is None else [session]
        self._store.take_back(self._connection, broken=error_type is not None)


def unreachable(address: DatabaseAddress, error: psycopg.Error) -> DatabaseUnreachable:
    """Return the error for a database that does not answer, with its address and the cause."""
    if error.sqlstate in UNWILLING:
        text = (
            f"PostgreSQL at {address.redacted} refused: {summary(error)}. {advice(error.sqlstate)}"
        )
        return DatabaseUnreachable(text)
    if (todo := login_advice(str(error))) is not None:
        return DatabaseRefused(f"PostgreSQL at {address.redacted} refused the login: {todo}")
    return DatabaseUnreachable(f"PostgreSQL at {address.redacted} did not answer: {summary(error)}")


def refused(error: psycopg.Error, address: DatabaseAddress) -> StoreRefused:
    """Return the error for a statement that PostgreSQL refuses."""
    # The primary message only: the details may quote the row.
    brief = f"PostgreSQL refused: {error.diag.message_primary or type(error).__name__}"
    if error.sqlstate in UNWILLING:
        text = (
            f"PostgreSQL at {address.redacted} refused: {summary(error)}. {advice(error.sqlstate)}"
        )
        return StoreRefused(text, f"{brief}. {advice(error.sqlstate)}")
    return StoreRefused(summary(error), brief)


def row_locked(error: psycopg.Error) -> RowLocked:
    """Return the error for a row that another transaction has locked for too long."""
    brief = "The row is locked by another transaction, and nothing was done; try again."
    return RowLocked(f"{brief} PostgreSQL reported: {summary(error)}", brief)

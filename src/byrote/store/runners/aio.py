# SPDX-License-Identifier: MIT
"""The runner for event loops: runs the same queries as `sync.py` over async psycopg."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg.rows import tuple_row

from byrote.core.ports.script import RetryPause, arun_script
from byrote.store.callers.aio import acaller_of
from byrote.store.callers.errors import CallerErrors
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
from byrote.store.retries import LOCK_NOT_AVAILABLE, Remedy, is_open, remedy
from byrote.store.runners.pools import alent, exhausted
from byrote.store.runners.prepared_async import AsyncPreparedRunner
from byrote.store.runners.resend import (
    Resent,
    SentOnce,
    Transaction,
    ended,
    mark_of,
    until_committed,
    until_sent_once,
)
from byrote.store.runners.sync import Interrupted, WaitLimit, row_locked


async def afetch[Row](
    connection: psycopg.AsyncConnection[Any],
    query: Query[Row],
    also: Sequence[Query[Any]] = (),
    behind: Callable[[list[Row]], Sequence[Query[Any]]] | None = None,
    *,
    schema: str | None = None,
) -> list[Row]:
    """Run a query on this connection, inside its transaction if it is in one.

    `schema` is the one to qualify names with; None where the search path finds them.
    `also` are statements to run before it, `behind` returns those to run after it for its rows: all
    of them or none. Their commit is a separate statement: otherwise the error of a commit that
    fails belongs to no statement of the pipeline, and psycopg does not expect it.
    """
    async with connection.cursor(binary=True, row_factory=tuple_row) as cursor:
        if not also and behind is None:
            await cursor.execute(query.sql_in(schema), query.args)
            return await _rows(cursor, query)
        async with connection.pipeline(), connection.transaction():
            for other in also:
                await connection.execute(other.sql_in(schema), other.args)
            await cursor.execute(query.sql_in(schema), query.args)
            if behind is not None:
                found = await _rows(cursor, query)
                for other in behind(found):
                    await connection.execute(other.sql_in(schema), other.args)
                return found
        return await _rows(cursor, query)


async def afetch_committed[Row](
    connection: psycopg.AsyncConnection[Any],
    query: Query[Row],
    also: Sequence[Query[Any]] = (),
    behind: Callable[[list[Row]], Sequence[Query[Any]]] | None = None,
    *,
    schema: str | None = None,
) -> list[Row]:
    """Do the same on an idle connection of any mode, in its own transaction."""
    if connection.autocommit:
        return await afetch(connection, query, also, behind, schema=schema)
    async with connection.transaction():
        return await afetch(connection, query, also, behind, schema=schema)


async def afetch_on[Row](connection: Any, query: Query[Row], schema: str | None) -> list[Row]:
    """Run a query in the transaction of a caller's connection, of psycopg or another library."""
    caller = await acaller_of(connection)
    with CallerErrors(schema):
        if isinstance(caller, psycopg.AsyncConnection):
            return await afetch(caller, query, schema=schema)
        return await caller.fetch(query, schema)


async def _rows[Row](cursor: psycopg.AsyncCursor[Any], query: Query[Row]) -> list[Row]:
    # Statements for a role that may only insert have no RETURNING clause, hence no rows.
    return [query.read(row) for row in await cursor.fetchall()] if cursor.description else []


class AsyncStore:
    """Runs queries on up to `size` connections per event loop: they cannot move between loops."""

    def __init__(
        self,
        address: DatabaseAddress,
        *settings: str,
        jitter: Callable[[], float],
        size: int = 8,
        patience_s: float = 10.0,
        pool: Any = None,
    ) -> None:
        """`pool` is an AsyncConnectionPool, used instead of connections of our own."""
        self.address = address
        self.named_schema = address.named_schema if pool is None else address.schema
        """The schema that statements must name on the connections that are borrowed here."""
        self._pool = pool
        self._fetch = self._fetcher()
        self._settings = settings
        self._jitter = jitter
        self._size = size
        self._patience_s = patience_s
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, _IdleConnections] = (
            WeakKeyDictionary()
        )
        self._pids: WeakKeyDictionary[psycopg.AsyncConnection[Any], int] = WeakKeyDictionary()
        """The server process of each connection; libpq drops it when a connection breaks."""

    def _fetcher(self) -> Callable[..., Any]:
        if self._pool is not None:
            return partial(afetch_committed, schema=self.named_schema)
        if self.address.pooled:
            return partial(afetch, schema=self.named_schema)
        return AsyncPreparedRunner().fetch

    async def all[Row](
        self,
        query: Query[Row],
        *,
        connection: Any = None,
        also: Sequence[Query[Any]] = (),
        behind: Callable[[list[Row]], Sequence[Query[Any]]] | None = None,
    ) -> list[Row]:
        """Return every row of the answer; on the caller's connection, in its transaction.

        `also` are statements to run before it, `behind` returns those to run after it for its rows;
        all of them in the same transaction.
        """
        if connection is not None:
            return await afetch_on(connection, query, self.address.schema)
        if query.resend is Resend.ONCE:
            once = SentOnce(query, mark_of(self._jitter), also, behind)
            return await arun_script(until_sent_once(once, self._limit().pause_after), self._do)
        lost: list[int] = []
        try:
            return await self._try(query, lost, also, behind)
        except psycopg.Error as error:
            _raise_if_locked(query, error)
            again = Resent(query, also, behind)
            return await self.within(again, lost, after=error, passes=again.passes)

    async def accept(self, specs: Sequence[Numbered], codes: Codes = NO_CODES) -> EnqueueResult:
        """Enqueue specs, all or none; returns which runs hold the unique keys that were taken."""
        script = until_accepted(accept(specs, codes))
        return await arun_script(script, self.all)

    async def within[Done](
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
        return await arun_script(steps, self._do)

    def _limit(self) -> WaitLimit:
        return WaitLimit(self.address, self._patience_s, self._jitter)

    async def _do(self, step: Query[Any] | RetryPause | Transaction) -> Any:
        match step:
            case RetryPause(seconds):
                await asyncio.sleep(seconds)
            case Transaction(script, lost):
                async with self.borrow(lost) as borrowed, borrowed.transaction():
                    ask = partial(afetch, borrowed, schema=self.named_schema)
                    return await arun_script(script, ask)
            case Query():
                return await self._try(step)
        return None

    async def _try[Row](
        self,
        query: Query[Row],
        lost: list[int] | None = None,
        also: Sequence[Query[Any]] = (),
        behind: Callable[[list[Row]], Sequence[Query[Any]]] | None = None,
    ) -> list[Row]:
        async with self.borrow(lost) as borrowed:
            rows: list[Row] = await self._fetch(borrowed, query, also, behind)
            return rows

    async def ask[Row](
        self,
        query: Query[Row],
        *,
        also: Sequence[Query[Any]] = (),
        behind: Callable[[list[Row]], Sequence[Query[Any]]] | None = None,
    ) -> list[Row]:
        """Return every row of the answer; raises Interrupted if it was lost, effect unknown.

        By then the session that could still execute it has ended: what is read next is final.
        `also` and `behind` are as in `all`.
        """
        lost: list[int] = []
        try:
            return await self._try(query, lost, also, behind)
        except psycopg.Error as error:
            _raise_if_locked(query, error)
            if remedy(error) is Remedy.RAISE:
                raise
            await self.within(lambda _again: ended(()), lost, after=error)
            raise Interrupted from error

    async def first[Row](self, query: Query[Row], *, connection: Any = None) -> Row | None:
        """Return the first row of the answer, or None."""
        rows = await self.all(query, connection=connection)
        return rows[0] if rows else None

    @contextlib.asynccontextmanager
    async def borrow(
        self, lost: list[int] | None = None
    ) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        """Borrow a connection. One that breaks is closed, and its session appended to `lost`.

        Raises PoolExhausted if all are in use for `patience_s`.
        """
        if self._pool is not None:
            async with self._lent(lost) as connection:
                yield connection
            return
        pool = self._pools.setdefault(asyncio.get_running_loop(), _IdleConnections(self._size))
        await self._permit(pool)
        try:
            connection = await self._take(pool)
            try:
                yield connection
            except BaseException as error:
                if lost is not None and is_open(error) and connection in self._pids:
                    lost.append(self._pids[connection])
                await connection.close()
                raise
            if pool.closed:
                await connection.close()
            else:
                pool.idle.append(connection)
        finally:
            pool.permits.release()

    async def _permit(self, pool: "_IdleConnections") -> None:
        if not pool.permits.locked():
            await pool.permits.acquire()
            return
        try:
            async with asyncio.timeout(self._patience_s):
                await pool.permits.acquire()
        except TimeoutError:
            raise exhausted(self._size, self._patience_s) from None

    @contextlib.asynccontextmanager
    async def _lent(self, lost: list[int] | None) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        """Borrow a connection of the caller's pool, which itself replaces broken ones."""
        connection: psycopg.AsyncConnection[Any] = await alent(self._pool, self._patience_s)
        session = None if self.address.pooled else connection.info.backend_pid
        try:
            yield connection
        except BaseException as error:
            if lost is not None and session is not None and is_open(error):
                lost.append(session)
            raise
        finally:
            await self._pool.putconn(connection)

    async def _take(self, pool: "_IdleConnections") -> psycopg.AsyncConnection[Any]:
        while pool.idle:
            connection = pool.idle.pop()
            if not connection.closed:
                return connection
        connection = await psycopg.AsyncConnection.connect(
            self.address.conninfo("client", *self._settings), **self.address.keywords
        )
        if not self.address.pooled:
            self._pids[connection] = connection.info.backend_pid
        return connection

    async def close(self) -> None:
        """Close the connections of the running loop: idle ones now, borrowed ones when returned.

        A pool is closed by the caller who made it.
        """
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            pool.closed = True
            for connection in pool.idle:
                await connection.close()


def _raise_if_locked(query: Query[Any], error: psycopg.Error) -> None:
    """Raise RowLocked if the statement does not wait for locked rows and met one."""
    if query.yields and error.sqlstate == LOCK_NOT_AVAILABLE:
        raise row_locked(error) from error


class _IdleConnections:
    def __init__(self, size: int) -> None:
        self.permits = asyncio.Semaphore(size)
        self.idle: list[psycopg.AsyncConnection[Any]] = []
        self.closed = False

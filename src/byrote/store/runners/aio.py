# SPDX-License-Identifier: MIT
"""Runs the same queries as `sync.py` over async psycopg."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg.rows import tuple_row

from byrote.core.ports.script import arun_script
from byrote.store.connect import DatabaseAddress
from byrote.store.queries.enqueue import ALL_CREATED, EnqueueResult, QueryScript, accept
from byrote.store.query import Query, Resend
from byrote.store.retries import LOCK_NOT_AVAILABLE, Remedy, is_open, remedy
from byrote.store.runners.prepared_async import apost, apost_behind
from byrote.store.runners.resend import Resent, SentOnce, ended, mark_of
from byrote.store.runners.sync import Interrupted, WaitLimit, row_locked


async def afetch[Row](connection: psycopg.AsyncConnection[Any], query: Query[Row]) -> list[Row]:
    """Run a query on this connection, inside its transaction if it is in one."""
    async with connection.cursor(binary=True, row_factory=tuple_row) as cursor:
        await cursor.execute(query.sql, query.args)
        # Statements for a role that may only insert have no RETURNING clause, hence no rows.
        return [query.read(row) for row in await cursor.fetchall()] if cursor.description else []


async def atogether[Row](
    connection: psycopg.AsyncConnection[Any], query: Query[Row], also: Sequence[Query[Any]]
) -> list[Row]:
    """Run a query after others, all or none, in one round trip.

    The commit is a separate statement: otherwise the error of a commit that fails belongs to no
    statement of the pipeline, and psycopg does not expect it.
    """
    async with connection.cursor(binary=True) as cursor:
        async with connection.pipeline(), connection.transaction():
            for other in also:
                await connection.execute(other.sql, other.args)
            await cursor.execute(query.sql, query.args)
        return [query.read(row) for row in await cursor.fetchall()]


async def abehind[Row](
    connection: psycopg.AsyncConnection[Any],
    query: Query[Row],
    behind: Callable[[list[Row]], Sequence[Query[Any]]],
) -> list[Row]:
    """Run a query, then the statements that `behind` returns for its rows: all or none."""
    if connection.prepare_threshold is not None:
        return await apost_behind(connection, query, behind)
    async with (
        connection.cursor(binary=True) as cursor,
        connection.pipeline(),
        connection.transaction(),
    ):
        await cursor.execute(query.sql, query.args)
        found = [query.read(row) for row in await cursor.fetchall()]
        for other in behind(found):
            await connection.execute(other.sql, other.args)
    return found


class AsyncStore:
    """Runs queries on up to `size` connections per event loop: they cannot move between loops."""

    def __init__(
        self,
        door: DatabaseAddress,
        *settings: str,
        chance: Callable[[], float],
        size: int = 8,
        patience_s: float = 10.0,
    ) -> None:
        self.door = door
        self._settings = settings
        self._chance = chance
        self._size = size
        self._patience_s = patience_s
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, _IdleConnections] = (
            WeakKeyDictionary()
        )
        self._pids: WeakKeyDictionary[psycopg.AsyncConnection[Any], int] = WeakKeyDictionary()
        """The server process of each connection; libpq drops it when a connection breaks."""

    async def all[Row](
        self,
        query: Query[Row],
        *,
        connection: psycopg.AsyncConnection[Any] | None = None,
        also: Sequence[Query[Any]] = (),
        behind: Callable[[list[Row]], Sequence[Query[Any]]] | None = None,
    ) -> list[Row]:
        """Return every row of the answer; on the caller's connection, in its transaction.

        `also` are statements to run before it, `behind` returns those to run after it for its rows;
        all of them in the same transaction.
        """
        if connection is not None:
            return await afetch(connection, query)
        if query.resend is Resend.ONCE:
            return await self._once(SentOnce(query, mark_of(self._chance), also, behind))
        lost: list[int] = []
        try:
            async with self.borrow(lost) as borrowed:
                if behind is not None:
                    return await abehind(borrowed, query, behind)
                return await _run(borrowed, query, also)
        except psycopg.Error as error:
            _raise_if_locked(query, error)
            again = Resent(query, also, behind)
            return await self.within(again, lost, after=error, passes=again.passes)

    async def accept(
        self, query: Query[Any], *, connection: psycopg.AsyncConnection[Any] | None = None
    ) -> EnqueueResult:
        """Run any enqueue statement; returns which runs hold the unique keys that were taken."""
        if query.resend is not Resend.AGAIN:
            await self.all(query, connection=connection)
            return ALL_CREATED
        return await arun_script(accept(query), lambda each: self.all(each, connection=connection))

    async def _once(self, once: SentOnce) -> list[Any]:
        rows = await self.within(once)
        with contextlib.suppress(psycopg.Error):
            async with self.borrow() as borrowed:
                await afetch(borrowed, once.unmark())
        return rows

    async def within[Done](
        self,
        script: Callable[[bool], QueryScript[Done]],
        lost: list[int] | None = None,
        *,
        after: psycopg.Error | None = None,
        passes: Callable[[psycopg.Error], bool] = lambda _error: False,
    ) -> Done:
        """Run a script of queries in one transaction; restarts it while the database is in trouble.

        The script receives whether it may have been committed before, and its answer lost. `lost`
        are sessions that may still commit it, `after` is the error of an earlier try. An error for
        which `passes` returns true is retried.
        """
        lost = [] if lost is None else lost
        patience = WaitLimit(self.door, self._patience_s, self._chance)
        pause = None if after is None else patience.pause_after(after)
        again = after is not None
        while True:
            if pause is not None:
                await asyncio.sleep(pause)
            try:
                if lost:
                    await self._end(lost)
                async with self.borrow(lost) as borrowed, borrowed.transaction():
                    return await arun_script(script(again), partial(afetch, borrowed))
            except psycopg.Error as error:
                pause, again = patience.pause_after(error, passing=passes(error)), True

    async def _end(self, lost: list[int]) -> None:
        async with self.borrow() as borrowed:
            await arun_script(ended(lost), partial(afetch, borrowed))
        lost.clear()

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
            async with self.borrow(lost) as borrowed:
                if behind is not None:
                    return await abehind(borrowed, query, behind)
                return await _run(borrowed, query, also)
        except psycopg.Error as error:
            _raise_if_locked(query, error)
            if remedy(error) is Remedy.RAISE:
                raise
            await self.within(lambda _again: ended(()), lost, after=error)
            raise Interrupted from error

    async def first[Row](
        self, query: Query[Row], *, connection: psycopg.AsyncConnection[Any] | None = None
    ) -> Row | None:
        """Return the first row of the answer, or None."""
        rows = await self.all(query, connection=connection)
        return rows[0] if rows else None

    @contextlib.asynccontextmanager
    async def borrow(
        self, lost: list[int] | None = None
    ) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        """Borrow a connection. One that breaks is closed, and its session appended to `lost`."""
        pool = self._pools.setdefault(asyncio.get_running_loop(), _IdleConnections(self._size))
        async with pool.permits:
            connection = await self._take(pool)
            try:
                yield connection
            except BaseException as error:
                if lost is not None and is_open(error) and connection in self._pids:
                    lost.append(self._pids[connection])
                await connection.close()
                raise
            pool.idle.append(connection)

    async def _take(self, pool: "_IdleConnections") -> psycopg.AsyncConnection[Any]:
        while pool.idle:
            connection = pool.idle.pop()
            if not connection.closed:
                return connection
        connection = await psycopg.AsyncConnection.connect(
            self.door.conninfo("client", *self._settings), **self.door.keywords
        )
        if not self.door.pooled:
            self._pids[connection] = connection.info.backend_pid
        return connection

    async def close(self) -> None:
        """Close the idle connections of the running loop."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        for connection in pool.idle if pool else ():
            await connection.close()


def _raise_if_locked(query: Query[Any], error: psycopg.Error) -> None:
    """Raise RowLocked if the statement does not wait for locked rows and met one."""
    if query.yields and error.sqlstate == LOCK_NOT_AVAILABLE:
        raise row_locked(error) from error


async def _run[Row](
    connection: psycopg.AsyncConnection[Any], query: Query[Row], also: Sequence[Query[Any]]
) -> list[Row]:
    if also and query.resend is Resend.BY_ID and connection.prepare_threshold is not None:
        await apost(connection, [*also, query])
        return []
    if also:
        return await atogether(connection, query, also)
    return await afetch(connection, query)


class _IdleConnections:
    def __init__(self, size: int) -> None:
        self.permits = asyncio.Semaphore(size)
        self.idle: list[psycopg.AsyncConnection[Any]] = []

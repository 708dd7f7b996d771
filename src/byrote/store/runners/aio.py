# SPDX-License-Identifier: MIT
"""Runs the same queries over async psycopg."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg.rows import tuple_row

from byrote.store.connect import DatabaseAddress
from byrote.store.queries.enqueue import ALL_CREATED, EnqueueResult, QueryScript, accept
from byrote.store.query import Query, Resend
from byrote.store.retries import LOCK_NOT_AVAILABLE, Remedy, is_open, remedy
from byrote.store.runners.prepared_async import apost, apost_behind
from byrote.store.runners.resend import Resent, SentOnce, ended, mark_of
from byrote.store.runners.sync import Interrupted, WaitLimit, row_locked


async def afetch[Row](connection: psycopg.AsyncConnection[Any], query: Query[Row]) -> list[Row]:
    """Run a query on this connection, inside whatever transaction it is in."""
    async with connection.cursor(binary=True, row_factory=tuple_row) as cursor:
        await cursor.execute(query.sql, query.args)
        # Whoever may only insert cannot have rows returned.
        return [query.read(row) for row in await cursor.fetchall()] if cursor.description else []


async def atogether[Row](
    connection: psycopg.AsyncConnection[Any], query: Query[Row], also: Sequence[Query[Any]]
) -> list[Row]:
    """Run a query after others, all or none, in one round trip.

    The commit is a statement of its own: without it, the error of a commit that fails belongs to no
    statement of the pipeline, and psycopg does not expect it.
    """
    async with connection.cursor(binary=True) as cursor:
        async with connection.pipeline(), connection.transaction():
            for other in also:
                await connection.execute(other.sql, other.args)
            await cursor.execute(query.sql, query.args)
        return [query.read(row) for row in await cursor.fetchall()]


async def aperform[Done](
    script: QueryScript[Done], ask: Callable[[Query[Any]], Awaitable[list[Any]]]
) -> Done:
    """Run a script with whatever asks its queries."""
    try:
        query = next(script)
        while True:
            query = script.send(await ask(query))
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


async def abehind[Row](
    connection: psycopg.AsyncConnection[Any],
    query: Query[Row],
    behind: Callable[[list[Row]], Sequence[Query[Any]]],
) -> list[Row]:
    """Run a query, and behind it what its answer calls for: all or none, with one commit."""
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
    """Runs queries on a few connections per event loop: connections cannot move between loops."""

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
        self._shelves: WeakKeyDictionary[asyncio.AbstractEventLoop, _IdleConnections] = (
            WeakKeyDictionary()
        )
        self._pids: WeakKeyDictionary[psycopg.AsyncConnection[Any], int] = WeakKeyDictionary()
        """The server's process of each connection; libpq forgets it when a connection breaks."""

    async def all[Row](
        self,
        query: Query[Row],
        *,
        connection: psycopg.AsyncConnection[Any] | None = None,
        also: Sequence[Query[Any]] = (),
        behind: Callable[[list[Row]], Sequence[Query[Any]]] | None = None,
    ) -> list[Row]:
        """Every row of the answer. A connection of the caller's lends its transaction.

        `also` are statements that run before it, `behind` returns those that its rows call for;
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
            _give_way(query, error)
            again = Resent(query, also, behind)
            return await self.within(again, lost, after=error, passes=again.passes)

    async def accept(
        self, query: Query[Any], *, connection: psycopg.AsyncConnection[Any] | None = None
    ) -> EnqueueResult:
        """Enqueue by any statement that does; says who holds the unique keys that were taken."""
        if query.resend is not Resend.AGAIN:
            await self.all(query, connection=connection)
            return ALL_CREATED
        return await aperform(accept(query), lambda asked: self.all(asked, connection=connection))

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
                await asyncio.sleep(pause)
            try:
                if lost:
                    await self._end(lost)
                async with self.borrow(lost) as borrowed, borrowed.transaction():
                    return await aperform(script(again), partial(afetch, borrowed))
            except psycopg.Error as error:
                pause, again = patience.pause_after(error, passing=passes(error)), True

    async def _end(self, lost: list[int]) -> None:
        async with self.borrow() as borrowed:
            await aperform(ended(lost), partial(afetch, borrowed))
        lost.clear()

    async def ask[Row](
        self,
        query: Query[Row],
        *,
        also: Sequence[Query[Any]] = (),
        behind: Callable[[list[Row]], Sequence[Query[Any]]] | None = None,
    ) -> list[Row]:
        """Every row of the answer; Interrupted when it was lost, and may have taken effect.

        By then the session that could still execute it has ended: what is read next is final.
        What is to happen `also` happens before it, what its answer calls for `behind` it.
        """
        lost: list[int] = []
        try:
            async with self.borrow(lost) as borrowed:
                if behind is not None:
                    return await abehind(borrowed, query, behind)
                return await _run(borrowed, query, also)
        except psycopg.Error as error:
            _give_way(query, error)
            if remedy(error) is Remedy.RAISE:
                raise
            await self.within(lambda _again: ended(()), lost, after=error)
            raise Interrupted from error

    async def first[Row](
        self, query: Query[Row], *, connection: psycopg.AsyncConnection[Any] | None = None
    ) -> Row | None:
        """The first row of the answer, or None."""
        rows = await self.all(query, connection=connection)
        return rows[0] if rows else None

    @contextlib.asynccontextmanager
    async def borrow(
        self, lost: list[int] | None = None
    ) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        """A connection for a while. One that breaks is not put back; `lost` gets its session."""
        shelf = self._shelves.setdefault(asyncio.get_running_loop(), _IdleConnections(self._size))
        async with shelf.room:
            connection = await self._take(shelf)
            try:
                yield connection
            except BaseException as error:
                if lost is not None and is_open(error) and connection in self._pids:
                    lost.append(self._pids[connection])
                await connection.close()
                raise
            shelf.idle.append(connection)

    async def _take(self, shelf: "_IdleConnections") -> psycopg.AsyncConnection[Any]:
        while shelf.idle:
            connection = shelf.idle.pop()
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
        shelf = self._shelves.pop(asyncio.get_running_loop(), None)
        for connection in shelf.idle if shelf else ():
            await connection.close()


def _give_way(query: Query[Any], error: psycopg.Error) -> None:
    """Raise RowLocked if the statement does not wait for a row that stays locked."""
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
        self.room = asyncio.Semaphore(size)
        self.idle: list[psycopg.AsyncConnection[Any]] = []

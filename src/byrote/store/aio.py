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

from byrote.store import queries
from byrote.store.apost import apost
from byrote.store.connect import Door
from byrote.store.query import Query
from byrote.store.sync import Interrupted, Patience
from byrote.store.trouble import Remedy, remedy
from byrote.store.unique import NOTHING_SPECIAL, RESENT, Script, Settled, again, settle


async def afetch[Row](connection: psycopg.AsyncConnection[Any], query: Query[Row]) -> list[Row]:
    """Run a query on this connection, inside whatever transaction it is in."""
    async with connection.cursor(binary=True, row_factory=tuple_row) as cursor:
        await cursor.execute(query.sql, query.args)
        # Whoever may only insert cannot have rows returned.
        return [query.read(row) for row in await cursor.fetchall()] if cursor.description else []


async def atogether[Row](
    connection: psycopg.AsyncConnection[Any], query: Query[Row], also: Sequence[Query[Any]]
) -> list[Row]:
    """Run a query after others, all or none, in one round trip: a pipeline is one transaction."""
    async with connection.cursor(binary=True) as cursor:
        async with connection.pipeline():
            for other in also:
                await connection.execute(other.sql, other.args)
            await cursor.execute(query.sql, query.args)
        return [query.read(row) for row in await cursor.fetchall()]


async def aperform[Done](
    script: Script[Done], ask: Callable[[Query[Any]], Awaitable[list[Any]]]
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
        door: Door,
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
        self._shelves: WeakKeyDictionary[asyncio.AbstractEventLoop, _Shelf] = WeakKeyDictionary()

    async def all[Row](
        self,
        query: Query[Row],
        *,
        connection: psycopg.AsyncConnection[Any] | None = None,
        also: Sequence[Query[Any]] = (),
    ) -> list[Row]:
        """Every row of the answer. A connection of the caller's lends its transaction.

        What is to happen `also` happens before it, in the same transaction.
        """
        if connection is not None:
            return await afetch(connection, query)
        patience: Patience | None = None
        while True:
            try:
                async with self.borrow() as borrowed:
                    return await _run(borrowed, query, also)
            except psycopg.Error as error:
                patience = patience or Patience(self.door, self._patience_s, self._chance)
                await asyncio.sleep(patience.pause_after(error))
                if query.name in queries.ENQUEUES and await self.knows(query):
                    return []
                if query.name in RESENT:
                    query = again(query)

    async def accept(
        self, query: Query[Any], *, connection: psycopg.AsyncConnection[Any] | None = None
    ) -> Settled:
        """Enqueue by any statement that does; says who holds the unique keys that were taken."""
        if query.name not in RESENT:
            await self.all(query, connection=connection)
            return NOTHING_SPECIAL
        return await aperform(settle(query), lambda asked: self.all(asked, connection=connection))

    async def within[Done](self, script: Callable[[bool], Script[Done]]) -> Done:
        """Run a script of queries in one transaction; from its start if the database is in trouble.

        It is told whether it may have been committed before, and its answer lost.
        """
        patience: Patience | None = None
        while True:
            try:
                async with self.borrow() as borrowed, borrowed.transaction():
                    return await aperform(script(patience is not None), partial(afetch, borrowed))
            except psycopg.Error as error:
                patience = patience or Patience(self.door, self._patience_s, self._chance)
                await asyncio.sleep(patience.pause_after(error))

    async def ask[Row](
        self,
        query: Query[Row],
        *,
        also: Sequence[Query[Any]] = (),
        behind: Callable[[list[Row]], Sequence[Query[Any]]] | None = None,
    ) -> list[Row]:
        """Every row of the answer; Interrupted when it was lost, and may have taken effect.

        What is to happen `also` happens before it, what its answer calls for `behind` it.
        """
        try:
            async with self.borrow() as borrowed:
                if behind is not None:
                    return await abehind(borrowed, query, behind)
                return await _run(borrowed, query, also)
        except psycopg.Error as error:
            if remedy(error) is Remedy.RAISE:
                raise
            raise Interrupted from error

    async def knows(self, enqueue: Query[Any]) -> bool:
        """Whether an enqueue whose answer was lost had been accepted: it was all of it or none."""
        return (await self.all(queries.known(enqueue.args["first"])))[0]

    async def first[Row](
        self, query: Query[Row], *, connection: psycopg.AsyncConnection[Any] | None = None
    ) -> Row | None:
        """The first row of the answer, or None."""
        rows = await self.all(query, connection=connection)
        return rows[0] if rows else None

    @contextlib.asynccontextmanager
    async def borrow(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        """A connection for a while; one that breaks is not put back."""
        shelf = self._shelves.setdefault(asyncio.get_running_loop(), _Shelf(self._size))
        async with shelf.room:
            connection = await self._take(shelf)
            try:
                yield connection
            except BaseException:
                await connection.close()
                raise
            shelf.idle.append(connection)

    async def _take(self, shelf: "_Shelf") -> psycopg.AsyncConnection[Any]:
        while shelf.idle:
            connection = shelf.idle.pop()
            if not connection.closed:
                return connection
        return await psycopg.AsyncConnection.connect(
            self.door.conninfo("client", *self._settings), **self.door.keywords
        )

    async def close(self) -> None:
        """Close the idle connections of the running loop."""
        shelf = self._shelves.pop(asyncio.get_running_loop(), None)
        for connection in shelf.idle if shelf else ():
            await connection.close()


async def _run[Row](
    connection: psycopg.AsyncConnection[Any], query: Query[Row], also: Sequence[Query[Any]]
) -> list[Row]:
    if also and query.name in queries.ENQUEUES and connection.prepare_threshold is not None:
        await apost(connection, [*also, query])
        return []
    if also:
        return await atogether(connection, query, also)
    return await afetch(connection, query)


class _Shelf:
    def __init__(self, size: int) -> None:
        self.room = asyncio.Semaphore(size)
        self.idle: list[psycopg.AsyncConnection[Any]] = []

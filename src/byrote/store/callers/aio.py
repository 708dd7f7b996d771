# SPDX-License-Identifier: MIT
"""Runs queries in the transaction of a caller's connection of asyncpg or async SQLAlchemy."""

import contextlib
from typing import Any, Protocol

import psycopg

from byrote.store.callers.kinds import ConnectionKind, kind_of, must_be_async
from byrote.store.callers.parameters import by_number, for_alchemy
from byrote.store.query import Query


class AsyncCaller(Protocol):
    """A connection in whose transaction queries are run, on an event loop."""

    async def fetch[Row](self, query: Query[Row], schema: str | None = None) -> list[Row]:
        """Run a query, with its names in this schema, and read its rows."""
        ...

    def savepoint(self) -> contextlib.AbstractAsyncContextManager[Any]:
        """Return a context manager whose statements take effect all or none."""
        ...


async def acaller_of(connection: Any) -> psycopg.AsyncConnection[Any] | AsyncCaller:
    """Return the psycopg connection, or the caller for another library; raises BadOption."""
    if isinstance(connection, psycopg.AsyncConnection):
        return connection
    kind = kind_of(connection)
    must_be_async(kind)
    match kind:
        case ConnectionKind.ALCHEMY_ASYNC_SESSION:
            return AsyncAlchemyCaller(await connection.connection())
        case ConnectionKind.ALCHEMY_ASYNC:
            return AsyncAlchemyCaller(connection)
        case _:
            return AsyncpgCaller(connection)


class AsyncAlchemyCaller:
    """Sends statements through SQLAlchemy, for the reason that `AlchemyCaller` has."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def fetch[Row](self, query: Query[Row], schema: str | None = None) -> list[Row]:
        """Run a query, with its names in this schema, and read its rows."""
        sent = for_alchemy(self._connection.dialect, query, schema)
        rows = (await self._connection.exec_driver_sql(*sent)).fetchall()
        return [query.read(tuple(row)) for row in rows]

    def savepoint(self) -> contextlib.AbstractAsyncContextManager[Any]:
        """Return a context manager whose statements take effect all or none."""
        made: contextlib.AbstractAsyncContextManager[Any] = self._connection.begin_nested()
        return made


class AsyncpgCaller:
    """Sends statements over a connection of asyncpg."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def fetch[Row](self, query: Query[Row], schema: str | None = None) -> list[Row]:
        """Run a query, with its names in this schema, and read its rows."""
        sql, values = by_number(query, schema)
        return [query.read(tuple(row)) for row in await self._connection.fetch(sql, *values)]

    def savepoint(self) -> contextlib.AbstractAsyncContextManager[Any]:
        """Return a context manager whose statements take effect all or none."""
        made: contextlib.AbstractAsyncContextManager[Any] = self._connection.transaction()
        return made

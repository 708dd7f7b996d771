# SPDX-License-Identifier: MIT
"""Lets an app use the test's own connection, so that everything it does is part of its transaction.

Sync and async calls share the connection: an async call blocks its loop for the length of a
statement, which does not matter in a test.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, cast, override

import psycopg

from byrote.assembly.app import App
from byrote.assembly.identity import jitter
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.aio import AsyncStore
from byrote.store.runners.sync import Store
from byrote.testing.shadowing import shadowed

PATIENCE_S = 0.0
"""A statement that fails in the test's transaction cannot be sent again."""


class ConnectionStore(Store):
    """A store on one connection, which it neither opens nor closes."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        super().__init__(_address_of(connection), jitter=jitter, patience_s=PATIENCE_S)
        self.connection = connection

    @override
    def acquire(self) -> psycopg.Connection[Any]:
        """Return the connection."""
        return self.connection

    @override
    def take_back(self, connection: psycopg.Connection[Any], *, broken: bool) -> None:
        """Do nothing: the connection belongs to the test."""


class AsyncConnectionStore(AsyncStore):
    """The same for async calls."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        super().__init__(_address_of(connection), jitter=jitter, patience_s=PATIENCE_S)
        self._facade = cast("psycopg.AsyncConnection[Any]", _AsyncFacade(connection))

    @override
    @asynccontextmanager
    async def borrow(
        self,
        lost: list[int] | None = None,
    ) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        """Yield the connection with async methods."""
        yield self._facade


def _address_of(connection: psycopg.Connection[Any]) -> DatabaseAddress:
    # Pooled: no statement is prepared by hand on a connection that others use too.
    return DatabaseAddress(connection.info.dsn, pooled=True)


class _AsyncFacade:
    """The methods of an async connection that stores use, on a sync one."""

    prepare_threshold = None

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        with self._connection.transaction():
            yield

    @asynccontextmanager
    async def cursor(self, **options: Any) -> AsyncIterator["_AsyncCursor"]:
        with self._connection.cursor(**options) as cursor:
            yield _AsyncCursor(cursor)


class _AsyncCursor:
    def __init__(self, cursor: psycopg.Cursor[Any]) -> None:
        self._cursor = cursor

    @property
    def description(self) -> Any:
        return self._cursor.description

    async def execute(self, statement: bytes, args: Any) -> None:
        self._cursor.execute(statement, args)

    async def fetchall(self) -> list[Any]:
        return self._cursor.fetchall()


@contextmanager
def use_connection(app: App, connection: psycopg.Connection[Any]) -> Iterator[App]:
    """Have an app send everything over a connection of the test, in its transaction, in a block.

    Roll the transaction back afterwards, and the database is as before.
    """
    store = ConnectionStore(connection)
    with shadowed(app, store=store, astore=AsyncConnectionStore(connection), address=store.address):
        yield app


def connection_of(app: App) -> psycopg.Connection[Any] | None:
    """The connection of the test that an app uses now; None outside of `use_connection`."""
    store = vars(app).get("store")
    return store.connection if isinstance(store, ConnectionStore) else None

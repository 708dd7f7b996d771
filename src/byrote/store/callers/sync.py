# SPDX-License-Identifier: MIT
"""Runs queries in the transaction of a caller's connection of SQLAlchemy, psycopg 2 or peewee."""

import contextlib
from collections.abc import Iterator
from typing import Any, Protocol

import psycopg

from byrote.store.callers.kinds import ConnectionKind, kind_of, must_be_sync
from byrote.store.callers.parameters import by_name, for_alchemy
from byrote.store.query import Query


class Caller(Protocol):
    """A connection in whose transaction queries are run."""

    def fetch[Row](self, query: Query[Row], schema: str | None = None) -> list[Row]:
        """Run a query, with its names in this schema, and read its rows."""
        ...

    def savepoint(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context manager whose statements take effect all or none."""
        ...


def caller_of(connection: Any) -> psycopg.Connection[Any] | Caller:
    """Return the psycopg connection, or the caller for another library; raises BadOption."""
    if isinstance(connection, psycopg.Connection):
        return connection
    kind = kind_of(connection)
    must_be_sync(kind)
    match kind:
        case ConnectionKind.ALCHEMY_SESSION:
            return AlchemyCaller(connection.connection())
        case ConnectionKind.ALCHEMY:
            return AlchemyCaller(connection)
        case ConnectionKind.PEEWEE:
            return caller_of(connection.connection())
        case _:
            return Psycopg2Caller(connection)


class AlchemyCaller:
    """Sends statements through SQLAlchemy, which begins its transaction with the first one.

    Not over the driver's connection: on that of asyncpg, SQLAlchemy has not begun a transaction
    before its own first statement, and an enqueue would be committed at once.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def fetch[Row](self, query: Query[Row], schema: str | None = None) -> list[Row]:
        """Run a query, with its names in this schema, and read its rows."""
        sent = for_alchemy(self._connection.dialect, query, schema)
        rows = self._connection.exec_driver_sql(*sent).fetchall()
        return [query.read(tuple(row)) for row in rows]

    def savepoint(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context manager whose statements take effect all or none."""
        made: contextlib.AbstractContextManager[Any] = self._connection.begin_nested()
        return made


class Psycopg2Caller:
    """Sends statements over a connection of psycopg 2."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def fetch[Row](self, query: Query[Row], schema: str | None = None) -> list[Row]:
        """Run a query, with its names in this schema, and read its rows."""
        with self._cursor() as cursor:
            cursor.execute(*by_name(query, schema))
            return [query.read(row) for row in cursor.fetchall()]

    @contextlib.contextmanager
    def savepoint(self) -> Iterator[None]:
        """Return a context manager whose statements take effect all or none."""
        done = False
        with self._cursor() as cursor:
            cursor.execute("savepoint byrote_enqueue")
            try:
                yield
                done = True
            finally:
                if not done:
                    cursor.execute("rollback to savepoint byrote_enqueue")
                cursor.execute("release savepoint byrote_enqueue")

    def _cursor(self) -> Any:
        # Lazy: only a caller that has such a connection has the package. A plain cursor, because
        # the connection's own cursor_factory may return rows as dictionaries.
        from psycopg2.extensions import cursor  # noqa: PLC0415

        return self._connection.cursor(cursor_factory=cursor)

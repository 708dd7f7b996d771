# SPDX-License-Identifier: MIT
"""Recognises the database library of a connection by its classes' names, without importing it."""

from enum import Enum
from typing import Any

from byrote.core.errors import BadOption


class ConnectionKind(Enum):
    """The types that a caller can pass as `connection`, besides psycopg 3's."""

    ALCHEMY_SESSION = "a Session of SQLAlchemy"
    ALCHEMY = "a Connection of SQLAlchemy"
    ALCHEMY_ASYNC_SESSION = "an AsyncSession of SQLAlchemy"
    ALCHEMY_ASYNC = "an AsyncConnection of SQLAlchemy"
    PSYCOPG2 = "a connection of psycopg 2"
    PSYCOPG_ASYNC = "an AsyncConnection of psycopg"
    PSYCOPG = "a Connection of psycopg"
    ASYNCPG = "a connection of asyncpg"
    PEEWEE = "a database of peewee"


_CLASSES = {
    "sqlalchemy.orm.session.Session": ConnectionKind.ALCHEMY_SESSION,
    "sqlalchemy.orm.scoping.scoped_session": ConnectionKind.ALCHEMY_SESSION,
    "sqlalchemy.engine.base.Connection": ConnectionKind.ALCHEMY,
    "sqlalchemy.ext.asyncio.session.AsyncSession": ConnectionKind.ALCHEMY_ASYNC_SESSION,
    "sqlalchemy.ext.asyncio.scoping.async_scoped_session": ConnectionKind.ALCHEMY_ASYNC_SESSION,
    "sqlalchemy.ext.asyncio.engine.AsyncConnection": ConnectionKind.ALCHEMY_ASYNC,
    "psycopg2.extensions.connection": ConnectionKind.PSYCOPG2,
    "psycopg.Connection": ConnectionKind.PSYCOPG,
    "psycopg.AsyncConnection": ConnectionKind.PSYCOPG_ASYNC,
    "asyncpg.connection.Connection": ConnectionKind.ASYNCPG,
    "asyncpg.pool.PoolConnectionProxy": ConnectionKind.ASYNCPG,
    "peewee.PostgresqlDatabase": ConnectionKind.PEEWEE,
}

ASYNC = frozenset(
    {
        ConnectionKind.ALCHEMY_ASYNC,
        ConnectionKind.ALCHEMY_ASYNC_SESSION,
        ConnectionKind.PSYCOPG_ASYNC,
        ConnectionKind.ASYNCPG,
    }
)

_ACCEPTED = (
    "Pass a Session, Connection, AsyncSession or AsyncConnection of SQLAlchemy, a connection of "
    "psycopg, psycopg 2 or asyncpg, or a PostgresqlDatabase of peewee"
)


def kind_of(connection: Any) -> ConnectionKind:
    """Return what the object is; raises BadOption, which lists what to pass instead."""
    # Not type(): a proxy, such as one that an instrumentation makes, reports the class it wraps.
    for each in connection.__class__.__mro__:
        kind = _CLASSES.get(f"{each.__module__}.{each.__qualname__}")
        if kind is not None:
            return kind
    made = connection.__class__
    raise BadOption(
        f"A {made.__module__}.{made.__qualname__} is not a connection that Byrote can enqueue on. "
        f"{_ACCEPTED}; of an engine or a pool, one of its connections."
    )


def must_be_sync(kind: ConnectionKind) -> None:
    """Raise BadOption if the connection needs an event loop."""
    if kind in ASYNC:
        raise BadOption(
            f"The connection is {kind.value}, which a synchronous call cannot use. Call "
            "`await task.using(connection=…).aenqueue(…)` or `await app.aenqueue_many(…)`."
        )


def must_be_async(kind: ConnectionKind) -> None:
    """Raise BadOption if a statement on the connection would block the event loop."""
    if kind not in ASYNC:
        raise BadOption(
            f"The connection is {kind.value}, which would block the event loop. Call "
            "`task.using(connection=…).enqueue(…)` or `app.enqueue_many(…)` without `await`."
        )

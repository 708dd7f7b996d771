# SPDX-License-Identifier: MIT
"""A transaction of each database library, in one form for the contract suite."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import peewee
import psycopg
import psycopg2
import psycopg2.extras
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from byrote import App


class Undo(Exception):
    """Ends a block and rolls it back."""


class Library:
    """A connection, whether it is async, and a block that is a transaction or a savepoint in it."""

    def __init__(
        self,
        connection: Any,
        block: Callable[[], Any],
        execute: Callable[[str], Any],
        *,
        is_async: bool = False,
    ) -> None:
        self.connection = connection
        self._block = block
        self._execute = execute
        self.is_async = is_async

    async def enqueue(self, task: Any, *args: Any) -> Any:
        here = task.using(connection=self.connection)
        return await here.aenqueue(*args) if self.is_async else here.enqueue(*args)

    async def enqueue_many(self, app: App, specs: list[Any]) -> Any:
        if self.is_async:
            return await app.aenqueue_many(specs, connection=self.connection)
        return app.enqueue_many(specs, connection=self.connection)

    async def execute(self, text: str) -> None:
        done = self._execute(text)
        if isinstance(done, Awaitable):
            await done

    @asynccontextmanager
    async def block(self, *, undo: bool = False) -> AsyncIterator[None]:
        """A transaction, or inside of one a savepoint, that is committed or rolled back."""
        try:
            if self.is_async:
                async with self._block():
                    yield
                    self._end(undo)
            else:
                with self._block():
                    yield
                    self._end(undo)
        except Undo:
            pass

    def _end(self, undo: bool) -> None:
        if undo:
            raise Undo


def _nesting(owner: Any) -> Callable[[], Any]:
    return lambda: owner.begin_nested() if owner.in_transaction() else owner.begin()


@asynccontextmanager
async def alchemy(url: str, driver: str, *, session: bool) -> AsyncIterator[Library]:
    creators = {"psycopg": psycopg.connect, "psycopg2": psycopg2.connect}
    engine = create_engine(
        f"postgresql+{driver}://", creator=lambda: creators[driver](url), poolclass=NullPool
    )
    with Session(engine) if session else engine.connect() as owner:
        raw = owner.connection if session else lambda: owner
        yield Library(owner, _nesting(owner), lambda text: raw().exec_driver_sql(text))
    engine.dispose()


@asynccontextmanager
async def async_alchemy(url: str, driver: str, *, session: bool) -> AsyncIterator[Library]:
    creators: dict[str, Any] = {
        "psycopg": psycopg.AsyncConnection.connect,
        "asyncpg": lambda url: asyncpg.connect(**_fields(url)),
    }
    engine = create_async_engine(
        f"postgresql+{driver}://", async_creator=lambda: creators[driver](url), poolclass=NullPool
    )

    async def execute(text: str) -> None:
        await (await owner.connection() if session else owner).exec_driver_sql(text)

    async with AsyncSession(engine) if session else engine.connect() as owner:
        yield Library(owner, _nesting(owner), execute, is_async=True)
    await engine.dispose()


class _Psycopg2Block:
    """Context manager for psycopg 2, which has no savepoints."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._nested = self._connection.info.transaction_status != 0
        if self._nested:
            self._execute("savepoint here")

    def __exit__(self, kind: object, *_: object) -> None:
        if self._nested:
            self._execute("rollback to savepoint here" if kind else "release savepoint here")
        elif kind:
            self._connection.rollback()
        else:
            self._connection.commit()

    def _execute(self, text: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(text)


@asynccontextmanager
async def raw_psycopg2(url: str) -> AsyncIterator[Library]:
    # A factory that returns rows as dictionaries: the caller's choice must not matter.
    connection = psycopg2.connect(url, cursor_factory=psycopg2.extras.RealDictCursor)
    block = _Psycopg2Block(connection)
    yield Library(connection, lambda: block.__class__(connection), block._execute)
    connection.close()


@asynccontextmanager
async def raw_psycopg(url: str) -> AsyncIterator[Library]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield Library(connection, connection.transaction, connection.execute)


@asynccontextmanager
async def raw_async_psycopg(url: str) -> AsyncIterator[Library]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        yield Library(connection, connection.transaction, connection.execute, is_async=True)


def _fields(url: str) -> dict[str, Any]:
    """The address in the words of asyncpg, which reads URLs only."""
    fields = conninfo_to_dict(url)
    known = {"host": "host", "port": "port", "user": "user", "password": "password"}
    found = {name: fields[key] for name, key in known.items() if key in fields}
    return {**found, "database": fields["dbname"]}


def _refused(value: Any) -> Any:
    raise AssertionError(f"The caller's codec converted {value!r}.")


@asynccontextmanager
async def raw_asyncpg(url: str) -> AsyncIterator[Library]:
    connection = await asyncpg.connect(**_fields(url))
    for kind in ("jsonb", "uuid", "bytea", "int8"):
        await connection.set_type_codec(
            kind, schema="pg_catalog", encoder=_refused, decoder=str, format="text"
        )
    yield Library(connection, connection.transaction, connection.execute, is_async=True)
    await connection.close()


@asynccontextmanager
async def pooled_asyncpg(url: str) -> AsyncIterator[Library]:
    async with (
        asyncpg.create_pool(**_fields(url), min_size=1, max_size=1) as pool,
        pool.acquire() as held,
    ):
        yield Library(held, held.transaction, held.execute, is_async=True)


@asynccontextmanager
async def peewee_database(url: str) -> AsyncIterator[Library]:
    fields = conninfo_to_dict(url)
    database = peewee.PostgresqlDatabase(str(fields.pop("dbname")), **fields)
    yield Library(database, database.atomic, database.execute_sql)
    database.close()


LIBRARIES: dict[str, Callable[[str], Any]] = {
    "psycopg": raw_psycopg,
    "async psycopg": raw_async_psycopg,
    "psycopg2": raw_psycopg2,
    "asyncpg": raw_asyncpg,
    "asyncpg pool": pooled_asyncpg,
    "peewee": peewee_database,
    "Session psycopg": lambda url: alchemy(url, "psycopg", session=True),
    "Session psycopg2": lambda url: alchemy(url, "psycopg2", session=True),
    "Connection psycopg": lambda url: alchemy(url, "psycopg", session=False),
    "Connection psycopg2": lambda url: alchemy(url, "psycopg2", session=False),
    "AsyncSession psycopg": lambda url: async_alchemy(url, "psycopg", session=True),
    "AsyncSession asyncpg": lambda url: async_alchemy(url, "asyncpg", session=True),
    "AsyncConnection psycopg": lambda url: async_alchemy(url, "psycopg", session=False),
    "AsyncConnection asyncpg": lambda url: async_alchemy(url, "asyncpg", session=False),
}

# SPDX-License-Identifier: MIT
"""One suite for every database library on whose connection a caller can enqueue."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine

from byrote import App, Retry
from byrote.core.errors import BadOption, SchemaMismatch
from tests.contracts.callers.libraries import LIBRARIES, Library
from tests.support import Db, count, run_of

type Test = Callable[[Library], Awaitable[Any]]
HARD = {"text": "100% %s $1 :name '\"\\ {}", "æøå": [1.5, None, True, 2**53], "deep": [[{}]]}


@pytest.fixture
def app(url: str) -> Iterator[App]:
    with App(url) as made:
        yield made


@pytest.fixture
def echo(app: App) -> Any:
    @app.task(name="echo", retry=Retry(attempts=3), timeout="5s")
    def echo(value: Any) -> Any:
        return value

    return echo


@pytest.fixture(params=LIBRARIES)
def on(request: pytest.FixtureRequest, url: str, app: App) -> Callable[[Test], Any]:
    """Run a coroutine with a connection of the library."""

    def run(test: Test) -> Any:
        async def whole() -> Any:
            async with LIBRARIES[request.param](url) as library, app:
                return await test(library)

        return asyncio.run(whole())

    return run


def test_a_commit_keeps_the_runs_and_a_rollback_does_not(
    on: Callable[[Test], Any], app: App, echo: Any, db: Db
) -> None:
    async def send(library: Library) -> None:
        async with library.block(undo=True):
            await library.enqueue(echo, 1)
            await library.enqueue_many(app, [echo.spec(2), echo.spec(3)])
        async with library.block():
            await library.enqueue(echo, 4)
            await library.enqueue_many(app, [echo.spec(5), echo.spec(6)])
            assert count(db, "byrote_runs") == 0

    on(send)

    assert _values(db) == [4, 5, 6]


def test_a_savepoint_undoes_its_own_runs_only(on: Callable[[Test], Any], echo: Any, db: Db) -> None:
    async def send(library: Library) -> None:
        async with library.block():
            await library.enqueue(echo, 1)
            async with library.block(undo=True):
                await library.enqueue(echo, 2)
            async with library.block():
                await library.enqueue(echo, 3)

    on(send)

    assert _values(db) == [1, 3]


def test_every_value_arrives_as_without_a_connection(
    on: Callable[[Test], Any], echo: Any, db: Db
) -> None:
    due = datetime(2031, 2, 3, 4, 5, 6, 789, UTC)
    task = echo.using(run_after=due, priority=-7, labels={"é%": "'$1'"}, queue="a:b/c")
    plain = task.enqueue(HARD)

    async def send(library: Library) -> Any:
        async with library.block():
            one = await library.enqueue(task, HARD)
            [two] = await library.enqueue_many(task._app, [task.spec(HARD)])
        return one, two

    expected = _stored(db, plain.id)

    assert [_stored(db, each.id) for each in on(send)] == [expected, expected]
    assert expected[0] == due


def test_a_taken_unique_key_returns_its_holder(
    on: Callable[[Test], Any], app: App, echo: Any, db: Db
) -> None:
    task = echo.using(unique_key="é'%s")
    holder = task.enqueue(1)

    async def send(library: Library) -> Any:
        async with library.block():
            one = await library.enqueue(task, 2)
            many = await library.enqueue_many(app, [task.spec(3), echo.spec(4)])
        return one, *many

    one, two, three = on(send)

    assert (one.id, one.created, two.id, two.created) == (holder.id, False, holder.id, False)
    assert three.created
    assert _values(db) == [1, 4]


def test_several_batches_are_accepted_all_or_none(
    on: Callable[[Test], Any], echo: Any, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = echo._app
    monkeypatch.setattr("byrote.store.bulk.BATCH", 2)
    db.execute("alter table byrote_task_runs add constraint not_five check (priority <> 5)")
    bad = echo.using(priority=5)

    async def send(library: Library) -> None:
        async with library.block():
            await library.enqueue(echo, 0)
            with pytest.raises(Exception, match="not_five"):
                await library.enqueue_many(app, [echo.spec(1), echo.spec(2), bad.spec(3)])
            await library.enqueue_many(app, [echo.spec(n) for n in range(4, 9)])

    try:
        on(send)
    finally:
        db.execute("alter table byrote_task_runs drop constraint not_five")

    assert _values(db) == [0, 4, 5, 6, 7, 8]


def test_missing_tables_name_the_remedy(on: Callable[[Test], Any], app: App, echo: Any) -> None:
    async def send(library: Library) -> None:
        for ask in (
            lambda: library.enqueue(echo, 1),
            lambda: library.enqueue_many(app, [echo.spec(1)]),
        ):
            async with library.block(undo=True):
                await library.execute("set local search_path to pg_catalog")
                with pytest.raises(SchemaMismatch, match="byrote migrate"):
                    await ask()

    on(send)


def test_the_wrong_colour_of_call_names_the_right_one(
    on: Callable[[Test], Any], app: App, echo: Any, db: Db
) -> None:
    async def send(library: Library) -> None:
        here = echo.using(connection=library.connection)
        if library.is_async:
            with pytest.raises(BadOption, match="aenqueue"):
                here.enqueue(1)
            with pytest.raises(BadOption, match="aenqueue_many"):
                app.enqueue_many([echo.spec(1)], connection=library.connection)
        else:
            with pytest.raises(BadOption, match="without `await`"):
                await here.aenqueue(1)
            with pytest.raises(BadOption, match="without `await`"):
                await app.aenqueue_many([echo.spec(1)], connection=library.connection)

    on(send)

    assert count(db, "byrote_runs") == 0


def test_other_objects_are_refused_with_what_to_pass(echo: Any, url: str) -> None:
    for wrong in (create_engine("postgresql+psycopg://"), url, asyncpg.create_pool):
        with pytest.raises(BadOption, match="Pass a Session"):
            echo.using(connection=wrong).enqueue(1)


def test_a_database_that_is_not_postgresql_is_refused(echo: Any) -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as connection, pytest.raises(BadOption, match=r"sqlite\+pysqlite"):
        echo.using(connection=connection).enqueue(1)
    engine.dispose()


def test_autocommit_takes_one_batch_and_explains_why_not_two(
    echo: Any, url: str, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = echo._app
    monkeypatch.setattr("byrote.store.bulk.BATCH", 2)
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        app.enqueue_many([echo.spec(1), echo.spec(2)], connection=connection)
        with pytest.raises(BadOption, match="Begin a transaction"):
            app.enqueue_many([echo.spec(n) for n in range(3)], connection=connection)
    engine.dispose()

    assert _values(db) == [1, 2]


def _values(db: Db) -> list[Any]:
    text = "select spec_json::jsonb #> '{args,0}' from byrote_runs order by 1"
    return [value for (value,) in db.execute(text)]


def _stored(db: Db, run_id: str) -> tuple[Any, ...]:
    run = run_of(db, run_id)
    retry = run.retry_json, run.timeout, run.max_attempts
    return (
        run.run_after, run.spec_json, run.spec_hash, run.labels, run.priority, run.queue,
        run.status, *retry,
    )  # fmt: skip

# SPDX-License-Identifier: MIT
"""Connections of a pool that the caller hands in, and the size of our own."""

import asyncio
from typing import Any

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from byrote import App
from byrote.core.errors import BadOption, PoolExhausted
from tests.homes import HOSTILE, home_in
from tests.support import Db, count, until


def _task(app: App) -> Any:
    return app.task(name="t")(lambda n: n)


@pytest.mark.parametrize("autocommit", [True, False])
@pytest.mark.parametrize("schema", [None, HOSTILE])
def test_calls_use_the_pool_and_leave_it_open(
    url: str, autocommit: bool, schema: str | None
) -> None:
    home = home_in(url)
    options = {"autocommit": autocommit, "application_name": "of the pool"}
    with ConnectionPool(url, kwargs=options, min_size=1, max_size=1) as pool:
        with App(pool=pool, schema=schema) as app:
            task = _task(app)
            one = task.enqueue(1)
            app.enqueue_many([task.spec(2), task.spec(3)])
            held = [task.using(unique_key="k").enqueue(4).created for _ in range(2)]
            one.cancel()
            names = "select distinct application_name from pg_stat_activity where datname = %s"
            with psycopg.connect(url) as other:
                seen = {name for (name,) in other.execute(names, (other.info.dbname,))}
        with pool.connection() as connection:
            after = connection.execute("select 1").fetchone()
            path = connection.execute("show search_path").fetchone()

    with home.open("test") if schema else psycopg.connect(url) as db:
        assert count(db, "byrote_runs") == 4
    assert held == [True, False]
    assert "of the pool" in seen
    assert "byrote client" not in seen
    assert after == (1,)
    assert path == ('"$user", public',)


@pytest.mark.parametrize("autocommit", [True, False])
def test_async_calls_use_an_async_pool(url: str, autocommit: bool, db: Db) -> None:
    async def send() -> int:
        options = {"autocommit": autocommit}
        async with AsyncConnectionPool(url, kwargs=options, min_size=1, max_size=1) as pool:
            async with App(url, pool=pool) as app:
                task = _task(app)
                await task.aenqueue(1)
                await app.aenqueue_many([task.spec(2), task.spec(3)])
            return pool.get_stats()["requests_num"]

    assert asyncio.run(send()) >= 2
    assert count(db, "byrote_runs") == 3


def test_a_broken_connection_of_the_pool_is_replaced(url: str, db: Db) -> None:
    with ConnectionPool(url, min_size=1, max_size=1) as pool, App(pool=pool) as app:
        task = _task(app)
        task.enqueue(1)
        with pool.connection() as connection:
            pid = connection.info.backend_pid
        db.execute("select pg_terminate_backend(%s)", (pid,))
        task.enqueue(2)

    assert count(db, "byrote_runs") == 2


def test_an_exhausted_pool_is_named_after_the_patience(url: str) -> None:
    with (
        ConnectionPool(url, min_size=1, max_size=1) as pool,
        App(pool=pool, enqueue_patience="50ms") as app,
        pool.connection(),
        pytest.raises(PoolExhausted, match=r"None of the 1 connections .* within 0.05 s"),
    ):
        _task(app).enqueue(1)


def test_our_own_connections_are_limited_by_pool_size(url: str, db: Db) -> None:
    with App(url, pool_size=2, enqueue_patience="50ms") as app, app.store.borrow():
        _task(app).enqueue(1)
        with app.store.borrow(), pytest.raises(PoolExhausted, match="None of the 2 connections"):
            _task_again(app).enqueue(2)
        until(lambda: count(db, "byrote_runs") == 1)


def _task_again(app: App) -> Any:
    return app.task(name="u")(lambda n: n)


def test_connections_of_a_loop_are_limited_by_pool_size(url: str) -> None:
    async def send() -> None:
        async with App(url, pool_size=1, enqueue_patience="50ms") as app:
            task = _task(app)
            async with app.astore.borrow():
                with pytest.raises(PoolExhausted, match="None of the 1 connections"):
                    await task.aenqueue(1)
            await task.aenqueue(2)

    asyncio.run(send())


def test_another_object_is_not_a_pool() -> None:
    with pytest.raises(BadOption, match="Pass a ConnectionPool or an AsyncConnectionPool"):
        App(pool=object())
    with pytest.raises(BadOption, match="from 1 to 1000"):
        _ = App("postgresql://", pool_size=0).settings

# SPDX-License-Identifier: MIT
"""The suite of callers, with Byrote in a schema that the caller's search path does not contain.

There is a second installation in `public`, which the caller's search path finds: an unqualified
name would write there.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from byrote import App
from byrote.core.errors import SchemaMismatch
from tests.contracts.callers.libraries import Library
from tests.contracts.callers.test_callers import (
    echo,
    on,
    test_a_commit_keeps_the_runs_and_a_rollback_does_not,
    test_a_savepoint_undoes_its_own_runs_only,
    test_a_taken_unique_key_returns_its_holder,
    test_every_value_arrives_as_without_a_connection,
    test_several_batches_are_accepted_all_or_none,
)
from tests.homes import HOSTILE, home_in
from tests.support import Db, count

__all__ = [
    "echo",
    "on",
    "test_a_commit_keeps_the_runs_and_a_rollback_does_not",
    "test_a_savepoint_undoes_its_own_runs_only",
    "test_a_taken_unique_key_returns_its_holder",
    "test_every_value_arrives_as_without_a_connection",
    "test_several_batches_are_accepted_all_or_none",
]

type Test = Callable[[Library], Awaitable[Any]]


@pytest.fixture
def app(url: str) -> Iterator[App]:
    home_in(url)
    with App(url, schema=HOSTILE) as made:
        yield made


@pytest.fixture
def db(url: str) -> Iterator[Db]:
    with home_in(url).open("test") as connection:
        yield connection


@pytest.fixture(autouse=True)
def nothing_in_public(url: str, db: Db) -> Iterator[None]:
    yield
    assert db.execute("select count(*) from public.byrote_runs").fetchone() == (0,)


def test_the_callers_search_path_stays_also_after_an_error(
    on: Callable[[Test], Any], app: App, echo: Any, db: Db
) -> None:
    task = echo.using(unique_key="k")
    db.execute("alter table byrote_task_runs add constraint not_five check (priority <> 5)")
    # In another transaction a statement of the caller, on its own search path, must still work.
    check = "do $$ begin assert current_setting('search_path') = 'pg_catalog, public'; end $$"

    async def send(library: Library) -> None:
        async with library.block():
            await library.execute("set local search_path to pg_catalog, public")
            await library.enqueue(task, 1)
            await library.execute(check)
            with pytest.raises(Exception, match="not_five"):
                async with library.block():
                    await library.enqueue(echo.using(priority=5), 2)
            await library.execute(check)
            async with library.block(undo=True):
                await library.enqueue(echo, 3)
            await library.execute(check)

    try:
        on(send)
    finally:
        db.execute("alter table byrote_task_runs drop constraint not_five")

    assert count(db, "byrote_runs") == 1


def test_a_schema_without_tables_is_named(on: Callable[[Test], Any], app: App, url: str) -> None:
    with App(url, schema="nothing here") as lost:
        here = lost.task(name="echo")(lambda: None)

        async def send(library: Library) -> None:
            async with library.block(undo=True):
                with pytest.raises(SchemaMismatch, match="'nothing here' lacks tables"):
                    await library.enqueue(here)

        on(send)

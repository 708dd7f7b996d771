# SPDX-License-Identifier: MIT
"""Unique keys in the Python API: of a task, by its arguments, and for one call."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from byrote import App, Status
from byrote.core.errors import BadOption
from byrote.store.connect import DatabaseAddress
from tests.support import Db, count, run_of
from tests.tasks.api import add, echo, report, unique_and_remembered


def test_a_task_with_a_key_has_one_unfinished_run(app: App) -> None:
    task = app.task(name="nightly", unique_key="nightly")(lambda: None)
    first, second = task.enqueue(), task.enqueue()

    assert (first.created, second.created) == (True, False)
    assert second.id == first.id
    assert second.refresh().unique_key == "nightly"
    assert second.cancel()
    assert task.enqueue().created


def test_a_key_may_be_made_of_arguments(tasks: App, drain: Callable[[], None]) -> None:
    first = report.enqueue("2026-11")
    other = report.enqueue("2026-12")
    assert (report.enqueue(month="2026-11", region="us").id, other.created) == (first.id, True)
    drain()

    assert first.result(timeout=0) == "2026-11 in eu"
    assert report.enqueue("2026-11").created


def test_using_sets_or_removes_the_key_of_a_call(tasks: App, db: Db) -> None:
    keys = [
        add.using(unique_key="k").enqueue(1),
        add.using(unique_key=lambda a, b: f"{a}+{b}").enqueue(1),
        report.using(unique_key="fixed").enqueue("11"),
        report.using(priority=5).enqueue("11"),
        report.using(unique_key=None).enqueue("11"),
        add.using(unique_key="k").using(unique_key=None).enqueue(1),
    ]

    assert [run.refresh().unique_key for run in keys] == [
        "k", "1+1", "fixed", "report:11", None, None,
    ]  # fmt: skip
    assert all(run.created for run in keys)


def test_a_handle_got_by_an_id_has_made_nothing(tasks: App) -> None:
    run = add.enqueue(1)

    assert run.created
    assert not tasks.run(run.id).created


def test_a_spec_carries_the_key_of_its_call(tasks: App, db: Db) -> None:
    spec = report.spec("11")

    assert spec.delivery.unique_key == "report:11"
    assert spec.digest == report.using(unique_key=None).spec("11").digest
    assert tasks.enqueue(spec).id == tasks.enqueue(spec).id


@pytest.mark.parametrize("key", ["", "x" * 201, "a\nb", 7])
def test_a_bad_key_is_refused_where_it_is_given(app: App, key: Any) -> None:
    with pytest.raises(BadOption, match="printable characters"):
        app.task(name="t", unique_key=key)(lambda: None)
    with pytest.raises(BadOption, match="printable characters"):
        add.using(unique_key=key)
    with pytest.raises(BadOption, match="printable characters"):
        add.using(unique_key=lambda a: key if a else None).spec(1)


def test_a_key_of_what_a_task_does_not_take_is_refused_and_the_task_unknown(app: App) -> None:
    with pytest.raises(BadOption, match="takes 'year'"):
        app.task(name="t", unique_key=lambda year: year)(lambda month: month)
    assert len(app.registry) == 0


def test_a_program_may_have_a_key_of_its_arguments(app: App) -> None:
    task = app.command("zip", ["zip"], unique_key=lambda path: path)

    assert task.enqueue(path="a").id == task.enqueue(path="a").id
    assert task.enqueue(path="b").created


def test_many_are_accepted_with_each_key_once(tasks: App, db: Db) -> None:
    held = report.enqueue("0")
    specs = [report.spec(str(n % 700)) if n % 2 else add.spec(n) for n in range(2_800)]
    runs = tasks.enqueue_many([*specs, report.spec("0")])
    by_key = {spec.delivery.unique_key: run for spec, run in zip(specs, runs, strict=False)}

    assert (runs[-1].id, runs[-1].created) == (held.id, False)
    assert sum(run.created for run in runs) == 1_400 + 350
    assert count(db, "byrote_runs") == 1 + 1_400 + 350
    assert runs[1].created
    assert by_key["report:1"].id == runs[1].id


def test_async_producers_get_the_same(tasks: App, run_async: Callable[..., object]) -> None:
    async def ask() -> list[tuple[str, bool]]:
        one, two = await report.aenqueue("11"), await report.aenqueue("11")
        many = await tasks.aenqueue_many([report.spec("11"), echo.spec(1), report.spec("12")])
        return [(run.id, run.created) for run in (one, two, *many)]

    one, two, three, plain, other = run_async(ask)  # type: ignore[misc]
    assert two == three == (one[0], False)
    assert [one[1], plain[1], other[1]] == [True] * 3


def test_a_key_is_part_of_the_callers_transaction(
    tasks: App, db: Db, address: DatabaseAddress
) -> None:
    with address.open("caller") as caller:
        with caller.transaction() as doomed:
            here = report.using(connection=caller)
            first = here.enqueue("11")
            assert (here.enqueue("11").id, here.enqueue("11").created) == (first.id, False)
            [many] = tasks.enqueue_many([report.spec("11")], connection=caller)
            assert (many.id, many.created) == (first.id, False)
            raise psycopg.Rollback(doomed)
        assert count(db, "byrote_runs") == 0
        with caller.transaction():
            second = here.enqueue("11")

    assert second.created
    assert (report.enqueue("11").id, report.enqueue("11").created) == (second.id, False)


def test_a_key_is_part_of_an_async_callers_transaction(
    tasks: App, db: Db, url: str, run_async: Any
) -> None:
    async def send() -> tuple[bool, bool, bool]:
        async with (
            await psycopg.AsyncConnection.connect(url, autocommit=True) as caller,
            caller.transaction() as doomed,
        ):
            here = report.using(connection=caller)
            first, second = await here.aenqueue("11"), await here.aenqueue("11")
            [third] = await tasks.aenqueue_many([report.spec("11")], connection=caller)
            assert first.id == second.id == third.id
            made = (first.created, second.created, third.created)
            raise psycopg.Rollback(doomed)
        return made

    assert run_async(send) == (True, False, False)
    assert count(db, "byrote_runs") == 0
    assert report.enqueue("11").created


def test_a_task_may_have_a_memo_and_a_key(tasks: App, db: Db, drain: Callable[[], None]) -> None:
    first, second = (unique_and_remembered.enqueue(n) for n in (1, 1))
    assert (second.id, second.created) == (first.id, False)
    drain()
    answered, computed = unique_and_remembered.enqueue(1), unique_and_remembered.enqueue(2)

    assert run_of(db, answered.id).memo_of == first.id
    assert answered.created
    assert (computed.created, computed.status) == (True, Status.READY)

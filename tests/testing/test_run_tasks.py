# SPDX-License-Identifier: MIT
"""Each test works in one transaction that is rolled back: nothing stays in the database."""

import asyncio
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from byrote import App, Context, Fatal, Retry, Status
from byrote.core.errors import BadOption
from byrote.testing import FakeClock, assert_enqueued, run_tasks, use_connection
from byrote.testing.database import rolled_back

app = App("postgresql://nobody@127.0.0.1:1/nothing")
calls: list[Any] = []


@app.task
def note(value: Any) -> Any:
    calls.append(value)
    return value


@app.task(retry=Retry(attempts=3, delay_first="10m"))
def flaky(ctx: Context) -> int:
    if ctx.attempt < 3:
        raise ConnectionError("busy")
    return ctx.attempt


@app.task
def broken() -> None:
    raise ValueError("no such order")


@app.task
def chain(length: int) -> None:
    calls.append(length)
    if length:
        chain.enqueue(length - 1)


@app.task
async def achain() -> None:
    await note.aenqueue("one")
    await app.aenqueue_many([note.spec("two"), note.spec("three")])


@app.task
def trip(ctx: Context) -> list[Any]:
    calls.append(ctx.attempt)
    flight = ctx.step("flight", lambda: "LH1")
    ctx.sleep("3d")
    ctx.progress(50, message="half")
    ctx.artifact("ticket", b"seat 1")
    return [flight, ctx.wait_for("paid", timeout="1d", default="never")]


@app.task(timeout="100ms")
def slow() -> None:
    time.sleep(5)
    calls.append("not interrupted")


@app.task(timeout="100ms")
async def aslow() -> None:
    await asyncio.sleep(5)
    calls.append("not interrupted")


app.schedule("nightly", note.spec("tick"), cron="0 3 * * *")


@pytest.fixture(autouse=True)
def connection(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    calls.clear()
    with rolled_back(database_url) as connection, use_connection(app, connection):
        yield connection


def test_due_tasks_are_executed_in_this_process() -> None:
    run = note.enqueue({"a": 1})
    [done] = run_tasks(app)

    assert (done.id, done.status, done.result_json) == (run.id, Status.SUCCESSFUL, '{"a":1}')
    assert calls == [{"a": 1}]
    assert run.result(timeout=1) == {"a": 1}
    assert run_tasks(app) == []


def test_nothing_is_committed(connection: psycopg.Connection[Any], database_url: str) -> None:
    run = note.enqueue(1)
    run_tasks(app)
    with psycopg.connect(database_url) as other:
        seen = other.execute(
            "select 1 from byrote_task_runs where result_id = %s", (run.id,)
        ).fetchone()

    assert seen is None


def test_tasks_that_tasks_enqueue_run_too() -> None:
    chain.enqueue(3)

    assert len(run_tasks(app)) == 4
    assert calls == [3, 2, 1, 0]


def test_only_what_was_enqueued_before_runs_without_until_empty() -> None:
    chain.enqueue(3)
    run_tasks(app, until_empty=False)

    assert calls == [3]
    assert_enqueued(app, chain, 2, count=1)


def test_async_tasks_enqueue_in_the_same_transaction() -> None:
    achain.enqueue()
    run_tasks(app)

    assert sorted(calls) == ["one", "three", "two"]


def test_an_async_test_runs_tasks_too() -> None:
    async def test() -> None:
        await achain.aenqueue()
        run = await note.aenqueue("four")
        run_tasks(app)
        assert await run.aresult(timeout=1) == "four"

    asyncio.run(test())

    assert len(calls) == 4


def test_retries_happen_in_virtual_time() -> None:
    flaky.enqueue()
    [run] = run_tasks(app)

    assert run.attempts == 3
    assert run.finished_at is not None
    assert run.finished_at - run.enqueued_at > timedelta(minutes=10)


def test_the_error_of_a_failed_task_is_raised_and_stored() -> None:
    run = broken.enqueue()
    with pytest.raises(ValueError, match="no such order") as caught:
        run_tasks(app)

    assert caught.traceback[-1].name == "broken"
    assert run.refresh().status is Status.FAILED


def test_the_error_of_a_failed_task_is_returned_on_request() -> None:
    broken.enqueue()
    note.enqueue(1)
    runs = run_tasks(app, raise_errors=False)

    assert sorted(run.status for run in runs) == [Status.FAILED, Status.SUCCESSFUL]
    assert [run.faults[0]["type"] for run in runs if run.faults] == ["ValueError"]


def test_deferred_tasks_run_on_request_or_when_the_clock_is_there(
    connection: psycopg.Connection[Any],
) -> None:
    clock = FakeClock(connection)
    note.using(run_after="1h").enqueue("in an hour")
    note.using(run_after="2h").enqueue("in two hours")

    assert run_tasks(app) == []
    clock.advance(hours=1)
    run_tasks(app)
    assert calls == ["in an hour"]
    run_tasks(app, include_deferred=True)
    assert calls == ["in an hour", "in two hours"]


def test_now_sets_the_time_for_one_call(connection: psycopg.Connection[Any]) -> None:
    clock = FakeClock(connection)
    note.using(run_after="1h").enqueue("later")
    run_tasks(app, now=clock.now + timedelta(hours=2))

    assert calls == ["later"]
    [now] = connection.execute("select byrote_now()").fetchone() or [None]
    assert now == clock.now


def test_a_schedule_ticks_when_the_clock_is_moved(connection: psycopg.Connection[Any]) -> None:
    clock = FakeClock(connection)
    assert run_tasks(app) == []
    clock.advance(hours=23)
    run_tasks(app)

    assert calls == ["tick"]


def test_steps_sleeps_signals_and_artifacts_work(connection: psycopg.Connection[Any]) -> None:
    run = trip.enqueue()
    [waiting] = run_tasks(app)

    assert (waiting.status, waiting.wait_reason) == (Status.WAITING, "event")
    app.signal(run.id, "paid", 300)
    [done] = run_tasks(app)
    assert run.result(timeout=1) == ["LH1", 300]
    assert (done.attempts, calls) == (3, [1, 2, 3])
    assert run.artifact("ticket").read() == b"seat 1"


def test_a_wait_times_out_when_the_clock_is_moved(connection: psycopg.Connection[Any]) -> None:
    clock = FakeClock(connection)
    run = trip.enqueue()
    run_tasks(app)
    clock.advance(days=5)
    run_tasks(app)

    assert run.result(timeout=1) == ["LH1", "never"]


@pytest.mark.parametrize("task", [slow, aslow])
def test_a_task_past_its_timeout_is_interrupted(task: Any) -> None:
    task.enqueue()
    with pytest.raises(TimeoutError, match=r"longer than its timeout of 0\.1 s"):
        run_tasks(app)

    assert calls == []
    assert note.enqueue(1).id


def test_a_failing_statement_of_a_task_leaves_the_transaction_usable(
    connection: psycopg.Connection[Any],
) -> None:
    own = App()

    @own.task(name="sql")
    def query() -> None:
        try:
            connection.execute("select nothing")
        except psycopg.Error as error:
            raise Fatal("refused") from error

    query_run = None
    with use_connection(own, connection):
        query_run = query.enqueue()
        with pytest.raises(Fatal, match="refused"):
            run_tasks(own)

        assert query_run.refresh().status is Status.FAILED


def test_only_one_queue_and_only_tasks_of_the_app_are_executed(
    connection: psycopg.Connection[Any],
) -> None:
    note.using(queue="mail").enqueue("mail")
    note.enqueue("default")
    other = App()

    @other.task
    def theirs() -> None:
        raise AssertionError

    with use_connection(other, connection):
        theirs.enqueue()
    run_tasks(app, "mail")
    assert calls == ["mail"]
    run_tasks(app)

    assert calls == ["mail", "default"]


def test_endless_tasks_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("byrote.testing.running.ATTEMPTS_MAX", 5)
    chain.enqueue(1_000)
    with pytest.raises(RuntimeError, match="still due after 5 attempts"):
        run_tasks(app)


def test_the_apps_own_database_is_never_used() -> None:
    with pytest.raises(BadOption, match="byrote_app"):
        run_tasks(App())


def test_a_memo_answers_the_next_call(connection: psycopg.Connection[Any]) -> None:
    own = App()

    @own.task(memo="1d")
    def price(number: int) -> int:
        calls.append(number)
        return number * 2

    with use_connection(own, connection):
        price.enqueue(2)
        run_tasks(own)
        again = price.enqueue(2)

        assert run_tasks(own) == []
        assert again.result(timeout=1) == 4
    assert calls == [2]


def test_an_effect_is_done_once_in_the_tests_transaction(
    connection: psycopg.Connection[Any],
) -> None:
    own = App()

    @own.task(retry=Retry(attempts=2))
    def pay(ctx: Context) -> None:
        with ctx.once("pay", connection) as first:
            calls.append(first)
        if ctx.attempt == 1:
            raise ConnectionError

    with use_connection(own, connection):
        pay.enqueue()
        run_tasks(own)

    assert calls == [True, False]


def test_an_async_task_that_blocks_is_refused_as_by_a_worker(
    connection: psycopg.Connection[Any],
) -> None:
    own = App()

    @own.task
    async def blocking(ctx: Context) -> None:
        ctx.step("one", lambda: 1)

    with use_connection(own, connection):
        blocking.enqueue()
        with pytest.raises(BadOption, match=r"await ctx\.astep"):
            run_tasks(own)

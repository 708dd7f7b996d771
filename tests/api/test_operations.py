# SPDX-License-Identifier: MIT
"""Lists and commands of an app, for callers that wait and for coroutines."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from byrote import App, RunNotFound, Status
from byrote.assembly.operations import verbs
from byrote.core.errors import BadOption, SchemaMismatch, UnknownQueue
from tests.support import Db, run_of
from tests.tasks import api

UNKNOWN = "01932c4e-8d5b-7a90-b1c2-3d4e5f607182"
MALFORMED = ["nope", "", "01932c4e", f"{UNKNOWN}0", UNKNOWN.replace("0", "g"), "\ud800", "a\0b"]


class Calls:
    """Calls an operation of an app by its name: directly, or its coroutine on a loop."""

    def __init__(self, app: App, *, on_a_loop: bool) -> None:
        self._app = app
        self._on_a_loop = on_a_loop

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not self._on_a_loop:
            return getattr(self._app, name)  # type: ignore[no-any-return]
        return lambda *args, **kwargs: asyncio.run(self._await(f"a{name}", args, kwargs))

    async def _await(self, name: str, args: Any, kwargs: Any) -> Any:
        try:
            return await getattr(self._app, name)(*args, **kwargs)
        finally:
            await self._app.aclose()


@pytest.fixture(params=[False, True], ids=["waiting", "coroutine"])
def call(request: pytest.FixtureRequest, tasks: App) -> Calls:
    return Calls(tasks, on_a_loop=request.param)


def test_runs_are_listed_by_what_the_command_line_offers(call: Calls) -> None:
    first, second = api.add.enqueue(1), api.about.using(labels={"order": "42"}).enqueue("x")

    assert [run.id for run in call.runs()] == [second.id, first.id]
    assert [run.id for run in call.runs(queue="mail")] == [second.id]
    assert [run.id for run in call.runs(task=api.add.name, status="ready")] == [first.id]
    assert [run.id for run in call.runs(labels={"order": "42"})] == [second.id]
    assert [run.id for run in call.runs(spec_hash=run_hash(call, first.id))] == [first.id]


def run_hash(call: Calls, run_id: str) -> str:
    return next(run.spec_hash for run in call.runs() if run.id == run_id)


def test_pages_of_runs_follow_each_other(call: Calls) -> None:
    ids = [api.add.enqueue(n).id for n in range(3)][::-1]
    page = call.runs(limit=2)

    assert [run.id for run in page] == ids[:2]
    assert [run.id for run in call.runs(before=page[-1])] == ids[2:]
    assert [run.id for run in call.runs(before=page[-1].id)] == ids[2:]


@pytest.mark.parametrize("filters", [{"status": "done"}, {"limit": 0}, {"limit": 10_001}], ids=str)
def test_a_filter_that_cannot_match_is_refused(call: Calls, filters: dict[str, Any]) -> None:
    with pytest.raises(BadOption):
        call.runs(**filters)


def test_a_queue_is_paused_and_resumed(call: Calls) -> None:
    api.add.enqueue(1)

    assert [(queue.queue, queue.ready) for queue in call.queues()] == [("default", 1)]
    assert (call.pause("default"), call.pause("default")) == (True, False)
    assert call.queues()[0].paused_at is not None
    assert (call.resume("default"), call.resume("default")) == (True, False)
    assert call.queues()[0].paused_at is None


def test_a_mistyped_queue_is_not_paused(call: Calls) -> None:
    api.add.enqueue(1)
    for verb in (call.pause, call.resume):
        with pytest.raises(UnknownQueue, match="Known: default"):
            verb("defalt")


def test_workers_are_listed(call: Calls) -> None:
    assert call.workers() == []


def test_a_run_is_cancelled_once(call: Calls) -> None:
    run = api.add.enqueue(1)

    assert (call.cancel(run.id), call.cancel(run.id)) == (True, False)
    assert run.refresh().status is Status.CANCELLED


def test_a_waiting_run_is_retried_now(call: Calls) -> None:
    run = api.add.using(run_after="10m").enqueue(1)

    assert call.retry(run.id)
    assert run.refresh().status is Status.READY


def test_many_runs_are_cancelled_and_the_ended_ones_left_out(call: Calls) -> None:
    ids = [api.add.enqueue(n).id for n in range(3)]
    call.cancel(ids[1])
    done = call.cancel_many(ids)

    assert (sorted(done), done.locked) == (sorted([ids[0], ids[2]]), [])
    assert call.retry_many(ids) == []


def test_dead_letters_are_listed_requeued_and_deleted(
    call: Calls, drain: Callable[[], None]
) -> None:
    ids = [api.doomed.enqueue("so").id for _ in range(3)]
    drain()
    page = call.dead(task=api.doomed.name, limit=2)

    rest = call.dead(before=page[-1])
    assert sorted(run.id for run in [*page, *rest]) == sorted(ids)
    assert call.dead(before=page[-1].id) == rest
    assert call.dead(queue="mail") == []
    assert call.requeue(ids[:1]) == ids[:1]
    assert call.delete(ids[:2]) == ids[1:2]
    assert [run.id for run in call.dead()] == ids[2:]
    with pytest.raises(BadOption, match="not a dead letter"):
        call.dead(before=ids[0])


def test_one_id_is_not_a_list_of_ids(call: Calls) -> None:
    with pytest.raises(BadOption, match="list of run ids"):
        call.requeue(UNKNOWN)


@pytest.mark.parametrize("run_id", [*MALFORMED, UNKNOWN])
def test_an_id_without_a_run_is_not_found(call: Calls, run_id: str) -> None:
    asks: list[Callable[[], Any]] = [
        lambda: call.cancel(run_id),
        lambda: call.retry(run_id),
        lambda: call.signal(run_id, "paid"),
        lambda: call.dead(before=run_id),
    ]
    for ask in asks:
        with pytest.raises(RunNotFound):
            ask()


@pytest.mark.parametrize("run_id", [*MALFORMED, None, 7])
def test_a_handle_on_something_that_is_not_an_id_is_refused(app: App, run_id: Any) -> None:
    with pytest.raises(RunNotFound):
        app.run(run_id)


def test_a_handle_has_a_coroutine_for_each_of_its_calls(
    tasks: App, run_async: Callable[..., Any]
) -> None:
    waiting = api.add.using(run_after="10m").enqueue(1)

    async def use() -> tuple[object, ...]:
        first = (await waiting.aretry(), await waiting.aretry())
        return (
            *first,
            await waiting.acancel(),
            await waiting.acancel(),
            await waiting.aartifacts(),
        )

    assert run_async(use) == (True, False, True, False, [])


def test_every_operation_is_a_method_and_a_coroutine_method() -> None:
    written = [
        name
        for name, _ in inspect.getmembers(verbs, inspect.isgeneratorfunction)
        if not name.startswith("_") and name != "known_queue"
    ]

    for name in written:
        blocking, awaitable = (inspect.getattr_static(App, each) for each in (name, f"a{name}"))
        assert blocking._make is awaitable._make


@pytest.fixture
def empty(url: str) -> str:
    """The database with a search path on which Byrote has no tables."""
    return make_conninfo(url, options="-csearch_path=nowhere")


def test_every_call_on_a_database_without_tables_names_the_remedy(empty: str) -> None:
    with App(empty) as app, psycopg.connect(empty) as caller:

        @app.task
        def add(n: int) -> int:
            return n

        asks: list[Callable[[], Any]] = [
            lambda: add.enqueue(1),
            lambda: add.using(unique_key="a").enqueue(1),
            lambda: app.enqueue_many([add.spec(1)]),
            lambda: app.run(UNKNOWN).refresh(),
            lambda: app.run(UNKNOWN).result(),
            lambda: app.run(UNKNOWN).artifacts(),
            lambda: app.signal(UNKNOWN, "paid"),
            lambda: app.cancel(UNKNOWN),
            lambda: app.retry(UNKNOWN),
            lambda: app.delete([UNKNOWN]),
            app.runs,
            app.dead,
            app.queues,
            app.workers,
            lambda: app.pause("default"),
            lambda: add.using(connection=caller).enqueue(1),
            lambda: app.enqueue_many([add.spec(1)], connection=caller),
        ]
        for ask in asks:
            caller.rollback()
            with pytest.raises(SchemaMismatch, match="byrote migrate"):
                ask()


def test_coroutines_on_a_database_without_tables_name_the_remedy(empty: str) -> None:
    async def ask_all() -> None:
        async with App(empty) as app, await psycopg.AsyncConnection.connect(empty) as caller:

            @app.task
            def add(n: int) -> int:
                return n

            asks: list[Callable[[], Any]] = [
                lambda: add.aenqueue(1),
                lambda: app.aenqueue_many([add.spec(1)]),
                lambda: app.run(UNKNOWN).arefresh(),
                app.aruns,
                lambda: add.using(connection=caller).aenqueue(1),
                lambda: app.aenqueue_many([add.spec(1)], connection=caller),
            ]
            for ask in asks:
                await caller.rollback()
                with pytest.raises(SchemaMismatch, match="byrote migrate"):
                    await ask()

    asyncio.run(ask_all())


def test_the_run_of_a_listed_page_is_the_stored_one(tasks: App, db: Db) -> None:
    run = api.add.enqueue(1)

    assert tasks.runs()[0].spec_hash == run_of(db, run.id).spec_hash

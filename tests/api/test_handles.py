# SPDX-License-Identifier: MIT
import threading
from collections.abc import Callable
from typing import Any

import pytest

from byrote import App, ResultTimeout, RunFailed, Status
from byrote.assembly.clock import monotonic
from byrote.core.errors import RowLocked
from byrote.store.connect import DatabaseAddress
from tests.store.test_locks import locked
from tests.support import Db, run_of
from tests.tasks import api

type Drain = Callable[[], None]

NASTY = {"b": [1, 1.0, -0.0, 5e-324, 2**70], "a": "NUL \x00 \U0001f4a9", "": {}}


def test_a_result_comes_back_with_the_type_and_value_that_was_returned(
    tasks: App, drain: Drain
) -> None:
    """P7, from the sender through a worker and back."""
    sums, echoed = api.add.enqueue(2, b=3), api.echo.enqueue(NASTY)
    drain()

    assert sums.result(timeout=5) == 5
    assert repr(echoed.result(timeout=5)) == repr(NASTY)


def test_a_handle_looks_once_and_again_when_it_is_refreshed(tasks: App, drain: Drain) -> None:
    handle = api.add.enqueue(1)
    assert handle.status is Status.READY
    drain()

    assert handle.status is Status.READY
    assert handle.refresh().result == 2
    assert handle.status is Status.SUCCESSFUL


def test_a_result_is_waited_for(tasks: App, drain: Drain) -> None:
    handle = api.add.using(run_after="200ms").enqueue(1)
    api.add.enqueue(0)
    worker = threading.Thread(target=lambda: [drain() for _ in iter(waits(handle), False)])
    worker.start()

    assert handle.result(timeout=20) == 2
    worker.join()


def waits(handle: Any) -> Callable[[], bool]:
    return lambda: not handle.refresh().finished


def test_waiting_ends_at_the_callers_timeout_and_the_run_goes_on(tasks: App, db: Db) -> None:
    handle = api.add.enqueue(1)
    began = monotonic()
    with pytest.raises(ResultTimeout, match="still READY"):
        handle.result(timeout="200ms")

    assert 0.2 <= monotonic() - began < 5
    assert run_of(db, handle.id).status is Status.READY


def test_a_run_that_failed_raises_with_what_was_recorded(tasks: App, drain: Drain) -> None:
    handle = api.doomed.enqueue("no use")
    drain()
    with pytest.raises(RunFailed, match=r"FAILED.*Fatal: no use") as failed:
        handle.result(timeout=5)

    assert failed.value.status == "FAILED"
    assert failed.value.run_id == handle.id
    assert [fault["kind"] for fault in failed.value.faults] == ["raised"]


def test_a_cancelled_run_raises_too(tasks: App) -> None:
    handle = api.add.enqueue(1)
    assert handle.cancel()
    with pytest.raises(RunFailed, match="CANCELLED"):
        handle.result(timeout=5)

    assert not handle.cancel()


def test_a_dead_run_can_be_given_another_chance(tasks: App, drain: Drain) -> None:
    handle = api.doomed.enqueue("no use")
    drain()
    assert handle.retry()
    assert handle.refresh().status is Status.READY
    drain()

    assert handle.refresh().attempts == 2
    assert not api.add.enqueue(1).retry()


def test_a_task_knows_the_attempt_it_is_in(tasks: App, drain: Drain) -> None:
    handle = api.about.using(labels={"a": "b"}).enqueue("w")
    drain()

    assert handle.result(timeout=5) == {
        "word": "w",
        "run": handle.id,
        "attempt": 1,
        "queue": "mail",
        "labels": {"a": "b"},
        "in_time": True,
    }


def test_a_task_may_ask_for_another_attempt_or_step_aside(tasks: App, db: Db, drain: Drain) -> None:
    retried, snoozed = api.third_time.enqueue(), api.drowsy.enqueue()
    drain()

    assert (retried.result(timeout=5), snoozed.result(timeout=5)) == (3, 2)
    assert (run_of(db, retried.id).charged, run_of(db, snoozed.id).charged) == (3, 1)


def test_async_callers_have_the_same(tasks: App, drain: Drain, run_async: Any) -> None:
    handle = api.add.enqueue(40, 2)
    drain()

    async def ask() -> tuple[Status, int]:
        run = await handle.arefresh()
        return run.status, await handle.aresult(timeout=5)

    assert run_async(ask) == (Status.SUCCESSFUL, 42)


@pytest.mark.parametrize("verb", ["cancel", "retry"])
def test_a_verb_for_a_locked_run_raises_and_can_be_repeated(
    tasks: App, address: DatabaseAddress, verb: str
) -> None:
    handle = api.add.using(run_after="1h").enqueue(1)
    act = getattr(handle, verb)
    with locked(address, "byrote_task_runs", "result_id", handle.id):
        with pytest.raises(RowLocked, match=handle.id):
            act()
        assert handle.refresh().status is Status.WAITING

    assert act() is True

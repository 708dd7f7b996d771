# SPDX-License-Identifier: MIT
"""A cancel reaches running code: by the hint at once, by renewals without it."""

import pytest

from byrote.core.state import Status
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.support import run_of, until
from tests.worker.harness import (
    Database,
    Marks,
    StartWorker,
    alive,
    await_end,
    await_status,
    history,
    send,
    send_one,
    spec,
)

HOLDS = pytest.mark.parametrize("task", ["hold", "a_hold"], ids=["sync", "async"])


@HOLDS
def test_the_hint_stops_a_running_run_at_once(
    db: Database, start_worker: StartWorker, marks: Marks, task: str
) -> None:
    """Renewals come every ten seconds here, so only the notification can explain the speed."""
    start_worker(lease="30s")
    run_id = send_one(db, spec(task, marks.path, "/nowhere/gate"))
    [pid] = marks.await_words(1)
    fetch(db, queries.cancel([run_id]))
    run = await_status(db, run_id, Status.CANCELLED, within=8.0)

    assert (run.attempts, run.charged) == (1, 0)
    told = [kind for kind, _, _ in history(db, run_id) if kind != "Renewed"]
    assert told == ["Enqueued", "Claimed", "CancelRequested", "Cancelled"]
    assert task == "a_hold" or not alive(int(pid))
    await_end(db, send_one(db, spec("echo")))


@HOLDS
def test_renewals_carry_a_cancel_without_the_hint(
    db: Database, start_worker: StartWorker, marks: Marks, task: str
) -> None:
    start_worker(lease="1500ms", listen=False)
    run_id = send_one(db, spec(task, marks.path, "/nowhere/gate"))
    marks.await_words(1)
    fetch(db, queries.cancel([run_id]))

    await_status(db, run_id, Status.CANCELLED, within=10.0)


def test_a_busy_worker_receives_the_notification_too(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    """Notifications that arrive in the middle of a claim are not lost."""
    start_worker(lease="30s", hands=2, concurrency=100)
    ids = send(db, *(spec("a_hold", marks.path, "/nowhere/gate") for _ in range(8)))
    marks.await_words(8)
    flood = send(db, *(spec("a_echo", n) for n in range(3_000)))
    for run_id in ids:
        fetch(db, queries.cancel([run_id]))
        await_status(db, run_id, Status.CANCELLED, within=8.0)
    await_end(db, *flood)


def test_neighbours_of_a_cancelled_sync_run_are_not_charged(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    start_worker()
    held = send_one(db, spec("hold", marks.path, "/nowhere/gate"))
    neighbours = send(db, *(spec("a_mark", marks.path, "n", 0.7) for _ in range(3)))
    marks.await_words(4)
    fetch(db, queries.cancel([held]))
    runs = await_end(db, *neighbours)

    assert run_of(db, held).status is Status.CANCELLED
    assert {(run.status, run.charged) for run in runs} == {(Status.SUCCESSFUL, 1)}


def test_a_cancel_that_comes_too_late_changes_nothing(
    db: Database, start_worker: StartWorker
) -> None:
    start_worker()
    run_id = send_one(db, spec("echo", 7))
    await_end(db, run_id)

    assert fetch(db, queries.cancel([run_id])) == []
    assert run_of(db, run_id).result == 7


def test_a_cancelled_run_whose_worker_was_killed_is_not_run_again(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    first = start_worker(lease="1s")
    run_id = send_one(db, spec("a_mark", marks.path, "x", 30))
    marks.await_words(1)
    first.process.kill()
    fetch(db, queries.cancel([run_id]))
    start_worker(lease="1s")
    await_status(db, run_id, Status.CANCELLED, within=4.0)

    until(lambda: db.execute("select pg_sleep(0.3)").fetchone())
    assert marks.words == ["x"]

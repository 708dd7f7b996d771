# SPDX-License-Identifier: MIT
"""Faults 33 and 34: SIGTERM finishes what is short, releases what is long, and charges none."""

import signal
import time

import pytest

from byrote.core.state import Status
from tests.support import run_of, until
from tests.worker.harness import (
    Database,
    Marks,
    StartWorker,
    alive,
    await_end,
    await_row,
    send,
    send_one,
    spec,
)

KINDS = pytest.mark.parametrize("task", ["mark", "a_mark"], ids=["sync", "async"])


@KINDS
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_fault_33_a_short_task_is_finished_before_the_worker_leaves(
    db: Database, start_worker: StartWorker, marks: Marks, *, task: str, number: signal.Signals
) -> None:
    worker = start_worker()
    run_id = send_one(db, spec(task, marks.path, "x", 0.4))
    marks.await_words(1)
    worker.signal(number)

    assert worker.wait() == 0
    run = run_of(db, run_id)
    assert (run.status, run.attempts) == (Status.SUCCESSFUL, 1)
    assert worker.await_log("WorkerStopped")["released"] == 0
    assert worker.await_log("WorkerStopping")["reason"] == number.name


@KINDS
def test_fault_34_a_long_task_is_released_uncharged_and_claimed_at_once(
    db: Database, start_worker: StartWorker, marks: Marks, task: str
) -> None:
    """No waiting for a lease of half a minute, nor for a poll."""
    first = start_worker(grace="500ms", lease="30s")
    run_id = send_one(db, spec(task, marks.path, "x", 30))
    marks.await_words(1)
    second = start_worker(poll_interval="30s")
    await_row(db, "select 1 from byrote_workers where worker_id = %s and idle", second.name)
    before = time.monotonic()
    assert first.stop() == 0
    marks.await_words(2, within=10.0)

    # Most of the grace is for finishing, its last quarter for writing down what happened.
    assert 0.37 <= time.monotonic() - before < 20
    run = run_of(db, run_id)
    assert (run.leased_by, run.attempts, run.charged, run.losses) == (second.name, 2, 0, 0)
    assert first.logged("Released", run=run_id)


@KINDS
def test_a_second_signal_releases_at_once(
    db: Database, start_worker: StartWorker, marks: Marks, task: str
) -> None:
    worker = start_worker(grace="30s")
    run_id = send_one(db, spec(task, marks.path, "x", 30))
    marks.await_words(1)
    worker.signal(signal.SIGTERM)
    worker.await_log("WorkerStopping")
    before = time.monotonic()
    worker.signal(signal.SIGTERM)

    assert worker.wait(20.0) == 0
    assert time.monotonic() - before < 10.0
    run = run_of(db, run_id)
    assert (run.status, run.attempts, run.charged) == (Status.READY, 1, 0)


def test_what_had_not_begun_is_given_back_at_once(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    """While the first one of a hand is finished, those behind it are free for other workers."""
    worker = start_worker(grace="10s")
    warm = send(db, *(spec("mark", marks.path, "w") for _ in range(200)))
    await_end(db, *warm)
    ids = send(db, *(spec("mark", marks.path, "x", 3.0) for _ in range(5)))
    marks.await_words(201)
    worker.signal(signal.SIGTERM)
    ready = "select 1 from byrote_runs where status = 'READY' having count(*) = 4"
    await_row(db, ready, within=2.5)

    assert worker.wait() == 0
    statuses = sorted(run_of(db, run_id).status for run_id in ids)
    assert statuses == [Status.READY] * 4 + [Status.SUCCESSFUL]
    assert {run_of(db, run_id).losses for run_id in ids} == {0}


def test_an_idle_worker_leaves_at_once_and_leaves_nothing_behind(
    db: Database, start_worker: StartWorker
) -> None:
    worker = start_worker(hands=2, grace="30s")
    until(lambda: len(worker.hands) == 2)
    hands, name = worker.hands, worker.name
    before = time.monotonic()

    assert worker.stop() == 0
    assert time.monotonic() - before < 10.0
    assert not any(map(alive, hands))
    gone = "select 1 from byrote_workers where worker_id = %s"
    assert db.execute(gone, (name,)).fetchone() is None


def test_a_rolling_restart_under_load_loses_and_charges_nothing(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    """Fault 35 in small: three workers in turn, each stopped in the middle of its work."""
    ids = send(db, *(spec("a_mark", marks.path, str(n), 0.05) for n in range(300)))
    for turn in range(3):
        worker = start_worker(grace="1s", concurrency=20)
        marks.await_words(20 * (turn + 1))
        assert worker.stop() == 0
    start_worker(concurrency=50, hands=2)
    runs = await_end(db, *ids)

    assert {(run.status, run.charged, run.losses) for run in runs} == {(Status.SUCCESSFUL, 1, 0)}
    assert sorted(marks.words, key=int) == [str(n) for n in range(300)]

# SPDX-License-Identifier: MIT
"""Workers that drain, as from cron: no worker is there that stays."""

from datetime import UTC, datetime, timedelta

from byrote.core.schedule.schedule import make_schedule
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.support import run_of
from tests.worker.harness import Database, Marks, StartWorker, send, send_one, spec

EXPIRE = "update byrote_task_runs set leased_until = now() where status = 'RUNNING'"


def test_draining_workers_alone_rescue_the_run_of_a_killed_one(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    killed = start_worker()
    run_id = send_one(db, spec("mark", marks.path, "x", 1.0))
    marks.await_words(1)
    killed.destroy()

    early = start_worker(drain=True, ready=False)
    assert early.wait() == 0
    [left] = [line["reason"] for line in early.logged("WorkerStopping")]
    assert left == "nothing left to do; 1 run is being executed by other workers"
    assert run_of(db, run_id).status is Status.RUNNING
    db.execute(EXPIRE)
    assert start_worker(drain=True, ready=False).wait() == 0
    run = run_of(db, run_id)
    assert (run.status, run.attempts, run.losses) == (Status.SUCCESSFUL, 2, 1)


def test_a_lease_that_expires_while_a_drain_works_is_taken_back_by_it(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    killed = start_worker(concurrency=2)
    [lost] = send(db, spec("a_mark", marks.path, "x", 2.0))
    marks.await_words(1)
    killed.destroy()
    send(db, spec("a_mark", marks.path, "y", 2.0))
    drain = start_worker(drain=True, ready=False)
    marks.await_words(2)
    db.execute(EXPIRE + " and result_id = %s", (lost,))

    assert drain.wait(20) == 0
    assert run_of(db, lost).status is Status.SUCCESSFUL


def test_a_drain_reports_ready_runs_of_tasks_it_does_not_know(
    db: Database, start_worker: StartWorker
) -> None:
    send(db, spec("gone"), spec("gone"))
    drain = start_worker(drain=True, ready=False)

    assert drain.wait() == 0
    [left] = [line["reason"] for line in drain.logged("WorkerStopping")]
    unknown = "2 ready runs are of tasks or versions that this worker does not know: gone@1"
    assert left == f"no run is left that this worker can execute; {unknown}"


def test_a_drain_enqueues_what_is_due_by_a_schedule(
    db: Database, start_worker: StartWorker
) -> None:
    """Where all workers drain, no other one beats."""
    wanted = make_schedule("s", spec("echo", 1), every="1h")
    fetch(db, queries.announce(wanted, datetime.now(UTC) - timedelta(hours=2)))

    assert start_worker(drain=True, ready=False).wait() == 0
    ended = "select status from byrote_runs where task_path = 'echo'"
    assert db.execute(ended).fetchall() == [("SUCCESSFUL",)]

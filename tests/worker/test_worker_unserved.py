# SPDX-License-Identifier: MIT
"""A worker notes runs whose task no live worker knows, and ends them when the queue has waited."""

from byrote.core.state import Status
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.support import until
from tests.worker.harness import Database, StartWorker, await_end, history, send, spec

DUE = "update byrote_duties set next_at = '-infinity' where duty = 'unserved'"
AGED = "update byrote_unserved set waited = '25 hours'"
OLD = "update byrote_task_runs set run_after = now() - interval '25 hours'"


def test_a_task_that_no_worker_knows_is_logged_once_and_ended(
    db: Database, start_worker: StartWorker
) -> None:
    worker = start_worker()
    gone, again = send(db, spec("ecko"), spec("ecko"))
    db.execute(DUE)
    logged = worker.await_log("Unserved", task="ecko@1", queue="default")
    assert logged["nearest"] in {"echo@1", "a_echo@1"}
    assert logged["runs"] in {1, 2}
    for row in (OLD, AGED, DUE):
        db.execute(row)
    runs = await_end(db, gone, again)

    assert {(run.status, run.faults[0]["kind"]) for run in runs} == {
        (Status.FAILED, "unknown_task")
    }
    assert len(worker.logged("Unserved")) == 1
    assert [kind for kind, _, _ in history(db, gone)] == ["Enqueued", "Failed"]
    until(lambda: len(worker.logged("Failed", error="unknown_task")) == 2)


def test_a_queue_that_waits_for_ever_ends_none(db: Database, start_worker: StartWorker) -> None:
    worker = start_worker()
    fetch(db, queries.set_unserved("default", after=None))
    send(db, spec("gone"))
    db.execute(DUE)
    worker.await_log("Unserved", task="gone@1")
    for row in (OLD, AGED, DUE):
        db.execute(row)
    looked = "select 1 from byrote_unserved where waited > interval '25 hours'"
    until(lambda: db.execute(looked).fetchone(), 20)

    assert fetch(db, queries.fail_unserved(limit=10)) == []

# SPDX-License-Identifier: MIT
"""Progress in worker processes: the latest is seen while a task runs, the last at its end."""

from pathlib import Path

import psycopg
import pytest

from byrote import Status
from byrote.core.progress import Progress
from tests.support import run_of, until
from tests.worker.harness import (
    EXECUTORS,
    Database,
    StartWorker,
    WorkerProcess,
    await_end,
    send_one,
    spec,
)

KINDS = pytest.mark.parametrize("kind", ["", "a_"], ids=["sync", "async"])
COUNTED = """
create function byrote_test_count() returns trigger language plpgsql as
$$ begin insert into byrote_test_counts values (new.percent); return new; end $$;
create trigger byrote_test_count after insert or update on byrote_progress
for each row execute function byrote_test_count();
"""
GONE = """
drop trigger byrote_test_count on byrote_progress;
drop function byrote_test_count();
drop table byrote_test_counts
"""


@pytest.fixture(params=EXECUTORS)
def worker(request: pytest.FixtureRequest, start_worker: StartWorker) -> WorkerProcess:
    """A worker of each executor that can report progress."""
    return start_worker("tests.tasks.progress:app", executor=request.param)


def progress_of(db: Database, run_id: str) -> Progress:
    found = run_of(db, run_id).progress
    assert found is not None
    return found


@KINDS
def test_the_latest_word_is_seen_while_the_task_goes_on(
    db: Database, worker: WorkerProcess, tmp_path: Path, kind: str
) -> None:
    gate = tmp_path / "gate"
    run_id = send_one(db, spec(f"{kind}stays", str(gate)))
    until(lambda: (p := run_of(db, run_id).progress) is not None and p.message == "second")
    found = progress_of(db, run_id)
    gate.touch()
    [ended] = await_end(db, run_id)

    assert (found.done, found.total, found.attempt) == (2.0, 3.0, 1)
    assert ended.status is Status.SUCCESSFUL
    assert progress_of(db, run_id).message == "second"


@KINDS
def test_a_tight_loop_costs_a_few_writes_and_its_last_word_is_there_at_the_end(
    db: Database, worker: WorkerProcess, kind: str
) -> None:
    db.execute("create table byrote_test_counts (percent double precision)")
    db.execute(COUNTED)
    try:
        [run] = await_end(db, send_one(db, spec(f"{kind}tight", 20_000)))
        [[writes]] = db.execute("select count(*) from byrote_test_counts").fetchall()
    finally:
        db.execute(GONE)
    found = progress_of(db, run.id)
    assert run.finished_at is not None
    assert run.started_at is not None
    took = (run.finished_at - run.started_at).total_seconds()

    assert (found.percent, found.data) == (100.0, {"last": True})
    assert found.at <= run.finished_at
    assert writes <= 2 + took / 0.3


def test_a_failed_attempt_leaves_how_far_it_came(db: Database, worker: WorkerProcess) -> None:
    [run] = await_end(db, send_one(db, spec("fails", 7)))

    assert run.status is Status.FAILED
    assert (progress_of(db, run.id).percent, progress_of(db, run.id).retrying) == (70.0, False)


def test_a_word_that_makes_no_sense_fails_the_task(db: Database, worker: WorkerProcess) -> None:
    [run] = await_end(db, send_one(db, spec("wrong")))

    assert run.faults[0]["type"] == "byrote.core.errors.BadOption"
    assert "6 of 5" in run.faults[0]["message"]
    assert run.progress is None


def test_a_result_does_not_wait_long_for_a_word_that_cannot_be_written(
    db: Database, url: str, start_worker: StartWorker
) -> None:
    """While the table is locked, reports cannot be written; the task must keep its result."""
    start_worker("tests.tasks.progress:app")
    with psycopg.connect(url) as other:
        other.execute("lock table byrote_progress in exclusive mode")
        [run] = await_end(db, send_one(db, spec("tight", 10)))
        other.rollback()

    assert (run.status, run.result) == (Status.SUCCESSFUL, 10)

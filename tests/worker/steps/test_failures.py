# SPDX-License-Identifier: MIT
"""Steps that fail: an error that the task caught is raised again, any other is tried again."""

from typing import Any

import pytest

from byrote import Retry, Status
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.store.verify import verify_on
from tests.support import run_of, until
from tests.worker.harness import (
    EXECUTORS,
    Database,
    Marks,
    StartWorker,
    WorkerProcess,
    await_end,
    await_status,
    send_one,
    spec,
)

SAGAS = "tests.tasks.sagas:app"
NOW = Retry(attempts=3, backoff="fixed", delay_first="0s")  # type: ignore[arg-type]
KINDS = pytest.mark.parametrize("kind", ["", "a_"], ids=["sync", "async"])


@pytest.fixture(params=EXECUTORS)
def worker(request: pytest.FixtureRequest, start_worker: StartWorker) -> WorkerProcess:
    """A worker of each executor that can do steps."""
    return start_worker(SAGAS, executor=request.param)


def ledger(db: Database, run_id: str) -> list[tuple[str, str]]:
    return [(row.name, row.kind) for row in fetch(db, queries.steps([run_id]))]


@KINDS
def test_a_saga_is_compensated_whole_though_its_second_attempt_could_go_on(
    db: Database, worker: WorkerProcess, marks: Marks, kind: str
) -> None:
    run_id = send_one(db, spec(f"{kind}saga", marks.path, retry=NOW))
    [run] = await_end(db, run_id)

    assert (run.status, run.attempts) == (Status.SUCCESSFUL, 2)
    assert run.result == ["HotelFull", "no 2 rooms in Rome", "notified"]
    assert marks.words == ["flight", "hotel", "cancel-flight-7", "notify", "notify"]
    assert ledger(db, run_id) == [
        ("flight", "step"),
        ("hotel", "failed"),
        ("cancel flight", "step"),
        ("notify", "step"),
    ]
    with db.transaction():
        assert verify_on(db).findings == []


def test_without_the_record_of_failures_the_saga_ends_by_half(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    start_worker("tests.mutants.forgetful:app")
    [run] = await_end(db, send_one(db, spec("saga", marks.path, retry=NOW)))

    assert (run.status, run.faults[-1]["kind"]) == (Status.FAILED, "nondeterminism")
    assert marks.words == ["flight", "hotel", "cancel-flight-7", "notify", "hotel"]


def test_a_branch_that_failed_and_was_caught_fails_in_the_same_way_again(
    db: Database, worker: WorkerProcess, marks: Marks
) -> None:
    run_id = send_one(db, spec("a_gathered_saga", marks.path, retry=NOW))
    [run] = await_end(db, run_id)

    assert (run.result, run.attempts) == (["int", "HotelFull", "notified"], 2)
    assert sorted(marks.words) == ["cancel-flight-7", "flight", "hotel", "notify", "notify"]
    assert ("hotel", "failed") in ledger(db, run_id)


@pytest.mark.parametrize(
    ("task", "result", "words"),
    [
        ("uncaught", "two", ["one", "two", "two"]),
        ("renamed", "two", ["two", "two"]),
        ("a_uncaught_beside_others", ["first", "second"], ["first", "second", "first"]),
    ],
)
def test_a_step_whose_error_ended_the_attempt_is_called_again(
    db: Database, worker: WorkerProcess, marks: Marks, *, task: str, result: Any, words: list[str]
) -> None:
    run_id = send_one(db, spec(task, marks.path, retry=NOW))
    [run] = await_end(db, run_id)

    assert (run.status, run.result, run.attempts) == (Status.SUCCESSFUL, result, 2)
    assert marks.words == words
    assert {kind for _, kind in ledger(db, run_id)} == {"step"}


def test_an_effect_that_follows_an_error_is_not_contradicted_later(
    db: Database, worker: WorkerProcess, marks: Marks, url: str
) -> None:
    [run] = await_end(db, send_one(db, spec("once_after", marks.path, url, retry=NOW)))

    assert (run.result, run.attempts) == ("refunded", 2)
    assert marks.words == ["pay"]


@KINDS
@pytest.mark.parametrize(("times", "result", "calls"), [(2, 3, 3), (3, "call 3", 3)])
def test_a_step_with_a_retry_is_tried_as_often_before_it_fails(
    db: Database,
    worker: WorkerProcess,
    marks: Marks,
    *,
    kind: str,
    times: int,
    result: Any,
    calls: int,
) -> None:
    run_id = send_one(db, spec(f"{kind}tries", marks.path, times))
    [run] = await_end(db, run_id)

    assert (run.result, run.attempts) == (result, 1)
    assert len(marks.words) == calls
    assert ("call", "step" if times < calls else "failed") in ledger(db, run_id)


@pytest.mark.parametrize(("times", "result"), [(1, "called"), (2, "call 2")])
def test_a_long_wait_between_two_tries_releases_the_slot(
    db: Database, start_worker: StartWorker, marks: Marks, *, times: int, result: str
) -> None:
    """Woken too early, it waits on; its tries are counted over attempts."""
    start_worker(SAGAS)
    run_id = send_one(db, spec("tries_later", marks.path, times))
    asleep = await_status(db, run_id, Status.WAITING)
    db.execute("update byrote_task_runs set run_after = clock_timestamp()")
    until(lambda: run_of(db, run_id).attempts == 2)
    await_status(db, run_id, Status.WAITING)
    assert (asleep.wait_reason, marks.words) == ("sleep", ["call"])
    db.execute("update byrote_steps set wake_at = clock_timestamp()")
    db.execute("update byrote_task_runs set run_after = clock_timestamp()")
    [run] = await_end(db, run_id)

    assert (run.result, run.charged, marks.words) == (result, 1, ["call", "call"])


def test_what_is_not_a_retry_policy_is_refused(db: Database, start_worker: StartWorker) -> None:
    start_worker(SAGAS)
    [run] = await_end(db, send_one(db, spec("wrong_retry")))

    assert "is a byrote.Retry without age_max, not 3" in run.faults[-1]["message"]


@pytest.mark.parametrize(
    ("base", "result"),
    [
        (True, ["LookupError", "odd", None]),
        (False, ["StepFailed", "gone.module.Local: odd", "gone.module.Local"]),
    ],
)
def test_an_error_without_its_class_is_raised_as_its_base_or_as_step_failed(
    db: Database, start_worker: StartWorker, marks: Marks, *, base: bool, result: list[Any]
) -> None:
    start_worker(SAGAS)
    [run] = await_end(db, send_one(db, spec("lost_class", marks.path, base, retry=NOW)))

    assert (run.result, marks.words) == (result, ["odd", "two"])

# SPDX-License-Identifier: MIT
"""A failed attempt is logged once, by `logging`, with its message and traceback."""

from datetime import timedelta
from typing import Any

import pytest

from byrote import Retry
from tests.worker.harness import (
    Database,
    StartWorker,
    WorkerProcess,
    await_end,
    send,
    send_one,
    spec,
)

APP = "tests.tasks.failing:app"
TWICE = Retry(attempts=2, backoff="fixed", delay_first=timedelta(0))


def logged(worker: WorkerProcess, run_id: str) -> list[dict[str, Any]]:
    """The lines of the logger `byrote.task` about a run."""
    ours = [line for line in worker.logs if line.get("logger") == "byrote.task"]
    return [line for line in ours if line["run"] == run_id]


@pytest.mark.parametrize("task", ["divide", "a_divide"])
@pytest.mark.parametrize("executor", ["hand", "inline"])
def test_a_failure_is_a_warning_before_a_retry_and_an_error_at_the_end(
    db: Database, start_worker: StartWorker, task: str, executor: str
) -> None:
    worker = start_worker(APP, executor=executor)
    run_id = send_one(db, spec(task, 0, retry=TWICE, queue="default"))
    await_end(db, run_id)
    assert worker.stop() == 0
    first, last = logged(worker, run_id)

    assert (first["level"], first["attempt"]) == ("warning", 1)
    assert (last["level"], last["attempt"]) == ("error", 2)
    assert last["message"] == f"{task} failed: ZeroDivisionError: division by zero"
    assert (last["task"], last["queue"]) == (task, "default")
    assert last["traceback"].startswith("Traceback")
    assert "return 1 / by" in last["traceback"]
    assert "byrote/executors" not in last["traceback"]
    assert worker.text.count("Traceback") == 2


def test_the_workers_own_lines_have_the_message_and_the_place(
    db: Database, start_worker: StartWorker
) -> None:
    worker = start_worker(APP)
    run_id = send_one(db, spec("divide", 0, retry=TWICE))
    await_end(db, run_id)
    retried, failed = worker.await_log("Retried"), worker.await_log("Failed")

    assert retried["error"].startswith("raised ZeroDivisionError: division by zero (failing.py:")
    assert failed["error"] == retried["error"]
    assert failed["error"].endswith("in divide)")


@pytest.mark.parametrize(
    ("task", "text"),
    [
        ("give_up", "give_up failed: byrote.core.errors.Fatal: the account is closed"),
        ("ask_again", "ask_again will be retried: byrote.core.errors.RetryLater: the server"),
        ("unstorable", "cannot be stored"),
        ("too_long", "timeout of 0.1 s"),
    ],
)
def test_every_way_to_fail_is_logged(
    db: Database, start_worker: StartWorker, task: str, text: str
) -> None:
    worker = start_worker(APP)
    timeout = timedelta(milliseconds=100) if task == "too_long" else None
    run_id = send_one(db, spec(task, retry=TWICE, timeout=timeout))
    await_end(db, run_id)
    assert worker.stop() == 0

    assert text in logged(worker, run_id)[0]["message"]


def test_a_run_that_is_too_old_for_a_retry_has_failed(
    db: Database, start_worker: StartWorker
) -> None:
    worker = start_worker(APP)
    young = Retry(attempts=9, backoff="fixed", delay_first="1h", jitter=False, age_max="1m")
    run_id = send_one(db, spec("divide", 0, retry=young))
    await_end(db, run_id)
    assert worker.stop() == 0

    assert [line["level"] for line in logged(worker, run_id)] == ["error"]


def test_a_snooze_is_not_a_failure(db: Database, start_worker: StartWorker) -> None:
    worker = start_worker(APP)
    run_id = send_one(db, spec("put_off"))
    worker.await_log("Snoozed")
    assert worker.stop() == 0

    assert logged(worker, run_id) == []


def test_a_crash_has_a_line_of_the_worker(db: Database, start_worker: StartWorker) -> None:
    worker = start_worker(APP)
    run_id = send_one(db, spec("die"))
    await_end(db, run_id)

    assert "SIGABRT" in worker.await_log("Failed", run=run_id)["error"]


def test_the_log_of_a_failure_is_not_output_of_the_task(
    db: Database, start_worker: StartWorker
) -> None:
    worker = start_worker(APP)
    run_id = send_one(db, spec("divide", 0))
    await_end(db, run_id)
    assert worker.stop() == 0

    assert len(logged(worker, run_id)) == 1
    assert db.execute("select count(*) from byrote_outputs").fetchone() == (0,)


def test_a_filter_of_the_project_redacts(db: Database, start_worker: StartWorker) -> None:
    worker = start_worker(APP)
    secret, broken, plain = send(
        db, spec("pay", "card 4111 1111"), spec("pay", "broken filter"), spec("pay", "no funds")
    )
    await_end(db, secret, broken, plain)
    assert worker.stop() == 0

    [line] = logged(worker, secret)
    assert line["message"] == "a payment failed"
    assert "traceback" not in line
    assert "OSError: the filter itself fails" in worker.text
    assert len(logged(worker, plain)) == 1


def test_without_tracebacks_only_the_type_is_logged(
    db: Database, start_worker: StartWorker
) -> None:
    worker = start_worker(APP, log_tracebacks="no")
    run_id = send_one(db, spec("pay", "card 4111 1111"))
    await_end(db, run_id)
    assert worker.stop() == 0

    [line] = logged(worker, run_id)
    assert line["message"] == "pay failed: ValueError"
    assert "4111" not in worker.text
    assert "Traceback" not in worker.text


@pytest.mark.parametrize("executor", ["hand", "inline"])
def test_every_line_that_a_task_logs_names_its_run(
    db: Database, start_worker: StartWorker, executor: str
) -> None:
    worker = start_worker(APP, executor=executor)
    run_id = send_one(db, spec("speak"))
    await_end(db, run_id)
    assert worker.stop() == 0
    lines = {line["message"]: line for line in worker.logs if "message" in line}

    assert lines["from the context"]["order"] == 42
    assert [line["run"] for line in lines.values()] == [run_id, run_id]
    assert {line["task"] for line in lines.values()} == {"speak"}

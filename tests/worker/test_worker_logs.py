# SPDX-License-Identifier: MIT
"""The log has every step of a run once, with its worker and task, and no payloads."""

import json
import os
import signal
from collections import Counter
from datetime import timedelta

from byrote import Retry
from tests.support import until
from tests.worker.harness import (
    Database,
    Marks,
    StartWorker,
    WorkerProcess,
    await_end,
    send,
    send_one,
    spec,
)

NOW = Retry(attempts=2, backoff="fixed", delay_first=timedelta(0))
CANARY = "canary-4711"


def story(worker: WorkerProcess, run_id: str) -> list[tuple[str, int]]:
    """The log's events of one run with their attempts; attempts in order, claims before ends."""
    of_run = [line for line in worker.logs if line.get("run") == run_id and "event" in line]
    told = [(line["event"], line["attempt"]) for line in of_run]
    return sorted(told, key=lambda entry: (entry[1], entry[0] != "Claimed"))


def test_every_event_of_the_path_is_logged_once(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    worker = start_worker()
    fine, flaky, dead, snoozed = send(
        db,
        spec("echo", 1),
        spec("flaky", marks.path, 1, retry=NOW),
        spec("boom", retry=NOW),
        spec("snooze", 60),
    )
    await_end(db, fine, flaky, dead)
    worker.await_log("Snoozed", run=snoozed)
    assert worker.stop() == 0

    assert story(worker, fine) == [("Claimed", 1), ("Succeeded", 1)]
    retried = [("Claimed", 1), ("Retried", 1), ("Claimed", 2)]
    assert story(worker, flaky) == [*retried, ("Succeeded", 2)]
    assert story(worker, dead) == [*retried, ("Failed", 2)]
    assert story(worker, snoozed) == [("Claimed", 1), ("Snoozed", 1)]


def test_each_line_has_worker_run_attempt_task_and_queue(
    db: Database, start_worker: StartWorker
) -> None:
    worker = start_worker(queues="mail")
    run_id = send_one(db, spec("echo", 1, queue="mail"))
    await_end(db, run_id)
    line = worker.await_log("Succeeded", run=run_id)

    told = {name: line[name] for name in ("worker", "attempt", "task", "queue")}
    assert told == {"worker": worker.name, "attempt": 1, "task": "echo", "queue": "mail"}
    assert line["at"].endswith("+00:00")
    assert 0 < line["took_s"] < 5


def test_hundreds_of_runs_are_logged_once_each(db: Database, start_worker: StartWorker) -> None:
    worker = start_worker(hands=2, concurrency=50, lease="1s")
    ids = send(db, *(spec("a_echo", n) for n in range(400)))
    await_end(db, *ids)
    assert worker.stop() == 0

    told = Counter((line["event"], line["run"]) for line in worker.logs if "run" in line)
    assert told == Counter({(kind, i): 1 for kind in ("Claimed", "Succeeded") for i in ids})


def test_the_life_of_the_worker_and_its_hands_is_logged_once(
    db: Database, start_worker: StartWorker
) -> None:
    worker = start_worker(hands=2)
    until(lambda: len(worker.hands) == 2)
    victim = worker.hands[0]
    os.kill(victim, signal.SIGKILL)
    until(lambda: len(worker.logged("HandStarted")) == 3)
    assert worker.stop() == 0

    counts = Counter(line["event"] for line in worker.logs)
    assert counts == {
        "WorkerStarted": 1, "HandStarted": 3, "HandEnded": 3, "WorkerStopping": 1,
        "WorkerStopped": 1,
    }  # fmt: skip
    assert worker.logged("HandEnded", pid=victim)[0]["reason"] == "was killed by SIGKILL"


def test_the_start_of_a_worker_names_its_database(db: Database, start_worker: StartWorker) -> None:
    started = start_worker().await_log("WorkerStarted")

    assert started["database"].endswith(f"/{db.info.dbname} as {db.info.user}")
    assert str(db.info.port) in started["database"]


def test_payloads_and_results_are_not_logged_and_messages_only_if_wanted(
    db: Database, start_worker: StartWorker
) -> None:
    worker = start_worker(log_tracebacks="no")
    retried = spec("boom", CANARY, retry=NOW)
    ids = send(db, spec("echo", {CANARY: CANARY}), spec("a_echo", [CANARY]), retried)
    ids += send(db, spec("boom", CANARY), spec("unstorable", CANARY), spec("echo", CANARY, 1, 2))
    await_end(db, *ids)
    assert worker.stop() == 0

    assert len(worker.logged("Succeeded")) == 2
    assert len(worker.logged("Failed")) == 4
    assert CANARY not in worker.text
    assert all(json.dumps(line) for line in worker.logs)

# SPDX-License-Identifier: MIT
"""Output and commands through a whole worker: stored with the run, shown by the command line."""

import signal
from datetime import timedelta

import pytest

from byrote import Retry
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.rows import Printed
from byrote.store.runners.sync import fetch
from tests.cli.console import byrote
from tests.support import run_of, until
from tests.worker.harness import (
    Database,
    Marks,
    StartWorker,
    alive,
    await_end,
    send,
    send_one,
    spec,
)

APP = "tests.executors.runtime.printing:app"
TWICE = Retry(attempts=2, backoff="fixed", delay_first=timedelta(0))


def outputs(db: Database, run_id: str) -> list[Printed]:
    return fetch(db, queries.outputs(run_id))


@pytest.mark.needs("commands")
def test_hands_and_commands_work_side_by_side(db: Database, start_worker: StartWorker) -> None:
    start_worker(APP, hands=2)
    tasks = ["say", "elsewhere", "shell", "silent"] * 3
    runs = await_end(db, *send(db, *(spec(task, *_words(task)) for task in tasks)))

    assert {run.status for run in runs} == {Status.SUCCESSFUL}
    assert [run.result for run in runs[:4]] == [None, "hello", 3, None]
    told = [[(o.stdout, o.stderr) for o in outputs(db, run.id)] for run in runs[:4]]
    hello = [("hello\n", "error hello\n")]
    assert told == [hello, hello, [("out\n", "err\n")], []]


def _words(task: str) -> list[str]:
    return ["hello"] if task in {"say", "elsewhere"} else []


@pytest.mark.needs("commands")
def test_a_flood_of_commands_does_not_hold_up_the_hands(
    db: Database, start_worker: StartWorker
) -> None:
    start_worker(APP, hands=1)
    ids = send(db, *(spec("shell") for _ in range(40)), *(spec("silent") for _ in range(200)))
    runs = await_end(db, *ids, within=60.0)

    assert {run.status for run in runs} == {Status.SUCCESSFUL}
    assert {run.charged for run in runs} == {1}


@pytest.mark.parametrize("executor", ["command", "inline"])
@pytest.mark.needs("commands")
def test_the_executor_can_be_chosen_for_a_whole_worker(
    db: Database, start_worker: StartWorker, executor: str
) -> None:
    start_worker(APP, executor=executor)
    runs = await_end(db, *send(db, spec("say", "hello"), spec("elsewhere", "x"), spec("shell")))

    assert [run.result for run in runs] == [None, "x", 3]
    assert outputs(db, runs[1].id)[0].stdout == "x\n"


def test_logs_show_every_attempt(db: Database, start_worker: StartWorker, url: str) -> None:
    start_worker(APP)
    run_id = send_one(db, spec("fail", retry=TWICE))
    said = byrote("runs", "logs", run_id, "--follow", "--json", url=url)

    assert [(o["attempt"], o["stdout"]) for o in said.objects] == [(1, "so far\n"), (2, "so far\n")]
    second = byrote("runs", "logs", run_id[:18], "--attempt", "2", url=url)
    assert second.out == "attempt 2, stdout:\nso far\n"


def test_logs_of_a_silent_run_print_a_message(
    db: Database, start_worker: StartWorker, url: str
) -> None:
    start_worker(APP)
    run_id = send_one(db, spec("silent"))
    await_end(db, run_id)

    assert byrote("runs", "logs", run_id, url=url).out == "Nothing was printed.\n"


@pytest.mark.needs("commands")
def test_an_app_may_consist_of_commands_alone(db: Database, start_worker: StartWorker) -> None:
    start_worker("tests.executors.commands.only_commands:app")
    [run] = await_end(db, send_one(db, spec("count", "x" * 1000)))

    assert run.result > 1000


@pytest.mark.needs("commands")
def test_nothing_of_a_command_outlives_a_worker_that_is_killed(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    worker = start_worker(APP)
    send_one(db, spec("linger", marks.path))
    pids = [int(word) for word in marks.await_words(2)]
    assert all(map(alive, pids))
    worker.signal(signal.SIGKILL)

    until(lambda: not any(map(alive, pids)))


@pytest.mark.needs("commands")
def test_a_stopping_worker_releases_a_long_command_uncharged(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    worker = start_worker(APP, grace="0s")
    run_id = send_one(db, spec("linger", marks.path))
    pids = [int(word) for word in marks.await_words(2)]

    assert worker.stop() == 0
    run = run_of(db, run_id)
    assert (run.status, run.attempts, run.charged) == (Status.READY, 1, 0)
    assert not any(map(alive, pids))


@pytest.mark.needs("commands")
def test_a_cancelled_command_stops(db: Database, start_worker: StartWorker, marks: Marks) -> None:
    start_worker(APP)
    run_id = send_one(db, spec("linger", marks.path))
    pids = [int(word) for word in marks.await_words(2)]
    fetch(db, queries.cancel([run_id]))
    [run] = await_end(db, run_id)

    assert run.status is Status.CANCELLED
    assert not any(map(alive, pids))

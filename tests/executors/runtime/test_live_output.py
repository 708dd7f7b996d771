# SPDX-License-Identifier: MIT
"""What an attempt has printed is not lost with its process, and can be seen while it runs."""

import os
import signal
from pathlib import Path

import pytest

from byrote.core.outcome import OUTPUT_MAX
from byrote.core.spec import Delivery, Spec, describe
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.rows import Printed
from byrote.store.runners.sync import fetch
from tests.cli.console import Process
from tests.support import count, run_of, until
from tests.worker.harness import (
    Database,
    StartWorker,
    await_end,
    await_row,
    await_status,
    send,
    send_one,
    spec,
)

APP = "tests.executors.runtime.printing:app"


def printed(db: Database, run_id: str) -> list[Printed]:
    return fetch(db, queries.outputs(run_id))


@pytest.mark.parametrize("how", ["exit", "kill", "hang"])
def test_the_output_of_a_hand_that_goes_down_is_stored(
    db: Database, start_worker: StartWorker, how: str
) -> None:
    start_worker(APP)
    timeout = "300ms" if how == "hang" else None
    [run] = await_end(db, send_one(db, spec("last_words", how, timeout=timeout)))

    assert run.status is Status.FAILED
    assert run.faults[0]["kind"] == ("timeout" if how == "hang" else "crashed")
    [output] = printed(db, run.id)
    assert (output.stdout, output.stderr) == ("so far\n", "trouble\n")
    assert (output.attempt, output.stdout_dropped, output.stderr_dropped) == (1, 0, 0)


def test_a_hand_killed_from_outside_leaves_its_output(
    db: Database, start_worker: StartWorker
) -> None:
    """Attempts that had printed by then: the run comes back, and each has its own output."""
    worker = start_worker(APP)
    run_id = send_one(db, spec("last_words", "hang"))
    await_status(db, run_id, Status.RUNNING)
    fetch(db, queries.watch(run_id))
    seen = "select 1 from byrote_watched where result_id = %s and stderr_size > 0"
    await_row(db, seen, run_id)
    os.kill(worker.hands[0], signal.SIGKILL)

    until(lambda: printed(db, run_id))
    assert printed(db, run_id)[0].stdout == "so far\n"


def test_of_much_output_the_end_is_kept_and_the_rest_counted(
    db: Database, start_worker: StartWorker
) -> None:
    start_worker(APP)
    size = 900 * 1024
    [run] = await_end(db, send_one(db, spec("last_words", "kill", size)))
    [short] = printed(db, run.id)
    [run] = await_end(db, send_one(db, spec("last_words", "kill", OUTPUT_MAX)))
    [long] = printed(db, run.id)

    assert (len(short.stdout), short.stdout_dropped) == (len("so far\n") + size + 7, 0)
    assert len(long.stdout) == OUTPUT_MAX
    assert long.stdout.endswith("xthe end")
    assert long.stdout_dropped == len("so far\n") + len("the end")


def test_attempts_that_shared_a_hand_have_each_their_own_output(
    db: Database, start_worker: StartWorker
) -> None:
    start_worker(APP, concurrency=4)
    quiet = [describe_last_words(word, fatal=False) for word in ("one", "two")]
    ids = send(db, *quiet, describe_last_words("three", fatal=True))
    until(lambda: all(printed(db, run_id) for run_id in ids))

    assert [printed(db, run_id)[0].stdout for run_id in ids] == ["one\n", "two\n", "three\n"]


def describe_last_words(word: str, *, fatal: bool) -> Spec:
    return describe("a_last_words", 1, [word], {"fatal": fatal}, delivery=Delivery())


@pytest.mark.parametrize("how", ["scribble", "rewind"])
def test_a_hand_that_spoils_the_shared_memory_harms_only_its_own_output(
    db: Database, start_worker: StartWorker, how: str
) -> None:
    start_worker(APP)
    [run] = await_end(db, send_one(db, spec("last_words", how)))
    [after] = await_end(db, send_one(db, spec("last_words", "kill")))

    assert run.status is Status.FAILED
    assert printed(db, after.id)[0].stdout == "so far\n"


def test_a_process_that_a_task_forks_does_not_write_into_its_hands_memory(
    db: Database, start_worker: StartWorker
) -> None:
    start_worker(APP)
    [run] = await_end(db, send_one(db, spec("a_child_speaks")))

    assert printed(db, run.id)[0].stdout == "parent\n"


@pytest.mark.parametrize(
    "task", ["chatter", pytest.param("shell_chatter", marks=pytest.mark.needs("commands"))]
)
@pytest.mark.parametrize("listen", [True, False], ids=["listening", "polling"])
def test_what_is_printed_is_shown_while_the_attempt_runs(
    db: Database, start_worker: StartWorker, *, url: str, tmp_path: Path, task: str, listen: bool
) -> None:
    start_worker(APP, listen=listen)
    heard = tmp_path / "heard"
    run_id = send_one(db, spec(task, str(heard)))
    with Process("runs", "logs", run_id, "--follow", url=url, folder=tmp_path) as follower:
        follower.wrote("first")
        assert run_of(db, run_id).status is Status.RUNNING
        heard.touch()
        assert follower.ended().code == 0

    assert follower.out == [
        "attempt 1, stdout:\n", "first ü\n", "second\n", "attempt 1, stderr:\n", "third\n",
    ]  # fmt: skip
    assert printed(db, run_id)[0].stdout == "first ü\nsecond\n"


def test_the_output_of_an_unwatched_run_is_not_sent(
    db: Database, start_worker: StartWorker, tmp_path: Path
) -> None:
    start_worker(APP)
    run_id = send_one(db, spec("chatter", str(tmp_path / "heard")))
    await_status(db, run_id, Status.RUNNING)
    (tmp_path / "heard").touch()
    await_end(db, run_id)

    assert count(db, "byrote_watched") == 0

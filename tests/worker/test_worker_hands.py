# SPDX-License-Identifier: MIT
"""Hands under a whole worker: what happens to them shows in the rows."""

from pathlib import Path

import pytest

from byrote import Retry
from byrote.core.state import Status
from tests.worker.harness import (
    Database,
    Marks,
    StartWorker,
    await_end,
    send,
    send_one,
    spec,
)

CRASHES = "tests.tasks.crashes:app"


@pytest.mark.parametrize(
    ("app", "words"),
    [
        ("tests.tasks.nowhere:app", "No module"),
        ("tests.tasks.crashes:nothing", "did you mean tests.tasks.crashes:app?"),
        ("tests.tasks.broken_on_purpose", "No module"),
    ],
)
def test_an_app_that_cannot_be_imported_ends_the_worker_with_the_reason(
    start_worker: StartWorker, app: str, words: str
) -> None:
    worker = start_worker(app, ready=False)

    assert worker.wait(5.0) == 2
    assert words in worker.text


@pytest.mark.parametrize("limit", [{"max_tasks": 20}, {"max_rss": "1MB"}], ids=str)
def test_recycling_hands_neither_loses_nor_repeats_anything(
    db: Database, start_worker: StartWorker, marks: Marks, limit: dict[str, object]
) -> None:
    worker = start_worker(CRASHES, hands=2, **limit)
    ids = send(db, *(spec("quick", marks.path, str(n)) for n in range(60)))
    ids += send(db, *(spec("a_quick", marks.path, str(n)) for n in range(60, 120)))
    runs = await_end(db, *ids)

    assert {(run.status, run.charged, run.losses) for run in runs} == {(Status.SUCCESSFUL, 1, 0)}
    assert sorted(marks.words, key=int) == [str(n) for n in range(120)]
    assert worker.await_log("HandEnded")["reason"] == "exited with code 0"


def test_a_hard_timeout_ends_a_stuck_task_only(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    start_worker(CRASHES)
    stuck = send_one(db, spec("stuck_in_c", marks.path, timeout="300ms"))
    marks.await_words(1)
    others = send(db, *(spec("quick", f"{marks.path}-others", str(n)) for n in range(10)))
    [run] = await_end(db, stuck)

    assert (run.status, run.faults[0]["kind"]) == (Status.FAILED, "timeout")
    assert run.faults[0]["message"] == "The attempt ran longer than its timeout of 0.3 s."
    assert {r.charged for r in await_end(db, *others)} == {1}


def test_a_slow_task_does_not_hold_up_the_quick_ones(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    start_worker(CRASHES, hands=2)
    warm = send(db, *(spec("quick", f"{marks.path}-warm", str(n)) for n in range(100)))
    await_end(db, *warm)
    slow = send_one(db, spec("slow", marks.path, 30))
    quick = send(db, *(spec("quick", f"{marks.path}-quick", str(n)) for n in range(50)))
    runs = await_end(db, *quick, within=3.0)

    assert {(run.status, run.charged) for run in runs} == {(Status.SUCCESSFUL, 1)}
    assert len(Marks(Path(f"{marks.path}-quick")).words) == 50
    assert db.execute(
        "select status from byrote_runs where result_id = %s", (slow,)
    ).fetchone() == ("RUNNING",)


def test_a_crash_that_does_not_repeat_is_retried_like_any_failure(
    db: Database, start_worker: StartWorker
) -> None:
    start_worker(CRASHES)
    [run] = await_end(db, send_one(db, spec("die_once", retry=Retry(attempts=2, delay_first=0))))

    assert (run.status, run.result, run.charged) == (Status.SUCCESSFUL, 2, 2)
    assert run.faults[0]["kind"] == "crashed"

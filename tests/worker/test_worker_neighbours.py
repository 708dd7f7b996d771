# SPDX-License-Identifier: MIT
"""Sync and async tasks of one worker: neither ends, delays or repeats the other."""

from pathlib import Path

import pytest

from byrote.core.spec import Spec
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.worker.harness import (
    Database,
    Marks,
    StartWorker,
    await_end,
    await_status,
    send,
    send_one,
    spec,
)

ONE_OR_TWO = pytest.mark.parametrize("hands", [1, 2])
NEVER = "/nowhere/gate"


class Held:
    """Specs of runs of one task that leave a mark each and wait for a common gate."""

    def __init__(self, task: str, folder: Path, count: int) -> None:
        self.gate = folder / f"{task}-gate"
        self.marks = [Marks(folder / f"{task}-{n}") for n in range(count)]
        self.specs: list[Spec] = [spec(task, mark.path, str(self.gate)) for mark in self.marks]

    def await_begun(self, count: int) -> None:
        for mark in self.marks[:count]:
            mark.await_words(1)

    @property
    def executions(self) -> list[int]:
        """How many times each run was executed."""
        return [len(mark.words) for mark in self.marks]


@ONE_OR_TWO
def test_a_cancel_and_a_timeout_of_sync_tasks_repeat_no_async_task(
    db: Database, start_worker: StartWorker, marks: Marks, *, tmp_path: Path, hands: int
) -> None:
    start_worker(hands=hands)
    held = Held("a_hold", tmp_path, 4)
    neighbours = send(db, *held.specs)
    held.await_begun(4)
    cancelled = send_one(db, spec("hold", marks.path, NEVER))
    marks.await_words(1)
    fetch(db, queries.cancel([cancelled]))
    await_status(db, cancelled, Status.CANCELLED)
    late = send_one(db, spec("hold", marks.path, NEVER, timeout="200ms"))
    await_status(db, late, Status.FAILED)
    held.gate.touch()
    runs = await_end(db, *neighbours)

    assert held.executions == [1, 1, 1, 1]
    assert {(run.status, run.attempts) for run in runs} == {(Status.SUCCESSFUL, 1)}


@ONE_OR_TWO
def test_async_tasks_do_not_wait_for_a_queue_of_sync_ones(
    db: Database, start_worker: StartWorker, *, tmp_path: Path, hands: int
) -> None:
    start_worker(hands=hands)
    held = Held("hold", tmp_path, 6)
    waiting = send(db, *held.specs)
    held.await_begun(hands)

    quick = await_end(db, *send(db, *(spec("a_echo", n) for n in range(5))))
    assert [run.result for run in quick] == [0, 1, 2, 3, 4]
    held.gate.touch()
    await_end(db, *waiting)


@ONE_OR_TWO
def test_sync_tasks_do_not_wait_for_a_queue_of_async_ones(
    db: Database, start_worker: StartWorker, *, tmp_path: Path, hands: int
) -> None:
    start_worker(hands=hands, concurrency=4)
    held = Held("a_hold", tmp_path, 20)
    waiting = send(db, *held.specs)
    held.await_begun(4)

    quick = await_end(db, *send(db, *(spec("echo", n) for n in range(5))))
    assert [run.result for run in quick] == [0, 1, 2, 3, 4]
    held.gate.touch()
    await_end(db, *waiting)


def test_both_kinds_reach_their_limits_at_the_same_time(
    db: Database, start_worker: StartWorker, *, tmp_path: Path
) -> None:
    """Two hands execute two sync tasks, and ten async ones in the hand that is left."""
    worker = start_worker(hands=2, concurrency=10)
    sync, not_sync = Held("hold", tmp_path, 2), Held("a_hold", tmp_path, 10)
    ids = send(db, *sync.specs)
    sync.await_begun(2)
    ids += send(db, *not_sync.specs)
    not_sync.await_begun(10)

    assert len({word for mark in not_sync.marks for word in mark.words}) == 1
    assert len(worker.hands) == 3
    for held in (sync, not_sync):
        held.gate.touch()
    await_end(db, *ids)

# SPDX-License-Identifier: MIT
"""A transaction that locks a run's row, such as select_for_update(), and stays open."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from byrote.core.state import Status
from byrote.store.connect import DatabaseAddress
from tests.support import run_of, until
from tests.worker.harness import (
    Database,
    Marks,
    StartWorker,
    await_end,
    await_row,
    history,
    send,
    send_one,
    spec,
)


@contextmanager
def locked(address: DatabaseAddress, run_id: str) -> Iterator[None]:
    with address.open("somebody") as other, other.transaction():
        other.execute("select 1 from byrote_task_runs where result_id = %s for update", (run_id,))
        yield


def gate_of(marks: Marks, name: str = "gate") -> Path:
    return Path(f"{marks.path}-{name}")


def test_a_locked_row_costs_its_worker_nothing_else(
    db: Database, address: DatabaseAddress, start_worker: StartWorker, marks: Marks
) -> None:
    """Leases are renewed and ends are written, for longer than a lease lasts."""
    start_worker(lease="1s")
    gate, late_gate = gate_of(marks), gate_of(marks, "late")
    stuck, *healthy = send(db, *[spec("a_hold", marks.path, str(gate)) for _ in range(4)])
    late = send_one(db, spec("a_hold", marks.path, str(late_gate)))
    marks.await_words(5)
    with locked(address, stuck):
        renewed = """select 1 from byrote_event_log where result_id = %s and kind = 'Renewed'
                     and at > (select max(leased_until) from byrote_task_runs where result_id = %s)
                     + interval '1 second'"""
        await_row(db, renewed, late, stuck)
        gate.touch()
        ended = await_end(db, *healthy, within=10)
        late_gate.touch()
        ended += await_end(db, late, within=10)
        assert run_of(db, stuck).status is Status.RUNNING

    assert {(run.status, run.attempts, run.losses) for run in ended} == {(Status.SUCCESSFUL, 1, 0)}
    # Its own lease could not be renewed: it is executed again, and one success is believed.
    [again] = await_end(db, stuck)
    assert (again.attempts, again.charged, again.losses) == (2, 1, 1)
    assert [kind for kind, *_ in history(db, stuck)].count("Succeeded") == 1


def test_the_end_of_a_locked_run_is_written_as_soon_as_it_is_free(
    db: Database, address: DatabaseAddress, start_worker: StartWorker, marks: Marks
) -> None:
    worker = start_worker(lease="30s")
    gate = gate_of(marks)
    stuck = send_one(db, spec("a_hold", marks.path, str(gate)))
    marks.await_words(1)
    with locked(address, stuck):
        gate.touch()
        for _ in range(3):
            await_end(db, send_one(db, spec("echo")), within=10)
    [run] = await_end(db, stuck, within=5)

    assert (run.status, run.attempts, run.losses) == (Status.SUCCESSFUL, 1, 0)
    assert not worker.logged("LeaseRefused")


def test_the_lease_of_an_attempt_that_has_ended_is_renewed_until_its_end_is_written(
    db: Database, address: DatabaseAddress, start_worker: StartWorker
) -> None:
    """The finish waits for something else than the run's row, for longer than a lease lasts."""
    worker = start_worker(lease="2s")
    with address.open("somebody") as other, other.transaction():
        other.execute("lock table byrote_provenance in exclusive mode")
        run_id = send_one(db, spec("echo", 1))
        renewed = """select 1 from byrote_event_log where result_id = %s and kind = 'Renewed'
                     having max(at) > (select min(at) from byrote_event_log where result_id = %s
                                       and kind = 'Claimed') + interval '3 seconds'"""
        await_row(db, renewed, run_id, run_id)
    [run] = await_end(db, run_id, within=10)

    assert (run.status, run.attempts, run.losses) == (Status.SUCCESSFUL, 1, 0)
    assert not worker.logged("LeaseRefused")


@pytest.mark.parametrize("drain", [False, True])
def test_no_stop_or_drain_waits_for_a_locked_run_whose_lease_is_over(
    db: Database, address: DatabaseAddress, start_worker: StartWorker, marks: Marks, *, drain: bool
) -> None:
    """By then its end would not be accepted, however long the grace is."""
    gate = gate_of(marks)
    stuck = send_one(db, spec("a_hold", marks.path, str(gate)))
    worker = start_worker(lease="2s", grace="60s", drain=drain, ready=not drain)
    marks.await_words(1)
    with locked(address, stuck):
        gate.touch()
        if not drain:
            assert worker.stop(within=30) == 0
        worker.await_log("LeaseRefused", run=stuck)
        assert len(worker.logged("LeaseRefused")) == 1
    if drain:
        assert worker.wait(30) == 0  # It takes the run back, and executes it again.
        assert run_of(db, stuck).status is Status.SUCCESSFUL


def test_a_worker_stops_although_a_run_of_its_is_locked(
    db: Database, address: DatabaseAddress, start_worker: StartWorker, marks: Marks
) -> None:
    worker = start_worker(lease="30s", grace="1s")
    gate = gate_of(marks)
    stuck = send_one(db, spec("a_hold", marks.path, str(gate)))
    marks.await_words(1)
    with locked(address, stuck):
        gate.touch()
        assert worker.stop(within=10) == 0

    assert run_of(db, stuck).status is Status.RUNNING


def test_a_step_of_a_locked_run_waits_alone(
    db: Database, address: DatabaseAddress, start_worker: StartWorker, marks: Marks
) -> None:
    start_worker("tests.tasks.steps:app", lease="30s")
    gate = str(gate_of(marks))
    stuck = send_one(db, spec("behind_gate", marks.path, gate))
    marks.await_words(1)
    with locked(address, stuck):
        Path(gate).touch()
        until(lambda: "asking" in marks.words)
        [other] = await_end(db, send_one(db, spec("behind_gate", marks.path, gate)), within=10)
        assert run_of(db, stuck).status is Status.RUNNING
    [run] = await_end(db, stuck, within=10)

    assert (other.status, run.status, run.attempts) == (Status.SUCCESSFUL, Status.SUCCESSFUL, 1)

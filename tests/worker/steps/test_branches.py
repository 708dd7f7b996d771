# SPDX-License-Identifier: MIT
"""Steps in concurrent branches of async tasks: retried and replayed in any interleaving."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from byrote import App, Retry, Same, Status
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.tasks import steps as defined
from tests.worker.harness import (
    EXECUTORS,
    Database,
    Marks,
    StartWorker,
    WorkerProcess,
    await_end,
    await_row,
    send_one,
    spec,
)

STEPS = "tests.tasks.steps:app"
NOW = Retry(attempts=3, backoff="fixed", delay_first="0s")
LATER = Retry(attempts=3, backoff="fixed", delay_first="1h")
DELAYS = st.lists(
    st.lists(st.sampled_from([0.0, 0.001, 0.003]), min_size=3, max_size=3), min_size=3, max_size=3
)


@pytest.fixture(params=EXECUTORS)
def worker(request: pytest.FixtureRequest, start_worker: StartWorker) -> WorkerProcess:
    """A worker of each executor that can do steps."""
    return start_worker(STEPS, executor=request.param)


@pytest.fixture
def here(url: str) -> Iterator[App]:
    app = App(url)
    app.registry = defined.app.registry
    yield app
    app.close()


def places(db: Database, run_id: str) -> dict[str | None, str]:
    return {row.place: row.name for row in fetch(db, queries.steps([run_id]))}


def test_branches_of_several_steps_are_retried_after_their_last_step_and_replayed(
    db: Database, worker: WorkerProcess, here: App, marks: Marks
) -> None:
    """Steps of the same names: each branch gets its own results back, none is called twice."""
    first, later = [[0.02, 0.02], [0.0, 0.0], [0.01, 0.0]], [[0, 0], [0.02, 0], [0, 0.01]]
    [run] = await_end(db, send_one(db, spec("branches", marks.path, first, later, retry=NOW)))

    assert (run.status, run.attempts) == (Status.SUCCESSFUL, 2)
    assert [[step[:2] for step in branch] for branch in run.result[1]] == [
        [[n, 0], [n, 1]] for n in range(3)
    ]
    assert sorted(marks.words) == sorted(
        ["before", "after", *(f"{n}:{m}" for n in range(3) for m in range(2))]
    )
    assert places(db, run.id)["chain.2/1"] == "work"
    assert isinstance(here.replay(run.id), Same)


def test_a_branch_without_a_record_does_not_take_anothers(
    db: Database, worker: WorkerProcess, here: App, marks: Marks
) -> None:
    [run] = await_end(db, send_one(db, spec("broken_branches", marks.path, retry=NOW)))

    assert run.result == [0, 11, 22]
    assert len(marks.words) == len(set(marks.words)) == 6
    assert isinstance(here.replay(run.id), Same)


def test_groups_sleeps_and_asyncio_tasks_of_libraries_do_not_move_a_step(
    db: Database, worker: WorkerProcess, here: App, marks: Marks
) -> None:
    [run] = await_end(db, send_one(db, spec("grouped", marks.path, retry=NOW)))

    assert run.result == [[0, 1, 2], "awake"]
    assert sorted(marks.words) == ["awake", "leaf:0", "leaf:1", "leaf:2"]
    assert places(db, run.id)["stem.1>leaf.3/1"] == "leaf"
    assert isinstance(here.replay(run.id), Same)


def test_branches_that_swap_their_work_are_found_out(
    db: Database, worker: WorkerProcess, marks: Marks
) -> None:
    [run] = await_end(db, send_one(db, spec("swapped", marks.path, retry=NOW)))

    assert (run.status, run.attempts) == (Status.FAILED, 2)
    assert run.faults[-1]["kind"] == "nondeterminism"
    assert "of branch worker." in run.faults[-1]["message"]
    assert "with other arguments" in run.faults[-1]["message"]


def test_a_retried_step_with_other_arguments_keeps_its_result(
    db: Database, worker: WorkerProcess, marks: Marks
) -> None:
    [run] = await_end(db, send_one(db, spec("other_arguments", marks.path, retry=NOW)))

    assert (run.result, marks.words) == (1, ["one"])


def test_a_ledger_without_places_still_answers(
    db: Database, worker: WorkerProcess, marks: Marks
) -> None:
    """As written before branches were distinguished: by number, else by name."""
    run_id = send_one(db, spec("branches", marks.path, [[0], []], [[0], []], retry=LATER))
    await_row(db, "select 1 from byrote_task_runs where attempts = 1 and status = 'WAITING'")
    db.execute("update byrote_steps set place = null")
    fetch(db, queries.retry([run_id]))
    [run] = await_end(db, run_id)

    assert (run.status, run.attempts) == (Status.SUCCESSFUL, 2)
    assert sorted(marks.words) == ["0:0", "after", "before"]


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(first=DELAYS, later=DELAYS)
def test_any_interleaving_is_retried_and_replayed(
    db: Database, started: WorkerProcess, here: App, marks: Marks, *, first: Any, later: Any
) -> None:
    before = len(marks.words)
    [run] = await_end(db, send_one(db, spec("branches", marks.path, first, later, retry=NOW)))

    assert run.status is Status.SUCCESSFUL, run.faults
    assert [step[:2] for branch in run.result[1] for step in branch] == [
        [n, m] for n in range(3) for m in range(3)
    ]
    assert len(marks.words) == before + 11
    assert isinstance(here.replay(run.id), Same)


@pytest.fixture
def started(start_worker: StartWorker) -> WorkerProcess:
    return start_worker(STEPS, executor="inline")

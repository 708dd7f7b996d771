# SPDX-License-Identifier: MIT
from datetime import timedelta

import pytest

from byrote.core.policy import Retry
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import (
    Db,
    claim,
    count,
    enqueue,
    finish,
    history,
    row_of,
    run_of,
    success,
    verdict,
)


def test_a_dead_run_comes_back_with_a_fresh_budget_and_all_its_history(
    db: Db, clock: FakeClock
) -> None:
    [run_id] = enqueue(db, retry=Retry(attempts=1), labels={"a": "b"}, priority=4)
    finish(db, [verdict(claim(db, worker="w1")[0], "F")])
    dead = run_of(db, run_id)
    clock.advance(hours=2)

    assert fetch(db, queries.retry([run_id])) == [run_id]
    run = run_of(db, run_id)
    assert (run.status, run.attempts, run.charged, run.losses) == (Status.READY, 1, 0, 0)
    assert (run.faults, run.worker_ids, run.labels) == (dead.faults, ["w1"], {"a": "b"})
    assert (run.spec_json, run.retry_json) == (dead.spec_json, dead.retry_json)
    assert (run.run_after, run.finished_at, run.leased_by) == (clock.now, None, None)
    assert count(db, "byrote_dead") == 0
    assert history(db, run_id) == ["Enqueued", "Claimed", "Failed", "Revived"]


def test_a_revived_run_goes_on_counting_attempts(db: Db) -> None:
    [run_id] = enqueue(db)
    finish(db, [verdict(claim(db)[0], "F")])
    fetch(db, queries.retry([run_id]))
    [lease] = claim(db)

    assert (lease.attempt, lease.charged) == (2, 0)
    assert finish(db, [success(lease, "1")]) == [run_id]


def test_a_revived_run_stands_where_a_new_one_of_its_priority_would(
    db: Db, clock: FakeClock
) -> None:
    [dead] = enqueue(db, priority=1)
    finish(db, [verdict(claim(db)[0], "F")])
    clock.advance(hours=1)
    [before] = enqueue(db, priority=1)
    clock.advance(seconds=1)
    fetch(db, queries.retry([dead]))
    clock.advance(seconds=1)
    [after] = enqueue(db, priority=1)

    assert [lease.id for lease in claim(db, 3)] == [before, dead, after]


@pytest.mark.parametrize("how", ["due", "retry", "snooze"])
def test_a_waiting_run_stops_waiting(db: Db, clock: FakeClock, how: str) -> None:
    if how == "due":
        [run_id] = enqueue(db, run_after=timedelta(days=1))
    else:
        [run_id] = enqueue(db, retry=Retry(attempts=3))
        letter = {"retry": "R", "snooze": "Z"}[how]
        finish(db, [verdict(claim(db)[0], letter, delay_us=10**10)])
    assert run_of(db, run_id).wait_reason == how

    assert fetch(db, queries.retry([run_id])) == [run_id]
    assert run_of(db, run_id).run_after == clock.now
    assert [lease.id for lease in claim(db)] == [run_id]


@pytest.mark.parametrize("letter", ["", "running", "S", "C"])
def test_what_is_ready_running_or_well_finished_is_left_alone(db: Db, letter: str) -> None:
    [run_id] = enqueue(db)
    leases = claim(db) if letter else []
    if letter in {"S", "C"}:
        finish(db, [verdict(leases[0], letter)])
    before = row_of(db, run_id)

    assert fetch(db, queries.retry([run_id])) == []
    assert row_of(db, run_id) == before

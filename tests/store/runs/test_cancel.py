# SPDX-License-Identifier: MIT
from datetime import timedelta

import pytest

from byrote.assembly.identity import new_id
from byrote.core.policy import Retry
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import Db, claim, enqueue, finish, history, row_of, run_of, success, verdict


@pytest.mark.parametrize("run_after", [None, timedelta(hours=1)])
def test_a_run_that_is_not_running_is_cancelled_at_once(
    db: Db, clock: FakeClock, run_after: timedelta | None
) -> None:
    [run_id] = enqueue(db, run_after=run_after)
    [settlement] = fetch(db, queries.cancel([run_id]))
    run = run_of(db, run_id)

    assert (settlement.id, settlement.status) == (run_id, "CANCELLED")
    assert (run.status, run.wait_reason, run.finished_at) == (Status.CANCELLED, None, clock.now)
    assert history(db, run_id) == ["Enqueued", "Cancelled"]
    assert claim(db) == []


def test_a_running_run_is_asked_to_stop_and_its_worker_is_notified(
    db: Db, clock: FakeClock, address: DatabaseAddress
) -> None:
    [run_id] = enqueue(db)
    [lease] = claim(db, worker="busy")
    with address.open("listener") as listener:
        listener.execute("listen byrote_cancel")
        [settlement] = fetch(db, queries.cancel([run_id]))
        assert [n.payload for n in listener.notifies(timeout=5, stop_after=1)] == ["busy"]

    assert settlement.status == "RUNNING"
    assert run_of(db, run_id).cancel_requested_at == clock.now
    assert history(db, run_id) == ["Enqueued", "Claimed", "CancelRequested"]
    assert finish(db, [verdict(lease, "C")]) == [run_id]
    assert run_of(db, run_id).status is Status.CANCELLED


def test_a_run_that_succeeds_before_it_receives_the_cancel_has_succeeded(db: Db) -> None:
    [run_id] = enqueue(db)
    [lease] = claim(db)
    fetch(db, queries.cancel([run_id]))

    assert finish(db, [success(lease, "1")]) == [run_id]
    assert run_of(db, run_id).status is Status.SUCCESSFUL


@pytest.mark.parametrize("letter", ["R", "Z", "L", "X"])
@pytest.mark.parametrize("delay_us", [0, 1_000_000])
def test_a_cancelled_run_is_not_tried_again(db: Db, letter: str, delay_us: int) -> None:
    """Whatever the outcome of its last attempt, the cancellation was requested."""
    [run_id] = enqueue(db, retry=Retry(attempts=5))
    [lease] = claim(db)
    fetch(db, queries.cancel([run_id]))
    finish(db, [verdict(lease, letter, delay_us=delay_us)])

    assert run_of(db, run_id).status is Status.CANCELLED
    assert claim(db) == []


@pytest.mark.parametrize("letter", ["S", "F", "C"])
def test_a_finished_run_cannot_be_cancelled(db: Db, letter: str) -> None:
    [run_id] = enqueue(db)
    finish(db, [verdict(claim(db)[0], letter)])
    before = row_of(db, run_id)

    assert fetch(db, queries.cancel([run_id])) == []
    assert row_of(db, run_id) == before


def test_an_unknown_run_is_not_cancelled(db: Db) -> None:
    assert fetch(db, queries.cancel([new_id()])) == []


def test_many_runs_are_cancelled_in_one_statement(db: Db) -> None:
    ids = enqueue(db, 10)
    claim(db, 4)
    settled = [row.status for row in fetch(db, queries.cancel(ids))]

    assert (settled.count("RUNNING"), settled.count("CANCELLED")) == (4, 6)

# SPDX-License-Identifier: MIT
from datetime import timedelta

import pytest

from byrote.core.state import Status
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import Db, claim, enqueue, history, run_of


def test_a_run_becomes_ready_when_it_is_due_and_not_before(db: Db, clock: FakeClock) -> None:
    """P6: to the microsecond, by the database's clock."""
    [run_id] = enqueue(db, run_after=timedelta(seconds=10))
    clock.advance(seconds=9, microseconds=999_999)
    assert fetch(db, queries.promote())[0].promoted == 0
    clock.advance(microseconds=1)

    assert fetch(db, queries.promote())[0].promoted == 1
    assert run_of(db, run_id).status is Status.READY
    assert run_of(db, run_id).wait_reason is None
    assert history(db, run_id) == ["Enqueued", "Promoted"]


def test_promote_returns_when_the_next_run_is_due(db: Db, clock: FakeClock) -> None:
    assert fetch(db, queries.promote())[0].next_due_s is None
    enqueue(db, run_after=timedelta(seconds=30))
    enqueue(db, run_after=timedelta(seconds=7.5))

    assert fetch(db, queries.promote())[0].next_due_s == pytest.approx(7.5)


def test_promote_takes_the_longest_due_first_and_no_more_than_asked(
    db: Db, clock: FakeClock
) -> None:
    waits = [timedelta(seconds=s) for s in (5, 1, 4, 2, 3)]
    ids = {wait.seconds: enqueue(db, run_after=wait)[0] for wait in waits}
    clock.advance(minutes=1)

    assert fetch(db, queries.promote(limit=2))[0].promoted == 2
    ready = {s for s, run_id in ids.items() if run_of(db, run_id).status is Status.READY}
    assert ready == {1, 2}


def test_promote_skips_locked_runs(db: Db, clock: FakeClock, address: DatabaseAddress) -> None:
    [held, free] = enqueue(db, 2, run_after=timedelta(seconds=1))
    clock.advance(seconds=2)
    with address.open("other") as other, other.transaction():
        other.execute("select 1 from byrote_runs where result_id = %s", (held,))
        other.execute("select 1 from byrote_task_runs where result_id = %s for update", (held,))

        assert fetch(db, queries.promote())[0].promoted == 1
        assert run_of(db, free).status is Status.READY


def test_a_promoted_run_keeps_the_age_it_waited_with(db: Db, clock: FakeClock) -> None:
    """Its place in the queue is where its due time puts it, not where its promotion does."""
    [later] = enqueue(db, run_after=timedelta(seconds=5))
    clock.advance(seconds=10)
    [fresh] = enqueue(db)
    fetch(db, queries.promote())

    assert [lease.id for lease in claim(db, 2)] == [later, fresh]

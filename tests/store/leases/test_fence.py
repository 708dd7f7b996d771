# SPDX-License-Identifier: MIT
from datetime import timedelta

from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import Db, claim, enqueue, finish, run_of, success


def test_a_lost_lease_cannot_finish_the_run(db: Db, clock: FakeClock) -> None:
    """A worker that slept through its lease learns it lost, and changes nothing."""
    [run_id] = enqueue(db, 1)
    [late] = claim(db, worker="slow")
    clock.advance(minutes=5)
    fetch(db, queries.sweep())
    [current] = claim(db, worker="quick")

    assert finish(db, [success(late, "1")]) == []
    assert run_of(db, run_id).leased_by == "quick"
    assert finish(db, [success(current, "2")]) == [run_id]
    assert run_of(db, run_id).result == 2


def test_an_expired_lease_is_refused_even_if_no_other_worker_has_the_run(
    db: Db, clock: FakeClock
) -> None:
    enqueue(db, 1)
    [late] = claim(db)
    clock.advance(seconds=31)

    assert finish(db, [success(late, "1")]) == []
    assert fetch(db, queries.renew([late], lease_for=timedelta(seconds=30))) == []


def test_the_same_worker_cannot_finish_a_new_attempt_with_an_old_token(
    db: Db, clock: FakeClock
) -> None:
    """The fence is a random token per claim, not the worker's name."""
    [run_id] = enqueue(db, 1)
    [first] = claim(db, worker="w")
    clock.advance(minutes=1)
    fetch(db, queries.sweep())
    [second] = claim(db, worker="w")

    assert finish(db, [success(first, '"old"')]) == []
    assert finish(db, [success(second, '"new"')]) == [run_id]

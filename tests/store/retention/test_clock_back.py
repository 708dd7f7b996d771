# SPDX-License-Identifier: MIT
"""The server's clock is set back by a minute: an NTP step, a resumed machine, a failover."""

from datetime import timedelta

from byrote.core.policy import Retry
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.store.verify import verify
from byrote.testing import FakeClock
from tests.store.queues.test_schedules import beat, keep, known, made
from tests.store.steps.test_step import line, note
from tests.support import (
    LEASE,
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

BACK = {"minutes": -1}


def test_a_lease_has_one_holder_whatever_the_clock_does(db: Db, clock: FakeClock) -> None:
    """It lasts for longer, by the length of the step, and is given to no other meanwhile."""
    enqueue(db)
    [first] = claim(db, worker="first")
    clock.advance(**BACK)
    assert fetch(db, queries.sweep()) == []
    assert claim(db, worker="second") == []
    clock.advance(seconds=LEASE.total_seconds() + 60)
    assert len(fetch(db, queries.sweep())) == 1
    [second] = claim(db, worker="second")

    assert finish(db, [success(first)]) == []
    assert finish(db, [success(second)]) == [second.id]


def test_a_renewal_after_the_step_counts_from_the_new_time(db: Db, clock: FakeClock) -> None:
    """A worker that lives has its lease put right by the next renewal; one that dies soon after
    is noticed as soon as ever."""
    enqueue(db)
    [lease] = claim(db)
    clock.advance(**BACK)
    fetch(db, queries.renew([lease], lease_for=LEASE))

    assert run_of(db, lease.id).leased_until == clock.now + LEASE
    clock.advance(seconds=LEASE.total_seconds())
    assert [row.id for row in fetch(db, queries.sweep())] == [lease.id]


def test_what_is_done_after_the_step_is_in_the_history_in_order(
    db: Db, clock: FakeClock, address: DatabaseAddress
) -> None:
    [run_id] = enqueue(db, retry=Retry(attempts=3))
    clock.advance(**BACK)
    [lease] = claim(db)
    finish(db, [verdict(lease, "R", delay_us=0)])
    clock.advance(**BACK)
    [lease] = claim(db)
    finish(db, [success(lease)])
    kinds = ["Enqueued", "Claimed", "Retried", "Claimed", "Succeeded"]
    row = row_of(db, run_id)

    assert row["finished_at"] < row["enqueued_at"]
    assert history(db, run_id) == kinds
    assert [entry.kind for entry in fetch(db, queries.run_history(run_id))] == kinds
    assert verify(address).sound


def test_a_step_of_an_attempt_is_sound_although_the_clock_went_back(
    db: Db, clock: FakeClock, address: DatabaseAddress
) -> None:
    enqueue(db)
    [lease] = claim(db)
    clock.advance(**BACK)
    note(db, line(lease, 1, "a"))
    clock.advance(seconds=1)
    finish(db, [success(lease)])

    assert verify(address).sound


def test_a_run_is_never_younger_than_new(db: Db, clock: FakeClock) -> None:
    """Also when the answer to the claim was lost, and for a remote worker's finish."""
    enqueue(db)
    clock.advance(**BACK)
    [lease] = claim(db)
    again = queries.claimed(worker="w", token=lease.token, deadline=0.0, claimed_at=0.0)
    [asked], [held] = fetch(db, again), fetch(db, queries.leased_runs([(lease.id, lease.token)]))

    assert (lease.age_us, asked.age_us, held.age_us) == (0, 0, 0)


def test_a_waiting_run_is_due_by_the_databases_clock(db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db, run_after=timedelta(seconds=30))
    clock.advance(**BACK)
    clock.advance(seconds=89)
    assert fetch(db, queries.promote(limit=10))[0].promoted == 0
    clock.advance(seconds=1)

    assert fetch(db, queries.promote(limit=10))[0].promoted == 1
    assert run_of(db, run_id).status is Status.READY


def test_a_tick_is_not_repeated(db: Db, clock: FakeClock, address: DatabaseAddress) -> None:
    keep(db, made(every="10s"))
    clock.advance(seconds=10)
    [ticked] = beat(db)
    following = known(db).next_at
    clock.advance(**BACK)
    assert beat(db) == []
    clock.advance(seconds=69)
    assert beat(db) == []
    clock.advance(seconds=1)

    assert (known(db).next_at, following) == (following, ticked.at + timedelta(seconds=10))
    finish(db, [success(lease) for lease in claim(db, 10)])
    assert [tick.at for tick in beat(db)] == [following]
    assert count(db, "byrote_runs") == 2
    assert fetch(db, queries.schedules(due=True)) == []
    assert verify(address).sound


def test_a_run_that_is_released_after_the_step_was_ready_then(db: Db, clock: FakeClock) -> None:
    """The time machine finds moves that the log has before the claim they follow."""
    enqueue(db)
    [lease] = claim(db)
    clock.advance(**BACK)
    finish(db, [verdict(lease, "L")])
    clock.advance(minutes=3)
    [then] = fetch(db, queries.runs_at(clock.now))

    assert (then.status, then.runs) == ("READY", 1)

# SPDX-License-Identifier: MIT
from datetime import timedelta

from byrote.core.policy import LOSSES_MAX, Retry
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import (
    LEASE,
    Db,
    claim,
    count,
    enqueue,
    finish,
    history,
    register,
    row_of,
    run_of,
    verdict,
)


def lose(db: Db, clock: FakeClock) -> None:
    """A worker claims one run and vanishes."""
    [_] = claim(db)
    clock.advance(minutes=1)
    fetch(db, queries.sweep())


def test_an_expired_lease_makes_the_run_ready_again_uncharged(db: Db, clock: FakeClock) -> None:
    """P1, P5: nothing is lost, and it costs nothing of the budget."""
    [run_id] = enqueue(db)
    claim(db, worker="gone")
    clock.advance(seconds=30)
    [swept] = fetch(db, queries.sweep())
    run = run_of(db, run_id)

    assert (swept.id, swept.status, swept.attempt, swept.worker) == (run_id, "READY", 1, "gone")
    assert (run.status, run.charged, run.losses) == (Status.READY, 0, 1)
    [fault] = run.faults
    assert (fault["kind"], fault["worker"], fault["attempt"]) == ("lost", "gone", 1)
    assert history(db, run_id) == ["Enqueued", "Claimed", "Lost"]


def test_a_lease_that_has_not_run_out_is_left_alone(db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db)
    claim(db)
    before = row_of(db, run_id)
    clock.advance(seconds=29, microseconds=999_999)

    assert fetch(db, queries.sweep()) == []
    assert row_of(db, run_id) == before


def test_a_run_lost_too_often_ends_among_the_dead(db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db)
    for _ in range(LOSSES_MAX - 1):
        lose(db, clock)
    assert run_of(db, run_id).status is Status.READY
    lose(db, clock)
    run = run_of(db, run_id)

    assert (run.status, run.attempts, run.losses) == (Status.FAILED, LOSSES_MAX, LOSSES_MAX)
    assert count(db, "byrote_dead") == 1
    assert len(run.faults) == LOSSES_MAX
    assert run.finished_at == clock.now
    assert history(db, run_id)[-1] == "Failed"


def test_losses_do_not_use_up_the_budget_of_attempts(db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db, retry=Retry(attempts=2))
    for _ in range(4):
        lose(db, clock)
    [lease] = claim(db)

    assert (lease.attempt, lease.charged, lease.max_attempts) == (5, 0, 2)
    assert run_of(db, run_id).status is Status.RUNNING


def test_errors_of_a_run_that_dies_of_losses_are_bounded(db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db, retry=Retry(attempts=1_000))
    for _ in range(50):
        finish(db, [verdict(claim(db)[0], "R")])
    for _ in range(LOSSES_MAX):
        lose(db, clock)

    assert run_of(db, run_id).status is Status.FAILED
    assert len(run_of(db, run_id).faults) == 50


def test_a_lost_run_with_a_cancel_request_is_cancelled(db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db)
    claim(db)
    fetch(db, queries.cancel([run_id]))
    clock.advance(minutes=1)
    [swept] = fetch(db, queries.sweep())

    assert swept.status == "CANCELLED"
    assert run_of(db, run_id).finished_at == clock.now
    assert history(db, run_id) == ["Enqueued", "Claimed", "CancelRequested", "Cancelled"]


def test_a_sweep_takes_no_more_than_its_limit_longest_expired_first(
    db: Db, clock: FakeClock
) -> None:
    enqueue(db, 3)
    leases = [claim(db, lease_for=timedelta(seconds=10 - n))[0] for n in range(3)]
    clock.advance(minutes=1)

    assert [swept.id for swept in fetch(db, queries.sweep(limit=1))] == [leases[2].id]
    assert len(fetch(db, queries.sweep(limit=10))) == 2


def test_a_sweep_passes_by_a_run_that_is_being_finished(
    db: Db, clock: FakeClock, address: DatabaseAddress
) -> None:
    enqueue(db, 2)
    [held, free] = claim(db, 2)
    clock.advance(minutes=1)
    with address.open("other") as other, other.transaction():
        other.execute("select 1 from byrote_task_runs where result_id = %s for update", (held.id,))

        assert [swept.id for swept in fetch(db, queries.sweep())] == [free.id]


def test_a_swept_run_wakes_an_idle_worker(
    db: Db, clock: FakeClock, address: DatabaseAddress
) -> None:
    register(db, "idler", "default")
    fetch(db, queries.idle(worker="idler", idle=True))
    with address.open("listener") as listener:
        enqueue(db)
        claim(db)
        clock.advance(minutes=1)
        listener.execute("listen byrote_ready")
        fetch(db, queries.sweep())

        assert [n.payload for n in listener.notifies(timeout=5, stop_after=1)] == ["default"]


def test_after_a_sweep_the_run_is_claimed_with_a_new_token(db: Db, clock: FakeClock) -> None:
    """P2: at no instant do two leases hold."""
    enqueue(db)
    [old] = claim(db, worker="slow")
    assert claim(db, worker="quick") == []
    clock.advance(seconds=30)
    assert claim(db, worker="quick") == []
    fetch(db, queries.sweep())
    [new] = claim(db, worker="quick")

    assert new.token != old.token
    assert fetch(db, queries.renew([old], lease_for=LEASE)) == []

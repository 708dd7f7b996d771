# SPDX-License-Identifier: MIT
from datetime import timedelta

import psycopg
import pytest

from byrote.assembly.identity import new_token
from byrote.core.policy import Retry
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.connect import PLAN_GUARDS, DatabaseAddress
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
    row_of,
    run_of,
    success,
    verdict,
)


def test_a_claim_leases_the_run_to_the_worker_until_a_moment(db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db)
    [lease] = claim(db, worker="w1")
    run = run_of(db, run_id)

    assert (run.status, run.attempts, run.charged) == (Status.RUNNING, 1, 0)
    assert (run.leased_by, run.worker_ids) == ("w1", ["w1"])
    assert run.leased_until == clock.now + LEASE
    assert run.started_at == run.last_attempted_at == clock.now
    assert str(row_of(db, run_id)["lease_token"]) == lease.token


def test_a_lease_carries_what_the_worker_needs(db: Db, clock: FakeClock) -> None:
    policy = Retry(attempts=3)
    enqueue(db, timeout=timedelta(seconds=2), retry=policy, labels={"a": "b"}, traceparent="tp")
    clock.advance(seconds=4)
    [lease] = claim(db)

    assert (lease.task, lease.version, lease.queue) == ("t", 1, "default")
    assert (lease.timeout_ms, lease.max_attempts, lease.traceparent) == (2_000, 3, "tp")
    assert lease.labels_json == '{"a": "b"}'
    assert lease.age == timedelta(seconds=4)


def test_priority_comes_first_and_age_second(db: Db, clock: FakeClock) -> None:
    sent = []
    for priority in (0, 5, 0, -3, 5):
        sent += [(priority, enqueue(db, priority=priority)[0])]
        clock.advance(seconds=1)
    expected = [run_id for _, run_id in sorted(sent, key=lambda pair: -pair[0])]

    assert [lease.id for lease in claim(db, 5)] == expected


def test_a_claim_returns_at_most_the_quota_of_each_queue(db: Db) -> None:
    for queue in ("a", "b", "c"):
        enqueue(db, 10, queue=queue)
    wanted = {"a": 3, "b": 0, "c": 20, "empty": 5}
    query = queries.claim(
        quotas=wanted, tasks=["t@1"], worker="w", token=new_token(), lease_for=LEASE
    )
    queues = [lease.queue for lease in fetch(db, query)]

    assert {queue: queues.count(queue) for queue in wanted} == {"a": 3, "b": 0, "c": 10, "empty": 0}


def test_unknown_tasks_and_versions_stay_ready_for_workers_that_know_them(db: Db) -> None:
    [stranger] = enqueue(db, task="stranger", priority=9)
    [newer] = enqueue(db, version=2, priority=9)
    [known] = enqueue(db)

    assert [lease.id for lease in claim(db, 10)] == [known]
    assert run_of(db, stranger).status is run_of(db, newer).status is Status.READY
    assert [lease.id for lease in claim(db, 10, tasks=["t@2"])] == [newer]


def test_a_paused_queue_is_left_alone(db: Db) -> None:
    enqueue(db, queue="a")
    enqueue(db, queue="b")
    fetch(db, queries.pause("a"))

    assert [lease.queue for lease in claim(db, queues=["a", "b"])] == ["b"]
    fetch(db, queries.resume("a"))
    assert [lease.queue for lease in claim(db, queues=["a", "b"])] == ["a"]


def test_a_floor_passes_by_what_ranks_before_it(db: Db, clock: FakeClock) -> None:
    [early] = enqueue(db)
    clock.advance(seconds=1)
    [late] = enqueue(db)
    floors = {"default": row_of(db, late)["rank"]}
    query = queries.claim(
        quotas={"default": 5},
        tasks=["t@1"],
        worker="w",
        token=new_token(),
        lease_for=LEASE,
        floors=floors,
    )

    assert [lease.id for lease in fetch(db, query)] == [late]
    assert run_of(db, early).status is Status.READY


NESTED_LOOP = ("enable_hashjoin=off", "enable_mergejoin=off", "enable_material=off")
NO_INDEX = ("enable_indexscan=off", "enable_bitmapscan=off", "enable_indexonlyscan=off")


@pytest.mark.parametrize(
    "settings",
    [
        NESTED_LOOP,
        (*NESTED_LOOP, *NO_INDEX),
        (*NESTED_LOOP, "enable_tidscan=off"),
        (*NESTED_LOOP, *NO_INDEX, "enable_tidscan=off", "plan_cache_mode=force_generic_plan"),
        PLAN_GUARDS,
    ],
)
@pytest.mark.parametrize("queues", [("default",), ("default", "b", "c")])
def test_no_plan_claims_more_than_was_asked(
    address: DatabaseAddress, db: Db, settings: tuple[str, ...], queues: tuple[str, ...]
) -> None:
    """A sub-select that locks must run once, whatever the planner makes of a tiny table."""
    for queue in queues:
        enqueue(db, 40, queue=queue)
    db.execute("analyze byrote_task_runs")
    with address.open("odd", *settings) as odd:
        for _ in range(3):
            assert len(claim(odd, 7, queues=queues)) == 7 * len(queues)

    text = "select count(*) from byrote_runs where status = 'RUNNING'"
    assert db.execute(text).fetchall() == [(21 * len(queues),)]


def test_attempts_rise_with_every_claim_and_are_never_reused(db: Db, clock: FakeClock) -> None:
    """P5: released, snoozed, lost or retried, the next claim has the next number."""
    [run_id] = enqueue(db, retry=Retry(attempts=9))
    seen = []
    for letter in ("L", "X", "R", "lost", "Z"):
        [lease] = claim(db, worker=letter)
        seen.append(lease.attempt)
        if letter == "lost":
            clock.advance(minutes=1)
            fetch(db, queries.sweep())
        else:
            finish(db, [verdict(lease, letter)])

    assert seen == [1, 2, 3, 4, 5]
    assert run_of(db, run_id).worker_ids == ["L", "X", "R", "lost", "Z"]


def test_a_run_remembers_when_it_first_started(db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db)
    first = clock.now
    finish(db, [verdict(claim(db)[0], "L")])
    clock.advance(minutes=1)
    claim(db)

    assert run_of(db, run_id).started_at == first
    assert run_of(db, run_id).last_attempted_at == clock.now


def test_a_claim_whose_answer_was_lost_can_be_asked_for_again(db: Db) -> None:
    enqueue(db, 5)
    token = new_token()
    query = queries.claim(
        quotas={"default": 3}, tasks=["t@1"], worker="w", token=token, lease_for=LEASE
    )
    answer = fetch(db, query)
    asked = queries.claimed(worker="w", token=token, deadline=0.0, claimed_at=0.0)
    others = queries.claimed(worker="other", token=token, deadline=0.0, claimed_at=0.0)

    assert [lease.id for lease in fetch(db, asked)] == [lease.id for lease in answer]
    assert fetch(db, others) == []


def test_a_claim_whose_lease_ran_out_is_not_given_again(db: Db, clock: FakeClock) -> None:
    enqueue(db)
    [lease] = claim(db)
    clock.advance(seconds=30)
    asked = queries.claimed(worker="w", token=lease.token, deadline=0.0, claimed_at=0.0)

    assert fetch(db, asked) == []


def test_a_claim_that_finds_nothing_writes_nothing(db: Db) -> None:
    assert claim(db, 10, queues=["a", "b"]) == []
    assert count(db, "byrote_events") == 0


def test_a_claim_passes_by_rows_that_are_locked(db: Db, address: DatabaseAddress) -> None:
    [held, free] = enqueue(db, 2)
    with address.open("other") as other, other.transaction():
        other.execute("select 1 from byrote_task_runs where result_id = %s for update", (held,))

        assert [lease.id for lease in claim(db, 5)] == [free]


def test_a_claim_that_is_rolled_back_leaves_the_run_ready(db: Db, address: DatabaseAddress) -> None:
    """P1: a worker killed between the claim and its commit has claimed nothing."""
    [run_id] = enqueue(db)
    with address.open("other") as other, other.transaction() as claiming:
        assert len(claim(other)) == 1
        raise psycopg.Rollback(claiming)

    assert run_of(db, run_id).status is Status.READY
    assert history(db, run_id) == ["Enqueued"]


def test_finished_runs_are_not_claimed_again(db: Db) -> None:
    enqueue(db, 3)
    leases = claim(db, 3)
    letters = ["F", "C"]
    finish(db, [success(leases[0]), *map(verdict, leases[1:], letters)])

    assert claim(db, 10) == []


def test_a_batch_is_claimed_in_the_order_it_was_sent(db: Db) -> None:
    """One statement, one moment: its runs are equally old, and yet the first sent goes first."""
    enqueue(db, 60)
    finish(db, [verdict(lease, "F") for lease in claim(db, 60)])
    db.execute("vacuum byrote_task_runs")
    ids = enqueue(db, 40)

    assert [lease.id for _ in range(4) for lease in claim(db, 10)] == ids

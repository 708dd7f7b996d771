# SPDX-License-Identifier: MIT
import asyncio
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from byrote.assembly.identity import new_id
from byrote.core.json.codec import digest_of
from byrote.core.policy import Retry
from byrote.core.spec import Delivery, Spec, describe
from byrote.core.state import Status
from byrote.store import bulk, queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.aio import afetch
from byrote.store.runners.sync import Store, fetch
from byrote.testing import FakeClock
from tests.support import Db, claim, count, enqueue, finish, register, row_of, run_of, verdict

PLAIN = Delivery()


def spec_of(*args: Any, **kwargs: Any) -> Spec:
    return describe("t", 1, list(args), kwargs, delivery=PLAIN)


def test_one_run_is_accepted_ready_with_its_senders_options(db: Db, clock: FakeClock) -> None:
    policy = Retry(attempts=4, backoff="fixed")
    labels = {"order": "42"}
    how = {"queue": "mail", "priority": 7, "timeout": timedelta(seconds=9), "retry": policy}
    [run_id] = enqueue(db, **how, labels=labels, traceparent="00-ab-cd-01")
    run = run_of(db, run_id)

    assert (run.status, run.queue, run.priority) == (Status.READY, "mail", 7)
    assert (run.max_attempts, run.timeout, run.labels) == (4, timedelta(seconds=9), labels)
    assert (run.attempts, run.charged, run.losses) == (0, 0, 0)
    assert run.traceparent == "00-ab-cd-01"
    assert run.enqueued_at == run.run_after == clock.now


def test_many_runs_are_accepted_in_one_statement(db: Db) -> None:
    specs = [(new_id(), spec_of(n)) for n in range(500)]

    fetch(db, queries.enqueue(specs))
    assert count(db, "byrote_task_runs") == 500
    assert count(db, "byrote_events") == 1


def test_specs_of_one_batch_keep_their_own_delivery(db: Db) -> None:
    deliveries = [Delivery(queue=f"q{n}", priority=n) for n in range(20)]
    specs = [(new_id(), describe("t", 1, [], {}, delivery=how)) for how in deliveries]
    fetch(db, queries.enqueue(specs))

    for n, (run_id, _) in enumerate(specs):
        assert (run_of(db, run_id).queue, run_of(db, run_id).priority) == (f"q{n}", n)


def test_an_id_that_was_used_is_refused_and_nothing_of_its_batch_stays(db: Db) -> None:
    [known] = enqueue(db)
    batch = [(new_id(), spec_of(1)), (known, spec_of(2))]

    with pytest.raises(psycopg.errors.UniqueViolation):
        fetch(db, queries.enqueue(batch))
    assert count(db, "byrote_task_runs") == 1
    assert count(db, "byrote_events") == 1


def test_sending_again_an_id_that_has_died_meanwhile_makes_no_second_run(
    db: Db, store: Store
) -> None:
    """The answer was lost, the run was quick to fail, and the sender asks again."""
    run_id, spec = new_id(), spec_of(1)
    fetch(db, queries.enqueue([(run_id, spec)]))
    finish(db, [verdict(claim(db)[0], "F")])
    assert store.all(queries.run(run_id))
    end_clients(db)
    store.all(queries.enqueue([(run_id, spec)]))

    assert count(db, "byrote_runs") == 1


def end_clients(db: Db) -> None:
    """Break every client's connection under it, so that its next statement has to be sent again."""
    db.execute(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
        " where datname = current_database() and application_name = 'byrote client'"
    )


def test_an_enqueue_joins_the_callers_transaction(db: Db, address: DatabaseAddress) -> None:
    with address.open("caller") as caller:
        with caller.transaction() as doomed:
            enqueue(caller)
            raise psycopg.Rollback(doomed)
        assert count(db, "byrote_task_runs") == 0
        assert count(db, "byrote_events") == 0
        with caller.transaction():
            enqueue(caller)
            assert count(db, "byrote_task_runs") == 0

    assert count(db, "byrote_task_runs") == 1


def test_a_savepoint_takes_back_only_what_was_enqueued_within_it(
    db: Db, address: DatabaseAddress
) -> None:
    with address.open("caller") as caller, caller.transaction():
        [kept] = enqueue(caller)
        with caller.transaction() as savepoint:
            enqueue(caller)
            raise psycopg.Rollback(savepoint)

    assert [str(run_id) for (run_id,) in db.execute("select result_id from byrote_runs")] == [kept]


@pytest.mark.parametrize("commit", [True, False])
def test_an_async_enqueue_joins_the_callers_transaction(db: Db, url: str, commit: bool) -> None:
    async def send() -> None:
        async with await psycopg.AsyncConnection.connect(url) as caller:
            await afetch(caller, queries.enqueue([(new_id(), spec_of(1))]))
            assert count(db, "byrote_task_runs") == 0
            await (caller.commit() if commit else caller.rollback())

    asyncio.run(send())
    assert count(db, "byrote_task_runs") == int(commit)


def test_a_bulk_enqueue_is_all_or_nothing_in_its_own_transaction(
    db: Db, address: DatabaseAddress
) -> None:
    [known] = enqueue(db)
    specs = [(new_id(), spec_of(n)) for n in range(2_500)] + [(known, spec_of(0))]

    with address.open("caller") as caller, pytest.raises(psycopg.errors.UniqueViolation):
        bulk.enqueue_all(caller, bulk.batches(specs))
    assert count(db, "byrote_task_runs") == 1


def test_a_bulk_enqueue_on_a_callers_transaction_can_be_taken_back(
    db: Db, address: DatabaseAddress
) -> None:
    specs = [(new_id(), spec_of(n)) for n in range(1_500)]
    with address.open("caller") as caller, caller.transaction() as outer:
        bulk.enqueue_all(caller, bulk.batches(specs))
        assert count(caller, "byrote_task_runs") == 1_500
        raise psycopg.Rollback(outer)

    assert count(db, "byrote_runs") == 0


def test_an_async_bulk_enqueue_is_all_or_nothing(db: Db, url: str) -> None:
    [known] = enqueue(db)
    specs = [(new_id(), spec_of(n)) for n in range(1_200)] + [(known, spec_of(0))]

    async def send() -> None:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as caller:
            await bulk.aenqueue_all(caller, list(bulk.batches(specs)))

    with pytest.raises(psycopg.errors.UniqueViolation):
        asyncio.run(send())
    assert count(db, "byrote_task_runs") == 1


NASTY = {
    "b": [1, 1.0, -0.0, 5e-324, 2**70, -(2**70), 1e16],
    "a": 'NUL \x00, emoji \N{PILE OF POO}, quote ", backslash \\, \u2028, \x7f, \\u0000',
    "\x00": {"": None, "é": [True, False, [], {}]},
}


def test_a_spec_comes_back_byte_for_byte_and_its_hash_can_be_recomputed(db: Db) -> None:
    """P7: text in, the same text out, through the queue and through a claim."""
    spec = describe("t", 1, [NASTY], {"k": NASTY}, delivery=PLAIN)
    fetch(db, queries.enqueue([(new_id(), spec)]))
    [lease] = claim(db)

    assert lease.spec_json == spec.text
    assert row_of(db, lease.id)["spec_json"] == spec.text
    assert lease.spec_hash == spec.digest == digest_of(lease.spec_json)
    [received] = run_of(db, lease.id).args
    assert repr(received) == repr(NASTY)
    assert math.copysign(1, received["b"][2]) == -1


def test_a_run_with_a_delay_waits_by_the_databases_clock(db: Db, clock: FakeClock) -> None:
    """P6: the sender's own clock plays no part."""
    [run_id] = enqueue(db, run_after=timedelta(minutes=10))
    run = run_of(db, run_id)

    assert (run.status, run.wait_reason) == (Status.WAITING, "due")
    assert run.run_after == clock.now + timedelta(minutes=10)
    assert claim(db) == []


@pytest.mark.parametrize(
    ("moment", "status"),
    [
        (datetime(2026, 11, 15, 11, 59, 59, tzinfo=UTC), Status.READY),
        (datetime(2026, 11, 15, 12, 0, tzinfo=UTC), Status.READY),
        (datetime(2026, 11, 15, 12, 0, 0, 1, tzinfo=UTC), Status.WAITING),
        (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), Status.WAITING),
    ],
)
def test_a_run_with_a_moment_is_ready_only_when_it_has_come(
    db: Db, clock: FakeClock, moment: datetime, status: Status
) -> None:
    [run_id] = enqueue(db, run_after=moment)

    assert run_of(db, run_id).status is status
    assert run_of(db, run_id).run_after == max(moment, clock.now)


def test_a_sender_wakes_a_worker_only_when_one_is_idle(db: Db, address: DatabaseAddress) -> None:
    register(db, "w", "default")
    with address.open("listener") as listener:
        listener.execute("listen byrote_ready")
        enqueue(db, 3)
        assert list(listener.notifies(timeout=0.05)) == []
        fetch(db, queries.idle(worker="w", idle=True))
        enqueue(db, 3)
        enqueue(db, 3, queue="other")
        heard = [note.payload for note in listener.notifies(timeout=5, stop_after=1)]

        assert heard == ["default"]
        assert list(listener.notifies(timeout=0.05)) == []


def test_rank_puts_priority_first_and_then_age(db: Db, clock: FakeClock) -> None:
    ranks = {}
    for priority in (-100, 0, 1, 100):
        ranks[priority] = row_of(db, enqueue(db, priority=priority)[0])["rank"]
        clock.advance(hours=1)

    assert sorted(ranks, key=ranks.__getitem__) == [100, 1, 0, -100]


def test_with_ageing_a_long_wait_outweighs_priority(db: Db, clock: FakeClock) -> None:
    text = "insert into byrote_queues (queue_name, ageing) values ('default', '1 minute')"
    db.execute(text)
    [old] = enqueue(db)
    clock.advance(seconds=90)
    [near] = enqueue(db, priority=1)
    [high] = enqueue(db, priority=5)

    assert [lease.id for lease in claim(db, 3)] == [high, old, near]

# SPDX-License-Identifier: MIT
"""The real store and a pure model of it, driven side by side by Hypothesis: they never differ.

The suite does 5,000 steps. BYROTE_TEST_MODEL_EXAMPLES=4000 makes it 200,000.
"""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from byrote.assembly.identity import new_id, new_token
from byrote.core.json.codec import digest_of
from byrote.core.log.fold import fold_all
from byrote.core.policy import Retry
from byrote.core.spec import Delivery, describe
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.store.verify import verify_on
from byrote.testing import FakeClock
from tests.sim.model import START, Model
from tests.support import LEASE, Db, row_of

EXAMPLES = int(os.environ.get("BYROTE_TEST_MODEL_EXAMPLES", "100"))
STEPS = 60
"""A little more than 50 an example, so that ends that come early still leave 50 on average."""
QUEUES = ("a", "b")
UNSERVED = timedelta(minutes=1)
FORSAKEN = """insert into byrote_unserved
                (queue_name, task_path, task_version, since, seen_at, waited)
              values (%s, 't', 1, byrote_now(), byrote_now(), %s)"""
SAME = (
    "status", "wait_reason", "attempts", "charged", "losses", "moves", "leased_by", "leased_until",
    "rank", "run_after", "started_at", "last_attempted_at", "cancel_requested_at", "finished_at",
)  # fmt: skip


class Store(RuleBasedStateMachine):
    """Each rule does one thing to both, and compares what they answered."""

    db: ClassVar[Db]
    steps: ClassVar[int] = 0
    fenced: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.model = Model(fenced=self.fenced)
        self.leases: list[Any] = []
        self.db.execute("begin")
        self.clock = FakeClock(self.db, now=START)

    def teardown(self) -> None:
        try:
            self.compare()
            assert verify_on(self.db).findings == []
        finally:
            self.db.execute("rollback")

    def compare(self) -> None:
        for run_id, row in self.model.rows.items():
            real = row_of(self.db, run_id)
            for name in SAME:
                assert getattr(row, name) == real[name], (name, run_id)
            told = fetch(self.db, queries.run_history(run_id))
            assert [event.kind for event in told] == [event.kind for event in row.told]
            assert fold_all(told) == fold_all(row.told)

    def counted(self) -> None:
        type(self).steps += 1

    @rule(queue=st.sampled_from(QUEUES), number=st.integers(1, 3),
          wait_s=st.sampled_from([0, 0, 7]),
          priority=st.sampled_from([0, 0, 5]), attempts=st.integers(1, 3))  # fmt: skip
    def enqueue(
        self, *, queue: str, number: int, wait_s: int, priority: int, attempts: int
    ) -> None:
        self.counted()
        delay = timedelta(seconds=wait_s)
        how = Delivery(
            queue=queue, run_after=delay or None, priority=priority, retry=Retry(attempts=attempts)
        )
        specs = [(new_id(), describe("t", 1, [], {}, delivery=how)) for _ in range(number)]
        fetch(self.db, queries.enqueue(specs))
        ids = [run_id for run_id, _ in specs]
        self.model.enqueue(ids, queue=queue, delay=delay, priority=priority, attempts=attempts)

    @rule(worker=st.sampled_from("vw"), queue=st.sampled_from(QUEUES), quota=st.integers(1, 4))
    def claim(self, worker: str, queue: str, quota: int) -> None:
        self.counted()
        token = new_token()
        leases = fetch(
            self.db,
            queries.claim(
                quotas={queue: quota}, tasks=["t@1"], worker=worker, token=token, lease_for=LEASE
            ),
        )
        ready = self.model.ready(queue)
        best = sorted(row.rank for row in ready)[:quota]
        # Of equal ranks any may come first; which it was, the model takes from the store.
        assert sorted(lease.rank for lease in leases) == best
        assert {lease.id for lease in leases} <= {row.id for row in ready}
        self.model.claim(worker, token, ids=[lease.id for lease in leases], lease=LEASE)
        self.leases += leases

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), letter=st.sampled_from("SSRFCZLX"), delay_s=st.sampled_from([0, 9]))
    def finish(self, data: st.DataObject, letter: str, delay_s: int) -> None:
        self.counted()
        lease = data.draw(st.sampled_from(self.leases))
        sent = {"id": lease.id, "token": lease.token, "attempt": lease.attempt, "verdict": letter}
        sent["delay_us"] = delay_s * 1_000_000
        if letter == "S":
            sent |= {"result": "null", "hash": digest_of("null").hex()}
        if letter in "RFX":
            sent["error"] = {"kind": "raised", "type": "E", "message": ""}
        heard = dict(fetch(self.db, queries.finish([sent])))
        mine = (lease.id, lease.token, lease.attempt, letter, sent["delay_us"])

        assert heard == self.model.finish([mine])

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        self.counted()
        some = data.draw(st.lists(st.sampled_from(self.leases), max_size=3, unique_by=id))
        some = list({lease.id: lease for lease in some}.values())
        kept = fetch(self.db, queries.renew(some, lease_for=LEASE))
        held = [(lease.id, lease.token, lease.attempt) for lease in some]

        assert sorted(row.id for row in kept) == sorted(self.model.renew(held, lease=LEASE))

    @rule(seconds=st.sampled_from([1, 8, 31]))
    def time_passes(self, seconds: int) -> None:
        self.counted()
        self.model.now = self.clock.advance(seconds=seconds)

    @rule()
    def promote(self) -> None:
        self.counted()
        [promotion] = fetch(self.db, queries.promote())
        assert promotion.promoted == self.model.promote()

    @rule()
    def sweep(self) -> None:
        self.counted()
        swept = fetch(self.db, queries.sweep())
        assert sorted(row.id for row in swept) == sorted(self.model.sweep())

    @rule(queue=st.sampled_from(QUEUES))
    def forsake(self, queue: str) -> None:
        """As after a time in which live workers served the queue and none knew the task."""
        self.counted()
        fetch(self.db, queries.set_unserved(queue, after=UNSERVED))
        self.db.execute(FORSAKEN, (queue, UNSERVED))
        ended = [run.id for run in fetch(self.db, queries.fail_unserved(limit=1_000))]
        assert sorted(ended) == sorted(self.model.fail_unserved(queue, after=UNSERVED))
        self.db.execute("delete from byrote_unserved")

    @precondition(lambda self: self.model.rows)
    @rule(data=st.data(), verb=st.sampled_from(["cancel", "retry"]))
    def meddle(self, data: st.DataObject, verb: str) -> None:
        self.counted()
        ids = data.draw(st.lists(st.sampled_from(list(self.model.rows)), max_size=2, unique=True))
        if verb == "cancel":
            answered = [row.id for row in fetch(self.db, queries.cancel(ids))]
        else:
            answered = fetch(self.db, queries.retry(ids))
        assert sorted(answered) == sorted(getattr(self.model, verb)(ids))

    @rule(queue=st.sampled_from(QUEUES), paused=st.booleans())
    def pause(self, queue: str, *, paused: bool) -> None:
        self.counted()
        fetch(self.db, queries.pause(queue) if paused else queries.resume(queue))
        if paused:
            self.model.paused.add(queue)
        else:
            self.model.paused.discard(queue)


@pytest.mark.timeout(900 if EXAMPLES <= 100 else 4 * 3_600)
def test_the_store_does_what_the_model_does(
    db: Db, record_property: Callable[[str, object], None]
) -> None:
    Store.db, Store.steps = db, 0
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Store,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=EXAMPLES == 100,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

    # Hypothesis may end an example early; what counts is what was done.
    record_property("steps", Store.steps)
    assert Store.steps >= EXAMPLES * 50, Store.steps


class Unfenced(Store):
    """The same, compared with a model that believes anybody."""

    fenced = False

    @initialize()
    def oversleep(self) -> None:
        """Leases that have expired from the start: the next statement distinguishes them."""
        self.enqueue(queue="a", number=3, wait_s=0, priority=0, attempts=1)
        self.claim(worker="v", queue="a", quota=3)
        self.time_passes(seconds=31)


def test_a_model_that_differs_from_the_store_is_noticed(db: Db) -> None:
    """The comparison can fail: against a model without a fence it does."""
    Store.db = db
    with pytest.raises(AssertionError):
        run_state_machine_as_test(  # type: ignore[no-untyped-call]
            Unfenced,
            settings=settings(
                max_examples=200,
                stateful_step_count=30,
                deadline=None,
                derandomize=True,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            ),
        )

# SPDX-License-Identifier: MIT
"""What every store promises a claimer."""

from datetime import timedelta

import pytest

from byrote.assembly.clock import monotonic
from byrote.assembly.identity import new_id
from byrote.core.policy import Retry
from byrote.core.spec import Delivery, describe
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.system.wake import Wake
from tests.contracts.store.parts import Db, Parts, returned
from tests.support import enqueue, history, run_of


def test_it_can_be_worked_with(parts: Parts) -> None:
    parts.store.check()


def test_a_claim_returns_at_most_its_limit(parts: Parts, db: Db) -> None:
    enqueue(db, 5)
    first, second = parts.claim(3), parts.claim(3)

    assert (len(first), len(second), len(parts.claim(3))) == (3, 2, 0)
    assert len({lease.id for lease in first + second}) == 5


def test_a_claim_returns_only_requested_queues_and_tasks(parts: Parts, db: Db) -> None:
    [wanted] = enqueue(db, queue="a")
    [elsewhere] = enqueue(db, queue="b")
    [unknown] = enqueue(db, task="u", queue="a")
    [newer] = enqueue(db, version=2, queue="a")

    assert [lease.id for lease in parts.claim(9, queues=["a"])] == [wanted]
    for left in (elsewhere, unknown, newer):
        assert run_of(db, left).status is Status.READY


def test_a_claim_returns_the_quota_of_each_queue(parts: Parts, db: Db) -> None:
    enqueue(db, 5, queue="a")
    enqueue(db, 5, queue="b")
    found = parts.claim(2, queues=["a", "b"])

    assert sorted(lease.queue for lease in found) == ["a", "a", "b", "b"]


def test_what_is_urgent_comes_first(parts: Parts, db: Db) -> None:
    [low], [high] = enqueue(db, priority=-1), enqueue(db, priority=1)

    assert [lease.id for lease in parts.claim(2)] == [high, low]


def test_a_lease_brings_everything_an_attempt_needs(parts: Parts, db: Db) -> None:
    how = Delivery(
        timeout=timedelta(seconds=2),
        retry=Retry(attempts=3, delay_first=timedelta(seconds=7)),
        labels={"order": "42"},
        traceparent="00-1-2-01",
    )
    spec = describe("t", 1, [1.0, -0.0, 2**70, "ä"], {"k": None}, delivery=how)
    fetch(db, queries.enqueue([(new_id(), spec)]))
    [lease] = parts.claim()

    assert (lease.task, lease.version, lease.spec_json) == ("t", 1, spec.text)
    assert (lease.spec_hash, lease.attempt, lease.charged, lease.losses) == (spec.digest, 1, 0, 0)
    assert (lease.max_attempts, lease.timeout_ms, lease.traceparent) == (3, 2000, "00-1-2-01")
    assert lease.labels_json is not None
    assert '"order"' in lease.labels_json
    assert lease.retry_json is not None
    assert "PT7S" in lease.retry_json
    assert lease.as_of_us > 1_500_000_000_000_000


def test_a_run_without_options_has_none(parts: Parts, db: Db) -> None:
    enqueue(db)
    [lease] = parts.claim()

    assert (lease.timeout_ms, lease.retry_json, lease.labels_json) == (None, None, None)


def test_nothing_is_claimed_from_a_paused_queue(parts: Parts, db: Db) -> None:
    enqueue(db)
    fetch(db, queries.pause("default"))

    assert parts.claim() == []


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_claim_whose_answer_is_lost_leases_once(parts: Parts, db: Db, moment: str) -> None:
    parts.claim()
    [run_id] = enqueue(db)
    fault = parts.break_next("claim", moment)
    [lease] = parts.claim()

    assert fault.happened.is_set()
    assert (lease.id, lease.attempt) == (run_id, 1)
    assert parts.finish(lease, returned(1)) == "S"
    assert history(db, run_id) == ["Enqueued", "Claimed", "Succeeded"]


def test_a_rest_ends_when_capacity_becomes_free(parts: Parts) -> None:
    parts.claim()
    wake = Wake()
    wake.set()
    began = monotonic()
    parts.leases.rest(wake.fd, 30, for_room=True)
    wake.close()

    assert monotonic() - began < 20


def test_something_due_is_unfinished(parts: Parts, db: Db) -> None:
    def unfinished() -> bool:
        return parts.leases.unfinished(queues=["default"], tasks=["t@1"]).due

    assert not unfinished()
    enqueue(db)
    assert unfinished()
    [lease] = parts.claim()
    enqueue(db, task="stranger")
    left = parts.leases.unfinished(queues=["default"], tasks=["t@1"])
    assert (left.due, left.elsewhere, left.unknown) == (False, 1, 1)
    parts.finish(lease, returned(None))
    assert not unfinished()

# SPDX-License-Identifier: MIT
from datetime import timedelta

import pytest

from byrote.core.policy import Retry
from byrote.core.ports.replies import Remainder
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import Db, claim, enqueue, finish, run_of, success, verdict


def test_queues_have_their_depths(db: Db, clock: FakeClock) -> None:
    enqueue(db, 5, retry=Retry(attempts=2))
    enqueue(db, 2, run_after=timedelta(hours=1))
    enqueue(db, 1, queue="other")
    [dead, *_] = claim(db, 2)
    finish(db, [verdict(dead, "F")])
    clock.advance(seconds=90)
    found = {row.queue: row for row in fetch(db, queries.queues())}

    default, other = found["default"], found["other"]
    assert (default.ready, default.waiting, default.running, default.dead) == (3, 2, 1, 1)
    assert (other.ready, other.waiting, other.running, other.dead) == (1, 0, 0, 0)
    assert default.oldest_ready_s == pytest.approx(90)


def test_runs_are_listed_newest_first_and_page_by_page(db: Db) -> None:
    ids = enqueue(db, 25)
    first = [run.id for run in fetch(db, queries.runs(limit=10))]
    second = [run.id for run in fetch(db, queries.runs(limit=20, before=first[-1]))]

    assert first + second == ids[::-1]


def test_runs_are_found_by_status_queue_task_hash_and_label(db: Db) -> None:
    [a] = enqueue(db, queue="a", labels={"order": "1", "x": "y"})
    [b] = enqueue(db, task="other", labels={"order": "2"})
    [c] = enqueue(db)
    finish(db, [verdict(claim(db)[0], "F")])
    digest = run_of(db, b).spec_hash
    asked = {
        a: [queries.runs(queue="a"), queries.runs(labels={"order": "1"})],
        b: [queries.runs(task="other"), queries.runs(spec_hash=digest)],
        c: [queries.runs(status="FAILED"), queries.runs(status="FAILED", queue="default")],
    }

    for run_id, all_ways in asked.items():
        for query in all_ways:
            assert [run.id for run in fetch(db, query)] == [run_id]


def test_lists_leave_out_arguments_and_results(db: Db) -> None:
    enqueue(db, 2)
    [done, dead] = claim(db, 2)
    finish(db, [success(done, "42"), verdict(dead, "F")])
    [listed] = fetch(db, queries.runs(status="SUCCESSFUL"))
    [letter] = fetch(db, queries.dead())
    whole = run_of(db, dead.id)

    assert (listed.hidden, listed.result_json, listed.result_hash is None) == (True, None, False)
    assert (letter.id, letter.hidden, letter.faults) == (dead.id, True, whole.faults)


def test_unfinished_looks_at_what_is_due_in_these_queues(db: Db, clock: FakeClock) -> None:
    def unfinished() -> bool:
        return fetch(db, queries.unfinished(queues=["default"], tasks=["t@1"]))[0].due

    enqueue(db, queue="other")
    enqueue(db, task="stranger")
    enqueue(db, run_after=timedelta(minutes=1))
    assert not unfinished()
    clock.advance(minutes=2)
    assert unfinished()
    fetch(db, queries.promote())
    assert unfinished()
    finish(db, [success(claim(db)[0])])
    assert not unfinished()


def test_a_lease_that_has_expired_is_unfinished_whatever_its_task(db: Db, clock: FakeClock) -> None:
    """A worker that drains stays until the sweep has taken the run back."""

    def left() -> Remainder:
        return fetch(db, queries.unfinished(queues=["default"], tasks=["other@1"]))[0]

    enqueue(db, 2)
    claim(db)
    assert left() == Remainder(due=False, elsewhere=1, unknown=1, tasks=("t@1",))
    clock.advance(minutes=1)
    assert left() == Remainder(due=True)
    fetch(db, queries.sweep())
    assert left() == Remainder(due=False, elsewhere=0, unknown=2, tasks=("t@1",))


def test_what_is_left_in_paused_queues_and_what_is_not_due_is_counted(db: Db) -> None:
    enqueue(db, 2, queue="mail")
    enqueue(db, run_after=timedelta(minutes=1))
    fetch(db, queries.pause("mail"))
    [left] = fetch(db, queries.unfinished(queues=["default", "mail"], tasks=["t@1"]))

    assert left == Remainder(due=False, paused=2, later=1)
    assert left.stuck
    assert str(left).endswith("2 runs are in paused queues; 1 run is not due")


def test_an_outcome_is_what_a_waiting_caller_needs(db: Db) -> None:
    [good, bad] = enqueue(db, 2)
    leases = {lease.id: lease for lease in claim(db, 2)}
    finish(db, [success(leases[good], "[1]"), verdict(leases[bad], "F")])
    [well] = fetch(db, queries.outcome(good))
    [ill] = fetch(db, queries.outcome(bad))

    assert (well.status, well.result_json, well.faults) == ("SUCCESSFUL", "[1]", [])
    assert (ill.status, ill.result_json) == ("FAILED", None)
    assert ill.faults[0]["type"] == "ValueError"

# SPDX-License-Identifier: MIT
"""What every store promises a keeper: leases, and the list of workers."""

import pytest

from byrote.core.state import Status
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.contracts.store.desk import LEASE, Db, Desk, expire, returned
from tests.support import enqueue, run_of


def test_a_renewal_holds_what_is_held_and_nothing_else(desk: Desk, db: Db) -> None:
    enqueue(db, 3)
    held, lost, settled = desk.claim(3)
    expire(db, lost.id)
    desk.finish(settled, returned(1))
    before = run_of(db, held.id).leased_until

    assert desk.roll.renew([held, lost, settled], lease_for=LEASE) == {held.id: False}
    assert run_of(db, held.id).leased_until > before  # type: ignore[operator]
    assert run_of(db, lost.id).status is Status.READY


def test_a_renewal_tells_what_is_not_wanted_any_more(desk: Desk, db: Db) -> None:
    enqueue(db, 2)
    wanted, unwanted = desk.claim(2)
    fetch(db, queries.cancel([unwanted.id]))

    answer = desk.roll.renew([wanted, unwanted], lease_for=LEASE)
    assert answer == {wanted.id: False, unwanted.id: True}


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_renewal_whose_answer_is_lost_is_asked_again(desk: Desk, db: Db, moment: str) -> None:
    enqueue(db)
    [lease] = desk.claim()
    desk.roll.renew([lease], lease_for=LEASE)
    fault = desk.break_next("renew", moment)

    assert desk.roll.renew([lease], lease_for=LEASE) == {lease.id: False}
    assert fault.happened.is_set()


def test_a_worker_is_on_the_list_until_it_leaves(desk: Desk, db: Db) -> None:
    load = {"idle": True, "stopping": False, "running": 3, "finished": 2**40}
    described = {
        "worker": "w/1", "pid": 7, "hands": 2, "concurrency": 9, "host": "h", "version": "0",
        "python": "3", "queues": ["a", "b"], "tasks": ["t@1"],
    }  # fmt: skip
    assert desk.roll.heartbeat("w/1", load) is False
    desk.roll.register(described)
    assert desk.roll.heartbeat("w/1", load) is True
    [row] = [row for row in fetch(db, queries.workers()) if row.worker == "w/1"]

    assert (row.pid, row.hands, row.concurrency, row.queues) == (7, 2, 9, ["a", "b"])
    assert (row.running, row.finished, row.alive) == (3, 2**40, True)
    desk.roll.deregister("w/1")
    assert desk.roll.heartbeat("w/1", load) is False

# SPDX-License-Identifier: MIT
"""What every store promises a keeper: leases, and the list of workers."""

import pytest

from byrote.core.state import Status
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.contracts.store.parts import LEASE, Db, Parts, expire, returned
from tests.support import enqueue, run_of


def test_a_renewal_holds_what_is_held_and_nothing_else(parts: Parts, db: Db) -> None:
    enqueue(db, 3)
    held, lost, settled = parts.claim(3)
    expire(db, lost.id)
    parts.finish(settled, returned(1))
    before = run_of(db, held.id).leased_until

    assert parts.registry.renew([held, lost, settled], lease_for=LEASE) == {held.id: False}
    assert run_of(db, held.id).leased_until > before  # type: ignore[operator]
    assert run_of(db, lost.id).status is Status.READY


def test_a_renewal_returns_cancel_requests(parts: Parts, db: Db) -> None:
    enqueue(db, 2)
    wanted, unwanted = parts.claim(2)
    fetch(db, queries.cancel([unwanted.id]))

    answer = parts.registry.renew([wanted, unwanted], lease_for=LEASE)
    assert answer == {wanted.id: False, unwanted.id: True}


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_renewal_whose_answer_is_lost_is_asked_again(parts: Parts, db: Db, moment: str) -> None:
    enqueue(db)
    [lease] = parts.claim()
    parts.registry.renew([lease], lease_for=LEASE)
    fault = parts.break_next("renew", moment)

    assert parts.registry.renew([lease], lease_for=LEASE) == {lease.id: False}
    assert fault.happened.is_set()


def test_a_worker_is_on_the_list_until_it_leaves(parts: Parts, db: Db) -> None:
    load = {"idle": True, "stopping": False, "running": 3, "finished": 2**40}
    described = {
        "worker": "w/1", "pid": 7, "hands": 2, "concurrency": 9, "host": "h", "version": "0",
        "python": "3", "queues": ["a", "b"], "tasks": ["t@1"],
    }  # fmt: skip
    assert parts.registry.heartbeat("w/1", load) is None
    parts.registry.register(described)
    assert parts.registry.heartbeat("w/1", load) == []
    [row] = [row for row in fetch(db, queries.workers()) if row.worker == "w/1"]

    assert (row.pid, row.hands, row.concurrency, row.queues) == (7, 2, 9, ["a", "b"])
    assert (row.running, row.finished, row.alive) == (3, 2**40, True)
    parts.registry.deregister("w/1")
    assert parts.registry.heartbeat("w/1", load) is None

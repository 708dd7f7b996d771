# SPDX-License-Identifier: MIT
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import LEASE, Db, claim, enqueue, finish, run_of, success


def test_what_runs_goes_on_while_its_queue_is_paused(db: Db) -> None:
    [run_id] = enqueue(db)
    [lease] = claim(db)
    fetch(db, queries.pause("default"))

    assert len(fetch(db, queries.renew([lease], lease_for=LEASE))) == 1
    assert finish(db, [success(lease)]) == [run_id]


def test_a_paused_queue_still_accepts_runs(db: Db) -> None:
    fetch(db, queries.pause("default"))
    [run_id] = enqueue(db)

    assert run_of(db, run_id).status is Status.READY
    assert claim(db) == []


def test_a_queue_paused_twice_remembers_the_first_time(db: Db, clock: FakeClock) -> None:
    began = clock.now
    fetch(db, queries.pause("q"))
    clock.advance(hours=1)
    fetch(db, queries.pause("q"))
    [queue] = fetch(db, queries.queues())

    assert (queue.queue, queue.paused_at) == ("q", began)


def test_resume_wakes_the_queues_workers(db: Db, address: DatabaseAddress) -> None:
    fetch(db, queries.pause("q"))
    with address.open("listener") as listener:
        listener.execute("listen byrote_ready")
        fetch(db, queries.resume("q"))

        assert [n.payload for n in listener.notifies(timeout=5, stop_after=1)] == ["q"]
    assert fetch(db, queries.queues())[0].paused_at is None


def test_resume_keeps_the_queues_other_settings(db: Db) -> None:
    text = "insert into byrote_queues (queue_name, keep_dead) values ('q', '3 days')"
    db.execute(text)
    fetch(db, queries.pause("q"))
    fetch(db, queries.resume("q"))

    assert db.execute("select keep_dead::text from byrote_queues").fetchall() == [("3 days",)]

# SPDX-License-Identifier: MIT
from byrote.store import queries
from byrote.store.rows import WorkerRow
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import Db, register


def workers(db: Db) -> dict[str, WorkerRow]:
    return {row.worker: row for row in fetch(db, queries.workers())}


def beat(db: Db, worker: str, *, idle: bool = False) -> list[list[str]]:
    """Send a heartbeat; returns the contested aliases of the worker if it is registered."""
    return fetch(
        db, queries.heartbeat(worker=worker, idle=idle, stopping=False, running=2, finished=7)
    )


def test_a_worker_announces_itself_and_its_queues(db: Db, clock: FakeClock) -> None:
    register(db, "w1", "mail", "default")
    row = workers(db)["w1"]

    assert (row.queues, row.tasks) == (["mail", "default"], ["t@1"])
    assert (row.started_at, row.alive, row.idle) == (clock.now, True, False)
    assert [queue.queue for queue in fetch(db, queries.queues())] == ["default", "mail"]


def test_announcing_again_changes_nothing_of_a_queues_settings(db: Db) -> None:
    fetch(db, queries.pause("mail"))
    register(db, "w1", "mail")

    assert fetch(db, queries.queues())[0].paused_at is not None


def test_a_heartbeat_keeps_a_worker_alive_and_silence_does_not(db: Db, clock: FakeClock) -> None:
    register(db, "silent", "default")
    register(db, "beating", "default")
    clock.advance(seconds=40)
    assert beat(db, "beating", idle=True) == [[]]
    clock.advance(seconds=10)
    found = workers(db)

    assert (found["beating"].alive, found["silent"].alive) == (True, False)
    assert (found["beating"].running, found["beating"].finished) == (2, 7)
    assert found["beating"].idle


def test_a_worker_that_was_forgotten_learns_so_from_its_heartbeat(db: Db) -> None:
    """It announces itself again; a heartbeat alone does not bring it back."""
    assert beat(db, "stranger") == []
    assert workers(db) == {}


def test_a_worker_that_stops_takes_itself_off_the_list(db: Db) -> None:
    register(db, "w1", "default")
    register(db, "w2", "default")

    assert fetch(db, queries.deregister(worker="w1")) == ["w1"]
    assert set(workers(db)) == {"w2"}

# SPDX-License-Identifier: MIT
from datetime import timedelta

from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.rows import Pruned
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.store.retention.test_archive import (
    LATER,
    PARENTS,
    archive,
    finished,
    ids_in,
    partitions,
)
from tests.support import Db, count, enqueue, enqueue_beside, register


def prune(db: Db) -> Pruned:
    [pruned] = fetch(db, queries.prune())
    return pruned


def test_old_partitions_are_dropped_and_young_ones_kept(own: Db) -> None:
    clock = FakeClock(own, now=LATER)
    fetch(own, queries.partition(days=2))
    finished(own, 2)
    clock.advance(days=1)
    young = finished(own, 3)
    clock.advance(hours=2)
    archive(own)
    clock.advance(
        days=29, hours=10
    )  # Midnight of the tenth's end is 30 days ago, not the eleventh's.
    pruned = prune(own)

    assert pruned.archives >= 1
    assert "byrote_archive_20310310" not in partitions(own, "byrote_archive")
    assert "byrote_archive_20310311" in partitions(own, "byrote_archive")
    assert "byrote_events_20310310" not in partitions(own, "byrote_events")
    assert ids_in(own, "byrote_runs") == set(young)


def test_nothing_is_dropped_before_its_time(own: Db) -> None:
    clock = FakeClock(own, now=LATER)
    prune(own)
    fetch(own, queries.partition(days=1))
    ids = finished(own, 2)
    clock.advance(hours=2)
    archive(own)
    clock.advance(days=29, hours=21)

    assert prune(own).archives <= 1  # The day before, which was made ahead, may go.
    assert ids_in(own, "byrote_runs") == set(ids)


def test_a_queue_may_keep_what_is_done_for_longer(own: Db) -> None:
    clock = FakeClock(own, now=LATER)
    own.execute("insert into byrote_queues (queue_name, keep_done) values ('q', '1 year')")
    fetch(own, queries.partition(days=1))
    ids = finished(own, 1)
    clock.advance(hours=2)
    archive(own)
    clock.advance(days=300)
    prune(own)

    assert ids_in(own, "byrote_archive") == set(ids)


def test_the_default_partition_is_emptied_up_to_the_same_moment(own: Db) -> None:
    clock = FakeClock(own, now=LATER)
    finished(own, 2)
    clock.advance(hours=2)
    archive(own)
    assert count(own, "byrote_archive_rest") == 2
    clock.advance(days=30)
    prune(own)

    assert count(own, "byrote_archive_rest") == 0
    assert count(own, "byrote_events_rest") == 0


def test_dead_letters_are_kept_for_the_retention_of_their_queue(db: Db, clock: FakeClock) -> None:
    [default] = finished(db, 1, "F")
    clock.advance(days=89)
    assert prune(db).dead == 0
    assert ids_in(db, "byrote_dead") == {default}
    clock.advance(days=2)
    assert prune(db).dead == 1

    finished(db, 1, "F")
    db.execute("insert into byrote_queues (queue_name, keep_dead) values ('default', '1 day')")
    clock.advance(days=2)
    assert prune(db).dead == 1


def test_workers_that_have_been_silent_for_long_are_forgotten(db: Db, clock: FakeClock) -> None:
    register(db, "silent", "default")
    clock.advance(hours=1, seconds=1)
    register(db, "alive", "default")

    assert prune(db).workers == 1
    assert [row.worker for row in fetch(db, queries.workers())] == ["alive"]


def test_unfinished_runs_are_never_pruned(db: Db, clock: FakeClock) -> None:
    """P1: however long it has waited."""
    enqueue(db, 2)
    enqueue(db, 1, run_after=timedelta(days=3_000))
    clock.advance(days=2_000)
    prune(db)

    assert count(db, "byrote_task_runs") == 3


def test_pruning_never_makes_the_queue_wait_behind_an_open_transaction(
    own: Db, bare: DatabaseAddress
) -> None:
    """A report reads old events for an hour; they are dropped later, everything else now."""
    before = {parent: len(partitions(own, parent)) for parent in PARENTS}
    with bare.open("reader") as reader, bare.open("duty") as duty, reader.transaction():
        reader.execute("select count(*) from byrote_event_log")
        FakeClock(duty, now=LATER)
        assert enqueue_beside(own, duty, queries.prune()) is None
        after = {parent: len(partitions(own, parent)) for parent in PARENTS}
    FakeClock(own, now=LATER)
    fetch(own, queries.prune())

    assert count(own, "byrote_task_runs") == 1
    assert after["byrote_events"] == before["byrote_events"]
    assert after["byrote_archive"] == after["byrote_outputs"] == 1
    assert len(partitions(own, "byrote_events")) == 1

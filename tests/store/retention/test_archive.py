# SPDX-License-Identifier: MIT
from datetime import UTC, datetime

import psycopg
import pytest

from byrote.core.policy import Retry
from byrote.core.ports.replies import Archived
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import (
    Db,
    claim,
    count,
    enqueue,
    enqueue_beside,
    finish,
    row_of,
    success,
    verdict,
)

START = "00000000-0000-0000-0000-000000000000"
PARENTS = ("byrote_archive", "byrote_events", "byrote_outputs")
LATER = datetime(2031, 3, 10, 12, 0, tzinfo=UTC)


def archive(db: Db, after: str = START, limit: int = 5_000) -> Archived:
    [step] = fetch(db, queries.archive(after=after, limit=limit))
    return step


def finished(db: Db, count: int, letter: str = "S") -> list[str]:
    enqueue(db, count, retry=Retry(attempts=2))
    leases = claim(db, count)
    finish(db, [verdict(lease, letter) for lease in leases])
    return [lease.id for lease in leases]


def ids_in(db: Db, table: str) -> set[str]:
    text = f"select result_id::text from {table}"  # noqa: S608
    return {run_id for (run_id,) in db.execute(text)}  # type: ignore[call-overload]


def test_only_what_finished_and_stayed_long_enough_is_archived(db: Db, clock: FakeClock) -> None:
    old = set(finished(db, 3)) | set(finished(db, 2, "C"))
    clock.advance(minutes=45)
    young = set(finished(db, 2))
    enqueue(db, 2)
    running = {lease.id for lease in claim(db, 1)}
    clock.advance(minutes=16)

    assert archive(db).archived == 5
    assert ids_in(db, "byrote_archive") == old
    assert young | running < ids_in(db, "byrote_task_runs")


def test_a_queue_has_its_own_retention(db: Db, clock: FakeClock) -> None:
    text = "insert into byrote_queues (queue_name, archive_after) values ('default', '5 minutes')"
    db.execute(text)
    finished(db, 1)
    clock.advance(minutes=6)

    assert archive(db).archived == 1


def test_an_archived_run_is_the_same_run(db: Db, clock: FakeClock) -> None:
    [run_id] = finished(db, 1)
    before = row_of(db, run_id)
    clock.advance(hours=2)
    archive(db)

    assert row_of(db, run_id) == before
    assert count(db, "byrote_task_runs") == 0


def test_every_run_is_seen_exactly_once_before_and_after(db: Db, clock: FakeClock) -> None:
    finished(db, 20)
    finished(db, 5, "F")
    clock.advance(hours=2)
    enqueue(db, 5)
    everything = ids_in(db, "byrote_runs")
    assert count(db, "byrote_runs") == len(everything) == 30
    archive(db)

    assert count(db, "byrote_archive") == 20
    assert ids_in(db, "byrote_runs") == everything
    assert count(db, "byrote_runs") == 30


def test_the_walk_goes_page_by_page_and_reports_the_end(db: Db, clock: FakeClock) -> None:
    ids = sorted(finished(db, 10))
    clock.advance(hours=2)
    first = archive(db, limit=4)
    second = archive(db, first.reached or "", limit=4)
    third = archive(db, second.reached or "", limit=4)
    end = archive(db, third.reached or "", limit=4)

    assert [step.archived for step in (first, second, third, end)] == [4, 4, 2, 0]
    assert (first.reached, third.reached, end.reached, end.seen) == (ids[3], ids[9], None, 0)


def test_a_page_without_anything_to_archive_is_passed_by(db: Db, clock: FakeClock) -> None:
    """Runs that wait for years at the front must not stop the walk."""
    enqueue(db, 3)
    waiting = ids_in(db, "byrote_task_runs")
    clock.advance(hours=2)
    step = archive(db, limit=3)

    assert (step.archived, step.seen, step.reached) == (0, 3, max(waiting))


def test_archiving_writes_no_event_and_moves_nothing(db: Db, clock: FakeClock) -> None:
    finished(db, 3)
    clock.advance(hours=2)
    before = count(db, "byrote_events")
    archive(db)

    assert count(db, "byrote_events") == before


def test_two_that_archive_at_once_archive_each_run_once(
    db: Db, clock: FakeClock, address: DatabaseAddress
) -> None:
    finished(db, 10)
    clock.advance(hours=2)
    with address.open("other") as other, other.transaction():
        clock.on(other)
        assert archive(other, limit=5).archived == 5
        db.execute("set lock_timeout = '50ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            archive(db, limit=5)
    archive(db)

    assert count(db, "byrote_archive") == len(ids_in(db, "byrote_archive")) == 10


def partitions(db: Db, parent: str) -> set[str]:
    text = "select inhrelid::regclass::text from pg_inherits where inhparent = %s::regclass"
    return {name for (name,) in db.execute(text, (parent,))}


def test_partitions_are_made_ahead_from_yesterday_on(own: Db) -> None:
    FakeClock(own, now=LATER)
    [made] = fetch(own, queries.partition(days=3))

    assert made == 5 * len(PARENTS)
    for parent in PARENTS:
        days = {f"{parent}_203103{day:02}" for day in (9, 10, 11, 12, 13)}
        assert days < partitions(own, parent)
    assert fetch(own, queries.partition(days=3)) == [0]


def test_runs_are_archived_into_the_partition_of_the_day_they_finished(own: Db) -> None:
    clock = FakeClock(own, now=LATER)
    fetch(own, queries.partition(days=1))
    finished(own, 2)
    clock.advance(days=1)
    finished(own, 3)
    clock.advance(hours=2)
    archive(own)

    assert count(own, "byrote_archive_20310310") == 2
    assert count(own, "byrote_archive_20310311") == 3
    assert count(own, "byrote_events_20310311") == 3


def test_what_has_no_partition_lands_in_the_default_one(own: Db) -> None:
    clock = FakeClock(own, now=LATER)
    ids = finished(own, 2)
    clock.advance(hours=2)
    archive(own)

    assert ids_in(own, "byrote_archive_rest") == set(ids)
    assert count(own, "byrote_events_rest") == 3


def test_a_day_with_rows_in_the_default_partition_keeps_them_there(own: Db) -> None:
    clock = FakeClock(own, now=LATER)
    finished(own, 2)
    clock.advance(hours=2)
    archive(own)
    fetch(own, queries.partition(days=1))

    assert "byrote_archive_20310310" not in partitions(own, "byrote_archive")
    assert "byrote_events_20310310" not in partitions(own, "byrote_events")
    assert "byrote_archive_20310311" in partitions(own, "byrote_archive")
    finished(own, 1)
    assert count(own, "byrote_events_rest") == 6
    assert count(own, "byrote_runs") == 3


def test_making_partitions_never_makes_the_queue_wait_behind_an_open_transaction(
    own: Db, bare: DatabaseAddress
) -> None:
    """A transaction that enqueued stays open for an hour; all others must continue."""
    with bare.open("thinker") as thinker, bare.open("duty") as duty, thinker.transaction():
        enqueue(thinker)
        FakeClock(duty, now=LATER)
        error = enqueue_beside(own, duty, queries.partition(days=1))

    assert isinstance(error, psycopg.errors.LockNotAvailable)
    assert count(own, "byrote_task_runs") == 2


def test_a_success_that_was_archived_still_answers_for_its_result(db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db)
    finish(db, [success(claim(db)[0], "[1]")])
    clock.advance(hours=2)
    archive(db)

    assert fetch(db, queries.outcome(run_id))[0].result_json == "[1]"

# SPDX-License-Identifier: MIT
"""One locked row holds up nothing but itself: housekeeping, the beat, and the list of workers."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial

import pytest
from psycopg import sql

from byrote.assembly.identity import jitter, new_id
from byrote.core.errors import RowLocked
from byrote.core.json.codec import pack
from byrote.core.ports.store import PartContext
from byrote.core.schedule.schedule import turn_of
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.locks import archive_around
from byrote.store.maintenance import MaintenanceStore
from byrote.store.query import Query
from byrote.store.runners.sync import fetch
from byrote.store.worker import PostgresStore
from byrote.testing import FakeClock
from tests.store.queues.test_schedules import NOON, keep, made
from tests.store.retention.test_archive import START, finished
from tests.support import Db, claim, count, enqueue, register, run_of, verdict

LOCKED_FOR = "idle_in_transaction_session_timeout=20s"
"""A statement that waits for the row fails its test instead of holding it up for ever."""


@contextmanager
def locked(
    address: DatabaseAddress, table: str, column: str, value: str, *, some: bool = True
) -> Iterator[None]:
    """Lock rows, at least one if `some`, as a select_for_update() in a transaction does."""
    names = {"table": sql.Identifier(table), "column": sql.Identifier(column)}
    text = sql.SQL("select 1 from {table} where {column}::text = %s for update").format(**names)
    with address.open("somebody", LOCKED_FOR) as other, other.transaction():
        found = other.execute(text, (value,)).fetchone()
        assert found is not None or not some
        yield


@pytest.fixture
def db(db: Db) -> Db:
    """A connection on which a statement that waits fails."""
    db.execute("set lock_timeout = '2s'")
    return db


@pytest.fixture
def duties(address: DatabaseAddress) -> Iterator[MaintenanceStore]:
    line = PartContext("duties", lambda _s: False, lambda *_: None, jitter)
    made = PostgresStore(address).duties(line)
    yield made
    made.close()


def test_a_locked_run_is_archived_later_than_the_others(
    db: Db, address: DatabaseAddress, duties: MaintenanceStore
) -> None:
    stuck, *others = finished(db, 4)
    db.execute("update byrote_task_runs set finished_at = finished_at - interval '2 hours'")
    with locked(address, "byrote_task_runs", "result_id", stuck):
        assert duties.archive(after=START, limit=10).archived == len(others)
        assert duties.archive(after=START, limit=10).archived == 0
    assert count(db, "byrote_task_runs") == 1

    assert duties.archive(after=START, limit=10).archived == 1
    assert run_of(db, stuck).id == stuck


def test_both_ways_to_archive_do_the_same(db: Db) -> None:
    """One is sent as long as nothing is locked, since it costs half as much."""
    moved = []
    for archive in (partial(queries.archive, limit=2), partial(archive_around, limit=2)):
        ids = finished(db, 3)
        db.execute("update byrote_task_runs set finished_at = finished_at - interval '2 hours'")
        [step] = fetch(db, archive(after=START))
        moved.append((step.archived, step.seen, step.reached == ids[1], step.last == ids[1]))
        fetch(db, archive(after=START))

    assert moved == [(2, 2, True, True)] * 2
    assert count(db, "byrote_archive") == 6


def test_what_is_locked_is_pruned_later_than_the_rest(db: Db, address: DatabaseAddress) -> None:
    stuck, _ = finished(db, 2, "F")
    register(db, "silent", "default")
    db.execute("update byrote_dead set finished_at = finished_at - interval '1 year'")
    db.execute("update byrote_workers set seen_at = seen_at - interval '1 day'")
    with locked(address, "byrote_dead", "result_id", stuck):
        fetch(db, queries.prune())

    assert [row[0] for row in db.execute("select result_id::text from byrote_dead")] == [stuck]
    assert count(db, "byrote_workers") == 0


def test_a_locked_schedule_holds_up_no_other(
    db: Db, address: DatabaseAddress, clock: FakeClock
) -> None:
    clock.advance(seconds=(NOON - clock.now).total_seconds())
    keep(db, made("stuck"))
    keep(db, made("free"))
    clock.advance(minutes=1)
    due = list(map(turn_of, fetch(db, queries.schedules(due=True))))
    with locked(address, "byrote_periodic_tasks", "name", "stuck"):
        ticked = fetch(db, queries.tick(due))
    assert [tick.name for tick in ticked] == ["free"]

    due = list(map(turn_of, fetch(db, queries.schedules(due=True))))
    assert [tick.name for tick in fetch(db, queries.tick(due))] == ["stuck"]


def heartbeat() -> Query[list[str]]:
    return queries.heartbeat(worker="w", idle=True, stopping=False, running=0, finished=0)


def test_a_worker_whose_row_is_locked_goes_on_and_is_still_on_the_list(
    db: Db, address: DatabaseAddress
) -> None:
    register(db, "w", "default")
    with locked(address, "byrote_workers", "worker_id", "w"):
        assert fetch(db, heartbeat()) == [[]]
        assert fetch(db, queries.idle(worker="w", idle=True)) == []
        assert fetch(db, queries.deregister(worker="w")) == []
    assert [row.idle for row in fetch(db, queries.workers())] == [False]

    fetch(db, heartbeat())
    assert [row.idle for row in fetch(db, queries.workers())] == [True]


def test_a_locked_duty_is_not_waited_for(db: Db, address: DatabaseAddress) -> None:
    with locked(address, "byrote_duties", "duty", "archive"):
        every = {"archive": timedelta(0), "sweep": timedelta(0)}
        assert [duty.name for duty in fetch(db, queries.duties(worker="w", every=every))] == [
            "sweep"
        ]
        assert fetch(db, queries.save_cursor(duty="archive", cursor="here")) == []


def test_a_duty_that_meets_a_lock_is_postponed(
    address: DatabaseAddress, db: Db, duties: MaintenanceStore
) -> None:
    """It is due again in a moment; promoting and sweeping must not wait behind it."""
    [run_id] = enqueue(db)
    signal = queries.signal(run_id, new_id(), "paid", pack(None))
    with locked(address, "byrote_task_runs", "result_id", run_id), pytest.raises(RowLocked):
        duties._link.run(signal)


def test_a_statement_that_yields_leaves_no_timeout_behind(db: Db) -> None:
    enqueue(db, 2)
    good, bad = claim(db, 2)
    shown = []
    for query in (
        queries.renew([good], lease_for=timedelta(seconds=1)),
        queries.succeed([[good.id, good.token, 1, "1", "00", None]], provenance=None),
        queries.finish([verdict(bad, "F")]),
        queries.archive(after=START),
    ):
        assert fetch(db, query), query.name
        shown.append(db.execute("show lock_timeout").fetchone())

    assert shown == [("2s",)] * 4

# SPDX-License-Identifier: MIT
"""How far the log may be gone is noted by what drops it; whatever else is missing is found."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from byrote.assembly.identity import jitter
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import migrate
from byrote.store.runners.sync import fetch
from byrote.store.verify import verify_on
from byrote.testing import FakeClock
from tests.store.conftest import own_database
from tests.store.retention.test_archive import LATER
from tests.store.verify.test_verify import chain_all, found
from tests.support import Db, claim, count, enqueue, finish, success

DAY, WEEK = timedelta(days=1), timedelta(days=7)


@pytest.fixture(scope="module")
def past(server_url: str) -> Iterator[DatabaseAddress]:
    """Four runs on each of three days with partitions and three on a day without, all chained."""
    with own_database(server_url) as address, address.open("test") as db:
        migrate(address, jitter=jitter)
        clock = FakeClock(db, now=LATER)
        for _ in range(3):
            fetch(db, queries.partition(days=1))
            enqueue(db, 4)
            finish(db, [success(lease) for lease in claim(db, 2)])
            chain_all(db)
            clock.advance(days=1)
        clock.advance(days=1)
        enqueue(db, 3)
        chain_all(db)
        yield address


@pytest.fixture
def log(past: DatabaseAddress) -> Iterator[Db]:
    """The same for every test: what a test does to it is taken back."""
    with past.open("test") as db, db.transaction(force_rollback=True):
        yield db


def prune(db: Db, *, after: timedelta, keep: timedelta = WEEK) -> None:
    """Let retention do its work so long after the first day."""
    FakeClock(db, now=LATER + after)
    fetch(db, queries.prune(keep_events=keep))


def test_what_retention_dropped_is_not_missed(log: Db) -> None:
    """What began before is judged by what is left of it."""
    assert verify_on(log).findings == []
    prune(log, after=8 * DAY)
    assert count(log, "byrote_event_log") == 19
    assert verify_on(log).findings == []
    log.execute("update byrote_task_runs set attempts = 7 where enqueued_at = %s", (LATER,))

    assert found(verify_on(log)) == {"rows"}


def test_a_day_dropped_by_hand_is_a_finding(log: Db) -> None:
    log.execute("drop table byrote_events_20310310")
    report = verify_on(log)

    assert found(report) == {"rows", "chain"}
    assert report.counts["rows"] == 4


def test_deleted_rows_of_the_default_partition_are_a_finding(log: Db) -> None:
    """Rows of the default partition leave no hole that anybody could see."""
    assert count(log, "byrote_events_rest") == 1
    log.execute("delete from byrote_events_rest")

    assert found(verify_on(log)) == {"rows", "chain"}


def test_a_day_after_those_that_retention_dropped_is_missed(log: Db) -> None:
    prune(log, after=8 * DAY)
    log.execute("drop table byrote_events_20310311")

    assert found(verify_on(log)) == {"rows", "chain"}


def test_links_go_with_their_events_but_for_the_one_the_next_was_made_from(log: Db) -> None:
    whole = count(log, "byrote_chain")
    prune(log, after=9 * DAY)
    left = log.execute("select link from byrote_chain order by link").fetchall()

    assert 3 <= len(left) < whole
    assert verify_on(log).findings == []
    log.execute("delete from byrote_chain where link = %s", left[0])
    assert found(verify_on(log)) == {"chain"}


def test_a_horizon_only_moves_on_and_only_when_something_was_dropped(log: Db) -> None:
    def horizon() -> datetime:
        [asked] = fetch(log, queries.verify_scene())
        return asked.scene.horizon

    prune(log, after=8 * DAY, keep=9_000 * DAY)
    assert horizon().year == 1970
    prune(log, after=8 * DAY)
    assert horizon() == LATER.replace(day=11, hour=0)
    prune(log, after=8 * DAY, keep=9_000 * DAY)
    assert horizon() == LATER.replace(day=11, hour=0)
    prune(log, after=12 * DAY)

    assert horizon() == LATER.replace(day=15)

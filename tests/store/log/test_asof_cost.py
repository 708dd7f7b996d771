# SPDX-License-Identifier: MIT
"""The time machine reads the days it is asked about, however many there are."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from byrote.assembly.identity import jitter
from byrote.core.policy import Retry
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import migrate
from byrote.store.query import Query
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.store.conftest import own_database
from tests.store.retention.test_archive import LATER, archive
from tests.store.test_plans import nodes
from tests.support import Db, claim, enqueue, finish, success, verdict

DAY = timedelta(days=1)


def days_read(db: Db, query: Query[Any], parent: str) -> list[str]:
    """The days of which the statement really read something."""
    text = b"explain (analyze, format json) " + query.sql
    [[[found]]] = db.execute(text, query.args).fetchall()

    def read() -> Iterator[str]:
        for node in nodes(found["Plan"]):
            name = str(node.get("Relation Name", ""))
            if name.startswith(f"{parent}_") and node["Actual Loops"] > 0:
                yield name.rpartition("_")[2]

    return sorted(set(read()) - {"rest"})


@pytest.fixture(scope="module")
def past(server_url: str) -> Iterator[DatabaseAddress]:
    """Five days, on each of which a run is done and one dies; all that is done is archived."""
    with own_database(server_url) as address, address.open("test") as db:
        migrate(address, jitter=jitter)
        clock = FakeClock(db, now=LATER)
        for _ in range(5):
            fetch(db, queries.partition(days=1))
            enqueue(db, 2)
            done, dead = claim(db, 2)
            finish(db, [success(done), verdict(dead, "F")])
            clock.advance(hours=2)
            archive(db)
            clock.advance(hours=22)
        yield address


@pytest.fixture
def own(past: DatabaseAddress) -> Iterator[Db]:
    """The same for every test: what a test does to it is taken back."""
    with past.open("test") as db, db.transaction(force_rollback=True):
        yield db


@pytest.fixture
def week(own: Db) -> FakeClock:
    """The moment after those five days."""
    return FakeClock(own, now=LATER + 5 * DAY)


def test_a_run_is_looked_for_in_the_days_of_its_life(own: Db, week: FakeClock) -> None:
    rows = own.execute("select result_id::text from byrote_archive order by finished_at").fetchall()
    [third, running] = rows[2][0], enqueue(own)[0]

    assert days_read(own, queries.run_history(third), "byrote_events") == ["20310312"]
    assert days_read(own, queries.run_history(running), "byrote_events") == ["20310315"]
    assert len(fetch(own, queries.run_history(third))) == 3


def test_a_queue_is_looked_for_in_what_has_ended_since(own: Db, week: FakeClock) -> None:
    """Dead letters and what never moved are known by their rows: none of their days is read."""
    enqueue(own)
    then = week.now - DAY - timedelta(hours=1)
    shown = fetch(own, queries.runs_at(then))

    assert {(counted.status, counted.runs) for counted in shown} == {("FAILED", 4)}
    assert days_read(own, queries.runs_at(then), "byrote_archive") == ["20310314", "20310315"]
    assert days_read(own, queries.runs_at(then), "byrote_events") == []


@pytest.mark.parametrize(("letter", "days"), [("R", []), ("Z", ["20310315"])])
def test_what_moved_since_is_looked_for_from_its_last_attempt_on(
    own: Db, week: FakeClock, letter: str, days: list[str]
) -> None:
    """One sleeps for days after its first attempt, one runs; the row of a retry has its start."""
    enqueue(own, 2, retry=Retry(attempts=2))
    [waits, _runs] = claim(own, 2, lease_for=30 * DAY)
    finish(own, [verdict(waits, letter, delay_us=10 * 86_400_000_000)])
    week.advance(days=2)
    shown = fetch(own, queries.runs_at(week.now))

    assert {counted.status for counted in shown} == {"FAILED", "WAITING", "RUNNING"}
    assert days_read(own, queries.runs_at(week.now), "byrote_events") == days

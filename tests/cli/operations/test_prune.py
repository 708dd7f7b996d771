# SPDX-License-Identifier: MIT
"""`byrote prune` on a separate database, years from now."""

from collections.abc import Iterator
from datetime import datetime

import psycopg
import pytest

from byrote.assembly.identity import jitter
from byrote.store import migrate, queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.cli.console import byrote
from tests.store.retention.test_archive import LATER, archive, finished, ids_in, partitions
from tests.support import Db, count


@pytest.fixture
def old(bare_url: str) -> Iterator[Db]:
    """Two runs that ended well and one that is dead, all of one day."""
    address = DatabaseAddress(bare_url)
    migrate.migrate(address, jitter=jitter)
    with psycopg.connect(bare_url, autocommit=True) as db:
        clock = FakeClock(db, now=LATER)
        fetch(db, queries.partition(days=2))
        finished(db, 2)
        finished(db, 1, "F")
        clock.advance(hours=2)
        archive(db)
        yield db


def at(url: str, moment: str) -> str:
    """A connection to the database at that moment."""
    assert datetime.fromisoformat(moment) > LATER
    return psycopg.conninfo.make_conninfo(url, options=f"-c byrote.now={moment}")


def test_a_dry_run_lists_what_would_be_deleted_and_deletes_nothing(bare_url: str, old: Db) -> None:
    then = at(bare_url, "2031-07-01T00:00:00+00")
    told = byrote("prune", "--dry-run", "--json", url=then).object
    words = byrote("prune", "--dry-run", url=then).out

    assert told["dry_run"] is True
    assert (told["done_days"] > 0, told["events_days"] > 0, told["dead"]) == (True, True, 1)
    assert "nothing was deleted" in words
    assert "to 2031-" in words
    assert (count(old, "byrote_runs"), count(old, "byrote_archive")) == (3, 2)


def test_pruning_forgets_what_the_dry_run_named(bare_url: str, old: Db) -> None:
    then = at(bare_url, "2031-07-01T00:00:00+00")
    before = byrote("prune", "--dry-run", "--json", url=then).object
    told = byrote("prune", "--json", url=then).object
    after = byrote("prune", "--json", url=then).object

    assert {**before, "dry_run": False, "steps": 0, "memos": 0, "artifacts": 0} == told
    assert (after["done_days"], after["events_days"], after["dead"]) == (0, 0, 0)
    assert ids_in(old, "byrote_runs") == set()
    assert "byrote_archive_20310310" not in partitions(old, "byrote_archive")


def test_nothing_is_deleted_early_unless_requested(bare_url: str, old: Db) -> None:
    then = at(bare_url, "2031-03-20T00:00:00+00")

    assert byrote("prune", "--json", url=then).object["dead"] == 0
    assert count(old, "byrote_runs") == 3
    assert byrote("prune", "--keep-dead", "1h", "--json", url=then).object["dead"] == 1
    assert count(old, "byrote_runs") == 2
    assert byrote("prune", "--keep-done", "7d", "--json", url=then).object["done_days"] > 0
    assert count(old, "byrote_runs") == 0
    assert count(old, "byrote_events") > 0
    byrote("prune", "--keep-events", "1d", url=then)
    assert count(old, "byrote_events") == 0


def test_an_option_overrides_the_setting_of_a_queue(bare_url: str, old: Db) -> None:
    old.execute(
        "insert into byrote_queues (queue_name, keep_done, keep_dead) values "
        "('default', '9 years', '9 years')"
    )
    then = at(bare_url, "2031-07-01T00:00:00+00")

    byrote("prune", url=then)
    assert count(old, "byrote_runs") == 3
    byrote("prune", "--keep-done", "7d", "--keep-dead", "7d", url=then)
    assert count(old, "byrote_runs") == 0


def test_a_queue_may_keep_what_is_done_for_a_shorter_time(bare_url: str, old: Db) -> None:
    old.execute("insert into byrote_queues (queue_name, keep_done) values ('default', '3 days')")

    byrote("prune", url=at(bare_url, "2031-03-15T00:00:00+00"))

    assert ids_in(old, "byrote_archive") == set()


@pytest.mark.parametrize("option", ["--keep-done", "--keep-events"])
def test_less_than_a_day_of_what_goes_by_the_day_is_refused(option: str) -> None:
    said = byrote("prune", option, "1h")

    assert said.code == 2
    assert "the minimum is 1d" in said.err

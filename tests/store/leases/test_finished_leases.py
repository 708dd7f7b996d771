# SPDX-License-Identifier: MIT
"""How far the log can be read: up to what this database may still write."""

import psycopg

from byrote.core.log.cursor import BEGINNING
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from tests.support import Db, enqueue


def seen(db: Db) -> int:
    """Events that a reader of the stream is given."""
    return len(fetch(db, queries.log_after(BEGINNING)))


def test_a_transaction_of_this_database_keeps_later_events_back(
    db: Db, address: DatabaseAddress
) -> None:
    with address.open("late") as late:
        with late.transaction():
            [first] = enqueue(late)
            enqueue(db)
            assert seen(db) == 0
        told = fetch(db, queries.log_after(BEGINNING))

    assert [entry.run for event in told for entry in event][:1] == [first]
    assert len(told) == 2


def test_its_own_transaction_keeps_its_own_events_back(db: Db) -> None:
    enqueue(db)
    with db.transaction():
        enqueue(db)
        assert seen(db) == 1

    assert seen(db) == 2


def test_a_transaction_of_another_database_keeps_nothing_back(db: Db, server_url: str) -> None:
    with psycopg.connect(server_url) as stranger:
        stranger.execute("select pg_current_xact_id()")
        enqueue(db)
        [low] = db.execute("select pg_snapshot_xmin(pg_current_snapshot())::text").fetchone() or ()
        [theirs] = stranger.execute("select pg_current_xact_id()::text").fetchone() or ()

        assert int(low) <= int(theirs)
        assert seen(db) == 1

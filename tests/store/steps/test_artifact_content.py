# SPDX-License-Identifier: MIT
"""Contents of small artifacts: stored without locking them, and deleted when nothing uses them."""

import hashlib
from queue import SimpleQueue
from typing import Any

import pytest

from byrote.assembly.identity import jitter
from byrote.core.ports.executor import Ask, Asks
from byrote.core.ports.store import PartContext
from byrote.core.run import Leased
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.store.verify import verify
from byrote.store.worker import PostgresStore
from byrote.testing import FakeClock
from byrote.worker.asks.artifacts import artifact_answers
from byrote.worker.asks.ask_server import AskServer
from tests.store.steps.test_artifact import keep, lease
from tests.store.test_locks import locked
from tests.support import Db, count

X = "\\x" + hashlib.sha256(b"x").hexdigest()


@pytest.fixture
def db(db: Db) -> Db:
    """A connection on which a statement that waits fails."""
    db.execute("set lock_timeout = '500ms'")
    return db


def prune(db: Db) -> int:
    [walked] = fetch(db, queries.prune_blobs(after=""))
    return walked.removed


def age(db: Db) -> None:
    """Let the marks be two hours older."""
    db.execute("update byrote_artifact_blobs set unused_since = unused_since - interval '2 hours'")


def unused(db: Db) -> None:
    """Store the content `x` and delete its only artifact; the mark is two hours old."""
    keep(db, lease(db))
    db.execute("delete from byrote_artifacts")
    prune(db)
    age(db)


def dangling(db: Db) -> int:
    """Number of artifacts without their content."""
    text = "select count(*) from byrote_artifacts left join byrote_artifact_blobs as blob "
    [[found]] = db.execute(text + "using (hash) where blob.hash is null")
    return int(found)


def test_a_locked_content_delays_no_artifact_with_this_content(
    db: Db, address: DatabaseAddress
) -> None:
    keep(db, lease(db))
    with locked(address, "byrote_artifact_blobs", "hash", X):
        assert keep(db, lease(db)) == "stored"
        with address.open("other") as other, other.transaction():
            other.execute("update byrote_artifacts set at = at")
            assert keep(db, lease(db)) == "stored"

    assert verify(address).findings == []


def test_a_content_whose_row_is_being_changed_delays_no_artifact_either(
    db: Db, address: DatabaseAddress
) -> None:
    keep(db, lease(db))
    with address.open("other") as other, other.transaction():
        other.execute("update byrote_artifact_blobs set size = size")
        assert keep(db, lease(db)) == "stored"


def test_an_unused_content_is_deleted_an_hour_after_it_was_found(db: Db, clock: FakeClock) -> None:
    keep(db, lease(db))
    assert prune(db) == 0
    db.execute("delete from byrote_artifacts")
    for minutes in (0, 59):
        clock.advance(minutes=minutes)
        assert prune(db) == 0
    clock.advance(minutes=2)

    assert prune(db) == 1
    assert count(db, "byrote_artifact_blobs") == 0


def test_an_unused_content_that_is_stored_again_stays(db: Db, address: DatabaseAddress) -> None:
    unused(db)
    with address.open("storing") as storing, storing.transaction():
        assert keep(storing, lease(db)) == "stored"
        assert prune(db) == 0

    assert prune(db) == 0
    assert (count(db, "byrote_artifacts"), dangling(db)) == (1, 0)


def test_a_content_that_is_marked_while_it_is_stored_again_stays(
    db: Db, address: DatabaseAddress
) -> None:
    keep(db, lease(db))
    db.execute("delete from byrote_artifacts")
    with address.open("storing") as storing, storing.transaction():
        assert keep(storing, lease(db)) == "stored"
        prune(db)
    age(db)

    assert prune(db) == 0
    [[mark]] = db.execute("select unused_since from byrote_artifact_blobs")
    assert mark is None
    assert (count(db, "byrote_artifacts"), dangling(db)) == (1, 0)


def test_the_lock_of_an_unused_content_delays_only_artifacts_with_this_content(
    db: Db, address: DatabaseAddress
) -> None:
    unused(db)
    held = lease(db)
    with locked(address, "byrote_artifact_blobs", "hash", X):
        assert [keep(db, held), keep(db, held, name="y", data=b"y")] == ["locked", "stored"]

    assert keep(db, held) == "stored"
    assert prune(db) == 0


def ask_for(held: Leased, data: bytes, answers: SimpleQueue[Any]) -> Ask:
    fields = {"name": "n", "size": len(data), "media_type": "a/b", "location": "postgres"}
    payload = fields | {"data": data, "hash": hashlib.sha256(data).digest()}
    return Ask(held, "artifact.store", payload, lambda *answer: answers.put((data, *answer)))


def test_a_worker_stores_other_artifacts_while_one_waits_for_its_content(
    db: Db, address: DatabaseAddress
) -> None:
    unused(db)
    held = [lease(db), lease(db)]
    asks: Asks = SimpleQueue()
    answers: SimpleQueue[Any] = SimpleQueue()
    part = PartContext("ask", lambda _s: False, lambda *_: None, jitter)
    rows = PostgresStore(address).artifact_rows(part)
    server = AskServer(rows, asks, artifact_answers(None, 100))
    with locked(address, "byrote_artifact_blobs", "hash", X):
        asks.put(ask_for(held[0], b"x", answers))
        asks.put(ask_for(held[1], b"y", answers))
        asks.put(None)
        server.run()
        found = [answers.get(timeout=0)[:2] for _ in held]
    rows.close()

    assert found == [(b"y", True), (b"x", False)]

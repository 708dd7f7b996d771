# SPDX-License-Identifier: MIT
import hashlib
from typing import Any

import psycopg
import pytest

from byrote.assembly.identity import new_token
from byrote.core.artifact import COUNT_MAX
from byrote.core.run import Leased
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import Db, claim, count, enqueue, finish, success, verdict


def keep(db: Db, lease: Leased, name: str = "x", data: bytes = b"x", **more: Any) -> str:
    query = queries.artifact(
        lease,
        name=name,
        digest=more.get("digest", hashlib.sha256(data).digest()),
        size=len(data),
        media_type="text/plain",
        location=more.get("location", "postgres"),
        data=more.get("sent", data),
    )
    [keeping] = fetch(db, query)
    return keeping.verdict


def lease(db: Db) -> Leased:
    enqueue(db)
    [leased] = claim(db)
    return leased


def test_the_holder_of_a_lease_stores_once_however_often_it_asks(db: Db) -> None:
    held = lease(db)

    assert [keep(db, held), keep(db, held)] == ["stored", "same"]
    assert keep(db, held, data=b"y") == "taken"
    [entry] = fetch(db, queries.artifacts(held.id))
    assert (entry.run_id, entry.attempt, entry.name, entry.size) == (held.id, 1, "x", 1)
    assert fetch(db, queries.blob(entry.hash)) == [b"x"]


@pytest.mark.parametrize("way", ["token", "expired", "finished", "unknown"])
def test_only_the_holder_of_an_unexpired_lease_can_write(
    db: Db, clock: FakeClock, way: str
) -> None:
    held = lease(db)
    match way:
        case "token":
            held.token = new_token()
        case "expired":
            clock.advance(seconds=31)
        case "finished":
            finish(db, [success(held)])
        case "unknown":
            held.id = "01932c4e-8d5b-7a90-b1c2-3d4e5f607182"

    assert keep(db, held) == "lost"
    assert count(db, "byrote_artifacts") == count(db, "byrote_artifact_blobs") == 0


def test_each_attempt_has_its_own_names(db: Db) -> None:
    first = lease(db)
    keep(db, first, data=b"1")
    finish(db, [verdict(first, "Z", delay_us=0)])
    [second] = claim(db)

    assert keep(db, second, data=b"2") == "stored"
    assert [e.attempt for e in fetch(db, queries.artifacts(first.id))] == [1, 2]


def test_a_full_run_is_refused_more(db: Db) -> None:
    held = lease(db)
    db.execute(
        """insert into byrote_artifacts
             (result_id, at, size, attempt, name, hash, media_type, location)
           select %s, now(), 0, 1, 'n' || n, sha256(''), 'a/b', 'file:///'
           from generate_series(2, %s) as n""",
        (held.id, COUNT_MAX),
    )

    assert [keep(db, held, "last"), keep(db, held, "more")] == ["stored", "full"]


def test_a_content_that_has_another_hash_is_refused(db: Db) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        keep(db, lease(db), digest=hashlib.sha256(b"other").digest())
    assert count(db, "byrote_artifacts") == 0


def test_equal_contents_share_one_blob(db: Db) -> None:
    for _ in range(3):
        assert keep(db, lease(db)) == "stored"

    assert (count(db, "byrote_artifacts"), count(db, "byrote_artifact_blobs")) == (3, 1)

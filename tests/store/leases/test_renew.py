# SPDX-License-Identifier: MIT
from datetime import timedelta

import msgspec

from byrote.assembly.identity import new_token
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import LEASE, Db, claim, count, enqueue, finish, history, run_of, success


def test_a_renewal_extends_every_lease_that_is_held_in_one_statement(
    db: Db, clock: FakeClock
) -> None:
    ids = enqueue(db, 3)
    leases = claim(db, 3)
    clock.advance(seconds=20)
    renewed = fetch(db, queries.renew(leases, lease_for=LEASE))

    assert sorted(renewal.id for renewal in renewed) == sorted(ids)
    assert {run_of(db, run_id).leased_until for run_id in ids} == {clock.now + LEASE}
    assert not any(renewal.cancel for renewal in renewed)


def test_a_renewed_lease_outlives_its_first_term(db: Db, clock: FakeClock) -> None:
    enqueue(db)
    [lease] = claim(db)
    for _ in range(5):
        clock.advance(seconds=20)
        assert len(fetch(db, queries.renew([lease], lease_for=LEASE))) == 1
        assert fetch(db, queries.sweep()) == []

    assert finish(db, [success(lease)]) == [lease.id]


def test_a_lease_cannot_be_renewed_at_the_moment_it_ends(db: Db, clock: FakeClock) -> None:
    """P3: expiry is the database's word, to the microsecond."""
    enqueue(db)
    [lease] = claim(db)
    clock.advance(seconds=30)

    assert fetch(db, queries.renew([lease], lease_for=LEASE)) == []
    assert run_of(db, lease.id).leased_until == clock.now


def test_only_the_token_of_the_claim_renews(db: Db) -> None:
    enqueue(db, 2)
    mine, other = claim(db, 2)
    forged = msgspec.structs.replace(other, token=new_token())
    renewed = fetch(db, queries.renew([mine, forged], lease_for=timedelta(hours=1)))

    assert [renewal.id for renewal in renewed] == [mine.id]


def test_a_settled_run_cannot_be_renewed(db: Db) -> None:
    enqueue(db)
    [lease] = claim(db)
    finish(db, [success(lease)])

    assert fetch(db, queries.renew([lease], lease_for=LEASE)) == []


def test_a_renewal_returns_the_cancel_request(db: Db) -> None:
    enqueue(db, 2)
    unwanted, wanted = claim(db, 2)
    fetch(db, queries.cancel([unwanted.id]))
    renewed = fetch(db, queries.renew([unwanted, wanted], lease_for=LEASE))

    assert {renewal.id: renewal.cancel for renewal in renewed} == {
        unwanted.id: True,
        wanted.id: False,
    }


def test_a_renewal_is_an_event_and_an_empty_one_is_not(db: Db) -> None:
    [run_id] = enqueue(db)
    leases = claim(db)
    fetch(db, queries.renew(leases, lease_for=LEASE))
    fetch(db, queries.renew([], lease_for=LEASE))

    assert history(db, run_id) == ["Enqueued", "Claimed", "Renewed"]
    assert count(db, "byrote_events") == 3

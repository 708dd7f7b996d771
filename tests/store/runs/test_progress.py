# SPDX-License-Identifier: MIT
from typing import Any

import msgspec
import psycopg
import pytest

from byrote.core.policy import Retry
from byrote.core.progress import Progress, report_of
from byrote.core.run import Leased
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.store.verify import verify
from byrote.testing import FakeClock
from tests.store.steps.test_step import leased
from tests.support import Db, claim, count, enqueue, finish, run_of, success, verdict

ERROR = {"kind": "raised", "type": "ValueError", "message": "no"}


def row(lease: Leased, *said: Any) -> dict[str, Any]:
    """A report as progress.sql reads it."""
    return {**msgspec.structs.asdict(report_of(*said)), "id": lease.id, "token": lease.token}


def tell(db: Db, lease: Leased, *said: Any) -> list[str]:
    return fetch(db, queries.progress([row(lease, *said)]))


def seen(db: Db, run_id: str) -> Progress:
    found = run_of(db, run_id).progress
    assert found is not None
    return found


def test_the_latest_report_is_what_a_run_shows(db: Db, clock: FakeClock) -> None:
    lease = leased(db)
    assert run_of(db, lease.id).progress is None
    assert tell(db, lease, 100, 1_000, "reading", {"file": "a"}) == [lease.id]
    clock.advance(seconds=10)
    tell(db, lease, 300, 1_000, "importing", {"file": "b"})
    found = seen(db, lease.id)

    assert (found.percent, found.done, found.total) == (30.0, 300.0, 1_000.0)
    assert (found.message, found.data, found.attempt) == ("importing", {"file": "b"}, 1)
    assert found.at == clock.now
    assert found.eta is not None
    assert (found.eta - found.at).total_seconds() == 35
    assert count(db, "byrote_progress") == 1


def test_a_batch_reports_many_runs(db: Db) -> None:
    enqueue(db, 3)
    leases = claim(db, 3)
    heard = fetch(db, queries.progress([row(lease, 50) for lease in leases]))

    assert sorted(heard) == sorted(lease.id for lease in leases)


def test_only_the_holder_of_the_lease_can_report(db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db)
    [late] = claim(db)
    clock.advance(minutes=5)
    assert tell(db, late, 50) == []
    fetch(db, queries.sweep())
    assert tell(db, late, 50) == []
    [current] = claim(db)
    assert tell(db, late, 60) == []
    tell(db, current, 10)
    finish(db, [success(current)])

    assert tell(db, current, 100) == []
    assert seen(db, run_id).percent == 10.0


def test_a_new_attempt_measures_its_own_pace(db: Db, clock: FakeClock) -> None:
    enqueue(db, retry=Retry(attempts=2))
    [lease] = claim(db)
    tell(db, lease, 10)
    clock.advance(seconds=15)
    tell(db, lease, 90)
    finish(db, [verdict(lease, "R", delay_us=0, error={**ERROR, "attempt": 1})])
    retrying = seen(db, lease.id)
    [again] = claim(db)
    tell(db, again, 20)
    fresh = seen(db, lease.id)
    clock.advance(seconds=10)
    tell(db, again, 30)
    paced = seen(db, lease.id)

    assert (retrying.percent, retrying.retrying) == (0.0, True)
    assert (fresh.attempt, fresh.percent, fresh.eta, fresh.retrying) == (2, 20.0, None, False)
    assert paced.eta is not None
    assert (paced.eta - clock.now).total_seconds() == 70


def test_a_phase_that_begins_anew_measures_its_own_pace(db: Db, clock: FakeClock) -> None:
    lease = leased(db)
    tell(db, lease, 90)
    clock.advance(seconds=15)
    tell(db, lease, 0, 10, "second phase")
    clock.advance(seconds=1)
    tell(db, lease, 1, 10, "second phase")
    found = seen(db, lease.id)

    assert found.eta is not None
    assert (found.eta - clock.now).total_seconds() == 9


def test_the_table_itself_refuses_invalid_progress(db: Db) -> None:
    lease = leased(db)
    for wrong in ({"percent": 101}, {"percent": -1}, {"message": "x" * 501}, {"total": 1}):
        with pytest.raises(psycopg.errors.CheckViolation):
            fetch(db, queries.progress([{**row(lease, 50), **wrong}]))


def test_a_verifier_sees_progress_that_was_written_without_a_lease(
    db: Db, address: DatabaseAddress, clock: FakeClock
) -> None:
    lease = leased(db)
    tell(db, lease, 50)
    finish(db, [success(lease)])
    assert verify(address).findings == []
    db.execute("update byrote_progress set at = at + interval '1 day'")
    [found] = verify(address).findings

    assert "progress was written" in found.message

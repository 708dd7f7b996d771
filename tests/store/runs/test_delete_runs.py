# SPDX-License-Identifier: MIT
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.store.verify import verify
from byrote.testing import FakeClock
from tests.store.runs.test_progress import tell
from tests.store.steps.test_artifact import keep
from tests.store.steps.test_step import line, note
from tests.support import Db, claim, count, enqueue, finish, history, success, verdict

NOWHERE = "00000000-0000-0000-0000-000000000000"


def test_ended_runs_of_every_kind_are_deleted_and_nothing_misses_them(
    db: Db, clock: FakeClock, address: DatabaseAddress
) -> None:
    old, good, dead, cancelled, ready, running = enqueue(db, 6)
    finish(db, [success(claim(db)[0])])
    clock.advance(hours=2)
    fetch(db, queries.archive(after=NOWHERE))
    [second] = claim(db)
    note(db, line(second, 1, "charge"))
    keep(db, second)
    tell(db, second, 50)
    finish(db, [success(second)])
    finish(db, [verdict(claim(db)[0], "F")])
    fetch(db, queries.cancel([cancelled]))
    [held] = claim(db)

    gone = fetch(db, queries.delete_runs([old, good, dead, cancelled, ready, running]))

    assert set(gone) == {old, good, dead, cancelled}
    assert held.id == ready
    assert [history(db, run_id)[-1] for run_id in gone] == ["Deleted"] * 4
    assert (count(db, "byrote_runs"), count(db, "byrote_steps")) == (2, 0)
    assert count(db, "byrote_progress") == 0
    assert fetch(db, queries.delete_runs(gone)) == []
    assert verify(address).findings == []

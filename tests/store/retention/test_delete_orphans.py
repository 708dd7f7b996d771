# SPDX-License-Identifier: MIT
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.store.retention.test_archive import LATER, archive
from tests.store.retention.test_prune import prune
from tests.store.runs.test_progress import tell
from tests.store.runs.test_signal import signal
from tests.store.steps.test_step import leased, line, note
from tests.support import Db, count, finish, verdict

TABLES = ("byrote_steps", "byrote_signals", "byrote_once", "byrote_progress")


def busy_run(db: Db, letter: str = "") -> str:
    """A run with a step, a signal, a mark and progress, that ended like this."""
    lease = leased(db)
    note(db, line(lease, 1, "a", 1))
    signal(db, lease.id)
    fetch(db, queries.once(lease.id, "charge"))
    tell(db, lease, 50)
    if letter:
        finish(db, [verdict(lease, letter, delay_us=10**18)])
    return lease.id


def counts(db: Db) -> list[int]:
    return [count(db, table) for table in TABLES]


def test_what_belongs_to_a_pruned_run_goes_with_it(own: Db) -> None:
    clock = FakeClock(own, now=LATER)
    fetch(own, queries.partition(days=1))
    busy_run(own, "S")
    clock.advance(hours=2)
    archive(own)
    clock.advance(days=29, hours=10)
    prune(own)
    assert fetch(own, queries.delete_orphans()) == [(0, 0, 0, 0)]
    clock.advance(days=1)
    prune(own)

    assert fetch(own, queries.delete_orphans()) == [(1, 1, 1, 1)]
    assert counts(own) == [0, 0, 0, 0]


def test_what_belongs_to_a_dead_run_goes_with_its_dead_letter(db: Db, clock: FakeClock) -> None:
    busy_run(db, "F")
    clock.advance(days=89)
    prune(db)
    assert fetch(db, queries.delete_orphans()) == [(0, 0, 0, 0)]
    clock.advance(days=2)
    prune(db)

    assert counts(db) == [0, 0, 0, 0]


def test_a_run_that_waits_for_years_keeps_its_first_step(db: Db, clock: FakeClock) -> None:
    busy_run(db, "Z")
    clock.advance(days=2_000)
    prune(db)

    assert fetch(db, queries.delete_orphans()) == [(0, 0, 0, 0)]
    assert counts(db) == [1, 1, 1, 1]


def test_only_so_much_is_forgotten_in_one_go(db: Db, clock: FakeClock) -> None:
    for _ in range(5):
        busy_run(db, "S")
    db.execute("delete from byrote_task_runs")
    clock.advance(days=31)

    assert fetch(db, queries.delete_orphans(limit=3)) == [(3, 3, 3, 3)]
    assert fetch(db, queries.delete_orphans(limit=3)) == [(2, 2, 2, 2)]

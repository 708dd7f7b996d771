# SPDX-License-Identifier: MIT
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from byrote.core.ports.replies import Duty
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import Db

EVERY = {"promote": timedelta(seconds=1), "sweep": timedelta(seconds=10)}


def take(db: Db, worker: str = "w") -> set[str]:
    return {duty.name for duty in fetch(db, queries.duties(worker=worker, every=EVERY))}


def test_a_duty_is_taken_when_it_is_due_and_then_rests(db: Db, clock: FakeClock) -> None:
    assert take(db) == {"promote", "sweep"}
    assert take(db, "other") == set()
    clock.advance(seconds=1)
    assert take(db, "other") == {"promote"}
    clock.advance(seconds=9)
    assert take(db) == {"promote", "sweep"}


def test_duties_go_on_after_the_clock_was_set_back(db: Db, clock: FakeClock) -> None:
    """What was put off by a clock that was ahead is not put off until it comes there again."""
    take(db)
    clock.advance(minutes=-10)

    assert take(db) == {"promote", "sweep"}
    assert take(db, "other") == set()


def test_only_duties_that_were_asked_for_are_taken(db: Db) -> None:
    take(db)
    rest = fetch(db, queries.duties(worker="w", every={"prune": timedelta(hours=1)}))

    assert [duty.name for duty in rest] == ["prune"]


def test_a_duty_that_another_worker_is_taking_is_skipped(db: Db, address: DatabaseAddress) -> None:
    with address.open("other") as other, other.transaction():
        other.execute("select 1 from byrote_duties where duty = 'sweep' for update")

        assert take(db) == {"promote"}


def test_of_many_workers_at_once_each_duty_has_one_taker(db: Db, address: DatabaseAddress) -> None:
    def work(worker: str) -> set[str]:
        with address.open(worker) as connection:
            return take(connection, worker)

    with ThreadPoolExecutor(8) as pool:
        taken = [name for names in pool.map(work, map(str, range(16))) for name in names]

    assert sorted(taken) == ["promote", "sweep"]


def test_a_duty_remembers_how_far_it_came(db: Db, clock: FakeClock) -> None:
    every = {"archive": timedelta(seconds=5)}
    assert fetch(db, queries.duties(worker="w", every=every)) == [Duty("archive", None)]
    fetch(db, queries.save_cursor(duty="archive", cursor="here"))
    clock.advance(seconds=5)

    assert fetch(db, queries.duties(worker="v", every=every)) == [Duty("archive", "here")]

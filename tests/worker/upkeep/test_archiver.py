# SPDX-License-Identifier: MIT
"""Archiving keeps up with what ends, also beside work, when there is hardly time to look around."""

from itertools import count as counting

import pytest

from byrote.core.ports.replies import Archived
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from byrote.worker.upkeep.archiver import STEP, Archiver
from tests.support import Db, claim, count, enqueue, finish, verdict

BUSY_S = 0.0
"""No time for the walk at all."""


class Walk:
    """An archivist on a real table, whose clock stands still; counts its steps."""

    def __init__(self, db: Db, clock: FakeClock) -> None:
        self.db = db
        self.steps = 0
        ticks = counting()
        # The time passes with the looks at it: a walk of no patience makes no step.
        self.archivist = Archiver(self._archive, lambda: clock.now.timestamp() + next(ticks) * 1e-4)

    def _archive(self, after: str, limit: int) -> Archived:
        self.steps += 1
        [step] = fetch(self.db, queries.archive(after=after, limit=limit))
        return step

    def turn(self, patience_s: float = BUSY_S) -> int:
        """One turn from the beginning of the table; how many runs are left in the hot one."""
        self.steps = 0
        self.archivist.turn("00000000-0000-0000-0000-000000000000", patience_s=patience_s)
        return count(self.db, "byrote_task_runs")


@pytest.fixture
def walk(db: Db, clock: FakeClock) -> Walk:
    return Walk(db, clock)


def end(db: Db, many: int) -> None:
    """So many runs that succeed."""
    enqueue(db, many)
    finish(db, [verdict(lease, "S") for lease in claim(db, many)])


def test_what_has_ended_does_not_pile_up_however_busy_the_worker(
    db: Db, clock: FakeClock, walk: Walk
) -> None:
    end(db, 5 * STEP)
    clock.advance(minutes=61)
    end(db, 2 * STEP)

    assert walk.turn() == 2 * STEP


def test_the_front_is_found_again_without_a_walk_over_what_stays(
    db: Db, clock: FakeClock, walk: Walk
) -> None:
    end(db, 2 * STEP)
    clock.advance(minutes=30)
    end(db, STEP)
    clock.advance(minutes=31)
    end(db, 10 * STEP)

    assert walk.turn() == 11 * STEP
    assert walk.steps == 3

    clock.advance(minutes=30)
    assert walk.turn() == 10 * STEP
    assert walk.steps == 2


def test_runs_that_wait_at_the_beginning_do_not_hide_the_front(
    db: Db, clock: FakeClock, walk: Walk
) -> None:
    enqueue(db, 2 * STEP)  # In the way, and never claimed: they rank behind the others.
    db.execute("update byrote_task_runs set rank = rank + 1000000000000000")
    end(db, 4 * STEP)
    clock.advance(minutes=61)

    assert walk.turn() == 6 * STEP
    assert walk.turn(patience_s=4e-4) == 5 * STEP
    assert walk.turn() == 2 * STEP


def test_what_another_queue_kept_for_longer_does_not_lead_away_from_the_front(
    db: Db, clock: FakeClock, walk: Walk
) -> None:
    db.execute("insert into byrote_queues (queue_name, archive_after) values ('slow', '2h')")
    end(db, STEP)
    clock.advance(minutes=30)
    end(db, STEP)
    db.execute("update byrote_task_runs set queue_name = 'slow'")
    for minutes in (1, 29, 20):
        clock.advance(minutes=minutes)
        end(db, STEP)
    clock.advance(minutes=12)
    assert walk.turn(patience_s=1e-2) == 4 * STEP  # After 92 minutes: the third of five.

    clock.advance(minutes=30)
    assert walk.turn(patience_s=1e-2) == 2 * STEP  # The first, of the slow queue, and the fourth.

    clock.advance(minutes=19)
    assert walk.turn() == STEP  # The fifth; the second is the slow queue's, and in the way.


def test_a_table_without_anything_old_is_not_walked_all_the_time(
    db: Db, clock: FakeClock, walk: Walk
) -> None:
    end(db, 5 * STEP)
    walk.turn(patience_s=1.0)
    assert walk.steps > 5

    clock.advance(seconds=30)
    walk.turn(patience_s=1.0)
    assert walk.steps == 1  # At the front.

    clock.advance(seconds=31)
    walk.turn(patience_s=1.0)
    assert walk.steps > 5

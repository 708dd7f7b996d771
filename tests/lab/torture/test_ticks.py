# SPDX-License-Identifier: MIT
"""A tick without a run, and one with two, are noticed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from byrote.core.schedule.schedule import turn_of
from byrote.lab.torture import ticks
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import Db, enqueue

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def beat(db: Db) -> None:
    fetch(db, queries.tick(list(map(turn_of, fetch(db, queries.schedules(due=True))))))


def test_every_tick_must_have_its_run_and_only_one(
    db: Db, clock: FakeClock, tmp_path: Path
) -> None:
    ticks.begin(db, tmp_path)
    clock.advance(seconds=5)
    beat(db)
    assert ticks.judge_ticks(db) == (5, [])

    clock.advance(seconds=2)
    db.execute("update byrote_periodic_tasks set next_at = next_at + interval '1 second'")
    beat(db)
    [missed] = ticks.judge_ticks(db)[1]
    assert (NOON + timedelta(seconds=6)).isoformat() in missed.message

    tick = f"{NOON + timedelta(seconds=6):%Y-%m-%dT%H:%M:%SZ}"
    enqueue(db, 2, task="torture.quick", labels={"schedule": "torture", "tick": tick})
    [twice] = ticks.judge_ticks(db)[1]
    assert "has 2 runs" in twice.message

    ticks.end(db)
    assert fetch(db, queries.schedules(due=True)) == []

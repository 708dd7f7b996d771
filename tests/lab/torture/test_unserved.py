# SPDX-License-Identifier: MIT
"""Runs that no worker serves end in time, once, and nothing else ends so."""

import pytest

from byrote.assembly.identity import new_id
from byrote.lab.torture import unserved
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import Db, enqueue, register


def end_unserved(db: Db, clock: FakeClock) -> None:
    """What workers do every ten seconds, for half a minute."""
    for _ in range(3):
        register(db, "w", "default")
        fetch(db, queries.note_unserved())
        clock.advance(seconds=10)
        fetch(db, queries.fail_unserved(limit=100))


def test_runs_that_no_worker_knows_end_in_time(db: Db, clock: FakeClock) -> None:
    fetch(db, queries.enqueue([(new_id(), spec) for spec in unserved.begin(db)]))
    end_unserved(db, clock)

    assert unserved.judge_unserved(db) == (unserved.RUNS, [])


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("update byrote_dead set finished_at = enqueued_at + interval '1 second'", "before its"),
        ("update byrote_dead set errors_json = errors_json || errors_json", "2 errors"),
        ("update byrote_dead set task_path = 'torture.quick'", "every worker knows"),
    ],
)
def test_an_end_that_must_not_be_is_noticed(
    db: Db, clock: FakeClock, change: str, found: str
) -> None:
    [spec, *_] = unserved.begin(db)
    fetch(db, queries.enqueue([(new_id(), spec)]))
    end_unserved(db, clock)
    db.execute(change)  # type: ignore[call-overload]

    [violation] = unserved.judge_unserved(db)[1]
    assert found in violation.message


def test_a_run_that_still_waits_is_noticed(db: Db) -> None:
    unserved.begin(db)
    enqueue(db, task=unserved.TASK)

    [violation] = unserved.judge_unserved(db)[1]
    assert "is READY" in violation.message

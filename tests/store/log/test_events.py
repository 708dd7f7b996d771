# SPDX-License-Identifier: MIT
"""P8: the event log and the rows always agree, because one statement writes both."""

from collections.abc import Mapping
from typing import Any

import psycopg
import pytest

from byrote.core.log.kinds import EventKind
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.store.verify.walker import Walker
from tests.support import LEASE, Db, claim, count, enqueue, finish, history, verdict

STATUS_AFTER: Mapping[str, set[str]] = {
    EventKind.ENQUEUED: {"READY", "WAITING"},
    EventKind.PROMOTED: {"READY"},
    EventKind.CLAIMED: {"RUNNING"},
    EventKind.RENEWED: {"RUNNING"},
    EventKind.CANCEL_REQUESTED: {"RUNNING"},
    EventKind.SUCCEEDED: {"SUCCESSFUL"},
    EventKind.RETRIED: {"READY", "WAITING"},
    EventKind.FAILED: {"FAILED"},
    EventKind.CANCELLED: {"CANCELLED"},
    EventKind.SNOOZED: {"READY", "WAITING"},
    EventKind.RELEASED: {"READY"},
    EventKind.CRASHED: {"READY"},
    EventKind.LOST: {"READY"},
    EventKind.REVIVED: {"READY"},
    EventKind.SIGNALLED: {"READY", "WAITING", "RUNNING"},
}


def logs(db: Db) -> dict[str, list[tuple[Any, ...]]]:
    told: dict[str, list[tuple[Any, ...]]] = {}
    text = "select result_id::text, move, attempt, kind from byrote_event_log order by seq, ordinal"
    for run_id, *rest in db.execute(text):
        told.setdefault(run_id, []).append(tuple(rest))
    return told


@pytest.mark.parametrize("seed", range(3))
def test_folding_the_log_returns_the_row(db: Db, clock: FakeClock, seed: int) -> None:
    """Every move of every run is logged once, in order, and the last one is the run's state."""
    walker = Walker(db, clock, seed)
    for _ in range(150):
        walker.step()
    told = logs(db)
    rows = db.execute("select result_id::text, moves, attempts, status from byrote_runs").fetchall()

    assert {run_id for run_id, *_ in rows} == set(told) == set(walker.ids)
    for run_id, moves, attempts, status in rows:
        entries = told[run_id]
        assert [move for move, _, _ in entries] == list(range(1, moves + 1))
        assert entries[-1][1] == attempts
        assert [a for _, a, kind in entries if kind == "Claimed"] == list(range(1, attempts + 1))
        assert status in STATUS_AFTER[entries[-1][2]]


def test_the_walks_see_every_kind_of_event(db: Db, clock: FakeClock) -> None:
    """A walk that never cancels or loses anything would prove nothing."""
    kinds: set[str] = set()
    for seed in range(3):
        walker = Walker(db, clock, 1_000 + seed)
        for _ in range(200):
            walker.step()
        kinds |= {kind for entries in logs(db).values() for _, _, kind in entries}

    assert kinds == set(STATUS_AFTER)


def test_a_statement_that_changes_nothing_logs_nothing(db: Db, clock: FakeClock) -> None:
    enqueue(db)
    [lease] = claim(db)
    finish(db, [verdict(lease, "S")])
    before = count(db, "byrote_events")
    for letter in "SRFCZLX":
        finish(db, [verdict(lease, letter)])
    for query in (
        queries.renew([lease], lease_for=LEASE),
        queries.promote(),
        queries.sweep(),
        queries.cancel([lease.id]),
        queries.retry([lease.id]),
    ):
        fetch(db, query)
    claim(db)

    assert count(db, "byrote_events") == before


def test_a_rolled_back_statement_logs_nothing(db: Db, address: DatabaseAddress) -> None:
    [run_id] = enqueue(db)
    with address.open("other") as other, other.transaction() as doomed:
        finish(other, [verdict(claim(other)[0], "S")])
        raise psycopg.Rollback(doomed)

    assert history(db, run_id) == ["Enqueued"]


def test_events_are_written_per_statement_and_read_per_run(db: Db) -> None:
    """A batch of a hundred costs one row."""
    enqueue(db, 100)
    finish(db, [verdict(lease, "S") for lease in claim(db, 100)])

    assert count(db, "byrote_events") == 3
    assert count(db, "byrote_event_log") == 300

# SPDX-License-Identifier: MIT
"""Following the log from a cursor."""

from typing import Any

import msgspec

from byrote.core.log.cursor import BEGINNING
from byrote.core.log.record import LogEntry
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.store.steps.test_step import line, note
from tests.support import Db, claim, enqueue, finish, until, verdict


def events(db: Db, count: int, **filters: Any) -> list[list[LogEntry]]:
    """The events of the log that match, once there are `count` of them.

    A transaction of another database that ends just now may hold the newest back for a moment.
    """
    query = queries.log_after(BEGINNING, **filters)
    until(lambda: len(fetch(db, query)) >= count)
    return fetch(db, query)


def test_a_cursor_within_an_event_continues_with_its_other_runs(db: Db) -> None:
    ids = enqueue(db, 3)
    [event] = events(db, 1)
    [rest] = fetch(db, queries.log_after(event[0].cursor))

    assert sorted(entry.run or "" for entry in event) == sorted(ids)
    assert rest == event[1:]
    assert fetch(db, queries.log_after(event[-1].cursor)) == []
    assert fetch(db, queries.log_after(event[0].cursor.event_end)) == []


def test_events_that_moved_no_run_are_entries_without_a_run(db: Db) -> None:
    enqueue(db)
    [lease] = claim(db)
    note(db, line(lease, 1, "a"))
    [_, _, [stored]] = events(db, 3)
    moves = events(db, 2, moves=True)

    assert (stored.kind, stored.run, stored.ordinal) == ("StepStored", None, None)
    assert list(stored.data or {}) == [lease.id]
    assert [entry.kind for [entry] in moves] == ["Enqueued", "Claimed"]


def test_a_run_has_the_same_entries_in_its_history_and_in_the_log(db: Db) -> None:
    """But for tokens and hashes, which followers are not sent."""
    enqueue(db, 2)
    leases = claim(db, 2)
    finish(db, [verdict(lease, "F") for lease in leases])
    run_id = leases[1].id
    followed = events(db, 3, run_id=run_id)
    entries = [entry for event in followed for entry in event if entry.run == run_id]
    history = fetch(db, queries.run_history(run_id))

    assert entries == [msgspec.structs.replace(one, token=None, digest=None) for one in history]
    assert fetch(db, queries.run_history(run_id, limit=2)) == history[:2]


def test_a_forged_event_does_not_stop_those_who_follow(db: Db) -> None:
    [run_id] = enqueue(db)
    db.execute(
        "insert into byrote_events (at, kind, runs, attempts, moves, data)"
        " values (byrote_now(), 'Noted', array[%s::uuid], '{}', '{}', '[1]')",
        (run_id,),
    )
    [_, [noted]] = events(db, 2)

    assert (noted.kind, noted.run, noted.data) == ("Noted", None, None)

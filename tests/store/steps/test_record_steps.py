# SPDX-License-Identifier: MIT
"""The statement for results of new steps: what step.sql does, and nothing where that is needed."""

from typing import Any

import pytest

from byrote.core.ports.replies import StepReply
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.store.verify import verify
from byrote.testing import FakeClock
from tests.store.steps.test_step import leased, line, note, wait
from tests.store.test_locks import locked
from tests.support import Db, count

EVENT = "select data from byrote_events where kind = 'StepStored' order by seq desc limit 1"


def record(db: Db, *lines: dict[str, Any]) -> list[StepReply]:
    return fetch(db, queries.record_steps(lines))


def test_it_writes_the_same_rows_and_events_as_the_general_statement(
    db: Db, address: DatabaseAddress, clock: FakeClock
) -> None:
    leases = [leased(db), leased(db)]
    more = {"place": "a.b", "args_hash": "ab" * 32}
    answers, rows, events = [], [], []
    for lease, statement in zip(leases, (queries.record_steps, queries.step), strict=True):
        sent = [line(lease, 1, "a", [1]) | more, line(lease, 2, "b")]
        found = sorted(fetch(db, statement(sent)), key=lambda reply: reply.sequence)
        answers.append([(reply.open, reply.result_json, reply.left_us) for reply in found])
        text = "select row_to_json(step)::jsonb - 'result_id' from byrote_steps as step "
        text += "where result_id = %s order by sequence"
        rows.append(db.execute(text, (lease.id,)).fetchall())
        [[event]] = db.execute(EVENT)
        events.append(event[lease.id])

    assert answers[0] == answers[1] == [(False, "[1]", None), (False, "null", None)]
    assert rows[0] == rows[1]
    assert events[0] == events[1]
    assert verify(address).findings == []


@pytest.mark.parametrize("earlier", ["step", "raised", "sleep"])
def test_a_step_that_is_in_the_ledger_is_left_to_the_general_statement(
    db: Db, earlier: str
) -> None:
    lease = leased(db)
    first = wait(lease, 1) if earlier == "sleep" else line(lease, 1, "a", 1) | {"kind": earlier}
    note(db, first)
    events = count(db, "byrote_events")

    assert record(db, line(lease, 1, "a", 2)) == []
    assert count(db, "byrote_events") == events


def test_a_lost_or_locked_lease_writes_nothing(
    db: Db, address: DatabaseAddress, clock: FakeClock
) -> None:
    stuck, free = leased(db), leased(db)
    db.execute("set lock_timeout = '2s'")
    with locked(address, "byrote_task_runs", "result_id", stuck.id):
        sent = [line(stuck, 1, "a"), line(free, 1, "a")]
        assert [reply.id for reply in record(db, *sent)] == [free.id]
    clock.advance(minutes=5)

    assert record(db, line(stuck, 1, "a")) == []
    assert count(db, "byrote_steps") == 1


def test_a_result_sent_twice_in_one_statement_is_stored_once(db: Db) -> None:
    lease = leased(db)

    assert [reply.result_json for reply in record(db, *[line(lease, 1, "a", 7)] * 2)] == ["7"]

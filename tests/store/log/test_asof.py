# SPDX-License-Identifier: MIT
"""The time machine: what it shows of a moment is what was seen at that moment."""

from collections import Counter
from typing import Any

import pytest

from byrote.core.log.asof import as_it_was
from byrote.core.log.cursor import BEGINNING
from byrote.core.log.fold import BLANK, fold, fold_all
from byrote.core.log.record import LogEntry
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.store.verify.walker import Walker
from tests.support import Db, claim, enqueue, finish, run_of, success, verdict

SEEN = """select queue_name, status, case when status = 'RUNNING' then leased_by end, count(*)
          from byrote_runs where status not in ('SUCCESSFUL', 'CANCELLED') group by 1, 2, 3"""


@pytest.mark.parametrize("seed", range(3))
def test_runs_and_queues_are_shown_as_they_were(db: Db, clock: FakeClock, seed: int) -> None:
    walker = Walker(db, clock, 3_000 + seed)
    then: dict[Any, Any] = {}
    for _ in range(6):
        for _ in range(25):
            walker.step()
        runs = {run_id: run_of(db, run_id) for run_id in walker.ids}
        then[clock.now] = runs, {tuple(row) for row in db.execute(SEEN)}
        clock.advance(seconds=1)
    for _ in range(50):
        walker.step()

    for at, (runs, counts) in then.items():
        shown = fetch(db, queries.runs_at(at))
        assert {(c.queue, c.status, c.worker, c.runs) for c in shown} == counts
        for run_id, run in runs.items():
            told = fetch(db, queries.run_history(run_id, at=at))
            shown_run = as_it_was(run_of(db, run_id), fold_all(told), at)
            for name in ("status", "wait_reason", "attempts", "charged", "leased_until", "faults",
                         "worker_ids", "result_json", "finished_at"):  # fmt: skip
                assert getattr(shown_run, name) == getattr(run, name), (name, run_id)


def test_sql_and_python_agree_on_what_every_event_leads_to(db: Db, clock: FakeClock) -> None:
    walker = Walker(db, clock, 77)
    for _ in range(300):
        walker.step()
    text = """select result_id::text, kind, byrote_status_after(kind, schema, data)
              from byrote_event_log order by result_id, move"""
    by_sql = [(kind, status) for _, kind, status in db.execute(text)]
    by_python = []
    for run_id in sorted(walker.ids):
        state = BLANK
        for told in fetch(db, queries.run_history(run_id)):
            state = fold(state, told)
            by_python.append((told.kind, state.status))

    assert Counter(by_sql) == Counter(by_python)
    assert len({kind for kind, _ in by_sql}) >= 12


def test_old_events_are_read_alike_by_sql(db: Db) -> None:
    text = "select byrote_status_after(%s, 1::smallint, %s::jsonb)"
    old = [("Enqueued", None), ("Retried", '{"delay_us": 5}'), ("Retried", '{"delay_us": 0}'),
           ("Snoozed", '{"delay_us": 5}'), ("Snoozed", '{"delay_us": 0}')]  # fmt: skip
    said = [db.execute(text, pair).fetchone() for pair in old]

    assert said == [(None,), ("WAITING",), ("READY",), (None,), ("READY",)]


def test_a_cursor_returns_every_event_once_however_late_it_commits(
    db: Db, address: DatabaseAddress
) -> None:
    """The late one has the lower seq; a reader that went by seq would never see it."""
    seen: list[list[LogEntry]] = []

    def read() -> None:
        cursor = seen[-1][-1].cursor.event_end if seen else BEGINNING
        seen.extend(fetch(db, queries.log_after(cursor, limit=2)))

    with address.open("late") as late:
        with late.transaction():
            [hidden] = enqueue(late)
            early = enqueue(db, 1) + enqueue(db, 1)
            read()
            assert seen == []
        read()
        read()

    assert [[entry.run for entry in event] for event in seen] == [[hidden], [early[0]], [early[1]]]
    text = "select count(*) from byrote_events where seq < %s and runs <> %s::uuid[]"
    assert db.execute(text, (seen[1][0].seq, [hidden])).fetchone() is not None


def test_workers_are_known_by_what_they_did(db: Db, clock: FakeClock) -> None:
    enqueue(db, 3)
    busy = claim(db, 2, worker="busy")
    claim(db, 1, worker="lost")
    finish(db, [success(busy[0]), verdict(busy[1], "F")])
    clock.advance(seconds=31)
    fetch(db, queries.sweep())
    found = {row.worker: row for row in fetch(db, queries.workers_at(clock.now))}

    assert (found["busy"].claimed, found["busy"].ended, found["busy"].lost) == (2, 2, 0)
    assert (found["lost"].claimed, found["lost"].lost) == (1, 1)
    clock.advance(hours=2)
    assert fetch(db, queries.workers_at(clock.now)) == []


def test_the_projections_answer(db: Db, clock: FakeClock) -> None:
    enqueue(db, 4)
    clock.advance(seconds=3)
    leases = claim(db, 3)
    clock.advance(seconds=2)
    finish(db, [success(leases[0]), success(leases[1]), verdict(leases[2], "F")])

    def one(columns: str, view: str) -> Any:
        [row] = db.execute(f"select {columns} from {view}").fetchall()  # type: ignore[call-overload]  # noqa: S608
        return row

    assert one("succeeded, failed, cancelled", "byrote_throughput_by_hour") == (2, 1, 0)
    assert one("runs, p50_s, max_s", "byrote_wait_by_queue") == (3, 3.0, 3.0)
    assert one("kind, type, errors, runs", "byrote_errors_by_class") == (
        "raised", "ValueError", 1, 1,
    )  # fmt: skip
    assert one("task_path, runs, p95_s", "byrote_slowest_tasks") == ("t", 2, 2.0)

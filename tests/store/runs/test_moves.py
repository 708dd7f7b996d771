# SPDX-License-Identifier: MIT
from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest

from byrote.core.policy import Retry
from byrote.core.run import Leased
from byrote.core.state import MOVES, Status
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import LEASE, Db, claim, enqueue, finish, run_of, verdict

HOUR_US = 3_600_000_000
START = "00000000-0000-0000-0000-000000000000"


class Board:
    """One run in one status, and everything that may be done to it."""

    def __init__(self, db: Db, clock: FakeClock) -> None:
        self.db = db
        self.clock = clock
        self.lease: Leased | None = None
        self.run_id = ""

    def bring_to(self, status: Status) -> None:
        waits = timedelta(minutes=5) if status is Status.WAITING else None
        [self.run_id] = enqueue(self.db, run_after=waits, retry=Retry(attempts=50))
        if status in {Status.WAITING, Status.READY}:
            return
        [self.lease] = claim(self.db)
        letter = {Status.SUCCESSFUL: "S", Status.FAILED: "F", Status.CANCELLED: "C"}.get(status)
        if letter:
            finish(self.db, [verdict(self.lease, letter, delay_us=HOUR_US)])

    def finish(self, letter: str, delay_us: int) -> None:
        if self.lease is not None:
            finish(self.db, [verdict(self.lease, letter, delay_us=delay_us)])

    def sweep(self) -> None:
        self.clock.advance(minutes=10)
        fetch(self.db, queries.sweep())

    def promote(self) -> None:
        self.clock.advance(minutes=10)
        fetch(self.db, queries.promote())

    def cancel_and(self, then: Callable[[], None]) -> None:
        fetch(self.db, queries.cancel([self.run_id]))
        then()

    @property
    def verbs(self) -> dict[str, Callable[[], object]]:
        db = self.db
        settle = {
            f"finish {letter} {delay}": lambda letter=letter, delay=delay: self.finish(
                letter, delay
            )
            for letter in "SRFCZLX"
            for delay in (0, HOUR_US)
        }
        return settle | {
            "promote": self.promote,
            "claim": lambda: claim(db),
            "renew": lambda: fetch(
                db, queries.renew([self.lease] if self.lease else [], lease_for=LEASE)
            ),
            "sweep": self.sweep,
            "cancel": lambda: fetch(db, queries.cancel([self.run_id])),
            "cancel and sweep": lambda: self.cancel_and(self.sweep),
            "cancel and retry": lambda: self.cancel_and(lambda: self.finish("R", HOUR_US)),
            "retry": lambda: fetch(db, queries.retry([self.run_id])),
            "archive": lambda: fetch(db, queries.archive(after=START)),
        }


@pytest.mark.parametrize("status", list(Status))
def test_sql_moves_a_run_exactly_where_the_table_of_moves_allows(
    db: Db, clock: FakeClock, status: Status
) -> None:
    """Every verb on a run of every status: the moves seen are MOVES, no more and no fewer."""
    seen = set()
    for name in Board(db, clock).verbs:
        db.execute("truncate byrote_task_runs, byrote_dead, byrote_archive")
        board = Board(db, clock)
        board.bring_to(status)
        assert run_of(db, board.run_id).status is status
        board.verbs[name]()
        seen.add(run_of(db, board.run_id).status)

    assert seen - {status} == MOVES[status]


def test_a_final_run_other_than_a_dead_one_never_moves_again() -> None:
    assert MOVES[Status.SUCCESSFUL] == MOVES[Status.CANCELLED] == frozenset()


INCONSISTENT = [
    "status = 'LIMBO'",
    "status = 'RUNNING'",
    "status = 'RUNNING', leased_until = now()",
    "leased_until = now()",
    "status = 'WAITING'",
    "wait_reason = 'due'",
    "status = 'SUCCESSFUL'",
    "status = 'FAILED'",
    "status = 'CANCELLED'",
    "finished_at = now()",
    "status = 'SUCCESSFUL', finished_at = now(), wait_reason = 'due'",
    "priority = 101",
    "priority = -101",
    "spec_hash = '\\x00'",
]


@pytest.mark.parametrize("change", INCONSISTENT)
def test_the_database_refuses_a_row_that_contradicts_itself(db: Db, change: str) -> None:
    enqueue(db)
    statement = f"update byrote_task_runs set {change}"  # noqa: S608

    with pytest.raises(psycopg.errors.CheckViolation):
        db.execute(statement)  # type: ignore[call-overload]


def test_a_ready_row_may_hold_what_a_ready_row_holds(db: Db) -> None:
    """The statement the refusals are tried with does work."""
    enqueue(db)
    changed = db.execute("update byrote_task_runs set status = 'WAITING', wait_reason = 'due'")

    assert changed.rowcount == 1


@pytest.mark.parametrize("table", ["byrote_dead", "byrote_archive"])
def test_the_other_tables_refuse_the_same(db: Db, table: str) -> None:
    enqueue(db)
    columns = "result_id, rank, run_after, enqueued_at, task_version, max_attempts, queue_name"
    more = "task_path, spec_hash, spec_json"
    text = (
        f"insert into {table} ({columns}, {more}, status)"  # noqa: S608
        f" select {columns}, {more}, 'FAILED' from byrote_task_runs"
    )

    with pytest.raises(psycopg.errors.CheckViolation):
        db.execute(text)  # type: ignore[call-overload]

# SPDX-License-Identifier: MIT
"""Verbs for many runs: a locked row is reported, and holds up none of the others."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest

from byrote.core.errors import RowLocked
from byrote.core.ports.replies import Locked
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.locks import Moves, move
from byrote.store.query import Query
from byrote.store.runners.sync import fetch
from byrote.store.verify import verify
from byrote.testing import FakeClock
from tests.store.retention.test_archive import START, finished
from tests.store.test_locks import locked
from tests.support import Db, claim, enqueue, finish, history, row_of, success


@pytest.fixture
def db(db: Db) -> Db:
    """A connection on which a statement that waits fails."""
    db.execute("set lock_timeout = '2s'")
    return db


def ready(db: Db, _clock: FakeClock) -> list[str]:
    return enqueue(db, 3)


def waiting(db: Db, _clock: FakeClock) -> list[str]:
    return enqueue(db, 3, run_after="1h")


def ended(db: Db, _clock: FakeClock) -> list[str]:
    return finished(db, 3)


def dead(db: Db, _clock: FakeClock) -> list[str]:
    return finished(db, 3, "F")


def archived(db: Db, clock: FakeClock) -> list[str]:
    ids = finished(db, 3)
    clock.advance(hours=2)
    fetch(db, queries.archive(after=START))
    return ids


class Case(NamedTuple):
    verb: Callable[..., Query[Any]]
    table: str
    make: Callable[[Db, FakeClock], list[str]]
    last: str
    """The event of a run that was moved."""


CASES = {
    "cancel": Case(queries.cancel, "byrote_task_runs", ready, "Cancelled"),
    "retry": Case(queries.retry, "byrote_dead", dead, "Revived"),
    "hurry": Case(queries.retry, "byrote_task_runs", waiting, "Revived"),
    "delete": Case(queries.delete_dead, "byrote_dead", dead, "Deleted"),
    "remove": Case(queries.delete_runs, "byrote_task_runs", ended, "Deleted"),
    "remove archived": Case(queries.delete_runs, "byrote_archive", archived, "Deleted"),
    "remove dead": Case(queries.delete_runs, "byrote_dead", dead, "Deleted"),
}


def ids_of(moves: Moves[Any]) -> set[str]:
    return {getattr(row, "id", row) for row in moves.done}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_locked_run_is_reported_and_the_others_are_moved(
    db: Db, address: DatabaseAddress, clock: FakeClock, case: Case
) -> None:
    stuck, *others = case.make(db, clock)
    with locked(address, case.table, "result_id", stuck):
        before = row_of(db, stuck), history(db, stuck)
        moves = move(case.verb, [stuck, *others], partial(fetch, db))
        assert (row_of(db, stuck), history(db, stuck)) == before

    assert (ids_of(moves), moves.locked) == (set(others), [stuck])
    assert [history(db, run_id)[-1] for run_id in others] == [case.last] * 2
    again = move(case.verb, [stuck, *others], partial(fetch, db))
    # A repeat does what is left: runs that it has moved before are not moved again.
    assert (ids_of(again), again.locked) == ({stuck}, [])
    assert verify(address).findings == []


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_run_that_is_locked_for_a_moment_is_moved(
    db: Db, address: DatabaseAddress, clock: FakeClock, case: Case
) -> None:
    """A worker that renews a lease locks the row, too."""
    stuck, *others = case.make(db, clock)
    answers = []
    holder = locked(address, case.table, "result_id", stuck)

    def ask(query: Query[Any]) -> list[Any]:
        answers.append(fetch(db, query))
        if len(answers) == 2:
            holder.__exit__(None, None, None)
        return answers[-1]

    holder.__enter__()
    moves = move(case.verb, [stuck, *others], ask)

    assert (ids_of(moves), moves.locked) == ({stuck, *others}, [])
    assert answers[1] == [Locked(stuck)]


def test_a_verb_for_one_locked_run_raises(db: Db, address: DatabaseAddress) -> None:
    [run_id] = enqueue(db)
    with locked(address, "byrote_task_runs", "result_id", run_id):
        moves = move(queries.cancel, [run_id], partial(fetch, db))

    with pytest.raises(RowLocked, match=rf"try again\. Nothing was done to run {run_id}\."):
        _ = moves.only
    assert move(queries.cancel, [run_id], partial(fetch, db)).only is not None
    assert move(queries.cancel, [run_id], partial(fetch, db)).only is None


def test_a_run_that_ends_while_its_row_is_locked_is_not_moved(
    db: Db, address: DatabaseAddress
) -> None:
    [run_id] = enqueue(db)
    [lease] = claim(db)
    asked = 0

    def ask(query: Query[Any]) -> list[Any]:
        nonlocal asked
        found = fetch(db, query)
        asked += 1
        if asked == 1:
            other.commit()
        return found

    with address.open("worker") as other:
        other.autocommit = False
        finish(other, [success(lease)])
        moves = move(queries.cancel, [run_id], ask)

    assert (moves.done, moves.locked) == ([], [])
    assert asked == 2


def test_a_transaction_moves_the_runs_that_it_has_locked_itself(db: Db) -> None:
    [run_id] = enqueue(db)
    with db.transaction():
        db.execute("select 1 from byrote_task_runs where result_id = %s for update", (run_id,))
        moves = move(queries.cancel, [run_id], partial(fetch, db))

    assert (ids_of(moves), moves.locked) == ({run_id}, [])


def test_a_run_whose_step_is_being_written_can_be_cancelled(
    db: Db, address: DatabaseAddress
) -> None:
    """A step locks its run FOR KEY SHARE, which an update does not wait for."""
    [run_id] = enqueue(db)
    claim(db)
    with address.open("scribe") as other, other.transaction():
        text = "select 1 from byrote_task_runs where result_id = %s for key share"
        other.execute(text, (run_id,))
        assert [row.id for row in fetch(db, queries.cancel([run_id]))] == [run_id]

    assert history(db, run_id)[-1] == "CancelRequested"


@pytest.mark.parametrize(("was", "moved"), [(Status.FAILED, 0), (Status.WAITING, 1)])
def test_a_retry_can_be_for_dead_runs_alone_or_for_waiting_ones(
    db: Db, was: Status, moved: int
) -> None:
    ids = [*finished(db, 1, "F"), *enqueue(db, 1, run_after="1h")]

    assert fetch(db, queries.retry(ids, was=was)) == [ids[moved]]

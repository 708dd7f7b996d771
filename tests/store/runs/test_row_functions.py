# SPDX-License-Identifier: MIT
"""Functions of the schema by which statements change rows that move between tables."""

from itertools import pairwise

import pytest

from byrote.core.policy import LOSSES_MAX, Retry
from byrote.store import queries
from byrote.store.connect import PLAN_GUARDS, DatabaseAddress
from byrote.store.query import Query
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.core.leases import leased
from tests.support import Db, claim, enqueue, finish, register, row_of, verdict

TABLES = ("byrote_task_runs", "byrote_archive", "byrote_dead")
COLUMNS = """
select attname, atttypid, attcollation
from pg_attribute
where attrelid = %s::regclass and attnum > 0 and not attisdropped
order by attnum
"""


def test_the_tables_of_runs_have_the_same_columns_in_the_same_order(db: Db) -> None:
    """Rows move between them without a list of columns."""
    tables = [db.execute(COLUMNS, (table,)).fetchall() for table in TABLES]

    assert all(one == other for one, other in pairwise(tables))


def test_a_column_that_is_added_moves_with_its_run(own: Db) -> None:
    for table in TABLES:
        own.execute(f"alter table {table} add column later text")  # type: ignore[call-overload]
    text = "select later from {} where result_id = %s"
    [run_id] = enqueue(own, retry=Retry(attempts=1))
    own.execute("update byrote_task_runs set later = 'kept'")

    finish(own, [verdict(claim(own)[0], "F")])
    assert own.execute(text.format("byrote_dead"), (run_id,)).fetchone() == ("kept",)  # type: ignore[call-overload]
    fetch(own, queries.retry([run_id]))
    assert own.execute(text.format("byrote_task_runs"), (run_id,)).fetchone() == ("kept",)  # type: ignore[call-overload]


def test_a_run_that_failed_keeps_what_its_failure_does_not_change(db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db, retry=Retry(attempts=1), labels={"a": "b"}, priority=4)
    [lease] = claim(db)
    before = row_of(db, run_id)
    finish(db, [verdict(lease, "F", more={"usage": {"attempt": 1}, "provenance": 7})])
    after = row_of(db, run_id)

    changed = {name: after[name] for name in after if after[name] != before[name]}
    error = {"kind": "raised", "type": "ValueError", "message": "no"}
    [stored] = changed.pop("errors_json")
    assert {name: stored[name] for name in error} == error
    assert changed == {
        "status": "FAILED",
        "finished_at": clock.now,
        "leased_until": None,
        "charged": 1,
        "moves": 3,
        "provenance": [7],
        "usage": [{"attempt": 1}],
    }


def test_a_long_value_moves_to_the_dead_letters_and_back(db: Db) -> None:
    """A row as a value has its columns inline, also those that PostgreSQL stores elsewhere."""
    [run_id] = enqueue(db)
    [lease] = claim(db)
    db.execute(
        "update byrote_task_runs set retry_json ="
        " (select string_agg(md5(n::text), '') from generate_series(1, 1000) as n)"
    )
    long = row_of(db, run_id)["retry_json"]
    finish(db, [verdict(lease, "F")])
    dead = row_of(db, run_id)["retry_json"]
    fetch(db, queries.retry([run_id]))

    assert len(long) == 32_000
    assert long == dead == row_of(db, run_id)["retry_json"]


def test_a_run_that_was_lost_too_often_keeps_no_lease(db: Db, clock: FakeClock) -> None:
    """No verdict was accepted, so a late finish must not find its token."""
    [run_id] = enqueue(db)
    for _ in range(LOSSES_MAX):
        claim(db)
        clock.advance(minutes=1)
        fetch(db, queries.sweep())
    dead = row_of(db, run_id)

    assert (dead["status"], dead["losses"], dead["charged"]) == ("FAILED", LOSSES_MAX, 0)
    assert (dead["lease_token"], dead["leased_until"]) == (None, None)


STATEMENTS: dict[str, Query[object]] = {
    "finish": queries.finish([verdict(leased(), "R", delay_us=1)]),
    "succeed": queries.succeed([(leased().id, leased().token, 1, "null", "00" * 32, None)]),
    "sweep": queries.sweep(),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_functions_of_every_row_are_inlined(db: Db, address: DatabaseAddress, name: str) -> None:
    query = STATEMENTS[name]
    with address.open("worker", *PLAN_GUARDS) as worker:
        plan = worker.execute(b"explain (verbose) " + query.sql, query.args).fetchall()
    text = "\n".join(line for (line,) in plan)

    assert "jsonb_array_length" in text
    for function in ("byrote_appended", "byrote_noted", "byrote_error_hash", "byrote_micros"):
        assert f"{function}(" not in text


@pytest.mark.parametrize(("since", "woken"), [("-infinity", 1), ("infinity", 0)])
def test_a_wake_notifies_each_queue_that_an_idle_worker_serves_once(
    db: Db, address: DatabaseAddress, since: str, woken: int
) -> None:
    register(db, "idler", "a")
    register(db, "busy", "b")
    fetch(db, queries.idle(worker="idler", idle=True))
    with address.open("listener") as listener:
        listener.execute("listen byrote_ready")
        text = "select byrote_wake(array['a', 'b', 'a'], %s::timestamptz), byrote_wake('{}')"
        assert db.execute(text, (since,)).fetchone() == (woken, 0)
        notified = [n.payload for n in listener.notifies(timeout=0.2)]

    assert notified == ["a"] * woken

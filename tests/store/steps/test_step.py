# SPDX-License-Identifier: MIT
from functools import partial
from typing import Any

import psycopg
import pytest

from byrote.core.json.codec import pack
from byrote.core.ports.replies import StepReply
from byrote.core.run import Leased
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.locks import holding
from byrote.store.runners.sync import fetch
from byrote.store.verify import verify_on
from byrote.testing import FakeClock
from tests.support import (
    LEASE,
    Db,
    claim,
    count,
    enqueue,
    finish,
    history,
    run_of,
    success,
    verdict,
)

HOUR_US = 3_600_000_000


def line(lease: Leased, sequence: int, name: str, value: Any = None) -> dict[str, Any]:
    """A finished step as step.sql reads it."""
    packed = pack(value)
    who = {"id": lease.id, "token": lease.token, "sequence": sequence, "kind": "step"}
    return who | {"name": name, "result": packed.text, "hash": packed.digest.hex()}


def wait(
    lease: Leased,
    sequence: int,
    kind: str = "sleep",
    name: str = "sleep",
    *,
    us: int | None = HOUR_US,
) -> dict[str, Any]:
    """A sleep or a wait as step.sql reads it."""
    who = {"id": lease.id, "token": lease.token, "sequence": sequence, "kind": kind}
    return who | {"name": name, "delay_us": us}


def note(db: Db, *lines: dict[str, Any]) -> list[StepReply]:
    """Write steps as a worker does."""
    return queries.write_steps(lines, partial(fetch, db))


def ledger(db: Db, run_id: str) -> list[tuple[int, str, str | None]]:
    rows = fetch(db, queries.steps([run_id]))
    return [(row.sequence, row.name, row.result_json) for row in rows]


def leased(db: Db) -> Leased:
    enqueue(db)
    return claim(db)[0]


def test_a_step_is_stored_with_name_number_result_and_hash(db: Db, clock: FakeClock) -> None:
    lease = leased(db)
    [noted] = note(db, line(lease, 1, "charge", {"b": 1, "a": [2.0]}))
    [row] = fetch(db, queries.steps([lease.id]))

    assert (noted.open, noted.result_json) == (False, '{"b":1,"a":[2.0]}')
    assert (row.sequence, row.kind, row.name, row.attempt, row.at) == (
        1,
        "step",
        "charge",
        1,
        clock.now,
    )
    assert row.result_hash == pack({"a": [2], "b": 1}).digest.hex()


def test_many_runs_store_their_steps_in_one_statement(db: Db) -> None:
    enqueue(db, 20)
    leases = claim(db, 20)
    noted = note(db, *(line(lease, n, "s", n) for lease in leases for n in (1, 2)))

    assert len(noted) == 40
    assert all(ledger(db, lease.id) == [(1, "s", "1"), (2, "s", "2")] for lease in leases)


def test_a_step_sent_again_after_a_lost_answer_stays_as_it_was(db: Db) -> None:
    lease = leased(db)
    note(db, line(lease, 1, "a", "first"))
    [again] = note(db, line(lease, 1, "a", "second"))

    assert (again.open, again.result_json) == (False, '"first"')
    assert ledger(db, lease.id) == [(1, "a", '"first"')]


@pytest.mark.parametrize("how", ["expired", "swept", "claimed again", "settled", "dead", "forged"])
def test_a_step_without_its_lease_is_refused(db: Db, clock: FakeClock, how: str) -> None:
    lease = leased(db)
    if how in {"expired", "swept", "claimed again"}:
        clock.advance(seconds=31)
    if how in {"swept", "claimed again"}:
        fetch(db, queries.sweep())
    if how == "claimed again":
        claim(db)
    if how in {"settled", "dead"}:
        finish(db, [verdict(lease, "S" if how == "settled" else "F")])
    if how == "forged":
        lease.token = "00000000-0000-0000-0000-000000000000"  # noqa: S105 -- a wrong one.

    assert note(db, line(lease, 1, "a"), wait(lease, 2), wait(lease, 3, "event", "e")) == []
    assert count(db, "byrote_steps") == 0


def test_one_lost_lease_in_a_batch_does_not_affect_the_others(db: Db) -> None:
    enqueue(db, 2)
    lost, kept = claim(db, 2)
    finish(db, [verdict(lost, "L")])

    assert [noted.id for noted in note(db, line(lost, 1, "a"), line(kept, 1, "a"))] == [kept.id]


def test_a_step_that_meets_a_sweep_under_way_is_asked_again_and_refused(
    db: Db, address: DatabaseAddress, clock: FakeClock
) -> None:
    """Two clocks: the sweeper finds the lease expired, the writer does not, yet only one wins."""
    lease = leased(db)
    with address.open("sweeper") as sweeper, address.open("writer") as writer:
        clock.on(writer)
        FakeClock(sweeper).advance(days=1)
        with sweeper.transaction():
            sweeper.execute("select result_id from byrote_task_runs for update")
            sweeper.execute("update byrote_task_runs set status = 'READY', leased_until = null")
            assert note(writer, line(lease, 1, "a")) == []
            assert fetch(writer, holding([line(lease, 1, "a")])) == [lease.id]
        assert note(writer, line(lease, 1, "a")) == []
        assert fetch(writer, holding([line(lease, 1, "a")])) == []

    assert count(db, "byrote_steps") == 0


def test_a_sweep_passes_over_a_run_whose_step_is_being_written(
    db: Db, address: DatabaseAddress, clock: FakeClock
) -> None:
    lease = leased(db)
    with address.open("writer") as writer, writer.transaction():
        clock.on(writer)
        note(writer, line(lease, 1, "a"))
        clock.advance(days=1)
        assert fetch(db, queries.sweep()) == []

    assert [row.status for row in fetch(db, queries.sweep())] == ["READY"]


def test_a_renewal_does_not_wait_for_a_step_under_way(db: Db, address: DatabaseAddress) -> None:
    lease = leased(db)
    db.execute("set statement_timeout = '4s'")
    with address.open("writer") as writer, writer.transaction():
        note(writer, line(lease, 1, "a"))

        assert [row.id for row in fetch(db, queries.renew([lease], lease_for=LEASE))] == [lease.id]


def test_a_sleep_keeps_its_first_end_and_is_over_when_that_has_passed(
    db: Db, clock: FakeClock
) -> None:
    lease = leased(db)
    [first] = note(db, wait(lease, 1))
    clock.advance(seconds=10)
    [again] = note(db, wait(lease, 1))

    assert (first.open, first.left_us) == (True, HOUR_US)
    assert (again.open, again.left_us) == (True, HOUR_US - 10_000_000)
    finish(db, [verdict(lease, "Z", delay_us=again.left_us, wait="sleep")])
    assert (run_of(db, lease.id).status, run_of(db, lease.id).wait_reason) == ("WAITING", "sleep")
    assert run_of(db, lease.id).charged == 0
    clock.advance(hours=1)
    fetch(db, queries.promote())
    [over] = note(db, wait(claim(db)[0], 1))
    assert not over.open


def test_a_sleep_of_no_length_is_over_at_once(db: Db) -> None:
    assert not note(db, wait(leased(db), 1, us=0))[0].open


def test_a_retry_ends_a_sleep_now(db: Db, clock: FakeClock) -> None:
    lease = leased(db)
    note(db, wait(lease, 1))
    finish(db, [verdict(lease, "Z", delay_us=HOUR_US, wait="sleep")])
    fetch(db, queries.retry([lease.id]))
    [row] = fetch(db, queries.steps([lease.id]))

    assert (run_of(db, lease.id).status, row.open) == (Status.READY, False)


def test_a_step_keeps_what_json_keeps(db: Db) -> None:
    lease = leased(db)
    note(db, line(lease, 1, "a", "a\x00b"), line(lease, 2, "b", [1e16, -0.0, 2**70]))

    assert [text for _, _, text in ledger(db, lease.id)] == [
        '"a\\u0000b"',
        pack([1e16, -0.0, 2**70]).text,
    ]


@pytest.mark.parametrize(
    "change",
    ["open = true", "kind = 'other'", "result_json = null", "result_hash = '\\x00'"],
)
def test_the_database_refuses_a_step_that_contradicts_itself(db: Db, change: str) -> None:
    note(db, line(leased(db), 1, "a"))

    with pytest.raises(psycopg.errors.CheckViolation):
        db.execute(f"update byrote_steps set {change}")  # type: ignore[call-overload]  # noqa: S608


def test_the_ledger_survives_the_death_and_return_of_its_run(db: Db) -> None:
    lease = leased(db)
    note(db, line(lease, 1, "a", 1))
    finish(db, [verdict(lease, "F")])
    fetch(db, queries.retry([lease.id]))
    [second] = claim(db)
    note(db, line(second, 2, "b", 2))

    assert second.attempt == 2
    assert ledger(db, lease.id) == [(1, "a", "1"), (2, "b", "2")]
    finish(db, [success(second)])
    assert history(db, lease.id)[-2:] == ["Claimed", "Succeeded"]


def test_a_step_that_raised_is_replaced_by_what_comes_later(db: Db) -> None:
    """A step, a wait and another error alike; a finished step is never replaced."""
    run_id = enqueue(db)
    [lease] = claim(db)
    raised = {"kind": "raised", "place": "a.1/1", "args_hash": "ab" * 32}
    note(db, *(line(lease, n, "pay", {"class": "E"}) | raised for n in (1, 2, 3)))
    note(db, line(lease, 1, "pay", 5), wait(lease, 2), line(lease, 3, "pay", 6) | raised)
    note(db, line(lease, 1, "pay", {"class": "E"}) | raised)
    rows = fetch(db, queries.steps([run_id]))

    assert [(row.kind, row.open, row.result_json) for row in rows] == [
        ("step", False, "5"),
        ("sleep", True, None),
        ("raised", False, "6"),
    ]
    assert [(row.place, row.args_hash) for row in rows] == [
        (None, None),
        (None, None),
        ("a.1/1", "ab" * 32),
    ]


def test_a_step_that_failed_replaces_what_it_raised_and_stays(db: Db) -> None:
    run_id = enqueue(db)
    [lease] = claim(db)
    note(db, line(lease, 1, "pay", {"class": "E"}) | {"kind": "raised"})
    note(db, line(lease, 1, "pay", {"class": "E"}) | {"kind": "failed"})
    note(db, line(lease, 1, "pay", 5))
    note(db, line(lease, 1, "pay", {"class": "F"}) | {"kind": "raised"})
    [row] = fetch(db, queries.steps([run_id]))

    assert (row.kind, row.open, row.result_json) == ("failed", False, '{"class":"E"}')
    with db.transaction():
        assert verify_on(db).findings == []

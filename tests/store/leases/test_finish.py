# SPDX-License-Identifier: MIT
import hashlib
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from byrote.assembly.identity import new_token
from byrote.core.policy import Retry
from byrote.core.state import Status
from byrote.core.verdict import ENDS
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import (
    Db,
    claim,
    count,
    enqueue,
    finish,
    history,
    row_of,
    run_of,
    success,
    verdict,
)

MINUTE_US = 60_000_000
LETTERS = {
    # letter: (more, status, wait_reason, charged, losses, kind of event)
    "S": ({"result": "1"}, Status.SUCCESSFUL, None, 1, 0, "Succeeded"),
    "R": ({"delay_us": MINUTE_US}, Status.WAITING, "retry", 1, 0, "Retried"),
    "R now": ({"delay_us": 0}, Status.READY, None, 1, 0, "Retried"),
    "F": ({}, Status.FAILED, None, 1, 0, "Failed"),
    "C": ({}, Status.CANCELLED, None, 0, 0, "Cancelled"),
    "Z": ({"delay_us": MINUTE_US}, Status.WAITING, "snooze", 0, 0, "Snoozed"),
    "Z now": ({"delay_us": 0}, Status.READY, None, 0, 0, "Snoozed"),
    "L": ({}, Status.READY, None, 0, 0, "Released"),
    "X": ({}, Status.READY, None, 0, 1, "Crashed"),
}


def test_the_statement_writes_the_kinds_of_the_table() -> None:
    kinds = {name[0]: row[-1] for name, row in LETTERS.items()}

    assert kinds == {end.letter: end.kind for end in ENDS}


@pytest.mark.parametrize("name", LETTERS)
def test_every_verdict_has_its_effect_and_no_other(db: Db, clock: FakeClock, name: str) -> None:
    """P5: only S, R and F charge; only X counts as a loss."""
    more, status, reason, charged, losses, kind = LETTERS[name]
    [run_id] = enqueue(db, retry=Retry(attempts=3))
    [lease] = claim(db)

    assert finish(db, [verdict(lease, name[0], **more)]) == [run_id]
    run = run_of(db, run_id)
    assert (run.status, run.wait_reason) == (status, reason)
    assert (run.attempts, run.charged, run.losses) == (1, charged, losses)
    assert run.leased_until is None
    assert run.finished_at == (clock.now if run.finished else None)
    assert history(db, run_id) == ["Enqueued", "Claimed", kind]


@pytest.mark.parametrize("name", LETTERS)
def test_settled_answers_for_every_verdict(db: Db, name: str) -> None:
    """The answer to a finish was lost: did it count?"""
    enqueue(db, 2, retry=Retry(attempts=2))
    [lease, open_lease] = claim(db, 2)
    assert fetch(db, queries.finished_leases([lease])) == []
    finish(db, [verdict(lease, name[0], **LETTERS[name][0])])

    assert fetch(db, queries.finished_leases([lease, open_lease])) == [(lease.id, name[0])]


def test_settled_answers_for_a_run_that_another_worker_has_claimed_since(db: Db) -> None:
    [run_id] = enqueue(db, retry=Retry(attempts=3))
    [lease] = claim(db)
    finish(db, [verdict(lease, "R")])
    [other] = claim(db, worker="other")
    text = "update byrote_task_runs set leased_until = byrote_now() - interval '1 s'"
    db.execute(text)
    fetch(db, queries.sweep())
    claim(db)

    assert run_of(db, run_id).attempts == 3
    assert fetch(db, queries.finished_leases([lease, other])) == [(run_id, "R")]


def test_settled_is_asked_by_token_not_by_id(db: Db) -> None:
    enqueue(db)
    [lease] = claim(db)
    finish(db, [success(lease)])
    forged = msgspec.structs.replace(lease, token=new_token())

    assert fetch(db, queries.finished_leases([forged])) == []


def test_a_result_is_stored_byte_for_byte_with_its_hash(db: Db) -> None:
    text = '{"b":[1.0,-0.0,1180591620717411303424],"a":"NUL \\u0000 \U0001f4a9"}'
    [run_id] = enqueue(db)
    finish(db, [success(claim(db)[0], text)])
    run = run_of(db, run_id)

    assert run.result_json == text
    assert run.result_hash == hashlib.sha256(text.encode()).hexdigest()
    assert run.result["a"] == "NUL \x00 \U0001f4a9"


def test_a_mixed_batch_is_settled_in_one_statement_and_names_what_it_accepted(
    db: Db, clock: FakeClock
) -> None:
    enqueue(db, 9, retry=Retry(attempts=3))
    early = claim(db, 1, lease_for=timedelta(seconds=5))
    clock.advance(seconds=5)
    leases = claim(db, 8)
    sent = [verdict(lease, name[0]) for lease, name in zip(leases, "SRFCZLX", strict=False)]
    forged = verdict(msgspec.structs.replace(leases[7], token=new_token()), "S")
    stranger = {**success(leases[0]), "id": new_token()}
    accepted = finish(db, [verdict(early[0], "F"), *sent, forged, stranger])

    assert sorted(accepted) == sorted(lease.id for lease in leases[:7])
    assert run_of(db, early[0].id).status is Status.RUNNING
    assert run_of(db, leases[7].id).status is Status.RUNNING


def test_a_lease_is_settled_once(db: Db) -> None:
    """P4: a second word of the same holder changes nothing."""
    [run_id] = enqueue(db)
    [lease] = claim(db)
    finish(db, [success(lease, "1")])
    before = row_of(db, run_id)

    for letter in "SRFCZLX":
        assert finish(db, [verdict(lease, letter)]) == []
    assert row_of(db, run_id) == before


def test_the_same_run_twice_in_a_batch_is_settled_once(db: Db) -> None:
    [run_id] = enqueue(db)
    [lease] = claim(db)
    accepted = finish(db, [success(lease, "1"), verdict(lease, "F")])

    assert accepted == [run_id]
    assert count(db, "byrote_runs") == 1
    assert len(history(db, run_id)) == 3


def test_an_empty_batch_does_nothing(db: Db) -> None:
    assert finish(db, []) == []
    assert count(db, "byrote_events") == 0


def fail(db: Db, times: int, **more: Any) -> str:
    [run_id] = enqueue(db, retry=Retry(attempts=1_000))
    for n in range(times):
        error = {"kind": "raised", "type": "E", "message": str(n), **more}
        finish(db, [verdict(claim(db)[0], "R", error=error)])
    return run_id


def test_errors_are_appended_one_per_failed_attempt(db: Db, clock: FakeClock) -> None:
    run_id = fail(db, 3, attempt=1)
    faults = run_of(db, run_id).faults

    assert [fault["message"] for fault in faults] == ["0", "1", "2"]
    assert faults[0]["kind"] == "raised"
    assert faults[0]["at"].startswith(f"{clock.now:%Y-%m-%dT%H:%M}")


def test_of_many_errors_the_first_and_the_newest_are_kept(db: Db) -> None:
    run_id = fail(db, 60)
    messages = [fault["message"] for fault in run_of(db, run_id).faults]

    assert messages == ["0", *map(str, range(11, 60))]


def test_the_errors_of_a_dead_run_are_bounded_too(db: Db) -> None:
    run_id = fail(db, 55)
    finish(db, [verdict(claim(db)[0], "F")])

    assert len(run_of(db, run_id).faults) == 50


def test_a_success_after_failures_keeps_their_errors(db: Db) -> None:
    run_id = fail(db, 2)
    finish(db, [success(claim(db)[0], "7")])

    assert (run_of(db, run_id).result, len(run_of(db, run_id).faults)) == (7, 2)
    assert (run_of(db, run_id).attempts, run_of(db, run_id).charged) == (3, 3)


DROPPED = {"status", "finished_at", "charged", "moves", "errors_json", "leased_until"}


def test_a_dead_run_is_stored_as_dead_with_all_its_columns(db: Db, clock: FakeClock) -> None:
    how: dict[str, Any] = {"queue": "q", "priority": 3, "timeout": timedelta(seconds=4)}
    [run_id] = enqueue(db, **how, retry=Retry(attempts=2), labels={"a": "b"}, traceparent="tp")
    [lease] = claim(db, queues=["q"])
    before = row_of(db, run_id)
    clock.advance(seconds=2)
    finish(db, [verdict(lease, "F")])
    after = row_of(db, run_id)

    assert count(db, "byrote_task_runs") == 0
    assert count(db, "byrote_dead") == 1
    assert {key for key in before if before[key] != after[key]} == DROPPED
    assert (after["status"], after["charged"], after["moves"]) == ("FAILED", 1, 3)
    assert [error["type"] for error in after["errors_json"]] == ["ValueError"]


def test_a_retry_waits_its_delay_and_its_rank_moves_with_it(db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db, retry=Retry(attempts=3), priority=2)
    before = row_of(db, run_id)
    clock.advance(seconds=5)
    finish(db, [verdict(claim(db)[0], "R", delay_us=MINUTE_US)])
    after = row_of(db, run_id)

    assert after["run_after"] == clock.now + timedelta(minutes=1)
    assert after["rank"] - before["rank"] == 65 * 1_000_000
    assert claim(db) == []
    clock.advance(minutes=1)
    fetch(db, queries.promote())
    assert [lease.attempt for lease in claim(db)] == [2]


@pytest.mark.parametrize("letter", ["L", "X"])
def test_a_run_given_back_keeps_its_place_in_the_queue(
    db: Db, clock: FakeClock, letter: str
) -> None:
    [first] = enqueue(db)
    clock.advance(seconds=1)
    [second] = enqueue(db)
    finish(db, [verdict(claim(db)[0], letter)])

    assert [lease.id for lease in claim(db, 2)] == [first, second]


def test_an_event_has_worker_and_error_class(db: Db) -> None:
    enqueue(db)
    [lease] = claim(db, worker="w7")
    error = {"kind": "raised", "type": "ValueError", "message": "secret payload"}
    finish(db, [verdict(lease, "F", error=error)])
    text = "select worker, data from byrote_event_log where kind = 'Failed'"
    [(worker, data)] = db.execute(text).fetchall()

    assert worker == "w7"
    assert (data["kind"], data["type"]) == ("raised", "ValueError")
    assert "secret" not in str(data)


def test_a_retry_beyond_the_budget_is_a_failure(db: Db) -> None:
    """P5: the store keeps the budget, also of workers that judge by themselves."""
    [run_id] = enqueue(db, retry=Retry(attempts=2))
    [first] = claim(db)
    [heard] = fetch(db, queries.finish([verdict(first, "R", delay_us=0)]))
    [second] = claim(db)
    [at_last] = fetch(db, queries.finish([verdict(second, "R", delay_us=0)]))

    assert (heard, at_last) == ((run_id, "R"), (run_id, "F"))
    assert run_of(db, run_id).status is Status.FAILED
    assert count(db, "byrote_dead") == 1
    assert claim(db) == []

# SPDX-License-Identifier: MIT
"""What every store promises a recorder."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from byrote.core.errors import StoreRefused
from byrote.core.json.codec import pack
from byrote.core.outcome import (
    Cancelled,
    Crashed,
    Failed,
    Fault,
    Outcome,
    Output,
    Released,
    Snoozed,
    Succeeded,
)
from byrote.core.policy import Retry
from byrote.core.ports.replies import LOCKED
from byrote.core.replay.provenance import provenance_of
from byrote.core.run import Leased
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.contracts.store.parts import NO, Db, Parts, expire, judged, returned
from tests.support import (
    commits_held,
    count,
    enqueue,
    history,
    run_of,
    sessions,
    until,
    waiting_commits,
    waits_for_a_copy,
)

ENDS: dict[str, tuple[Callable[[], Outcome], Status, int, int]] = {
    "S": (lambda: returned({"a": 1.0}), Status.SUCCESSFUL, 1, 0),
    "R": (lambda: Failed(NO, after=timedelta(hours=1)), Status.WAITING, 1, 0),
    "F": (lambda: Failed(NO, final=True), Status.FAILED, 1, 0),
    "C": (Cancelled, Status.CANCELLED, 0, 0),
    "Z": (lambda: Snoozed(timedelta(hours=1)), Status.WAITING, 0, 0),
    "L": (Released, Status.READY, 0, 0),
    "X": (lambda: Crashed(NO), Status.READY, 0, 1),
}


@pytest.mark.parametrize("letter", ENDS)
def test_every_way_to_end_leads_where_it_should(parts: Parts, db: Db, letter: str) -> None:
    outcome, status, charged, losses = ENDS[letter]
    [run_id] = enqueue(db, retry=Retry(attempts=2))
    [lease] = parts.claim()

    assert parts.finish(lease, outcome()) == letter
    run = run_of(db, run_id)
    assert (run.status, run.attempts, run.charged, run.losses) == (status, 1, charged, losses)


def test_a_result_is_kept_to_the_letter(parts: Parts, db: Db) -> None:
    [run_id] = enqueue(db)
    [lease] = parts.claim()
    value = {"b": [1.0, -0.0, 2**70], "a": "\x00ä", "n": None}
    parts.finish(lease, returned(value))
    run = run_of(db, run_id)

    assert (run.result_json, run.result_hash) == (pack(value).text, pack(value).digest.hex())


def test_an_error_is_kept_with_its_attempt_and_worker(parts: Parts, db: Db) -> None:
    [run_id] = enqueue(db)
    [lease] = parts.claim()
    fault = Fault("raised", "shop.Broke", "nope", "Traceback …", attempt=1, worker="w", exit_code=3)
    parts.finish(lease, Failed(fault))
    [kept] = run_of(db, run_id).faults

    assert (kept["type"], kept["traceback"], kept["exit_code"]) == ("shop.Broke", "Traceback …", 3)
    assert (kept["attempt"], kept["worker"]) == (1, "w")
    assert kept["message"] == "nope"


def test_what_was_printed_used_and_executed_is_kept(parts: Parts, db: Db) -> None:
    [run_id] = enqueue(db)
    [lease] = parts.claim()
    lease.provenance = provenance_of({"python": {"version": "3"}})
    packed = pack(1)
    output, usage = Output(stdout="hello"), {"wall_us": 5}
    parts.finish(lease, Succeeded(packed.text, packed.digest.hex(), output, usage))
    run = run_of(db, run_id)

    assert [printed.stdout for printed in fetch(db, queries.outputs(run_id))] == ["hello"]
    assert run.usage == [{"attempt": 1, "wall_us": 5}]
    assert run.provenance == [lease.provenance.id]
    assert count(db, "byrote_provenance") == 1


def test_a_batch_settles_each_on_its_own(parts: Parts, db: Db) -> None:
    enqueue(db, 3)
    one, two, three = parts.claim(3)
    expire(db, two.id)
    batch = [judged(one, returned(1)), judged(two, returned(2)), judged(three, Failed(NO))]

    assert parts.verdicts.finish(batch) == {one.id: "S", three.id: "F"}


def test_the_finish_of_a_worker_that_lost_its_lease_is_refused(parts: Parts, db: Db) -> None:
    [run_id] = enqueue(db)
    [late] = parts.claim()
    expire(db, run_id)
    [current] = parts.claim()

    assert parts.finish(late, returned("late")) is None
    assert parts.finish(late, Failed(NO)) is None
    assert run_of(db, run_id).status is Status.RUNNING
    assert parts.finish(current, returned("right")) == "S"
    assert run_of(db, run_id).result == "right"


def test_a_run_with_a_cancel_request_is_not_retried(parts: Parts, db: Db) -> None:
    [run_id] = enqueue(db)
    [lease] = parts.claim()
    fetch(db, queries.cancel([run_id]))

    assert parts.finish(lease, Released()) == "C"
    assert run_of(db, run_id).status is Status.CANCELLED


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_finish_whose_answer_is_lost_settles_once(parts: Parts, db: Db, moment: str) -> None:
    warm, run_id = enqueue(db, 2)
    first, second = parts.claim(2)
    parts.finish(first, returned(0))
    fault = parts.break_next("finish", moment)

    assert (first.id, second.id) == (warm, run_id)
    assert parts.finish(second, returned(1)) == "S"
    assert fault.happened.is_set()
    assert history(db, run_id) == ["Enqueued", "Claimed", "Succeeded"]
    assert {what for what, _ in parts.heard} == {"finish"}
    assert parts.heard[-1] == ("finish", None)


def finish_until_free(parts: Parts, lease: Leased) -> str | None:
    """Return the reply to a success, sent again while the row is locked, as a recorder does."""
    while (heard := parts.finish(lease, returned(1))) == LOCKED:
        pass
    return heard


def test_a_finish_that_is_still_being_written_settles_once(parts: Parts, db: Db) -> None:
    """The connection breaks during the statement: the worker receives no lost lease."""
    enqueue(db, 2)
    first, second = parts.claim(2)
    parts.finish(first, returned(0))
    with ThreadPoolExecutor(1) as pool, commits_held(db) as let_go:
        known = sessions(db)
        fault = parts.break_next("finish", "during")
        told = pool.submit(finish_until_free, parts, second)
        until(fault.happened.is_set)
        if parts.kind == "postgres":
            # The second copy waits for the first, or has ended it and is at its own commit.
            until(lambda: waits_for_a_copy(db) or waiting_commits(db) - known)
        let_go()

        assert told.result() == "S"
    assert history(db, second.id) == ["Enqueued", "Claimed", "Succeeded"]


def test_what_will_never_be_taken_is_refused(parts: Parts, db: Db) -> None:
    enqueue(db)
    [lease] = parts.claim()
    lease.token = "no token"  # noqa: S105 -- that is the point.

    with pytest.raises(StoreRefused):
        parts.finish(lease, returned(1))

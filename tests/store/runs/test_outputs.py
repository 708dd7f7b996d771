# SPDX-License-Identifier: MIT
from typing import Any

from byrote.core.policy import Retry
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import Db, claim, count, enqueue, finish, success, verdict


def printed(text: str, dropped: int = 0) -> dict[str, Any]:
    return {"stdout": text, "stderr": f"!{text}", "stdout_dropped": dropped, "stderr_dropped": 0}


def test_what_each_attempt_printed_is_kept_in_order(db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db, retry=Retry(attempts=3))
    for letter, text in (("R", "one"), ("R", "two"), ("F", "three")):
        finish(db, [verdict(claim(db)[0], letter, delay_us=0, output=printed(text, 7))])
    found = fetch(db, queries.outputs(run_id))

    assert [(row.attempt, row.stdout) for row in found] == [(1, "one"), (2, "two"), (3, "three")]
    assert (found[0].stderr, found[0].stdout_dropped, found[0].at) == ("!one", 7, clock.now)
    assert [row.stdout for row in fetch(db, queries.outputs(run_id, attempt=2))] == ["two"]


def test_an_attempt_that_printed_nothing_has_no_row(db: Db) -> None:
    [run_id] = enqueue(db)
    finish(db, [success(claim(db)[0])])

    assert fetch(db, queries.outputs(run_id)) == []


def test_a_lost_lease_cannot_write_its_output_either(db: Db, clock: FakeClock) -> None:
    """P3: not even in one batch with the run's new lease, on a worker that had both."""
    [run_id] = enqueue(db)
    [late] = claim(db)
    clock.advance(minutes=1)
    fetch(db, queries.sweep())
    [current] = claim(db)
    stale = success(late) | {"output": printed("stale")}
    assert finish(db, [stale]) == []
    assert count(db, "byrote_outputs") == 0
    finish(db, [stale, success(current) | {"output": printed("fresh")}])

    assert [row.stdout for row in fetch(db, queries.outputs(run_id))] == ["fresh"]

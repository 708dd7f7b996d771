# SPDX-License-Identifier: MIT
"""A row that another transaction has locked, and requests that wait for it."""

from concurrent.futures import ThreadPoolExecutor

import httpx2

from byrote.assembly.clock import monotonic
from byrote.store.connect import Door
from tests.service.harness import Served, claim_one, enqueue_one, finish_one
from tests.support import Db, until

PATIENT_S = 12.0
"""Less than half of the time after which the service gives up on a request."""


def cancel(served: Served, run: str) -> int:
    with served.client() as client:
        return client.post(f"/v1/runs/{run}/cancel", timeout=60).status_code


def test_requests_for_a_locked_run_hold_up_no_others(
    admin: httpx2.Client, served: Served, door: Door, db: Db
) -> None:
    """There are more of them than the service has connections."""
    stuck = enqueue_one(admin)
    waiting = """select count(*) from pg_stat_activity
                 where wait_event_type = 'Lock' and datname = current_database()"""
    with ThreadPoolExecutor(12) as pool, door.open("somebody") as other, other.transaction():
        other.execute("select 1 from byrote_task_runs where result_id = %s for update", (stuck,))
        cancels = [pool.submit(cancel, served, stuck) for _ in range(12)]
        until(lambda: db.execute(waiting).fetchone() > (2,))
        began = monotonic()
        run = enqueue_one(admin)
        lease = claim_one(admin)
        heard = finish_one(admin, lease, result=1)
        took = monotonic() - began
        answers = {answer.result() for answer in cancels}

    assert took < PATIENT_S
    assert lease["run"] == run
    assert heard == {"accepted": [{"run": run, "heard": "succeeded"}], "lost": []}
    assert answers == {503}
    assert cancel(served, stuck) == 200

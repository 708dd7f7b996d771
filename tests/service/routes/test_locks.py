# SPDX-License-Identifier: MIT
"""A row that another transaction has locked, and requests that wait for it."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx2
import pytest

from byrote.assembly.clock import monotonic
from byrote.store.connect import DatabaseAddress
from byrote.store.queries.tokens import audits
from tests.service.harness import Served, claim_one, enqueue_one, finish_one, problem
from tests.store.test_locks import locked
from tests.support import until

PATIENT_S = 12.0
"""Less than half of the time limit of a request in the service."""


def cancel(served: Served, run: str) -> int:
    with served.client() as client:
        return client.post(f"/v1/runs/{run}/cancel", timeout=60).status_code


def test_requests_for_a_locked_run_hold_up_no_others(
    admin: httpx2.Client, served: Served, address: DatabaseAddress
) -> None:
    """There are more of them than the service has connections."""
    stuck = enqueue_one(admin)
    with ThreadPoolExecutor(12) as pool, locked(address, "byrote_task_runs", "result_id", stuck):
        cancels = [pool.submit(cancel, served, stuck) for _ in range(12)]
        until(lambda: all(asked.running() or asked.done() for asked in cancels))
        began = monotonic()
        run = enqueue_one(admin)
        lease = claim_one(admin)
        heard = finish_one(admin, lease, result=1)
        took = monotonic() - began
        answers = {answer.result() for answer in cancels}

    assert took < PATIENT_S
    assert lease["run"] == run
    assert heard == {"accepted": [{"run": run, "accepted_as": "succeeded"}], "lost": []}
    assert answers == {503}
    assert cancel(served, stuck) == 200


def dead(client: httpx2.Client) -> str:
    run = enqueue_one(client)
    finish_one(client, claim_one(client), error={"type": "Oops", "fatal": True})
    return run


MANY = {
    "/v1/runs/cancel": (enqueue_one, "byrote_task_runs"),
    "/v1/runs/retry": (partial(enqueue_one, run_after="1h"), "byrote_task_runs"),
    "/v1/dead/requeue": (dead, "byrote_dead"),
    "/v1/dead/delete": (dead, "byrote_dead"),
}


@pytest.mark.parametrize("path", MANY)
def test_a_batch_names_the_runs_that_are_locked_and_moves_the_others(
    admin: httpx2.Client, served: Served, address: DatabaseAddress, path: str
) -> None:
    make, table = MANY[path]
    stuck, *others = (make(admin) for _ in range(3))
    with locked(address, table, "result_id", stuck):
        answer = admin.post(path, json={"runs": [stuck, *others]}, timeout=60)
    noted = served.store.all(audits())[0]
    again = admin.post(path, json={"runs": [stuck, *others]}).json()

    assert answer.status_code == 200
    assert ids_of(answer.json()) == set(others)
    assert answer.json()["locked"] == [stuck]
    assert set(noted.runs) == set(others)
    assert (ids_of(again), "locked" in again) == ({stuck}, False)


def ids_of(reply: dict[str, Any]) -> set[str]:
    return {run if isinstance(run, str) else run["id"] for run in reply["runs"]}


@pytest.mark.parametrize("verb", ["cancel", "retry", "signal"])
def test_one_locked_run_is_refused_with_what_to_do(
    admin: httpx2.Client, served: Served, address: DatabaseAddress, verb: str
) -> None:
    run = enqueue_one(admin, run_after="1h")
    body = {"event": "paid"} if verb == "signal" else None
    with locked(address, "byrote_task_runs", "result_id", run):
        answer = admin.post(f"/v1/runs/{run}/{verb}", json=body, timeout=60)

    assert "try again" in problem(answer, 503, "row_locked")["detail"]
    assert answer.headers["retry-after"] == "1"
    assert [entry.action for entry in served.store.all(audits())] == ["enqueue"]
    assert admin.post(f"/v1/runs/{run}/{verb}", json=body).status_code == 200


def test_requeue_lets_no_waiting_run_go(admin: httpx2.Client) -> None:
    run = enqueue_one(admin, run_after="1h")

    assert admin.post("/v1/dead/requeue", json={"runs": [run]}).json() == {"runs": []}
    assert admin.get(f"/v1/runs/{run}").json()["status"] == "WAITING"

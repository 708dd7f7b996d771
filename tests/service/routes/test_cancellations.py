# SPDX-License-Identifier: MIT
"""A worker is notified at once when one of its runs was cancelled, and only then."""

import threading

import httpx2

from byrote.service.waiting.cancellations import MISSED_MAX, CancellationWaiters
from tests.service.harness import Served, claim_one, enqueue_one, problem
from tests.support import until


def test_a_worker_that_waits_is_called_and_no_other(served: Served) -> None:
    with served.client() as admin, served.client("work") as worker:
        run = enqueue_one(admin)
        claim_one(worker)
        heard: dict[str, bool] = {}

        def wait(name: str, seconds: str) -> None:
            path = f"/v1/workers/{name}/cancellations"
            heard[name] = worker.get(path, params={"wait": seconds}).json()["called"]

        threads = [
            threading.Thread(target=wait, args=args) for args in (("w", "20s"), ("other", "2s"))
        ]
        for thread in threads:
            thread.start()
        until(lambda: served.service.calling.waiting == 2)
        admin.post(f"/v1/runs/{run}/cancel").raise_for_status()
        for thread in threads:
            thread.join()

    assert heard == {"w": True, "other": False}
    assert served.service.calling.waiting == 0


def test_a_cancellation_without_a_waiting_worker_is_kept_for_the_next(
    served: Served, admin: httpx2.Client
) -> None:
    run = enqueue_one(admin)
    claim_one(admin)
    admin.post(f"/v1/runs/{run}/cancel").raise_for_status()
    until(lambda: "w" in served.service.calling._missed)

    assert admin.get("/v1/workers/w/cancellations").json() == {"called": True}
    assert admin.get("/v1/workers/w/cancellations").json() == {"called": False}
    problem(admin.get("/v1/workers/w/cancellations", params={"wait": "soon"}), 422, "invalid")


def test_only_so_many_calls_are_kept() -> None:
    calling = CancellationWaiters()
    for number in range(MISSED_MAX + 5):
        calling.call(str(number))

    assert len(calling._missed) == MISSED_MAX

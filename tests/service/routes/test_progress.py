# SPDX-License-Identifier: MIT
"""Progress over HTTP: reported by workers in any language, read and followed by clients."""

from typing import Any

import httpx2
import pytest

from tests.service.harness import Served, claim_one, enqueue_one, finish_one, problem
from tests.service.routes.test_lists import told_until
from tests.support import Db, count


def put(client: httpx2.Client, lease: dict[str, Any], **said: Any) -> httpx2.Response:
    path = f"/v1/leases/{lease['token']}/progress"
    return client.put(path, json={"run": lease["run"], **said})


def test_reported_progress_is_shown_with_the_run_and_alone(admin: httpx2.Client) -> None:
    run = enqueue_one(admin)
    before = admin.get(f"/v1/runs/{run}/progress").json()
    lease = claim_one(admin)
    said = put(admin, lease, done=2, total=5, message="Step 2 of 5", data={"file": "a"})
    seen = admin.get(f"/v1/runs/{run}/progress").json()

    assert (before["status"], before["progress"]) == ("READY", None)
    assert said.json() == {"accepted": [run], "lost": []}
    assert (seen["run"], seen["status"], seen["attempts"]) == (run, "RUNNING", 1)
    progress = seen["progress"]
    assert (progress["percent"], progress["done"], progress["total"]) == (40.0, 2.0, 5.0)
    assert (progress["message"], progress["data"]) == ("Step 2 of 5", {"file": "a"})
    assert admin.get(f"/v1/runs/{run}").json()["progress"] == progress


def test_a_batch_names_what_was_lost(admin: httpx2.Client) -> None:
    one, two = enqueue_one(admin), enqueue_one(admin)
    leases = [claim_one(admin), claim_one(admin)]
    finish_one(admin, leases[1], result=1)
    reports = [{"run": x["run"], "token": x["token"], "done": 50} for x in leases]
    said = admin.post("/v1/leases/progress", json={"reports": reports}).json()

    assert said == {"accepted": [one], "lost": [two]}
    assert admin.get(f"/v1/runs/{two}/progress").json()["progress"] is None


def test_only_the_holder_of_the_lease_can_write(admin: httpx2.Client) -> None:
    run = enqueue_one(admin)
    lease = claim_one(admin)
    stranger = {**lease, "token": "0190b0a0-1111-7222-8333-444455556666"}

    assert put(admin, stranger, done=1).json() == {"accepted": [], "lost": [run]}
    assert admin.get(f"/v1/runs/{run}/progress").json()["progress"] is None


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ({"done": 101}, "0 to 100"),
        ({"done": -1}, ">= 0"),
        ({"done": 6, "total": 5}, "6"),
        ({"done": "many"}, "float"),
        ({}, "done"),
        ({"done": 1, "message": "x" * 501}, "500"),
        ({"done": 1, "message": 5}, "str"),
        ({"done": 1, "data": [1]}, "JSON object"),
        ({"done": 1, "data": {"x": "y" * 5_000}}, "4,096"),
        ({"done": 1, "extra": 1}, "extra"),
    ],
    ids=str,
)
def test_invalid_progress_is_refused_with_the_reason(
    admin: httpx2.Client, db: Db, said: dict[str, Any], advice: str
) -> None:
    enqueue_one(admin)
    refused = problem(put(admin, claim_one(admin), **said), 422, "invalid")

    assert advice in refused["detail"]
    assert count(db, "byrote_progress") == 0


def test_a_run_is_named_once_in_a_batch(admin: httpx2.Client) -> None:
    enqueue_one(admin)
    lease = claim_one(admin)
    report = {"run": lease["run"], "token": lease["token"], "done": 1}
    twice = {"reports": [report, {**report, "run": lease["run"].upper()}]}

    problem(admin.post("/v1/leases/progress", json=twice), 422, "invalid")


def test_a_stream_of_one_run_sends_its_progress_and_can_be_resumed(served: Served) -> None:
    with served.client() as admin:
        run = enqueue_one(admin)
        lease = claim_one(admin)
        with admin.stream("GET", "/v1/stream", params={"run": run}) as stream:
            lines = stream.iter_lines()
            next(lines)
            put(admin, lease, done=50, message="half")
            half = told_until(lines, "Progress")["Progress"]
        finish_one(admin, lease, result=1)
        resume = {"last-event-id": half["id"]}
        with admin.stream("GET", "/v1/stream", params={"run": run}, headers=resume) as stream:
            rest = told_until(stream.iter_lines(), "Succeeded", "Progress")

    assert (half["data"]["percent"], half["move"]) == (50.0, 0)
    assert {event["run"] for event in rest.values()} == {run}


def test_stats_list_running_runs_with_progress_in_the_tokens_queues(served: Served) -> None:
    with served.client() as admin, served.client("read", queues=["other"]) as other:
        run = enqueue_one(admin)
        put(admin, claim_one(admin), done=40)
        [told] = admin.get("/v1/stats").json()["under_way"]

        assert (told["id"], told["task"], told["progress"]["percent"]) == (run, "hello", 40.0)
        assert other.get("/v1/stats").json()["under_way"] == []

# SPDX-License-Identifier: MIT
"""Ids are UUIDs in any letter case, nothing is named twice in a request, and places are true."""

import hashlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
import msgspec
import pytest

from byrote.core.json.codec import PAYLOAD_MAX
from byrote.service.routes import events, uploads
from byrote.service.routes.table import ENDPOINTS
from byrote.wire import leases, messages, progress
from byrote.wire.terms import Identified, id_fields
from tests.service.harness import Served, claim_one, enqueue_one, finish_one, problem

MODULES = (leases, messages, progress, events, uploads)


def _requests() -> list[type]:
    return [
        kind
        for module in MODULES
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, msgspec.Struct) and id_fields(kind)
    ]


def test_every_message_with_an_id_takes_capital_letters() -> None:
    found = {kind.__name__ for kind in _requests()}

    assert found >= {"Held", "Finish", "Step", "Keep", "Claim", "Report", "Ids", "Upload"}
    assert all(issubclass(kind, Identified) for kind in _requests())
    held = leases.Held(run="ABCDEF00-0000-7000-8000-00000000000A", token="A" * 36)
    assert (held.run, held.token) == (held.run.lower(), "a" * 36)


@pytest.fixture(params=["limited", "unlimited"])
def worker(request: pytest.FixtureRequest, served: Served) -> httpx2.Client:
    rights: dict[str, Any] = {"queues": ["default"]} if request.param == "limited" else {}
    return served.client("admin", **rights)


def test_ids_in_capital_letters_are_the_same_on_every_route(worker: httpx2.Client) -> None:
    def held(**more: Any) -> dict[str, Any]:
        return {"run": lease["run"].upper(), "token": lease["token"].upper(), **more}

    with worker:
        run = enqueue_one(worker)
        chosen = {"token": "ABCDEF00-0000-4000-8000-00000000000A"}
        lease = claim_one(worker, **chosen)
        big = lease["run"].upper()
        renewed = worker.post("/v1/leases/renew", json={"leases": [held()]}).json()
        step = held(sequence=0, kind="step", name="s", result=1)
        steps = worker.post("/v1/leases/steps", json={"steps": [step]}).json()["steps"]
        entries = worker.post("/v1/leases/ledgers", json={"leases": [held()]}).json()["entries"]
        report = worker.post("/v1/leases/progress", json={"reports": [held(done=1)]}).json()
        kept = worker.post("/v1/leases/artifacts", json=held(name="a", data="")).json()
        path = f"/v1/leases/{lease['token'].upper()}/artifacts"
        sent = worker.put(path, content=b"x", params={"run": big, "name": "b"}).json()
        told = worker.put(
            f"/v1/leases/{lease['token'].upper()}/progress", json={"run": big, "done": 2}
        ).json()
        claimed = worker.get(f"/v1/leases/{lease['token'].upper()}?worker=w").json()["leases"]
        shown = [
            worker.get(f"/v1/runs/{big}{tail}").status_code
            for tail in ("", "/events", "/progress", "/artifacts")
        ]
        digest = hashlib.sha256(b"x").hexdigest().upper()
        fetched = worker.get(f"/v1/runs/{big}/artifacts/{digest}")
        signalled = worker.post(f"/v1/runs/{big}/signal", json={"event": "go"}).json()
        asked = worker.post("/v1/runs/cancel", json={"runs": [big]}).json()["runs"]
        ended = worker.post("/v1/leases/finish", json=held(cancelled=True)).json()

    assert renewed == {"renewed": [{"run": run, "cancel": False}], "lost": []}
    assert [(s["run"], s["sequence"]) for s in steps] == [(run, 0)]
    assert [entry["run"] for entry in entries] == [run]
    assert report == told == {"accepted": [run], "lost": []}
    assert (kept["verdict"], sent["verdict"]) == ("stored", "stored")
    assert [found["run"] for found in claimed] == [run]
    assert shown == [200] * 4
    assert (fetched.content, signalled["id"]) == (b"x", run)
    assert [moved["id"] for moved in asked] == [run]
    assert ended == {"accepted": [{"run": run, "accepted_as": "cancelled"}], "lost": []}


STEP = {"sequence": 1, "kind": "step", "name": "s", "result": 1}
TWICE: Mapping[str, Callable[[dict[str, Any]], tuple[Any, str]]] = {
    "/v1/leases/renew": lambda held: ({"leases": [held, held]}, "$.leases[1]"),
    "/v1/leases/release": lambda held: ({"leases": [held, held]}, "$.leases[1]"),
    "/v1/leases/ledgers": lambda held: ({"leases": [held, held]}, "$.leases[1]"),
    "/v1/leases/finish": lambda held: ([{**held, "result": 1}] * 2, "$[1]"),
    "/v1/leases/progress": lambda held: ({"reports": [{**held, "done": 1}] * 2}, "$.reports[1]"),
    "/v1/leases/steps": lambda held: (
        {"steps": [{**held, **STEP}, {**held, **STEP, "sequence": 2}, {**held, **STEP}]},
        "$.steps[2]",
    ),
}


def test_what_is_named_twice_in_a_request_is_refused_by_name(admin: httpx2.Client) -> None:
    run = enqueue_one(admin)
    lease = claim_one(admin)
    held = {"run": lease["run"], "token": lease["token"]}
    for path, body in TWICE.items():
        sent, where = body(held)
        told = problem(admin.post(path, json=sent), 422, "invalid")
        assert run in told["detail"], path
        assert told["errors"][0]["path"] == where
        # The same run is the same in capital letters.
        sent, _ = body({**held, "run": run.upper()})
        problem(admin.post(path, json=sent), 422, "invalid")

    assert admin.get(f"/v1/runs/{run}").json()["status"] == "RUNNING"
    assert set(TWICE) <= {endpoint.path for endpoint in ENDPOINTS}


def test_ids_given_twice_in_a_list_are_taken_once(admin: httpx2.Client) -> None:
    run = enqueue_one(admin)
    finish_one(admin, claim_one(admin), error={"fatal": True})

    for path in ("/v1/dead/requeue", "/v1/runs/cancel"):
        moved = admin.post(path, json={"runs": [run, run.upper(), run]}).json()["runs"]
        assert [entry["id"] for entry in moved] == [run]


def test_a_wrong_item_is_named_by_its_place_in_the_request(
    served: Served, admin: httpx2.Client
) -> None:
    enqueue_one(admin, queue="other")
    enqueue_one(admin, queue="mine")
    foreign, own = claim_one(admin, queues=["other"]), claim_one(admin, queues=["mine"])
    with served.client("work", queues=["mine"]) as worker:
        pairs = [{"run": lease["run"], "token": lease["token"]} for lease in (foreign, own)]
        wrong = [{**pairs[0], "result": 1}, {**pairs[1], "result": 1, "cancelled": True}]
        finish = problem(worker.post("/v1/leases/finish", json=wrong), 422, "invalid")
        lines = [{**pairs[0], **STEP}, {**pairs[1], **STEP, "kind": "sleep"}]
        steps = problem(worker.post("/v1/leases/steps", json={"steps": lines}), 422, "invalid")

    assert finish["detail"].startswith("$[1]")
    assert steps["detail"].startswith("$.steps[1]")


def test_a_result_has_the_limit_of_a_payload(admin: httpx2.Client) -> None:
    enqueue_one(admin)
    lease = claim_one(admin)
    held = {"run": lease["run"], "token": lease["token"]}
    large = "x" * PAYLOAD_MAX
    problem(admin.post("/v1/leases/finish", json={**held, "result": large}), 413, "too_large")
    step = {**held, **STEP, "result": large}
    problem(admin.post("/v1/leases/steps", json={"steps": [step]}), 413, "too_large")
    assert finish_one(admin, lease, result=large[:-2])["lost"] == []


def test_meaningless_numbers_are_refused(admin: httpx2.Client) -> None:
    enqueue_one(admin)
    lease = claim_one(admin)
    held = {"run": lease["run"], "token": lease["token"], "result": 1}
    wrong: list[dict[str, Any]] = [
        {"provenance": 12_345},
        {"usage": {"wall_us": 10**400}},
        {"usage": {str(n): n for n in range(200)}},
    ]
    for more in wrong:
        answer = admin.post("/v1/leases/finish", content=msgspec.json.encode({**held, **more}))
        problem(answer, 422, "invalid")
    digest = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    number = admin.post("/v1/provenance", json={"digest": digest, "doc": {}}).json()["id"]

    assert finish_one(admin, lease, result=1, provenance=number)["lost"] == []

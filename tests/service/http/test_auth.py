# SPDX-License-Identifier: MIT
"""Who may do what: every endpoint, every role, own and foreign queues; tokens and the audit."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import httpx2
import psycopg
import pytest

from byrote.service.http.auth import BELIEVED_S
from byrote.service.http.request import Endpoint
from byrote.service.routes.table import ENDPOINTS
from byrote.store import queries
from byrote.wire.problems import Problem
from tests.service.harness import (
    Served,
    claim_one,
    enqueue_one,
    finish_one,
    make_token,
    problem,
)
from tests.support import Db

ROLES = ("enqueue", "work", "read", "admin")
LEASE = {"run": "{run}", "token": "{token}"}
WORKER = {"queues": ["{queue}"], "tasks": ["hello@1"]}
BODIES: Mapping[str, Any] = {
    "/v1/runs": {"task": "hello", "queue": "{queue}"},
    "/v1/runs/cancel": {"runs": ["{run}"]},
    "/v1/runs/retry": {"runs": ["{run}"]},
    "/v1/runs/{id}/signal": {"event": "go"},
    "/v1/leases": {"worker": "w2", **WORKER},
    "/v1/leases/renew": {"leases": [LEASE]},
    "/v1/leases/finish": {**LEASE, "result": 1},
    "/v1/leases/release": {"leases": [LEASE]},
    "/v1/leases/steps": {"steps": [{**LEASE, "sequence": 1, "kind": "step", "name": "s",
                                    "result": 1}]},
    "/v1/leases/ledgers": {"leases": [LEASE]},
    "/v1/leases/artifacts": {**LEASE, "name": "a.txt", "data": "aGVsbG8="},
    "/v1/leases/progress": {"reports": [{**LEASE, "done": 1, "total": 2}]},
    "/v1/leases/{token}/progress": {"run": "{run}", "done": 50},
    "/v1/leases/unfinished": WORKER,
    "/v1/provenance": {"digest": "{hash}", "doc": {}},
    "/v1/workers": {"worker": "w3", **WORKER},
    "/v1/workers/{worker}/heartbeat": {},
    "/v1/queues/{name}/unserved": {"after": "2h"},
    "/v1/queues/{name}/purge": {},
    "/v1/queues/{name}/retention": {"keep_done": "7d"},
    "/v1/dead/requeue": {"runs": ["{run}"]},
    "/v1/dead/delete": {"runs": ["{run}"]},
}  # fmt: skip
QUERIES: Mapping[str, Any] = {
    "/v1/leases/{token}": {"worker": "w"},
    "/v1/leases/{token}/artifacts": {"run": "{run}", "name": "b.txt"},
}
EMPTY_OBJECT = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"

FOREIGN: Mapping[str, Any] = {
    "/v1/runs": 403,
    "/v1/runs/{id}": 404,
    "/v1/runs/{id}/artifacts/{hash}": 404,
    "/v1/runs/{id}/events": 404,
    "/v1/runs/{id}/artifacts": 404,
    "/v1/runs/{id}/progress": 404,
    "/v1/runs/{id}/cancel": 404,
    "/v1/runs/{id}/retry": 404,
    "/v1/runs/{id}/replay": 404,
    "/v1/runs/{id}/signal": 404,
    "/v1/leases": 403,
    "/v1/leases/unfinished": 403,
    "/v1/workers": 403,
    "/v1/queues/{name}/pause": 403,
    "/v1/queues/{name}/resume": 403,
    "/v1/queues/{name}/unserved": 403,
    "/v1/queues/{name}/purge": 403,
    "/v1/queues/{name}/retention": 403,
    # These answer with an empty list.
    "/v1/runs/cancel": {"runs": [], "next": None},
    "/v1/runs/retry": {"runs": [], "next": None},
    "/v1/leases/{token}": {"leases": [], "lease_for_s": 0.0},
    "/v1/leases/renew": {"renewed": [], "lost": ["{run}"]},
    "/v1/leases/finish": {"accepted": [], "lost": ["{run}"]},
    "/v1/leases/release": {"accepted": [], "lost": ["{run}"]},
    "/v1/leases/steps": {"steps": []},
    "/v1/leases/progress": {"accepted": [], "lost": ["{run}"]},
    "/v1/leases/{token}/progress": {"accepted": [], "lost": ["{run}"]},
    "/v1/leases/ledgers": {"entries": []},
    "GET /v1/leases/artifacts": {"size_max": 1_048_576},
    "POST /v1/leases/artifacts": {"verdict": "lost", "media_type": None, "at": None},
    "/v1/leases/{token}/artifacts": {"verdict": "lost", "media_type": None, "at": None},
    "/v1/dead": {"runs": [], "next": None},
    "/v1/dead/requeue": {"runs": []},
    "/v1/dead/delete": {"runs": []},
    "/v1/queues": {"queues": [], "count_max": 10_000},
    "GET /v1/runs": {"runs": [], "next": None},
    "GET /v1/workers": {"workers": []},
    "/v1/workers/{worker}": {"known": False},
    "/v1/workers/{worker}/heartbeat": {"known": False},
    "/v1/workers/{worker}/cancellations": {"called": False},
    "/v1/scale": {"backlog": 0, "oldest_ready_s": 0.0, "workers": 0},
}
"""What a token for another queue gets: a refusal, or an answer in which nothing is to be seen."""
NO_QUEUE = frozenset(
    {"/v1/provenance", "/v1/stats", "/v1/stream", "/v1/whoami", "/readyz", "/metrics"}
)
"""Endpoints that are about no queue in particular, or filter their answer by the token."""


def filled(value: Any, facts: Mapping[str, str]) -> Any:
    match value:
        case str():
            return value.format_map(facts)
        case dict():
            return {key: filled(part, facts) for key, part in value.items()}
        case list():
            return [filled(part, facts) for part in value]
    return value


def ask(client: httpx2.Client, endpoint: Endpoint, facts: Mapping[str, str]) -> httpx2.Response:
    path = filled(endpoint.path, facts)
    body = None if endpoint.body is None else filled(BODIES[endpoint.path], facts)
    query = filled(QUERIES.get(endpoint.path, {}), facts)
    if endpoint.path == "/v1/stream":
        with client.stream("GET", path) as answer:
            if answer.status_code != 200:
                answer.read()
            return answer
    if endpoint.streams:
        return client.request(endpoint.method, path, content=b"hello", params=query)
    return client.request(endpoint.method, path, json=body, params=query)


@pytest.fixture
def facts(admin: httpx2.Client) -> dict[str, str]:
    """A run under way in the queue `mine`, and the worker that holds it."""
    run = enqueue_one(admin, queue="mine", retry={"attempts": 3})
    lease = claim_one(admin, queues=["mine"])
    worker = {"worker": "w", "queues": ["mine"], "tasks": ["hello@1"]}
    admin.post("/v1/workers", json=worker).raise_for_status()
    left = {"run": run, "token": lease["token"], "name": "empty.json", "data": "e30="}
    admin.post("/v1/leases/artifacts", json=left).raise_for_status()
    return {"id": run, "run": run, "token": lease["token"], "worker": "w", "name": "mine",
            "queue": "mine", "hash": EMPTY_OBJECT}  # fmt: skip


@pytest.mark.parametrize("role", ROLES)
def test_every_endpoint_is_for_its_roles_only(
    served: Served, facts: dict[str, str], role: str
) -> None:
    with served.client(role, queues=["mine"]) as client:
        for endpoint in ENDPOINTS:
            answer = ask(client, endpoint, facts)
            allowed = not endpoint.roles or role == "admin" or role in endpoint.roles
            where = f"{role} {endpoint.method} {endpoint.path}"
            if allowed:
                # The run under way may stand in the way of some moves, but never the token.
                assert answer.status_code in {endpoint.status, *endpoint.refusals}, where
            else:
                assert answer.status_code == 403, where
                assert answer.json()["code"] == "forbidden"


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda e: f"{e.method} {e.path}")
def test_without_a_good_token_nothing_is_answered(served: Served, endpoint: Endpoint) -> None:
    run = "0190b0a0-1111-7222-8333-444455556666"
    facts = {"id": run, "run": run, "token": run, "worker": "w", "name": "q", "queue": "q",
             "hash": EMPTY_OBJECT}  # fmt: skip
    with httpx2.Client(base_url=served.url) as nobody, served.bearer("byr_" + "x" * 43) as stranger:
        for client in (nobody, stranger):
            answer = ask(client, endpoint, facts)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"


def test_foreign_queues_cannot_be_touched_or_seen(
    served: Served, admin: httpx2.Client, facts: dict[str, str]
) -> None:
    before = admin.get(f"/v1/runs/{facts['run']}").json()
    asked = 0
    with served.client("admin", queues=["other"]) as foreign:
        for endpoint in ENDPOINTS:
            if endpoint.path in NO_QUEUE:
                continue
            known = FOREIGN.get(f"{endpoint.method} {endpoint.path}", FOREIGN.get(endpoint.path))
            answer = ask(foreign, endpoint, facts)
            where = f"{endpoint.method} {endpoint.path}: {answer.text}"
            if isinstance(known, int):
                assert answer.status_code == known, where
            else:
                assert answer.json() == filled(known, facts), where
            asked += 1

    assert asked == len(ENDPOINTS) - len(NO_QUEUE)
    assert admin.get(f"/v1/runs/{facts['run']}").json() == before


@pytest.mark.parametrize("verb", ["cancel", "retry"])
@pytest.mark.parametrize("limits", [{"queues": ["other"]}, {"tasks": ["other"]}], ids=str)
def test_foreign_runs_are_changed_neither_by_id_nor_by_filter(
    served: Served, admin: httpx2.Client, verb: str, limits: dict[str, list[str]]
) -> None:
    dead = enqueue_one(admin, queue="mine", labels={"tenant": "a"}, retry={"attempts": 1})
    finish_one(admin, claim_one(admin, queues=["mine"]), error={"type": "Oops", "fatal": True})
    ready = enqueue_one(admin, queue="mine", labels={"tenant": "a"})
    before = [admin.get(f"/v1/runs/{run}").json() for run in (dead, ready)]
    nothing: dict[str, Any] = {"runs": [], "next": None}
    with served.client("admin", **limits) as foreign:
        by_id = foreign.post(f"/v1/runs/{verb}", json={"runs": [dead, ready]})
        found = [
            foreign.post(f"/v1/runs/{verb}", json=filters).json()
            for filters in ({"since": "1h"}, {"labels": {"tenant": "a"}})
        ]
        filters = {"queue": "mine"} if "queues" in limits else {"task": "hello"}
        problem(foreign.post(f"/v1/runs/{verb}", json=filters), 403, "forbidden")

    assert by_id.json() == nothing
    assert found == [{**nothing, "matched": {}}] * 2
    assert [admin.get(f"/v1/runs/{run}").json() for run in (dead, ready)] == before


def test_a_foreign_run_and_an_unknown_run_get_the_same_answer(
    served: Served, facts: dict[str, str]
) -> None:
    absent = "0190b0a0-1111-7222-8333-444455556666"
    with served.client("read", queues=["other"]) as client:
        foreign = client.get(f"/v1/runs/{facts['run']}").json()["detail"]
        nothing = client.get(f"/v1/runs/{absent}").json()["detail"]

    assert foreign.replace(facts["run"], absent) == nothing


def test_foreign_events_and_counts_are_not_returned(
    served: Served, admin: httpx2.Client, facts: dict[str, str]
) -> None:
    finish_one(admin, facts, result=1)
    with served.client("read", queues=["other"]) as client:
        stats = client.get("/v1/stats").json()

    assert (stats["queues"], stats["tasks"]) == ([], [])


def test_what_is_not_there_is_not_found(admin: httpx2.Client) -> None:
    absent = "0190b0a0-1111-7222-8333-444455556666"
    for tail in ("", "/events", "/artifacts", "/progress"):
        problem(admin.get(f"/v1/runs/{absent}{tail}"), 404, "not_found")
    for verb in ("cancel", "retry", "replay"):
        problem(admin.post(f"/v1/runs/{absent}/{verb}"), 404, "not_found")
    sent = admin.post(f"/v1/runs/{absent}/signal", json={"event": "go"})
    problem(sent, 404, "not_found")


def test_a_token_for_some_tasks_is_for_no_others(served: Served) -> None:
    with served.client("enqueue", tasks=["hello"]) as client:
        enqueue_one(client, "hello")
        problem(client.post("/v1/runs", json={"task": "other"}), 403, "forbidden")


def test_a_revoked_token_is_refused_within_five_seconds(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    token_id, secret = make_token(served.store)
    with served.bearer(secret) as client:
        assert client.get("/v1/whoami").status_code == 200
        served.store.all(queries.revoke_token(token_id))
        moved = served.service.keyring._clock() + BELIEVED_S
        monkeypatch.setattr(served.service.keyring, "_clock", lambda: moved)

        problem(client.get("/v1/whoami"), 401, "unauthorized")
    assert BELIEVED_S < 5


def test_an_expired_token_is_refused(served: Served, db: Db) -> None:
    token_id, secret = make_token(served.store, expires=timedelta(hours=1))
    db.execute(
        "update byrote_tokens set expires_at = byrote_now() where token_id = %s", (token_id,)
    )
    with served.bearer(secret) as client:
        problem(client.get("/v1/whoami"), 401, "unauthorized")


def test_the_database_holds_no_usable_token(served: Served, db: Db) -> None:
    _, secret = make_token(served.store)
    [(row,)] = db.execute("select row_to_json(t)::text from byrote_tokens as t").fetchall()

    assert secret not in row
    assert secret.removeprefix("byr_") not in row


def test_a_token_asks_no_more_often_than_it_may(served: Served) -> None:
    with served.client("read", rate=3) as client:
        answers = [client.get("/v1/whoami") for _ in range(20)]

    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused
    assert refused[0].headers["retry-after"] == "1"
    problem(refused[0], 429, "too_many")


def test_every_change_leaves_an_entry_in_the_audit(served: Served, db: Db) -> None:
    token_id, secret = make_token(served.store)
    with served.bearer(secret) as client:
        run = enqueue_one(client, retry={"attempts": 3})
        lease = claim_one(client)
        finish_one(client, lease, error={"type": "Oops", "fatal": True})
        client.post("/v1/dead/requeue", json={"runs": [run]}).raise_for_status()
        client.post(f"/v1/runs/{run}/cancel").raise_for_status()
        client.post("/v1/queues/default/pause").raise_for_status()
        client.post("/v1/queues/default/resume").raise_for_status()
        answer = client.post(f"/v1/runs/{run}/replay")
    told = served.store.all(queries.audits())

    assert [entry.action for entry in reversed(told)] == [
        "enqueue", "claim", "finish", "requeue", "cancel", "pause", "resume", "replay"
    ]  # fmt: skip
    assert {entry.token_id for entry in told} == {token_id}
    assert told[0].request_id == answer.headers["x-request-id"]
    assert all(run in (entry.runs or ()) for entry in told if entry.action in {"claim", "finish"})


def test_a_refused_change_leaves_none(served: Served, admin: httpx2.Client) -> None:
    problem(admin.post("/v1/runs", json=[{"task": "a", "args": 3}]), 422, "invalid")

    assert served.store.all(queries.audits()) == []


def test_secrets_and_values_stay_out_of_errors_and_logs(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    _, secret = make_token(served.store)
    with served.bearer(secret) as client:
        sent = {"task": "t", "args": [{"card": "canary-4242"}], "priority": 1000}
        answer = client.post("/v1/runs", json=sent)
        client.post("/v1/runs", json={**sent, "priority": 1})

    assert answer.status_code == 422
    for text in (answer.text, caplog.text):
        assert "canary-4242" not in text
        assert secret not in text


def test_a_problem_is_as_the_wire_defines_it(admin: httpx2.Client) -> None:
    told = problem(admin.get("/v1/runs/nope"), 404, "not_found")

    assert set(told) <= set(Problem.__struct_fields__)
    assert told["type"] == "urn:byrote:problem:not_found"


def test_psycopg_is_never_quoted(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def fall(*_args: object, **_more: object) -> None:
        raise psycopg.errors.InternalError_("secret-host:5432")

    monkeypatch.setattr(served.service.reads, "all", fall)
    with served.client() as client:
        told = problem(client.get("/v1/queues"), 500, "broken")

    assert "secret-host" not in str(told)


def test_a_claim_that_cannot_be_noted_is_not_made(admin: httpx2.Client, db: Db) -> None:
    run = enqueue_one(admin)
    db.execute(
        "create function byrote_test_refuse() returns trigger language plpgsql as"
        " $$ begin raise exception 'no'; end $$;"
        "create trigger refuse before insert on byrote_audit"
        " for each row execute function byrote_test_refuse()"
    )
    try:
        problem(admin.post("/v1/leases", json={"worker": "w", "tasks": ["hello@1"]}), 500, "broken")
    finally:
        db.execute("drop trigger refuse on byrote_audit; drop function byrote_test_refuse()")

    assert admin.get(f"/v1/runs/{run}").json()["status"] == "READY"
    assert claim_one(admin)["attempt"] == 1

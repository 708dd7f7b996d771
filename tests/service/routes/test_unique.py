# SPDX-License-Identifier: MIT
"""Unique keys over HTTP: 201 for a new run, 200 for the one that holds the key."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.service.harness import Served, claim_one, finish_one, problem
from tests.support import Db, count, run_of

KEYED = {"task": "report", "kwargs": {"month": 11}, "unique_key": "report:11"}


def send(client: httpx2.Client, body: Any = KEYED, **headers: str) -> tuple[int, Any]:
    answer = client.post("/v1/runs", json=body, headers=headers)
    return answer.status_code, answer.json()


def test_a_second_run_with_a_key_is_the_first_and_200(admin: httpx2.Client, db: Db) -> None:
    status, first = send(admin)
    again, second = send(admin, {**KEYED, "kwargs": {"month": 12}})
    told = admin.get(f"/v1/runs/{first['id']}").json()

    assert (status, first["created"]) == (201, True)
    assert (again, second) == (200, {**first, "created": False})
    assert told["unique_key"] == "report:11"
    assert told["spec_hash"] == second["spec_hash"]
    assert count(db, "byrote_runs") == 1


def test_a_key_is_free_again_when_its_run_has_ended(admin: httpx2.Client) -> None:
    _, first = send(admin)
    finish_one(admin, claim_one(admin, "report"), result=1)
    status, second = send(admin)

    assert (status, second["created"]) == (201, True)
    assert second["id"] != first["id"]


def test_the_reply_to_a_batch_has_for_each_run_whether_it_was_created(
    admin: httpx2.Client, db: Db
) -> None:
    _, held = send(admin)
    other = {**KEYED, "unique_key": "other"}
    status, reply = send(admin, [{"task": "plain"}, KEYED, other, other])
    plain, found, made, twin = reply["runs"]

    assert status == 201
    assert [run["created"] for run in reply["runs"]] == [True, False, True, False]
    assert (found["id"], twin["id"]) == (held["id"], made["id"])
    assert count(db, "byrote_runs") == 3
    assert run_of(db, plain["id"]).unique_key is None


def test_only_what_was_made_is_in_the_audit(admin: httpx2.Client, db: Db) -> None:
    _, held = send(admin)
    send(admin)
    _, reply = send(admin, [KEYED, {"task": "plain"}])

    plain = reply["runs"][1]["id"]
    entries = [entry for entry in fetch(db, queries.audits()) if entry.action == "enqueue"]
    assert [(entry.runs, entry.items) for entry in entries] == [([plain], 1), ([held["id"]], 1)]


def test_an_idempotency_key_repeats_the_answer_after_the_run_has_ended(
    admin: httpx2.Client, db: Db
) -> None:
    made = send(admin, KEYED, **{"idempotency-key": "a"})
    found = send(admin, KEYED, **{"idempotency-key": "b"})
    finish_one(admin, claim_one(admin, "report"), result=1)

    assert (made[0], found[0]) == (201, 200)
    assert send(admin, KEYED, **{"idempotency-key": "a"}) == made
    assert send(admin, KEYED, **{"idempotency-key": "b"}) == found
    assert count(db, "byrote_runs") == 1
    other = {**KEYED, "unique_key": "other"}
    answer = admin.post("/v1/runs", json=other, headers={"idempotency-key": "a"})
    problem(answer, 409, "key_reused")
    assert count(db, "byrote_runs") == 1


def test_many_at_once_make_one(admin: httpx2.Client, db: Db) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: send(admin), range(24)))

    assert sorted(status for status, _ in answers) == [200] * 23 + [201]
    assert len({reply["id"] for _, reply in answers}) == 1
    assert count(db, "byrote_runs") == 1


def test_a_token_does_not_learn_of_a_holder_it_may_not_see(served: Served, db: Db) -> None:
    with served.client() as admin, served.client("enqueue", queues=["mail"]) as limited:
        send(admin, {**KEYED, "queue": "secret"})
        answer = limited.post(
            "/v1/runs", json=[{"task": "t", "queue": "mail"}, {**KEYED, "queue": "mail"}]
        )

    told = problem(answer, 409, "conflict")
    assert told["detail"] == "The unique key is taken by an unfinished run of this task."
    assert count(db, "byrote_runs") == 1


@pytest.mark.parametrize("key", ["", "x" * 201, "a\nb", 5, ["x"]])
def test_a_bad_key_is_refused(admin: httpx2.Client, db: Db, key: Any) -> None:
    told = problem(admin.post("/v1/runs", json={**KEYED, "unique_key": key}), 422, "invalid")

    assert told["detail"]
    assert count(db, "byrote_runs") == 0


def test_the_description_has_the_key_and_both_answers(admin: httpx2.Client) -> None:
    told = admin.get("/openapi.json").json()
    answers = told["paths"]["/v1/runs"]["post"]["responses"]

    assert {"200", "201"} <= answers.keys()
    assert answers["200"]["content"] == answers["201"]["content"]
    assert "unique_key" in told["components"]["schemas"]["NewRun"]["properties"]
    assert "unique_key" in told["components"]["schemas"]["RunView"]["properties"]

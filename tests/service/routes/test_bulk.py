# SPDX-License-Identifier: MIT
"""Commands on all runs that match filters, over HTTP: batches, counts, and rights of tokens."""

from typing import Any

import httpx2
import pytest

from byrote.core.state import Status
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from tests.service.harness import Served
from tests.store.test_locks import locked
from tests.support import Db, claim, enqueue, finish, run_of, verdict


def fail(db: Db, count: int, queue: str = "default", task: str = "t") -> list[str]:
    ids = enqueue(db, count, queue=queue, task=task)
    leases = claim(db, count, queues=[queue], tasks=[f"{task}@1"])
    finish(db, [verdict(lease, "F") for lease in leases])
    return ids


def statuses(db: Db, ids: list[str]) -> list[Status]:
    return [run_of(db, run_id).status for run_id in ids]


def changed(reply: dict[str, Any]) -> list[str]:
    return [run["id"] for run in reply["runs"]]


def test_a_cancel_by_filter_goes_on_in_batches_until_none_remain(
    admin: httpx2.Client, db: Db
) -> None:
    ids, other = sorted(enqueue(db, 5, queue="mail")), enqueue(db, 2, queue="other")
    [running] = [lease.id for lease in claim(db, 1, queues=["mail"])]
    first = admin.post("/v1/runs/cancel", json={"queue": "mail", "limit": 3}).json()
    late = enqueue(db, queue="mail")
    rest = {"queue": "mail", "limit": 3, "cursor": first["next"]}
    second = admin.post("/v1/runs/cancel", json=rest).json()

    assert first["matched"] == {"READY": 4, "RUNNING": 1}
    assert changed(first) + changed(second) == ids
    assert (first["next"] is None, second["next"]) == (False, None)
    assert "matched" not in second
    assert run_of(db, running).cancel_requested_at is not None
    assert statuses(db, other + late) == ["READY"] * 3


def test_a_batch_that_ends_with_the_last_run_leaves_none(admin: httpx2.Client, db: Db) -> None:
    enqueue(db, 3, queue="mail")
    reply = admin.post("/v1/runs/cancel", json={"queue": "mail", "limit": 3}).json()

    assert (len(reply["runs"]), reply["next"]) == (3, None)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/runs/cancel", {"task": "t"}),
        ("/v1/runs/retry", {"task": "t", "status": "WAITING"}),
        ("/v1/queues/default/purge", {}),
    ],
)
def test_a_dry_run_counts_and_changes_nothing(
    admin: httpx2.Client, db: Db, path: str, body: dict[str, Any]
) -> None:
    ids = enqueue(db, 2, run_after="1h")
    reply = admin.post(path, json={**body, "dry_run": True}).json()

    assert reply == {"runs": [], "matched": {"WAITING": 2}, "next": None}
    assert statuses(db, ids) == ["WAITING"] * 2


def test_a_retry_by_filter_brings_back_dead_letters_only(admin: httpx2.Client, db: Db) -> None:
    dead, waiting = fail(db, 2), enqueue(db, run_after="1h")
    reply = admin.post("/v1/runs/retry", json={"task": "t", "since": "1h"}).json()

    assert sorted(changed(reply)) == sorted(dead)
    assert reply["matched"] == {"FAILED": 2}
    assert statuses(db, dead) == ["READY"] * 2
    assert statuses(db, waiting) == ["WAITING"]


@pytest.mark.parametrize("filters", [{"labels": {"tenant": "a"}}, {"hash": None}])
def test_runs_match_by_labels_and_hash(
    admin: httpx2.Client, db: Db, filters: dict[str, Any]
) -> None:
    [mine] = enqueue(db, labels={"tenant": "a", "x": "y"})
    [other] = enqueue(db, labels={"tenant": "b"})
    if "hash" in filters:
        filters = {"hash": run_of(db, mine).spec_hash}
    reply = admin.post("/v1/runs/cancel", json=filters).json()

    assert changed(reply) == [mine]
    assert statuses(db, [other]) == ["READY"]


def test_a_purge_leaves_running_attempts_and_other_queues(admin: httpx2.Client, db: Db) -> None:
    ids, other = enqueue(db, 3, queue="mail"), enqueue(db, queue="other")
    [lease] = claim(db, 1, queues=["mail"])
    reply = admin.post("/v1/queues/mail/purge", json={}).json()

    assert sorted(changed(reply)) == sorted(set(ids) - {lease.id})
    assert run_of(db, lease.id).cancel_requested_at is None
    assert statuses(db, other) == ["READY"]


def test_the_retention_of_a_queue_is_set_and_the_rest_stays(admin: httpx2.Client, db: Db) -> None:
    enqueue(db, queue="mail")
    first = admin.post("/v1/queues/mail/retention", json={"keep_done": "7d"}).json()
    second = admin.post("/v1/queues/mail/retention", json={"keep_dead": 86_400}).json()

    assert first == {"queue": "mail", "keep_done_s": 604_800.0, "keep_dead_s": 7_776_000.0}
    assert second == {"queue": "mail", "keep_done_s": 604_800.0, "keep_dead_s": 86_400.0}


REFUSED = (
    ("/v1/runs/cancel", {}, 422, "Name a queue, task, spec hash, label or time"),
    ("/v1/runs/cancel", {"dry_run": True}, 422, "Name a queue"),
    ("/v1/runs/cancel", {"queue": "q", "status": "FAILED"}, 422, "not 'failed' ones"),
    ("/v1/runs/retry", {"queue": "q", "status": "RUNNING"}, 422, "not 'running' ones"),
    ("/v1/runs/retry", {"queue": "q", "since": "soon"}, 422, "since: write an age such as 1h"),
    ("/v1/runs/retry", {"queue": "q", "since": "2030-01-31T09:00"}, 422, "with its time zone"),
    ("/v1/runs/retry", {"queue": "q", "cursor": "x"}, 422, "send the `next` of an earlier reply"),
    ("/v1/runs/retry", {"queue": "q", "limit": 1_001}, 422, "limit"),
    ("/v1/runs/retry", {"queue": "a\x00"}, 422, "no NUL"),
    ("/v1/queues/nope/purge", {}, 404, "No queue named 'nope'. Known: mail."),
    ("/v1/queues/nope/retention", {"keep_done": "7d"}, 404, "Known: mail."),
    ("/v1/queues/mail/retention", {"keep_done": "1h"}, 422, "the minimum is 1d"),
    ("/v1/queues/mail/retention", {"keep_dead": "soon"}, 422, "keep_dead: "),
)


@pytest.mark.parametrize(("path", "body", "status", "message"), REFUSED)
def test_what_cannot_be_done_is_explained(  # noqa: PLR0917 -- a row of the table.
    admin: httpx2.Client, db: Db, path: str, body: dict[str, Any], status: int, message: str
) -> None:
    enqueue(db, queue="mail")
    refused = admin.post(path, json=body)

    assert refused.status_code == status
    assert message in refused.json()["detail"]


def test_ids_and_filters_are_not_mixed(admin: httpx2.Client, db: Db) -> None:
    ids = enqueue(db)
    refused = admin.post("/v1/runs/cancel", json={"runs": ids, "queue": "default"})

    assert refused.status_code == 422
    assert "either the ids of runs, or filters" in refused.text
    assert statuses(db, ids) == ["READY"]


@pytest.mark.parametrize("verb", ["cancel", "retry"])
def test_a_limited_token_changes_only_runs_of_its_queues_and_tasks(
    served: Served, db: Db, verb: str
) -> None:
    made = [fail(db, 1, queue=queue, task=task) for queue in ("a", "b") for task in ("t", "u")]
    mine, *others = [run_id for [run_id] in made]
    ids = [mine, *others]
    if verb == "cancel":
        served.store.all(queries.retry(ids))
    before = statuses(db, others)
    with served.client("enqueue", queues=["a"], tasks=["t"]) as client:
        asked = client.post(f"/v1/runs/{verb}", json={"since": "1h"}).json()
        by_queue = client.post(f"/v1/runs/{verb}", json={"queue": "b"})
        by_task = client.post(f"/v1/runs/{verb}", json={"task": "u"})
        newest = max(ids)
        cursor = f"00000000-0000-0000-0000-000000000000.{newest}"
        forged = client.post(f"/v1/runs/{verb}", json={"since": "1h", "cursor": cursor}).json()

    assert changed(asked) == [mine]
    assert sum(asked["matched"].values()) == 1
    assert (by_queue.status_code, by_task.status_code) == (403, 403)
    assert changed(forged) == []
    assert statuses(db, others) == before


def test_a_limited_admin_purges_and_sets_only_its_own(served: Served, db: Db) -> None:
    mine, other = enqueue(db, queue="a", task="t"), enqueue(db, queue="a", task="u")
    enqueue(db, queue="b")
    with served.client("admin", queues=["a"], tasks=["t"]) as client:
        done = client.post("/v1/queues/a/purge", json={}).json()
        purge = client.post("/v1/queues/b/purge", json={})
        keep = client.post("/v1/queues/b/retention", json={"keep_done": "7d"})

    assert changed(done) == mine
    assert statuses(db, other) == ["READY"]
    assert (purge.status_code, keep.status_code) == (403, 403)


@pytest.mark.parametrize("role", ["read", "work"])
def test_a_role_that_sends_nothing_changes_nothing(served: Served, db: Db, role: str) -> None:
    ids = enqueue(db)
    with served.client(role) as client:
        answers = [client.post(f"/v1/runs/{v}", json={"task": "t"}) for v in ("cancel", "retry")]
        answers.append(client.post("/v1/queues/default/purge", json={}))
    with served.client("enqueue") as client:
        answers.append(client.post("/v1/queues/default/purge", json={}))

    assert {answer.status_code for answer in answers} == {403}
    assert statuses(db, ids) == ["READY"]


def test_the_audit_names_the_runs_that_a_filter_changed(
    served: Served, admin: httpx2.Client, db: Db
) -> None:
    ids = enqueue(db, 2)
    admin.post("/v1/runs/cancel", json={"task": "t", "dry_run": True})
    admin.post("/v1/runs/cancel", json={"task": "t"})
    [entry] = served.store.all(queries.audits(limit=10))

    assert entry.action == "cancel"
    assert sorted(entry.runs or ()) == sorted(ids)


def test_a_run_that_is_locked_is_named(
    admin: httpx2.Client, db: Db, address: DatabaseAddress
) -> None:
    held, free = enqueue(db, 2)
    with locked(address, "byrote_task_runs", "result_id", held):
        reply = admin.post("/v1/runs/cancel", json={"task": "t"}).json()

    assert (changed(reply), reply["locked"]) == ([free], [held])


def test_the_list_of_runs_is_limited_in_time(admin: httpx2.Client, db: Db) -> None:
    [old], [new] = enqueue(db), enqueue(db)
    db.execute(
        "update byrote_task_runs set enqueued_at = enqueued_at - interval '2h' "
        "where result_id = %s",
        [old],
    )
    recent = admin.get("/v1/runs", params={"since": "1h"}).json()

    assert changed(recent) == [new]

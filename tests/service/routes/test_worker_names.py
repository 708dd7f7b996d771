# SPDX-License-Identifier: MIT
"""The name of a worker belongs to the token that registered it."""

import asyncio
from datetime import timedelta

import httpx2
import pytest

from byrote.assembly.identity import new_id, new_secret
from byrote.core.text.ids import token_digest
from byrote.service.waiting.cancellations import CancellationWaiters
from byrote.store import queries
from tests.service.harness import Served, claim_one, enqueue_one, make_token, problem
from tests.support import Db, until


def described(name: str, queue: str = "qb") -> dict[str, object]:
    return {"worker": name, "queues": [queue], "tasks": ["hello@1"]}


@pytest.fixture
def bob(served: Served) -> httpx2.Client:
    """A worker of the queue `qb`, registered."""
    client = served.client("work", queues=["qb"])
    client.post("/v1/workers", json=described("bob")).raise_for_status()
    return client


def names(served: Served) -> dict[str, list[str]]:
    return {row.worker: row.queues for row in served.store.all(queries.workers())}


@pytest.mark.parametrize(
    "rights", [{"queues": ["qa"]}, {"tasks": ["hello"]}, {}], ids=["queue", "task", "all"]
)
def test_another_token_can_neither_take_a_name_nor_speak_for_it(
    served: Served, bob: httpx2.Client, rights: dict[str, list[str]]
) -> None:
    with served.client("work", **rights) as other:
        queue = rights.get("queues", ["qb"])[0]
        taken = problem(other.post("/v1/workers", json=described("bob", queue)), 409, "conflict")
        beat = other.post("/v1/workers/bob/heartbeat", json={}).json()
        gone = other.delete("/v1/workers/bob").json()
        unknown = other.delete("/v1/workers/nobody").json()

    assert "qb" not in taken["detail"]
    assert beat == gone == unknown == {"known": False}
    assert names(served) == {"bob": ["qb"]}
    assert bob.post("/v1/workers/bob/heartbeat", json={}).json() == {"known": True}
    assert bob.post("/v1/workers", json=described("bob")).status_code == 201
    assert bob.delete("/v1/workers/bob").json() == {"known": True}
    bob.close()


def test_a_worker_that_has_vanished_leaves_its_name(
    served: Served, bob: httpx2.Client, db: Db
) -> None:
    bob.close()
    db.execute("update byrote_workers set seen_at = seen_at - interval '1 minute'")
    with served.client("work", queues=["qa"]) as other:
        assert other.post("/v1/workers", json=described("bob", "qa")).status_code == 201

    assert names(served) == {"bob": ["qa"]}


def test_a_rotated_token_keeps_its_workers(served: Served) -> None:
    old, secret = make_token(served.store, "work")
    with served.bearer(secret) as client:
        client.post("/v1/workers", json=described("carl")).raise_for_status()
    renewed = new_secret()
    served.store.all(
        queries.rotate_token(
            old=old, id=new_id(), digest=token_digest(renewed), overlap=timedelta(0), expires=None
        )
    )
    with served.bearer(renewed) as client:
        assert client.post("/v1/workers/carl/heartbeat", json={}).json() == {"known": True}
        assert client.delete("/v1/workers/carl").json() == {"known": True}


def test_an_admin_may_take_workers_of_its_queues_off_the_list_and_no_service(
    served: Served, bob: httpx2.Client
) -> None:
    bob.close()
    own = served.service.context
    served.store.all(queries.register(dict(own.describe(["qb"], ["hello@1"]))))
    with served.client("admin", queues=["qa"]) as other:
        assert other.delete("/v1/workers/bob").json() == {"known": False}
    with served.client("admin") as admin:
        assert admin.delete(f"/v1/workers/{own.name}").json() == {"known": False}
        taken = admin.post("/v1/workers", json=described(own.name))
        problem(taken, 409, "conflict")
        assert admin.delete("/v1/workers/bob").json() == {"known": True}

    assert list(names(served)) == [own.name]


def test_a_token_cannot_take_the_cancellation_of_another(
    served: Served, admin: httpx2.Client
) -> None:
    run = enqueue_one(admin)
    with served.client("work") as carl, served.client("work") as other:
        claim_one(carl, worker="carl")
        admin.post(f"/v1/runs/{run}/cancel").raise_for_status()
        until(lambda: "carl" in served.service.calling._missed)
        other.get("/v1/workers/carl/cancellations").raise_for_status()
        assert carl.get("/v1/workers/carl/cancellations").json() == {"called": True}
        assert carl.get("/v1/workers/carl/cancellations").json() == {"called": False}

        carl.post("/v1/workers", json=described("carl", "default")).raise_for_status()
        served.service.calling.call("carl")
        assert other.get("/v1/workers/carl/cancellations").json() == {"called": False}
        assert carl.get("/v1/workers/carl/cancellations").json() == {"called": True}


def test_a_cancellation_that_a_waiting_worker_received_is_not_sent_again() -> None:
    async def all_of_it() -> tuple[bool, bool]:
        calling, gone = CancellationWaiters(), asyncio.get_running_loop().create_future()
        waiting = asyncio.ensure_future(calling.wait("carl", "h", 20, gone))
        await asyncio.sleep(0)
        calling.call("carl")
        return await waiting, await calling.wait("carl", "h", 0, gone)

    assert asyncio.run(all_of_it()) == (True, False)


def test_an_address_is_of_one_worker_only(served: Served, admin: httpx2.Client) -> None:
    for verb in ("cancellations", "heartbeat"):
        problem(admin.delete(f"/v1/workers/x/{verb}"), 405, "method_not_allowed")
        problem(admin.post("/v1/workers", json=described(f"x/{verb}")), 422, "invalid")
    for name in ("a%20b", "%1b[31m", "x" * 201, "-"):
        problem(admin.delete(f"/v1/workers/{name}"), 404, "not_found")
        problem(admin.post(f"/v1/queues/{name}/pause"), 404, "not_found")
    admin.post("/v1/workers", json=described("host/1")).raise_for_status()
    assert admin.post("/v1/workers/host/1/heartbeat", json={}).json() == {"known": True}
    assert admin.delete("/v1/workers/host/1").json() == {"known": True}


def test_a_token_for_some_tasks_sees_nothing_of_others(
    served: Served, admin: httpx2.Client
) -> None:
    for task, queue in (("mine", "both"), ("theirs", "both"), ("theirs", "only-theirs")):
        enqueue_one(admin, task, queue=queue)
    for task in ("mine", "theirs"):
        worker = {"worker": f"w-{task}", "queues": ["both"], "tasks": [f"{task}@1"]}
        admin.post("/v1/workers", json=worker).raise_for_status()
    with served.client("read", tasks=["mine"]) as reader:
        queues = reader.get("/v1/queues").json()["queues"]
        stats = reader.get("/v1/stats").json()["queues"]
        workers = reader.get("/v1/workers").json()["workers"]
        scale = reader.get("/v1/scale").json()
        text = reader.get("/metrics").text

    for told in (queues, stats):
        assert [(queue["queue"], queue["ready"]) for queue in told] == [("both", 1)]
    assert [worker["worker"] for worker in workers] == ["w-mine"]
    assert (scale["backlog"], scale["workers"]) == (1, 1)
    assert "only-theirs" not in text
    assert 'byrote_queue_runs{queue="both",status="ready"} 1\n' in text
    assert "byrote_workers 1\n" in text

# SPDX-License-Identifier: MIT
"""Tasks that no live worker knows, over HTTP: listed by queue; how long their runs wait is set."""

import threading
from datetime import timedelta

from byrote.sdk import Client
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.service.harness import Served, make_token
from tests.support import Db, claim, enqueue, register, until


def test_queues_list_the_tasks_that_no_live_worker_knows(served: Served, db: Db) -> None:
    enqueue(db, task="gone")
    enqueue(db, task="t", version=2)
    register(db, "w", "default")
    fetch(db, queries.note_unserved())
    with served.client("read") as all_of_it, served.client("read", tasks=["t"]) as some:
        [queue] = all_of_it.get("/v1/queues").json()["queues"]
        [limited] = some.get("/v1/queues").json()["queues"]

    assert queue["unserved"] == ["gone@1", "t@2"]
    assert limited["unserved"] == ["t@2"]


def test_a_run_has_the_reason_why_it_is_not_executed(served: Served, db: Db) -> None:
    [unknown], [later] = enqueue(db, version=2), enqueue(db, run_after=timedelta(hours=1))
    register(db, "w", "default")
    with served.client("read") as all_of_it, served.client("read", tasks=["t"]) as some:
        why = all_of_it.get(f"/v1/runs/{unknown}").json()["why"]
        limited = some.get(f"/v1/runs/{unknown}").json()["why"]
        waits = all_of_it.get(f"/v1/runs/{later}").json()["why"]
        [lease] = [enqueue(db), claim(db)][1]
        running = all_of_it.get(f"/v1/runs/{lease.id}").json()["why"]

    assert "knows t@2; the nearest that is known is t@1." in why
    assert "knows t@2." in limited
    assert waits.startswith("It waits (due, due ")
    assert running is None


def test_how_long_a_queue_waits_is_set_by_an_admin(served: Served, db: Db) -> None:
    stored = "select unserved_for::text from byrote_queues where queue_name = 'mail'"
    with Client(served.url, make_token(served.store, "admin")[1]) as client:
        assert client.unserved("mail", "2h").unserved_for_s == 7_200
        assert db.execute(stored).fetchone() == ("02:00:00",)
        assert client.unserved("mail", "never").unserved_for_s is None
    with served.client() as admin:
        refused = admin.post("/v1/queues/mail/unserved", json={"after": "1s"})

    assert db.execute(stored).fetchone() == (None,)
    assert refused.status_code == 422
    assert "1 minute to 3650 days" in refused.text


def test_a_claim_that_waits_is_a_worker_that_knows_its_tasks(served: Served, db: Db) -> None:
    """One that is not on the list of workers itself."""
    enqueue(db, task="gone")
    asked = {"worker": "curl", "tasks": ["hello@1"], "queues": ["default"], "wait_s": 5}
    announced = "select tasks from byrote_workers where worker_id like 'service-%' and idle"
    with served.client("work") as client:
        waiting = threading.Thread(target=client.post, args=("/v1/leases",), kwargs={"json": asked})
        waiting.start()
        until(lambda: db.execute(announced).fetchone() == (["hello@1"],))
        # The service may have noted it before us, so the table is read, not the answer.
        fetch(db, queries.note_unserved())
        noted = db.execute("select task_path, task_version from byrote_unserved").fetchall()
        enqueue(db, task="hello")
        waiting.join()

    assert noted == [("gone", 1)]

# SPDX-License-Identifier: MIT
"""What those see who look on: lists and pages, dead letters, counts, events as they happen."""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from byrote.store import queries
from tests.service.harness import Served, claim_one, enqueue_one, finish_one, problem
from tests.support import Db, until


def pages(client: httpx2.Client, path: str, **params: Any) -> Iterator[dict[str, Any]]:
    cursor: str | None = None
    while True:
        page = client.get(path, params={**params, "cursor": cursor} if cursor else params).json()
        yield from page["runs"]
        cursor = page["next"]
        if cursor is None:
            return


def test_pages_hold_every_run_once(admin: httpx2.Client) -> None:
    sent = [enqueue_one(admin, labels={"n": str(n % 2)}) for n in range(12)]

    assert [run["id"] for run in pages(admin, "/v1/runs", limit=5)] == sent[::-1]
    odd = [run["id"] for run in pages(admin, "/v1/runs", limit=4, label="n=1")]
    assert odd == sent[1::2][::-1]


def test_dead_letters_are_paged_requeued_and_deleted(admin: httpx2.Client) -> None:
    sent = []
    for _ in range(7):
        sent.append(enqueue_one(admin))
        finish_one(admin, claim_one(admin), error={"type": "Oops"})
    back = admin.post("/v1/dead/requeue", json={"runs": [sent[0], sent[1]]}).json()["runs"]
    gone = admin.post("/v1/dead/delete", json={"runs": [sent[2], sent[0]]}).json()["runs"]

    assert {run["id"] for run in back} == {sent[0], sent[1]}
    assert gone == [sent[2]]
    assert [run["id"] for run in pages(admin, "/v1/dead", limit=2)] == sent[:2:-1]
    problem(admin.get(f"/v1/runs/{sent[2]}"), 404, "not_found")


def test_events_have_every_move_of_a_run(admin: httpx2.Client) -> None:
    run = enqueue_one(admin)
    finish_one(admin, claim_one(admin), error={"type": "Oops"})
    events = admin.get(f"/v1/runs/{run}/events").json()["events"]

    assert [event["kind"] for event in events] == ["Enqueued", "Claimed", "Failed"]
    assert [event["move"] for event in events] == [1, 2, 3]
    assert events[2]["data"]["type"] == "Oops"


def test_a_run_is_shown_as_it_was(admin: httpx2.Client) -> None:
    run = enqueue_one(admin)
    finish_one(admin, claim_one(admin), result=1)
    events = admin.get(f"/v1/runs/{run}/events").json()["events"]
    seen = [
        admin.get(f"/v1/runs/{run}", params={"at": event["at"]}).json()["status"]
        for event in events
    ]

    assert seen == ["READY", "RUNNING", "SUCCESSFUL"]
    early = admin.get(f"/v1/runs/{run}", params={"at": "2020-01-01T00:00Z"})
    problem(early, 404, "not_found")
    problem(admin.get(f"/v1/runs/{run}", params={"at": "noon"}), 422, "invalid")


def told(lines: Iterator[str], count: int) -> list[dict[str, Any]]:
    found = []
    for line in lines:
        if line.startswith("data: "):
            found.append(json.loads(line.removeprefix("data: ")))
        if len(found) == count:
            break
    return found


def told_until(lines: Iterator[str], *kinds: str) -> dict[str, dict[str, Any]]:
    """Events by kind until these have arrived; another transaction may delay earlier ones."""
    found: dict[str, dict[str, Any]] = {}
    while not found.keys() >= set(kinds):
        [event] = told(lines, 1)
        found[event["kind"]] = event
    return found


def test_a_stream_sends_events_and_resumes_at_its_cursor(served: Served) -> None:
    with served.client() as admin, served.client("read") as reader:
        with reader.stream("GET", "/v1/stream") as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("retry")
            runs = admin.post("/v1/runs", json=[{"task": "hello"}] * 3).json()["runs"]
            first = told(lines, 2)
        finish_one(admin, claim_one(admin), result=1)
        resume = {"last-event-id": first[-1]["id"]}
        with reader.stream("GET", "/v1/stream", headers=resume) as stream:
            rest = told(stream.iter_lines(), 3)

    assert [event["run"] for event in [*first, rest[0]]] == [run["id"] for run in runs]
    assert [event["kind"] for event in rest] == ["Enqueued", "Claimed", "Succeeded"]


def test_a_stream_misses_nothing_that_was_committed_late(served: Served, db: Db) -> None:
    with (
        served.client() as admin,
        served.client("read") as reader,
        reader.stream("GET", "/v1/stream") as stream,
    ):
        lines = stream.iter_lines()
        next(lines)
        with db.transaction():
            db.execute("select pg_current_xact_id()")
            early = enqueue_one(admin)
            # Numbered after the other, in an older transaction.
            db.execute(
                "insert into byrote_events (at, kind, runs, attempts, moves)"
                " values (byrote_now(), 'Noted', array[%s::uuid], '{0}', '{9}')",
                (early,),
            )
        found = told(lines, 2)

    assert {event["kind"] for event in found} == {"Noted", "Enqueued"}


def test_a_stream_can_be_of_one_run(served: Served) -> None:
    with served.client() as admin:
        one = enqueue_one(admin)
        with admin.stream("GET", "/v1/stream", params={"run": one}) as stream:
            lines = stream.iter_lines()
            next(lines)
            enqueue_one(admin)
            admin.post(f"/v1/runs/{one}/cancel").raise_for_status()
            found = told_until(lines, "Cancelled")

    assert {event["run"] for event in found.values()} == {one}


@pytest.mark.parametrize(
    ("rights", "asked"),
    [({}, {"queue": "mine"}), ({"queues": ["mine"]}, {}), ({"tasks": ["t-mine"]}, {})],
)
def test_a_stream_has_the_runs_that_were_asked_for_and_may_be_seen(
    served: Served, db: Db, rights: dict[str, Any], asked: dict[str, str]
) -> None:
    """From the beginning of the log, in which a deleted run has events, too."""
    with served.client() as admin, served.client("read", **rights) as reader:
        mine, _, gone = (
            enqueue_one(admin, f"t-{queue}", queue=queue) for queue in ("mine", "other", "mine")
        )
        db.execute("delete from byrote_task_runs where result_id = %s", (gone,))
        admin.post(f"/v1/runs/{mine}/cancel").raise_for_status()
        last = {"last-event-id": "0"}
        with reader.stream("GET", "/v1/stream", params=asked, headers=last) as stream:
            lines = stream.iter_lines()
            next(lines)
            found = told(lines, 2)

    assert [(event["kind"], event["run"]) for event in found] == [
        ("Enqueued", mine),
        ("Cancelled", mine),
    ]


def test_a_bad_place_in_a_stream_is_refused(admin: httpx2.Client) -> None:
    for last in ("x", "1:2", "1.2.x", "-1.2.3", "1.99999999999999999999.3"):
        refused = admin.get("/v1/stream", headers={"last-event-id": last})
        problem(refused, 400, "bad_request")
        assert "such as 4711.812" in refused.json()["detail"]


def counted(client: httpx2.Client, enough: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def look() -> bool:
        found.update(client.get("/v1/stats").json())
        return any(enough(task) for task in found["tasks"])

    until(look)
    return next(task for task in found["tasks"] if enough(task))


def test_counts_are_kept_as_things_happen(admin: httpx2.Client) -> None:
    # The first count only notes where to begin.
    until(lambda: admin.get("/v1/stats").json()["as_of"] is not None)
    admin.post("/v1/runs", json=[{"task": "hello"}] * 10).raise_for_status()
    for n in range(10):
        how = {"error": {"type": "Oops", "fatal": True}} if n < 3 else {"result": n}
        finish_one(admin, claim_one(admin), **how)
    task = counted(admin, lambda t: t["succeeded"] == 7 and t["failed"] == 3)

    assert (task["task"], task["queue"], task["enqueued"]) == ("hello", "default", 10)
    assert task["errors"] == {"Oops": 3}
    assert 0 < task["run_s"]["p50"] <= task["run_s"]["p95"] <= task["run_s"]["p99"] < 60
    assert task["wait_s"]["p50"] > 0


def test_two_services_count_nothing_twice(served: Served, admin: httpx2.Client, db: Db) -> None:
    until(lambda: admin.get("/v1/stats").json()["as_of"] is not None)
    done = threading.Event()

    def always_due() -> None:
        with served.store.borrow() as line:
            while not done.is_set():
                line.execute("update byrote_duties set next_at = '-infinity' where duty = 'stats'")

    thread = threading.Thread(target=always_due)
    thread.start()
    try:
        for _ in range(5):
            admin.post("/v1/runs", json=[{"task": "hello"}] * 20).raise_for_status()
        task = counted(admin, lambda t: t["enqueued"] >= 100)
    finally:
        done.set()
        thread.join()

    assert task["enqueued"] == 100


def test_counts_of_a_status_stop_somewhere_and_depths_do_not(admin: httpx2.Client) -> None:
    for _ in range(11):
        admin.post("/v1/runs", json=[{"task": "hello", "queue": "deep"}] * 1_000)
    enqueue_one(admin, queue="later", run_after="1h")
    claim_one(admin, queues=["deep"])
    task = counted(admin, lambda t: t["queue"] == "deep" and t["running"] == 1)
    found = {queue["queue"]: queue for queue in admin.get("/v1/queues").json()["queues"]}
    scale = admin.get("/v1/scale", params={"queue": "deep"}).json()

    assert found["deep"]["ready"] == 10_000
    assert (found["later"]["ready"], found["later"]["waiting"]) == (0, 1)
    assert scale["backlog"] == 10_001
    assert (found["deep"]["depth"], found["later"]["depth"]) == (10_999, 1)
    assert (task["task"], task["depth"]) == ("hello", 10_999)
    assert task["oldest_ready_s"] > 0
    assert 'byrote_queue_depth{queue="deep"} 10999\n' in admin.get("/metrics").text


def test_metrics_are_in_the_form_prometheus_reads(served: Served, admin: httpx2.Client) -> None:
    enqueue_one(admin, queue="mine")
    enqueue_one(admin, queue="other")
    text = admin.get("/metrics").text
    with served.client("read", queues=["mine"]) as reader:
        mine = reader.get("/metrics").text

    assert 'byrote_queue_runs{queue="other",status="ready"} 1\n' in text
    assert 'queue="mine"' in mine
    assert "other" not in mine
    for line in text.splitlines():
        assert line.startswith("# ") or line.rpartition(" ")[2].replace(".", "").isdigit(), line


def test_artifacts_of_a_run_are_listed(admin: httpx2.Client, db: Db) -> None:
    run = enqueue_one(admin)
    db.execute(
        "insert into byrote_artifacts values"
        " (%s, byrote_now(), 3, 1, 'report.csv', sha256('abc'), 'text/csv', 'here')",
        (run,),
    )
    [found] = admin.get(f"/v1/runs/{run}/artifacts").json()["artifacts"]

    assert (found["name"], found["size"], found["attempt"]) == ("report.csv", 3, 1)


def test_a_paused_queue_has_no_leases_until_it_is_resumed(admin: httpx2.Client) -> None:
    enqueue_one(admin, queue="a/b")
    admin.post("/v1/queues/a/b/pause").raise_for_status()
    asked = {"worker": "w", "tasks": ["hello@1"], "queues": ["a/b"]}
    held = admin.post("/v1/leases", json=asked).json()["leases"]
    admin.post("/v1/queues/a/b/resume").raise_for_status()

    assert held == []
    assert claim_one(admin, queues=["a/b"])


def test_workers_introduce_themselves_and_leave(admin: httpx2.Client) -> None:
    worker = {"worker": "w", "queues": ["default"], "tasks": ["hello@1"], "host": "h"}
    assert admin.post("/v1/workers/w/heartbeat", json={}).json() == {"known": False}
    assert admin.post("/v1/workers", json=worker).status_code == 201
    assert admin.post("/v1/workers/w/heartbeat", json={"running": 3}).json() == {"known": True}
    [seen] = admin.get("/v1/workers").json()["workers"]
    assert (seen["worker"], seen["running"], seen["alive"]) == ("w", 3, True)
    assert admin.delete("/v1/workers/w").json() == {"known": True}
    assert admin.get("/v1/workers").json()["workers"] == []


def test_steps_are_written_by_the_holder_only(admin: httpx2.Client, db: Db) -> None:
    run = enqueue_one(admin)
    lease = claim_one(admin)
    held = {"run": run, "token": lease["token"]}
    step = {**held, "sequence": 1, "kind": "step", "name": "charge", "result": {"id": 7}}
    noted = admin.post("/v1/leases/steps", json={"steps": [step]}).json()["steps"]
    again = admin.post("/v1/leases/steps", json={"steps": [{**step, "result": 8}]}).json()["steps"]
    stranger = {**step, "token": run}
    refused = admin.post("/v1/leases/steps", json={"steps": [stranger]}).json()["steps"]
    entries = admin.post("/v1/leases/ledgers", json={"leases": [held]}).json()["entries"]

    assert noted[0]["result"] == again[0]["result"] == {"id": 7}
    assert refused == []
    assert [(entry["name"], entry["result"]) for entry in entries] == [("charge", {"id": 7})]


def test_a_service_that_waits_is_woken_by_any_producer(served: Served, store: Any) -> None:
    """It is registered as idle, so producers beside it notify it."""
    with served.client() as admin:
        asked = {"worker": "w", "tasks": ["none@1"], "wait_s": 0.2}
        admin.post("/v1/leases", json=asked).raise_for_status()
        names = [row.worker for row in store.all(queries.workers()) if row.idle]

    assert names == [served.service.context.name]

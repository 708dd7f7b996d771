# SPDX-License-Identifier: MIT
"""Faults 37 and 38 and their like: services killed, answers lost, the database gone for a while."""

import contextlib
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from byrote.assembly.identity import jitter
from byrote.embedded import control
from byrote.service.options import ServiceOptions
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import Store
from tests.faults.proxy import Fault, Proxy, proxied
from tests.faults.test_fault_database import OwnServer
from tests.service.harness import (
    claim_one,
    enqueue_one,
    finish_one,
    make_token,
    problem,
    serving,
)
from tests.service.processes import Process, Stubborn, processes
from tests.support import Db, count, history, until

SENT = 120


def send(running: list[Process], secret: str, place: int) -> dict[str, str]:
    """Send runs, each under its own key; returns the id in each answer."""
    client = Stubborn(running, secret, place)
    told = {}
    for n in range(SENT):
        key = f"{place}-{n}"
        told[key] = client.post("/v1/runs", {"task": "t", "payload": key}, key=key)["id"]
    client.close()
    return told


def work(running: list[Process], secret: str, place: int, done: threading.Event) -> Counter[str]:
    """Claim and finish until stopped; returns how often each end was acknowledged."""
    client = Stubborn(running, secret, place)
    heard: Counter[str] = Counter()
    asked = {"worker": f"w{place}", "tasks": ["t@1"], "limit": 20, "lease_for_s": 3, "wait_s": 0.5}
    while not done.is_set():
        leases = client.post("/v1/leases", asked)["leases"]
        said = [
            {"run": lease["run"], "token": lease["token"], "result": lease["spec"]["args"][0]}
            for lease in leases
        ]
        if said:
            for entry in client.post("/v1/leases/finish", said)["accepted"]:
                heard[entry["run"]] += 1
    client.close()
    return heard


@pytest.mark.parametrize("count", [1, 3])
def test_fault_37_and_38_killed_services_lose_nothing(
    url: str, store: Store, db: Db, count: int
) -> None:
    """Killed in turn under load: one run per key, every run done once, by its holder."""
    _, secret = make_token(store, rate=100_000)
    done = threading.Event()
    with processes(url, count) as running, ThreadPoolExecutor(8) as pool:
        senders = [pool.submit(send, running, secret, n) for n in range(3)]
        workers = [pool.submit(work, running, secret, n, done) for n in range(3)]
        for turn in range(3):
            until(lambda: _done(db) > 25 * turn)  # noqa: B023 -- asked before the next turn.
            victim = running[turn % count]
            victim.stop(signal.SIGKILL)
            victim.start()
        try:
            told = {key: run for sender in senders for key, run in sender.result(90).items()}
            until(lambda: _done(db) == len(told))
        finally:
            done.set()
        heard = sum((worker.result(60) for worker in workers), Counter[str]())

    rows = db.execute("select result_id::text, status, return_json, charged from byrote_task_runs")
    found = {run: (status, result, charged) for run, status, result, charged in rows}
    assert len(told) == len(found) == 3 * SENT
    for key, run in told.items():
        assert found[run] == ("SUCCESSFUL", f'"{key}"', 1)
    # An end may have been written and its answer lost; none was acknowledged twice.
    assert max(heard.values()) == 1
    assert _moves_are_whole(db)


def _done(db: Db) -> int:
    [(count,)] = db.execute("select count(*) from byrote_task_runs where status = 'SUCCESSFUL'")
    return int(count)


def _moves_are_whole(db: Db) -> bool:
    """Log = row: the moves of every run are 1..n, and n is in its row."""
    rows = db.execute(
        "select array_agg(log.move order by log.move), run.moves from byrote_task_runs as run"
        " join byrote_event_log as log using (result_id) group by run.result_id, run.moves"
    )
    return all(moves == list(range(1, last + 1)) for moves, last in rows)


def test_a_stopped_service_answers_what_is_under_way_and_ends_well(url: str, store: Store) -> None:
    _, secret = make_token(store)
    with processes(url, 1) as [process], ThreadPoolExecutor(1) as pool:
        client = httpx2.Client(base_url=process.url, headers={"authorization": f"Bearer {secret}"})
        asked = {"worker": "w", "tasks": ["t@1"], "wait_s": 50}
        wait = pool.submit(client.post, "/v1/leases", json=asked, timeout=60)
        until(lambda: bool(_idle(client)))
        code = process.stop()

        assert wait.result(20).json()["leases"] == []
        assert code == 0
        client.close()


def _idle(client: httpx2.Client) -> list[Any]:
    return [w for w in client.get("/v1/workers").json()["workers"] if w["idle"]]


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with proxied(url) as between:
        yield between


@contextlib.contextmanager
def behind(proxy: Proxy, store: Store) -> Iterator[httpx2.Client]:
    options = ServiceOptions(patience_s=5)
    with serving(DatabaseAddress(proxy.url), store, options) as served, served.client() as client:
        client.get("/v1/whoami").raise_for_status()
        yield client


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_enqueue_whose_answer_is_lost_is_made_once(
    proxy: Proxy, store: Store, db: Db, moment: Any
) -> None:
    with behind(proxy, store) as client:
        for key in ({}, {"idempotency-key": "k"}):
            fault = proxy.plan("insert into byrote_task_runs", moment)
            client.post("/v1/runs", json={"task": "t"}, headers=key).raise_for_status()
            assert fault.happened.is_set()
        batch = proxy.plan("jsonb_to_recordset", moment)
        client.post("/v1/runs", json=[{"task": "t"}] * 3).raise_for_status()
        assert batch.happened.is_set()

    [(runs, audits)] = db.execute(
        "select (select count(*) from byrote_task_runs), (select count(*) from byrote_audit)"
    )
    assert (runs, audits) == (5, 3)


@pytest.mark.parametrize("words", ["on conflict (task_path, unique_key)", "COMMIT"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_enqueue_with_a_unique_key_whose_answer_is_lost_is_made_and_noted_once(
    proxy: Proxy, store: Store, *, db: Db, moment: Any, words: str
) -> None:
    with behind(proxy, store) as client:
        for key in ({}, {"idempotency-key": "k"}):
            body = {"task": "t", "unique_key": f"key {key}"}
            fault = proxy.plan(words, moment)
            made = client.post("/v1/runs", json=[body, body], headers=key)
            assert fault.happened.is_set()
            assert [run["created"] for run in made.json()["runs"]] == [True, False]
            fault = proxy.plan(words, moment)
            found = client.post("/v1/runs", json=body)
            assert fault.happened.is_set()
            assert (found.status_code, found.json()["created"]) == (200, False)

    [(runs, audits)] = db.execute(
        "select (select count(*) from byrote_task_runs), (select count(*) from byrote_audit)"
    )
    assert (runs, audits) == (2, 2)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_claim_and_a_finish_whose_answers_are_lost_are_made_once(
    proxy: Proxy, store: Store, db: Db, moment: Any
) -> None:
    with behind(proxy, store) as client:
        run = enqueue_one(client)
        fault = proxy.plan("set status = 'RUNNING'", moment)
        asked = {"worker": "w", "tasks": ["hello@1"], "wait_s": 10}
        [lease] = client.post("/v1/leases", json=asked).json()["leases"]
        assert fault.happened.is_set()
        fault = proxy.plan("verdict", moment)
        heard = finish_one(client, lease, result=1)
        assert fault.happened.is_set()

    assert (lease["run"], lease["attempt"]) == (run, 1)
    assert [entry["run"] for entry in heard["accepted"]] == [run]
    [(status, attempts, moves)] = db.execute("select status, attempts, moves from byrote_task_runs")
    assert (status, attempts, moves) == ("SUCCESSFUL", 1, 3)


@pytest.mark.parametrize("at", ["statement", "COMMIT"])
@pytest.mark.parametrize("moment", ["before", "during", "after", "torn"])
def test_a_claim_from_several_queues_returns_each_lease_once(
    proxy: Proxy, store: Store, db: Db, *, moment: Any, at: str
) -> None:
    """The answer to the second queue's claim is lost, after the first queue's was given."""
    second: list[Fault] = []
    with behind(proxy, store) as client:
        sent = {enqueue_one(client, queue=queue) for queue in ("a", "b")}
        words = "set status = 'RUNNING'"

        def strike() -> None:
            second.append(proxy.plan(words if at == "statement" else at, moment))

        def pass_by(then: Callable[[], None]) -> None:
            proxy.plan(words, "hold", then).let_go.set()

        pass_by(strike if at == "statement" else lambda: pass_by(strike))
        asked = {"worker": "w", "tasks": ["hello@1"], "queues": ["a", "b"], "limit": 5}
        leases = client.post("/v1/leases", json=asked).json()["leases"]

    assert second[0].happened.is_set()
    assert sorted(lease["run"] for lease in leases) == sorted(sent)
    rows = db.execute("select distinct status, attempts from byrote_task_runs").fetchall()
    assert rows == [("RUNNING", 1)]


VERBS: dict[str, tuple[str, str, int]] = {
    "cancel": ("runs/{run}/cancel", "'CancelRequested'", 200),
    "retry": ("runs/{dead}/retry", "'Revived'", 200),
    "replay": ("runs/{run}/replay", "replay_of, queue_name", 201),
    "signal": ("runs/{run}/signal", "insert into byrote_signals", 200),
    "delete": ("dead/delete", "'Deleted'", 200),
}


@pytest.mark.parametrize("at", ["statement", "COMMIT"])
@pytest.mark.parametrize("moment", ["before", "during", "after", "torn"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_whose_answer_is_lost_is_done_once_and_reported_as_done(
    proxy: Proxy, store: Store, db: Db, *, verb: str, moment: Any, at: str
) -> None:
    path, words, status = VERBS[verb]
    with behind(proxy, store) as client:
        dead, run = enqueue_one(client), enqueue_one(client)
        finish_one(client, claim_one(client), error={"type": "E", "message": "m"})
        body: Any = {"event": "e", "payload": 1} if verb == "signal" else None
        body = {"runs": [dead]} if verb == "delete" else body
        moves = history(db, dead), history(db, run)
        fault = proxy.plan(words if at == "statement" else at, moment)
        reply = client.post(f"/v1/{path.format(run=run, dead=dead)}", json=body)
        assert fault.happened.is_set()

    assert reply.status_code == status, reply.text
    added = len(history(db, dead)) + len(history(db, run)) - sum(map(len, moves))
    assert added == (verb != "replay")
    assert count(db, "byrote_once") == 0
    assert count(db, "byrote_runs") == {"replay": 3, "delete": 1}.get(verb, 2)


def test_while_the_database_is_away_503_is_answered_and_then_all_is_well() -> None:
    server = OwnServer()
    try:
        store = Store(DatabaseAddress(server.url), jitter=jitter)
        options = ServiceOptions(patience_s=0.3)
        with (
            serving(DatabaseAddress(server.url), store, options) as served,
            served.client() as client,
        ):
            run = enqueue_one(client)
            lease = claim_one(client, lease_for_s=60)
            proof = {"authorization": client.headers["authorization"]}
            gone = _while_away(server, served.url, proof)
            told = problem(gone, 503, "unavailable")
            until(lambda: client.get("/readyz").status_code == 200)

            assert int(gone.headers["retry-after"]) >= 1
            assert "5432" not in told["detail"]
            assert finish_one(client, lease, result=1)["accepted"][0]["run"] == run
            # The listener and the poller work again, too.
            with ThreadPoolExecutor(1) as pool:
                wait = pool.submit(claim_one, client, wait_s=20)
                until(lambda: served.service.claim_waiters.waiting == 1)
                assert enqueue_one(client) == wait.result(20)["run"]
        store.close()
    finally:
        server.close()


def _while_away(server: OwnServer, url: str, headers: dict[str, str]) -> httpx2.Response:
    control.stop(server.home, force=True)
    try:
        return httpx2.post(f"{url}/v1/runs", json={"task": "t"}, headers=headers, timeout=30)
    finally:
        server._open()

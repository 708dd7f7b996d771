# SPDX-License-Identifier: MIT
"""The life of a run over HTTP: sent, leased, finished, and every way it may end."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx2
import pytest

from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.service.harness import Served, claim_one, enqueue_one, finish_one, problem
from tests.support import Db, until


def test_a_run_is_sent_leased_and_finished(admin: httpx2.Client) -> None:
    run = enqueue_one(admin, payload={"name": "Ada", "n": 1.0})
    lease = claim_one(admin)
    heard = finish_one(admin, lease, result={"said": "hello Ada"})
    told = admin.get(f"/v1/runs/{run}").json()

    assert lease["run"] == run
    assert lease["spec"]["args"] == [{"name": "Ada", "n": 1.0}]
    assert heard == {"accepted": [{"run": run, "accepted_as": "succeeded"}], "lost": []}
    assert (told["status"], told["result"]) == ("SUCCESSFUL", {"said": "hello Ada"})


def test_values_travel_byte_for_byte(admin: httpx2.Client) -> None:
    body = b'{"task":"t","args":[1.0, 1e16,-0.0, 1180591620717411303424,"\\u00e9"]}'
    run = admin.post("/v1/runs", content=body, headers={"content-type": "application/json"})
    text = admin.get(f"/v1/runs/{run.json()['id']}").text

    assert '"args":[1.0, 1e16,-0.0, 1180591620717411303424,"\\u00e9"],"kwargs":{}' in text


def test_a_batch_is_accepted_in_order(admin: httpx2.Client) -> None:
    sent = [{"task": "hello", "args": [n]} for n in range(50)]
    ids = [run["id"] for run in admin.post("/v1/runs", json=sent).json()["runs"]]
    asked = {"worker": "w", "tasks": ["hello@1"], "limit": 100}
    leases = admin.post("/v1/leases", json=asked).json()["leases"]

    assert [lease["run"] for lease in leases] == ids
    assert [lease["spec"]["args"] for lease in leases] == [[n] for n in range(50)]


def test_a_batch_with_one_bad_run_is_refused_as_a_whole(admin: httpx2.Client) -> None:
    told = problem(admin.post("/v1/runs", json=[{"task": "a"}, {"task": "b", "priority": 101}]),
                   422, "invalid")  # fmt: skip

    assert told["errors"][0]["path"] == "$[1].priority"
    assert admin.get("/v1/runs").json()["runs"] == []


def test_an_error_follows_the_policy_of_the_run(admin: httpx2.Client) -> None:
    run = enqueue_one(admin, retry={"attempts": 2, "delay_first": "10m", "jitter": False})
    heard = finish_one(admin, claim_one(admin), error={"type": "Oops", "message": "no"})
    waiting = admin.get(f"/v1/runs/{run}").json()
    admin.post(f"/v1/runs/{run}/retry").raise_for_status()
    lease = claim_one(admin)

    assert heard["accepted"][0]["accepted_as"] == "retried"
    assert (waiting["status"], waiting["wait_reason"]) == ("WAITING", "retry")
    assert waiting["errors"][0]["type"] == "Oops"
    assert lease["attempt"] == 2


def test_the_last_attempt_and_a_fatal_error_end_among_the_dead(admin: httpx2.Client) -> None:
    last, fatal = enqueue_one(admin), enqueue_one(admin, retry={"attempts": 9})
    finish_one(admin, claim_one(admin), error={"type": "Oops"})
    heard = finish_one(admin, claim_one(admin), error={"type": "Bad", "fatal": True})
    dead = admin.get("/v1/dead").json()["runs"]

    assert heard["accepted"][0]["accepted_as"] == "failed"
    assert [run["id"] for run in dead] == [fatal, last]


def test_a_retry_after_is_kept_to_the_letter(admin: httpx2.Client, db: Db) -> None:
    enqueue_one(admin, retry={"attempts": 5})
    finish_one(admin, claim_one(admin), error={"type": "Busy", "retry_after": "90s"})
    [(delay,)] = db.execute("select run_after - last_attempted_at from byrote_task_runs").fetchall()

    assert timedelta(seconds=90) <= delay < timedelta(seconds=91)


def test_a_snooze_and_a_release_cost_nothing(admin: httpx2.Client) -> None:
    run = enqueue_one(admin)
    heard = finish_one(admin, claim_one(admin), snooze={"after": "5m"})
    admin.post(f"/v1/runs/{run}/retry").raise_for_status()
    lease = claim_one(admin)
    held = {"leases": [{"run": run, "token": lease["token"]}]}
    released = admin.post("/v1/leases/release", json=held).json()
    told = admin.get(f"/v1/runs/{run}").json()

    assert heard["accepted"][0]["accepted_as"] == "snoozed"
    assert released["accepted"][0]["accepted_as"] == "released"
    assert (told["status"], told["attempts"], told["charged"]) == ("READY", 2, 0)


@pytest.mark.parametrize(
    ("attempts", "heard", "status"), [(2, "retried", "WAITING"), (1, "failed", "FAILED")]
)
def test_a_worker_that_judges_for_itself_is_believed_within_the_budget(
    admin: httpx2.Client, attempts: int, heard: str, status: str
) -> None:
    run = enqueue_one(admin, retry={"attempts": attempts})
    verdict = {"kind": "retry", "delay_us": 3_000_000_000}
    answer = finish_one(admin, claim_one(admin), error={"type": "Oops"}, verdict=verdict)

    assert answer["accepted"][0]["accepted_as"] == heard
    assert admin.get(f"/v1/runs/{run}").json()["status"] == status


def test_the_finishes_of_a_stranger_and_a_late_worker_are_refused(
    admin: httpx2.Client, db: Db
) -> None:
    run = enqueue_one(admin)
    lease = claim_one(admin)
    stranger = finish_one(admin, {**lease, "token": lease["token"][:-4] + "0000"}, result=1)
    db.execute("update byrote_task_runs set leased_until = byrote_now() - interval '1 s'")
    late = finish_one(admin, lease, result=1)
    fetch(db, queries.sweep())
    after_sweep = finish_one(admin, lease, result=1)

    for answer in (stranger, late, after_sweep):
        assert answer == {"accepted": [], "lost": [run]}
    assert admin.get(f"/v1/runs/{run}").json()["result"] is None


def test_a_finish_sent_twice_is_applied_once_and_answered_twice(admin: httpx2.Client) -> None:
    enqueue_one(admin)
    lease = claim_one(admin)
    first, second = finish_one(admin, lease, result=1), finish_one(admin, lease, result=2)

    assert first["accepted"][0]["accepted_as"] == "succeeded"
    assert second["accepted"][0]["accepted_as"] == "already"
    assert admin.get(f"/v1/runs/{lease['run']}").json()["result"] == 1


def test_a_claim_whose_answer_was_lost_can_be_asked_for(admin: httpx2.Client) -> None:
    enqueue_one(admin)
    token = "0190b0a0-1111-4222-8333-444455556666"  # noqa: S105 -- a lease's, for this test.
    lease = claim_one(admin, token=token)
    again = admin.get(f"/v1/leases/{token}", params={"worker": "w"}).json()["leases"]

    assert [found["run"] for found in again] == [lease["run"]]
    assert admin.get(f"/v1/leases/{token}", params={"worker": "v"}).json()["leases"] == []


def test_cancelling_a_running_run_asks_its_worker(admin: httpx2.Client) -> None:
    run = enqueue_one(admin)
    lease = claim_one(admin)
    asked = admin.post(f"/v1/runs/{run}/cancel").json()
    held = {"leases": [{"run": run, "token": lease["token"]}]}
    renewed = admin.post("/v1/leases/renew", json=held).json()
    finish_one(admin, lease, cancelled=True)

    assert asked["status"] == "RUNNING"
    assert renewed["renewed"] == [{"run": run, "cancel": True}]
    assert admin.get(f"/v1/runs/{run}").json()["status"] == "CANCELLED"
    problem(admin.post(f"/v1/runs/{run}/cancel"), 409, "conflict")


def test_the_same_key_gets_the_same_answer_and_one_run(admin: httpx2.Client) -> None:
    key = {"idempotency-key": "order-42"}

    def send(_n: int) -> str:
        return admin.post("/v1/runs", json={"task": "hello"}, headers=key).raise_for_status().text

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(send, range(16)))

    assert len(answers) == 1
    assert len(admin.get("/v1/runs").json()["runs"]) == 1
    other = admin.post("/v1/runs", json={"task": "other"}, headers=key)
    problem(other, 409, "key_reused")


def test_a_replay_with_a_key_is_made_once(admin: httpx2.Client) -> None:
    run = enqueue_one(admin, payload=[1, 2])
    key = {"idempotency-key": "again"}
    first = admin.post(f"/v1/runs/{run}/replay", headers=key).json()
    second = admin.post(f"/v1/runs/{run}/replay", headers=key).json()

    assert first == second
    assert admin.get(f"/v1/runs/{first['id']}").json()["replay_of"] == run


def test_keys_of_two_holders_do_not_meet(served: Served) -> None:
    key = {"idempotency-key": "1"}
    with served.client("enqueue") as one, served.client("enqueue") as two:
        ids = {c.post("/v1/runs", json={"task": "t"}, headers=key).json()["id"] for c in (one, two)}

    assert len(ids) == 2


def test_a_claim_waits_without_a_connection_and_is_woken(served: Served) -> None:
    asked = {"worker": "w", "tasks": ["hello@1"], "wait_s": 20}
    with served.client() as admin, ThreadPoolExecutor(30) as pool:
        waits = [pool.submit(admin.post, "/v1/leases", json=asked) for _ in range(30)]
        while served.service.claim_waiters.waiting < 30:
            threading.Event().wait(0.01)
        # Far more wait than there are connections, and others are served meanwhile.
        sent = [enqueue_one(admin) for _ in range(30)]
        found = [wait.result(15).json()["leases"][0]["run"] for wait in waits]

    assert sorted(found) == sorted(sent)


def test_a_claim_whose_worker_has_hung_up_takes_nothing(served: Served) -> None:
    asked = {"worker": "gone", "tasks": ["hello@1"], "wait_s": 30}
    with served.client() as admin:
        with pytest.raises(httpx2.ReadTimeout):
            admin.post("/v1/leases", json=asked, timeout=0.5)
        until(lambda: served.service.claim_waiters.waiting == 0)
        run = enqueue_one(admin)

        assert claim_one(admin)["run"] == run


def test_a_run_can_be_waited_for(served: Served) -> None:
    with served.client() as admin, ThreadPoolExecutor(1) as pool:
        run = enqueue_one(admin)
        wait = pool.submit(admin.get, f"/v1/runs/{run}", params={"wait": "20s"})
        while served.service.watch.waiting < 1:
            threading.Event().wait(0.01)
        finish_one(admin, claim_one(admin), result=7)

        assert wait.result(10).json()["result"] == 7


def test_a_wait_ends_when_its_time_is_over(admin: httpx2.Client) -> None:
    run = enqueue_one(admin)

    assert admin.get(f"/v1/runs/{run}", params={"wait": "50ms"}).json()["status"] == "READY"
    asked = {"worker": "w", "tasks": ["other@1"], "wait_s": 0.05}
    assert admin.post("/v1/leases", json=asked).json()["leases"] == []


def test_due_runs_are_promoted_and_lost_ones_swept_without_any_worker(
    admin: httpx2.Client,
) -> None:
    run = enqueue_one(admin, run_after="0.2s")
    lease = claim_one(admin, wait_s=15, lease_for_s=1)
    again = claim_one(admin, wait_s=15)

    assert (lease["run"], lease["attempt"]) == (run, 1)
    assert (again["run"], again["attempt"], again["losses"]) == (run, 2, 1)

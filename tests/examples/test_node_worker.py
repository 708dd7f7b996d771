# SPDX-License-Identifier: MIT
"""A worker in another language, from the protocol alone: `examples/workers/worker.mjs`."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from byrote.core.state import Status
from byrote.sdk import Retry
from tests.faults.proxy import HttpProxy
from tests.sdk.harness import Db, Service, new_service_token
from tests.support import run_of, until
from tests.worker.harness import ROOT, await_row, await_status, history

WORKER = ROOT / "examples" / "workers" / "worker.mjs"

pytestmark = pytest.mark.needs("node")

type Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def token(db: Db) -> str:
    """A token that may work, and nothing else."""
    return new_service_token(db, "work")


@pytest.fixture
def start(service: Service, token: str, tmp_path: Path) -> Iterator[Start]:
    """Starts workers in Node."""
    started: list[subprocess.Popen[bytes]] = []

    def start(**environ: str) -> subprocess.Popen[bytes]:
        known = {"BYROTE_SERVICE_URL": service.url, "BYROTE_SERVICE_TOKEN": token}
        out = (tmp_path / f"node-{len(started)}.log").open("wb")
        with out:
            process = subprocess.Popen(
                ["node", str(WORKER)],
                env={**os.environ, **known, **environ},
                stdout=out,
                stderr=out,
            )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_runs_end_as_their_handlers_decide(service: Service, start: Start) -> None:
    start()
    client = service.client
    shout = client.enqueue("shout", "hello")
    broken = client.enqueue("broken", 1, retry=Retry(attempts=2, delay_first=0.0))

    assert client.result(shout.id, 30) == "HELLO"
    ended = client.wait(broken.id, 30)
    assert (ended.status, ended.charged) == (Status.FAILED, 2)
    assert ended.faults[-1]["type"] == "TypeError"


def test_a_lease_is_renewed_while_the_work_takes_longer(
    service: Service, db: Db, start: Start
) -> None:
    start(LEASE_S="1")
    run = service.client.enqueue("slow", {"ms": 2_500})

    assert service.client.result(run.id, 30) == 2_500
    kinds = [kind for kind, _, _ in history(db, run.id)]
    assert (kinds.count("Claimed"), kinds.count("Renewed") >= 2) == (1, True)


def test_a_killed_worker_loses_nothing_and_its_finish_is_refused(
    service: Service, db: Db, start: Start
) -> None:
    first = start(LEASE_S="1", SLOTS="1")  # It has no second claim that waits in the service.
    run = service.client.enqueue("slow", {"ms": 3_000})
    await_status(db, run.id, Status.RUNNING, 20)
    first.send_signal(signal.SIGSTOP)
    second = start(LEASE_S="1")
    until(lambda: run_of(db, run.id).attempts == 2, 20)
    first.send_signal(signal.SIGCONT)

    ended = service.client.wait(run.id, 30)
    assert (ended.status, ended.attempts, ended.losses) == (Status.SUCCESSFUL, 2, 1)
    won = [who for kind, _, who in history(db, run.id) if kind == "Succeeded"]
    assert won == [f"node-{second.pid}"]


def test_a_stop_finishes_what_is_under_way(service: Service, db: Db, start: Start) -> None:
    worker = start()
    run = service.client.enqueue("slow", {"ms": 1_000})
    await_status(db, run.id, Status.RUNNING, 20)
    worker.send_signal(signal.SIGTERM)

    assert worker.wait(20) == 0
    assert run_of(db, run.id).status is Status.SUCCESSFUL


def test_a_stop_releases_what_does_not_fit_into_the_grace(
    service: Service, db: Db, start: Start
) -> None:
    worker = start(GRACE_S="0")
    run = service.client.enqueue("slow", {"ms": 60_000})
    await_status(db, run.id, Status.RUNNING, 20)
    worker.send_signal(signal.SIGTERM)

    assert worker.wait(20) == 0
    left = run_of(db, run.id)
    assert (left.status, left.charged, left.losses) == (Status.READY, 0, 0)


def test_a_second_signal_releases_at_once(service: Service, db: Db, start: Start) -> None:
    worker = start(GRACE_S="600")
    run = service.client.enqueue("slow", {"ms": 60_000})
    await_status(db, run.id, Status.RUNNING, 20)
    worker.send_signal(signal.SIGTERM)
    stopping = "select 1 from byrote_workers where worker_id = %s and stopping"
    await_row(db, stopping, f"node-{worker.pid}")
    worker.send_signal(signal.SIGTERM)

    assert worker.wait(20) == 0
    assert run_of(db, run.id).status is Status.READY


def test_a_cancelled_run_is_stopped_before_its_next_renewal(
    service: Service, db: Db, start: Start
) -> None:
    start(LEASE_S="600")
    run = service.client.enqueue("slow", {"ms": 600_000})
    await_status(db, run.id, Status.RUNNING, 20)
    service.client.cancel(run.id)

    assert service.client.wait(run.id, 30).status is Status.CANCELLED


def test_a_run_that_takes_too_long_is_stopped(service: Service, start: Start) -> None:
    start()
    run = service.client.enqueue("slow", {"ms": 600_000}, timeout="1s")

    ended = service.client.wait(run.id, 30)
    assert (ended.status, ended.faults[-1]["kind"]) == (Status.FAILED, "timeout")


def test_a_result_that_is_refused_fails_the_run(service: Service, start: Start) -> None:
    start()
    run = service.client.enqueue("large", {"size": 9_000_000})

    ended = service.client.wait(run.id, 30)
    assert (ended.status, ended.faults[-1]["kind"]) == (Status.FAILED, "bad_result")


def test_a_worker_whose_token_is_revoked_stops_with_an_error(
    service: Service, db: Db, start: Start, tmp_path: Path
) -> None:
    worker = start(LEASE_S="2", SLOTS="1")  # It has no waiting claim that would get it first.
    run = service.client.enqueue("slow", {"ms": 60_000})
    await_status(db, run.id, Status.RUNNING, 20)
    db.execute("update byrote_tokens set revoked_at = now() where role = 'work'")

    assert worker.wait(30) == 1
    told = (tmp_path / "node-0.log").read_text()
    assert "401" in told
    assert "Node.js v" not in told  # Node prints this for an unhandled error.
    until(lambda: run_of(db, run.id).status is Status.READY, 30)
    assert run_of(db, run.id).charged == 0


def test_a_claim_whose_answer_is_lost_is_found_by_its_token(
    service: Service, db: Db, start: Start
) -> None:
    run = service.client.enqueue("shout", "hello")
    with closing(HttpProxy(service.process.port)) as proxy:
        lost = proxy.plan("POST /v1/leases ", "after")
        start(BYROTE_SERVICE_URL=proxy.url)

        assert service.client.result(run.id, 30) == "HELLO"
    assert lost.happened.is_set()
    assert run_of(db, run.id).attempts == 1


def test_a_restarted_service_is_found_again(service: Service, start: Start) -> None:
    start()
    service.client.result(service.client.enqueue("shout", "a").id, 30)
    service.process.kill()
    service.process.start()

    assert service.client.result(service.client.enqueue("shout", "b").id, 30) == "B"

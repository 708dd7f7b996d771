# SPDX-License-Identifier: MIT
"""A worker in another language, from the protocol alone: `examples/workers/worker.mjs`."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from byrote.core.state import Status
from byrote.sdk import Retry
from tests.sdk.harness import Db, Service, new_service_token
from tests.support import run_of, until
from tests.worker.harness import ROOT, await_status, history

WORKER = ROOT / "examples" / "workers" / "worker.mjs"

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")

type Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(service: Service, db: Db, tmp_path: Path) -> Iterator[Start]:
    """Starts workers in Node with a token that may work, and nothing else."""
    started: list[subprocess.Popen[bytes]] = []
    token = new_service_token(db, "work")

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


def test_runs_end_as_their_handlers_say(service: Service, start: Start) -> None:
    start()
    client = service.client
    shout = client.enqueue("shout", "hello")
    broken = client.enqueue("broken", 1, retry=Retry(attempts=2, delay_first=0.0))  # type: ignore[arg-type]

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


def test_a_killed_worker_loses_nothing_and_is_not_heard(
    service: Service, db: Db, start: Start
) -> None:
    first = start(LEASE_S="1")
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


def test_a_restarted_service_is_found_again(service: Service, start: Start) -> None:
    start()
    service.client.result(service.client.enqueue("shout", "a").id, 30)
    service.process.kill()
    service.process.start()

    assert service.client.result(service.client.enqueue("shout", "b").id, 30) == "B"

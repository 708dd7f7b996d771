# SPDX-License-Identifier: MIT
"""Services and workers of the SDK as processes of the test's own."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from byrote.assembly.identity import new_id, new_secret
from byrote.sdk import Client
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.support import until
from tests.worker.harness import ROOT, WorkerProcess, marks  # noqa: F401 -- for conftest.

type Db = psycopg.Connection[Any]


def new_service_token(db: Db, role: str = "admin", *, queues: tuple[str, ...] = ("*",)) -> str:
    """A token with this role, straight into the database."""
    secret = new_secret()
    query = queries.create_token(
        id=new_id(),
        digest=sha256(secret.encode()).digest(),
        name=f"test-{role}",
        role=role,
        queues=queues,
        tasks=("*",),
        expires=None,
        rate=1_000_000,
    )
    fetch(db, query)
    return secret


def free_port() -> int:
    """A port that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class ServiceProcess:
    """One `byrote serve` of the test's own."""

    def __init__(
        self, url: str, log: Path, *, port: int | None = None, flags: tuple[str, ...] = ()
    ) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = log
        self._argv = [sys.executable, "-m", "byrote.cli.main", "serve", "--url", url]
        self._argv += ["--port", str(self.port), "--log-format", "json", *flags]
        self.start()

    def start(self) -> None:
        """Start it, again if need be, and wait until it answers."""
        with self._log.open("ab") as out:
            self.process = subprocess.Popen(
                self._argv,
                cwd=ROOT,
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT),
                    "PYTHONDONTWRITEBYTECODE": "1",
                    "BYROTE_ARTIFACTS": str(self._log.parent / "artifacts"),
                },
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        until(self._answers, 20, f"the service did not start:\n{self.text[-2000:]}", every=0.05)

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.text[-2000:]
        try:
            return httpx2.get(f"{self.url}/livez", timeout=2).status_code == 200
        except httpx2.TransportError:
            return False

    @property
    def text(self) -> str:
        """Everything it has written."""
        return self._log.read_text(errors="replace")

    def kill(self) -> None:
        """End it without a word."""
        self.process.kill()
        self.process.wait()

    def stop(self, within: float = 15.0) -> int:
        """Ask it to stop; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within)


StartService = Callable[..., ServiceProcess]


@pytest.fixture
def start_service(url: str, tmp_path: Path) -> Iterator[StartService]:
    """Starts services on the test's database; ends them with the test."""
    started: list[ServiceProcess] = []

    def start(**options: Any) -> ServiceProcess:
        log = tmp_path / f"service-{len(started)}.log"
        started.append(ServiceProcess(url, log, **options))
        return started[-1]

    yield start
    for process in started:
        process.kill()


@pytest.fixture(scope="module")
def module_service(
    database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServiceProcess]:
    """A service for all tests of a module; each of them has a database without rows."""
    process = ServiceProcess(database_url, tmp_path_factory.mktemp("service") / "log")
    yield process
    process.kill()


class Service:
    """A running service, a token that may do everything, and a client."""

    def __init__(self, process: ServiceProcess, token: str) -> None:
        self.process = process
        self.url = process.url
        self.token = token
        self.client = Client(self.url, token)


@pytest.fixture
def service(start_service: StartService, db: Db) -> Iterator[Service]:
    """A service on the test's database."""
    made = Service(start_service(), new_service_token(db))
    yield made
    made.client.close()


class SdkWorkerProcess(WorkerProcess):
    """A worker of the SDK as a process, and what it has logged."""

    def __init__(self, handlers: str, log: Path, environ: dict[str, str], **asked: Any) -> None:
        self._log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.sdk.runner", json.dumps([handlers, asked])],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )


StartSdkWorker = Callable[..., SdkWorkerProcess]


@pytest.fixture
def start_sdk_worker(tmp_path: Path) -> Iterator[StartSdkWorker]:
    """Starts workers of the SDK, waits until they claim, ends them with the test."""
    started: list[SdkWorkerProcess] = []

    def start(
        url: str,
        token: str,
        *,
        handlers: str = "tests.sdk.handling:handlers",
        ready: bool = True,
        environ: dict[str, str] | None = None,
        **options: Any,
    ) -> SdkWorkerProcess:
        defaults = {"hands": 1, "concurrency": 10, "lease": "30s", "grace": "5s"}
        log = tmp_path / f"sdk-worker-{len(started)}.log"
        asked = {"url": url, "token": token, "log_format": "json", **defaults, **options}
        worker = SdkWorkerProcess(handlers, log, environ or {}, **asked)
        started.append(worker)
        if ready:
            worker.await_log("WorkerStarted", 20.0)
        return worker

    yield start
    for worker in started:
        with contextlib.suppress(ProcessLookupError):
            worker.destroy()

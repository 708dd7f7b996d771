# SPDX-License-Identifier: MIT
"""Services in processes of their own, which may be killed."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx2

from byrote.lab.bench.stage import environment


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Process:
    """`byrote serve`, at the same port whenever it is started."""

    def __init__(self, url: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._database = url
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "byrote.cli.main", "serve", "--port", str(self.port)]
        self._process = subprocess.Popen(
            command,
            env=environment(self._database, {"log_level": "error"}),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def await_up(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            assert time.monotonic() < deadline
            assert self._process is not None
            assert self._process.poll() is None
            with contextlib.suppress(httpx2.TransportError):
                if httpx2.get(f"{self.url}/livez").status_code == 200:
                    return

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self._process is not None
        if self._process.poll() is None:
            os.kill(self._process.pid, number)
        return self._process.wait(30)


@contextlib.contextmanager
def processes(url: str, count: int) -> Iterator[list[Process]]:
    """So many services on one database."""
    running = [Process(url) for _ in range(count)]
    try:
        for process in running:
            process.await_up()
        yield running
    finally:
        for process in running:
            process.stop(signal.SIGKILL)


class Stubborn:
    """A client that asks one service after the other until it is answered."""

    def __init__(self, running: list[Process], secret: str, first: int) -> None:
        headers = {"authorization": f"Bearer {secret}"}
        self._clients = [
            httpx2.Client(base_url=process.url, headers=headers, timeout=10) for process in running
        ]
        self._turn = first

    def post(self, path: str, body: Any, *, key: str | None = None) -> Any:
        headers = {} if key is None else {"idempotency-key": key}
        deadline = time.monotonic() + 90
        while True:
            assert time.monotonic() < deadline, path
            client = self._clients[self._turn % len(self._clients)]
            try:
                answer = client.post(path, json=body, headers=headers)
            except httpx2.TransportError:
                self._turn += 1
                continue
            if answer.status_code == 503:
                self._turn += 1
                threading.Event().wait(0.05)
                continue
            return answer.raise_for_status().json()

    def close(self) -> None:
        for client in self._clients:
            client.close()

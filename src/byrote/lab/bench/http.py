# SPDX-License-Identifier: MIT
"""The service's figures: one service process, and a load generator on the same machine.

The load comes from the standard library's HTTP client on a few threads, because CPU time that it
uses is not available to the service.
"""

import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import msgspec

from byrote.assembly.identity import new_id, new_secret
from byrote.core.text.ids import token_digest
from byrote.embedded.control import free_port
from byrote.lab.bench import database
from byrote.lab.bench.figures import APP, WARM_UP, Bench, Figure, patience_s, percentiles, send
from byrote.lab.bench.stage import StageFailed, crew, environment, log_step
from byrote.lab.bench.tasks import BenchTasks
from byrote.store import queries

BATCH = 100
SENDERS = 2
RATE = 200.0
"""Requests a second at which the latency of one is measured."""
RATE_SENDERS = 16
START_S = 60.0
NOOP = "noop"


class BenchConnection:
    """One persistent connection, as a client has."""

    def __init__(self, port: int, secret: str) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._http.connect()
        self._http.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}

    def send(self, body: bytes) -> None:
        """Send runs; raises StageFailed if they are not accepted."""
        self._http.request("POST", "/v1/runs", body, self._headers)
        answer = self._http.getresponse()
        content = answer.read()
        if answer.status != 201:
            raise StageFailed(f"The service answered {answer.status}: {content[:300]!r}")


@contextmanager
def service(bench: Bench, url: str, tasks: BenchTasks) -> Iterator[tuple[int, str]]:
    """Start a service in its own process; yields its port and a token."""
    secret = new_secret()
    tasks.app.store.all(
        queries.create_token(
            id=new_id(),
            digest=token_digest(secret),
            name="bench",
            role="admin",
            queues=["*"],
            tasks=["*"],
            rate=1_000_000,
        )
    )
    port = free_port()
    command = [sys.executable, "-m", "byrote.cli.main", "serve", "--port", str(port)]
    log = bench.folder / "service.log"
    with log.open("ab") as out:
        process = subprocess.Popen(  # noqa: S603 -- our own module, our own arguments.
            command,
            env=environment(url, {"log_format": "json"}),
            cwd=bench.folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        _await(process, port, lambda: log.read_text(errors="replace")[-600:])
        yield port, secret
    finally:
        process.terminate()
        process.wait(30)


def _await(process: subprocess.Popen[bytes], port: int, log: Callable[[], str]) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise StageFailed(f"The service did not start. {log()}") from None
            time.sleep(0.05)
        else:
            return


def _body(first: int, count: int) -> bytes:
    return msgspec.json.encode([{"task": NOOP, "args": [first + n]} for n in range(count)])


def http_one(bench: Bench) -> Figure:
    """One request, one commit, then the next request, on one connection."""
    count = bench.sizes.one
    log_step(f"http-one: {count:,} requests")
    with bench.database() as (url, tasks), service(bench, url, tasks) as (port, secret):
        connection = BenchConnection(port, secret)
        body = msgspec.json.encode({"task": NOOP, "args": [1]})
        for _ in range(WARM_UP):
            connection.send(body)
        began = time.perf_counter()
        for _ in range(count):
            connection.send(body)
        return {"per_s": count / (time.perf_counter() - began)}


def http_bulk(bench: Bench) -> Figure:
    """Batches of a hundred on two connections; each waits for the response of the service."""
    batches = max(bench.sizes.bulk // BATCH, SENDERS)
    log_step(f"http-bulk: {batches:,} batches of {BATCH}")
    bodies = [_body(n * BATCH, BATCH) for n in range(10)]

    def send_some(connection: BenchConnection, count: int) -> int:
        for n in range(count):
            connection.send(bodies[n % len(bodies)])
        return count * BATCH

    with bench.database() as (url, tasks), service(bench, url, tasks) as (port, secret):
        connections = [BenchConnection(port, secret) for _ in range(SENDERS)]
        for connection in connections:
            send_some(connection, 2)
        began = time.perf_counter()
        with ThreadPoolExecutor(SENDERS) as pool:
            sent = sum(
                pool.map(lambda connection: send_some(connection, batches // SENDERS), connections)
            )
        return {"per_s": sent / (time.perf_counter() - began)}


def http_rate(bench: Bench) -> Figure:
    """Single requests at a fixed rate, whether or not earlier ones were answered."""
    count = max(bench.sizes.latency * 5, RATE_SENDERS)
    log_step(f"http-rate: {count:,} requests at {RATE:g}/s")
    body = msgspec.json.encode({"task": NOOP, "args": [1]})
    waits: list[int] = []
    with bench.database() as (url, tasks), service(bench, url, tasks) as (port, secret):
        connections = [BenchConnection(port, secret) for _ in range(RATE_SENDERS)]
        for connection in connections:
            connection.send(body)
        began = time.monotonic() + 0.2

        def send(sender: int) -> None:
            for n in range(sender, count, RATE_SENDERS):
                due = began + n / RATE
                time.sleep(max(due - time.monotonic(), 0))
                # From when it was due: one that had to wait for the previous one counts in full.
                connections[sender].send(body)
                waits.append(int((time.monotonic() - due) * 1e9))

        with ThreadPoolExecutor(RATE_SENDERS) as pool:
            list(pool.map(send, range(RATE_SENDERS)))
    return percentiles(waits)


def http_drain(bench: Bench) -> Figure:
    """A backlog of async no-ops, processed by the SDK's worker, without a database connection."""
    count = bench.sizes.drain
    with bench.database() as (url, tasks), service(bench, url, tasks) as (port, secret):
        settings = {"service_url": f"http://127.0.0.1:{port}", "service_token": secret}
        environ = environment(url, {"log_format": "json", **settings})
        command = [sys.executable, "-m", "byrote.sdk", APP, "--drain"]
        log = bench.folder / "worker-http.log"
        with crew(command, environ, bench.folder, log) as warm:
            warm.finish(START_S)
        log_step(f"http-drain: {count:,} runs")
        send(tasks, "noop", count)
        database.tidy(url)
        with crew(command, environ, bench.folder, log) as running:
            running.finish(patience_s(count))
        worker_us = (running.cpu_s - warm.cpu_s) / count * 1e6
        return {"per_s": count / database.drained(url, count), "worker_cpu_us": worker_us}


HTTP_FIGURES: Mapping[str, tuple[str, Callable[[Bench], Figure]]] = {
    "http-one": ("http_one", http_one),
    "http-bulk": ("http_bulk", http_bulk),
    "http-rate": ("http_rate", http_rate),
    "http-drain": ("http_drain", http_drain),
}
"""The same as FIGURES, through a service."""

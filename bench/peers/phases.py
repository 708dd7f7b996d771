# SPDX-License-Identifier: MIT
"""The workloads, each run once for one peer in a database of its own."""

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from bench.peers import cpu
from bench.peers.ledger import Ledger, make_ledger, open_ledger
from bench.peers.process import PeerError, Process, started
from bench.peers.server import Server, database
from bench.peers.workloads import WARM_UP, Peer, Sizes

type Figures = dict[str, float]

_PHASE_SECONDS = 240
_SETTLE_SECONDS = 30
_LOOK_SECONDS = 0.005


@dataclass(frozen=True)
class Bench:
    """What every workload needs: the peers' interpreter, the server and the sizes."""

    python: Path
    server: Server
    sizes: Sizes

    def database(self, peer: Peer, phase: str) -> AbstractContextManager[str]:
        """A new database for one phase of one peer; it yields the URL."""
        return database(self.server, f"peers_{peer.name}_{phase}_{os.getpid()}")


def one(bench: Bench, peer: Peer) -> Figures:
    """Enqueue one by one: one call, one commit, the next call."""
    with bench.database(peer, "one") as url:
        seconds = _produce(bench, peer, url, action="one", count=bench.sizes.one)
        return {"one": bench.sizes.one / seconds}


def bulk(bench: Bench, peer: Peer) -> Figures:
    """Enqueue in batches through the peer's bulk call."""
    with bench.database(peer, "bulk") as url:
        seconds = _produce(bench, peer, url, action="bulk", count=bench.sizes.bulk)
        return {"bulk": bench.sizes.bulk / seconds}


def drain(bench: Bench, peer: Peer) -> Figures:
    """Work off a backlog: from the first task's start until nothing is unfinished."""
    backlog = bench.sizes.backlog[peer.name]
    with bench.database(peer, "drain") as url, ExitStack() as stack:
        _produce(bench, peer, url, action="bulk", count=backlog)
        connection = stack.enter_context(psycopg.connect(url, autocommit=True))
        if peer.analyzed:
            connection.execute("vacuum analyze")
        home = Path(stack.enter_context(TemporaryDirectory()))
        crew = [
            stack.enter_context(_worker(bench, peer, url, home / str(number)))
            for number in range(peer.processes)
        ]
        return _drained(bench, peer, connection, crew, tasks=backlog + WARM_UP)


def latency(bench: Bench, peer: Peer) -> Figures:
    """Enqueue against one idle worker: from the call to the task's start."""
    total = WARM_UP + bench.sizes.latency
    deadline = time.monotonic() + _PHASE_SECONDS
    with bench.database(peer, "latency") as url, ExitStack() as stack:
        home = Path(stack.enter_context(TemporaryDirectory()))
        arguments = (peer.name, "latency", "--count", str(bench.sizes.latency))
        producer = stack.enter_context(started(bench.python, url, *arguments))
        producer.ready(deadline)
        member = stack.enter_context(_worker(bench, peer, url, home / "0", slots=total))
        member.process.ready(deadline)
        member.process.release()
        producer.release()
        producer.ready(deadline)
        _await_starts([member], WARM_UP, time.monotonic() + _SETTLE_SECONDS)
        producer.release()
        calls = json.loads(producer.line(deadline))["calls"]
        _await_starts([member], total, time.monotonic() + _SETTLE_SECONDS)
        waits = [member.ledger.start_ns(n) - calls[n] for n in range(WARM_UP, total)]
        return _percentiles(waits)


PHASES: dict[str, Callable[[Bench, Peer], Figures]] = {
    "one": one,
    "bulk": bulk,
    "drain": drain,
    "latency": latency,
}


@dataclass(frozen=True)
class _Member:
    process: Process
    ledger: Ledger


@contextmanager
def _worker(bench: Bench, peer: Peer, url: str, path: Path, *, slots: int = 0) -> Iterator[_Member]:
    arguments = [peer.name, "work", "--ledger", str(make_ledger(path, slots))]
    if slots:
        arguments.append("--stamp")
    with open_ledger(path) as ledger, started(bench.python, url, *arguments) as process:
        yield _Member(process, ledger)


def _produce(bench: Bench, peer: Peer, url: str, *, action: str, count: int) -> float:
    """Run a producer to its end and see that every task arrived; the seconds it took."""
    arguments = (peer.name, action, "--count", str(count), "--batch", str(bench.sizes.batch))
    with started(bench.python, url, *arguments) as process:
        answer = json.loads(process.line(time.monotonic() + _PHASE_SECONDS))
    with psycopg.connect(url, autocommit=True) as connection:
        _expect(connection, peer.queued, count + WARM_UP)
    return float(answer["ns"]) / 1e9


def _drained(
    bench: Bench, peer: Peer, connection: psycopg.Connection, crew: Sequence[_Member], *, tasks: int
) -> Figures:
    deadline = time.monotonic() + _PHASE_SECONDS
    pids = [member.process.pid for member in crew]
    for member in crew:
        member.process.ready(deadline)
    worker_cpu, server_cpu = cpu.seconds(pids), bench.server.cpu_seconds()
    for member in crew:
        member.process.release()
    # The database is asked only when every task has started, so that asking costs the peer nothing.
    _await_starts(crew, tasks, deadline)
    _await_finished(connection, peer, crew, deadline)
    ended = time.monotonic_ns()
    worker_cpu = cpu.seconds(pids) - worker_cpu
    server_cpu_now = bench.server.cpu_seconds()
    _expect(connection, peer.succeeded, tasks)
    first = min(member.ledger.first_ns for member in crew if member.ledger.count)
    figures = {"drain": tasks / ((ended - first) / 1e9), "worker_cpu": worker_cpu / tasks * 1e3}
    if server_cpu is not None and server_cpu_now is not None:
        figures["postgres_cpu"] = (server_cpu_now - server_cpu) / tasks * 1e3
    return figures


def _await_starts(crew: Sequence[_Member], tasks: int, deadline: float) -> None:
    while (count := sum(member.ledger.count for member in crew)) < tasks:
        _look_again(crew, deadline, f"{count} of {tasks} tasks started")


def _await_finished(
    connection: psycopg.Connection, peer: Peer, crew: Sequence[_Member], deadline: float
) -> None:
    while _value(connection, peer.unfinished):
        _look_again(crew, deadline, "all tasks started, some never ended")


def _look_again(crew: Sequence[_Member], deadline: float, seen: str) -> None:
    for member in crew:
        member.process.check_alive()
    if time.monotonic() > deadline:
        raise PeerError(f"{seen} when time was up; {crew[0].process.complaint()}")
    time.sleep(_LOOK_SECONDS)


def _expect(connection: psycopg.Connection, query: str, count: int) -> None:
    seen = _value(connection, query)
    if seen != count:
        raise PeerError(f"the database holds {seen} tasks where {count} were expected: {query}")


def _value(connection: psycopg.Connection, query: str) -> Any:
    # The queries are constants of workloads.py.
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def _percentiles(waits: list[int]) -> Figures:
    ordered = sorted(waits)
    return {
        name: ordered[math.ceil(share * len(ordered)) - 1] / 1e6
        for name, share in (("p50", 0.50), ("p95", 0.95), ("p99", 0.99))
    }

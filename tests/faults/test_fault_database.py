# SPDX-License-Identifier: MIT
"""Faults 10, 11 and 13: the database restarts, crashes, and cuts connections under a worker."""

import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from byrote.assembly.identity import jitter
from byrote.core.state import Status
from byrote.embedded import control
from byrote.embedded.server import Server, open_server
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import migrate
from byrote.store.retries import pause_before
from tests.faults.proxy import Proxy, proxied
from tests.support import run_of, until
from tests.worker.harness import (
    Database,
    Marks,
    StartWorker,
    alive,
    await_calm,
    await_end,
    await_row,
    send,
    send_one,
    spec,
)

pytestmark = pytest.mark.xdist_group("database faults")


class OwnServer:
    """A PostgreSQL of this test's own, durable, that may be stopped, killed and started again."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="byrote-fault-"))
        self.home.chmod(0o755)
        self._uses: list[Server] = []
        self._open()
        migrate(DatabaseAddress(self.url), jitter=jitter)

    def _open(self) -> None:
        server = open_server(self.home, environ=os.environ)
        self._uses.append(server)
        self.url, self.pid = server.url, server.pid

    def connect(self) -> Database:
        return DatabaseAddress(self.url).open("test")

    def restart(self, how: str) -> float:
        """Stop the server in one of three ways and start it again; when it accepted again."""
        match how:
            case "fast":
                control.stop(self.home, force=True)
            case "immediate":
                os.kill(self.pid, signal.SIGQUIT)
            case "killed":
                os.kill(self.pid, signal.SIGKILL)
        # A server that is going down may still accept a connection.
        until(lambda: not alive(self.pid), 30)
        self._open()
        with self.connect():
            return time.monotonic()

    def close(self) -> None:
        for use in self._uses:
            use.close()
        control.destroy(self.home)


@pytest.fixture(scope="module")
def server() -> Iterator[OwnServer]:
    made = OwnServer()
    yield made
    made.close()


@pytest.mark.parametrize("how", ["fast", "immediate", "killed"])
def test_fault_10_and_11_a_worker_comes_back_after_the_database(
    server: OwnServer, start_worker: StartWorker, marks: Marks, how: str
) -> None:
    """First accepted report within five seconds; every accepted run done; nothing charged twice."""
    worker = start_worker(url=server.url, lease="2s")
    with server.connect() as db:
        ids = send(db, *(spec("a_mark", marks.path, str(n), 0.02) for n in range(300)))
    marks.await_words(30)
    before = len(worker.logged("Succeeded"))
    back_at = server.restart(how)
    until(lambda: len(worker.logged("Succeeded")) > before + 20, 10.0)
    assert time.monotonic() - back_at < 5.0
    with server.connect() as db:
        runs = await_end(db, *ids)
    assert {(run.status, run.charged) for run in runs} == {(Status.SUCCESSFUL, 1)}
    assert set(marks.words) == {str(n) for n in range(300)}
    assert worker.logged("Troubled")
    assert worker.await_log("Recovered")


def test_no_pause_is_longer_than_the_promised_recovery() -> None:
    """However long the database was away, the next try comes well within five seconds."""
    assert max(pause_before(tries, lambda: 1.0) for tries in range(2, 200)) <= 4.0


@contextmanager
def terminating(db: Database, every: float, worker: str) -> Iterator[Callable[[], int]]:
    """Terminates every backend of a worker repeatedly; returns how many so far."""
    stop, killed = threading.Event(), []
    cut = "select pg_terminate_backend(pid) from pg_stat_activity where application_name like %s"

    def run() -> None:
        while not stop.wait(every):
            killed.extend(db.execute(cut, (f"byrote {worker}%",)).fetchall())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield lambda: len(killed)
    finally:
        stop.set()
        thread.join()


def test_fault_13_terminated_backends_lose_and_charge_nothing(
    db: Database, url: str, start_worker: StartWorker, marks: Marks
) -> None:
    worker = start_worker(lease="5s", hands=2)
    with (
        DatabaseAddress(url).open("killer") as killer,
        terminating(killer, 0.2, worker.name) as killed,
    ):
        ids = send(db, *(spec("a_mark", marks.path, str(n), 0.01) for n in range(500)))
        until(lambda: killed() >= 12, 10.0, "the fault was not injected")
        more = send(db, *(spec("mark", marks.path, f"m{n}") for n in range(100)))
        runs = await_end(db, *ids, *more, within=30.0)

    assert {(run.status, run.charged) for run in runs} == {(Status.SUCCESSFUL, 1)}
    assert set(marks.words) == {str(n) for n in range(500)} | {f"m{n}" for n in range(100)}
    assert all(run.attempts == 1 + run.losses for run in runs)
    assert worker.await_log("Recovered", what="claim")
    assert worker.stop() == 0


def test_p5_trouble_of_the_infrastructure_costs_no_attempt(
    db: Database, url: str, start_worker: StartWorker, marks: Marks
) -> None:
    """P5: worker killed, hand killed under a sleeper, SIGTERM: the budget of one stays whole."""
    run_id = send_one(db, spec("a_mark", marks.path, "x", 2.5))
    first = start_worker(lease="1s")
    marks.await_words(1)
    first.signal(signal.SIGKILL)
    second = start_worker(lease="1s", grace="100ms")
    marks.await_words(2)
    os.kill(second.hands[0], signal.SIGKILL)
    marks.await_words(3)
    second.stop()
    run = run_of(db, run_id)
    assert (run.status, run.attempts, run.charged) == (Status.READY, 3, 0)
    start_worker(lease="1s")
    [run] = await_end(db, run_id)

    assert (run.status, run.attempts, run.charged) == (Status.SUCCESSFUL, 4, 1)
    assert run.max_attempts == 1


def test_the_listener_comes_back_after_its_backend_is_terminated(
    db: Database, start_worker: StartWorker
) -> None:
    """Polling is slow here: only a listener that reconnected can explain the speed."""
    worker = start_worker(poll_interval="30s")
    await_calm(db, worker)
    listener = "select pid from pg_stat_activity where application_name = %s"
    [pid] = await_row(db, listener, f"byrote {worker.name} claim")
    db.execute("select pg_terminate_backend(%s)", (pid,))
    await_row(db, f"{listener} and pid <> %s", f"byrote {worker.name} claim", pid)
    await_calm(db, worker)

    await_end(db, send_one(db, spec("echo")), within=10.0)


def test_a_database_that_is_down_at_the_start_is_reported_at_once(
    start_worker: StartWorker,
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        dead = f"postgresql://someone:secret@127.0.0.1:{port}/shop"
        worker = start_worker(url=dead, ready=False)

        assert worker.wait(10.0) == 75
    assert f"PostgreSQL at 127.0.0.1:{port}/shop did not answer" in worker.text
    assert "secret" not in worker.text


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with proxied(url) as made:
        yield made


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_a_worker_stops_within_its_grace_while_the_database_is_down(
    db: Database, proxy: Proxy, *, start_worker: StartWorker, marks: Marks, busy: bool
) -> None:
    worker = start_worker(url=proxy.url, grace="2s", lease="2s")
    run_id = send_one(db, spec("a_mark", marks.path, "x", 30))
    marks.await_words(1)
    if not busy:
        worker = start_worker(url=proxy.url, grace="2s", lease="2s")
    proxy.sever()
    worker.await_log("Troubled")
    before = time.monotonic()
    worker.stop()

    assert time.monotonic() - before < 2.0 + 1.5
    assert run_of(db, run_id).charged == 0


def test_a_network_that_goes_and_comes_back_loses_nothing(
    db: Database, proxy: Proxy, start_worker: StartWorker, marks: Marks
) -> None:
    worker = start_worker(url=proxy.url, lease="2s")
    ids = send(db, *(spec("a_mark", marks.path, str(n), 0.05) for n in range(100)))
    marks.await_words(5)
    proxy.sever()
    worker.await_log("Troubled")
    proxy.restore()
    runs = await_end(db, *ids)

    assert {(run.status, run.charged) for run in runs} == {(Status.SUCCESSFUL, 1)}

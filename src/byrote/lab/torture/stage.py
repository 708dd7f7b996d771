# SPDX-License-Identifier: MIT
"""The processes that are tortured: a server, proxies before it, workers and producers."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from byrote.assembly.clock import monotonic
from byrote.assembly.identity import jitter, new_id
from byrote.core.spec import Delivery, Spec
from byrote.executors.runtime.seeding import Random
from byrote.lab.bench.stage import StageFailed, environment
from byrote.lab.torture.cluster import Cluster
from byrote.lab.torture.diary import lines, note, read
from byrote.lab.torture.faults.proxy import Proxy
from byrote.lab.torture.producer import Order
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import migrate
from byrote.store.runners.sync import fetch

LEASE_S = 2.0
GRACE_S = 3.0
BUSY_S = 3.0
CALM_BATCHES = (1, 5, 50)
"""Without faults only the executions count, and enqueues must not slow them down."""
APP = "byrote.lab.torture.tasks:app"


class Process:
    """A process that the torture started, and its log."""

    def __init__(self, name: str, popen: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.popen = popen
        self.log = log

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.popen.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self.popen.poll() is None

    @property
    def hands(self) -> list[int]:
        """The pids of the hands in its log that still exist."""
        logged = [line["pid"] for line in lines(self.log) if line.get("event") == "HandStarted"]
        return [pid for pid in logged if Path(f"/proc/{pid}").exists()]

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it still runs."""
        with contextlib.suppress(ProcessLookupError):
            self.popen.send_signal(number)

    def wait(self, seconds: float) -> int | None:
        """Its exit code, or None when it did not end in time."""
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


class TortureSetup:
    """The parameter of a fault: everything it may break, and how to repair it."""

    def __init__(
        self, folder: Path, *, seed: int, url: str | None, durable: bool, calm: bool = False
    ) -> None:
        self.folder = folder
        self.history = folder / "history"
        self.history.mkdir()
        self.seed = seed
        self.calm = calm
        self.cluster = None if url else Cluster(folder, durable=durable)
        self._given = url
        self.producing_until = monotonic()
        """When producers are to have sent all their runs."""
        self._orders: dict[str, Order] = {}
        migrate(DatabaseAddress(self.url), jitter=jitter)
        self.workers: list[Process] = []
        self.producers: list[Process] = []
        self.ending = False
        self._started = 0
        where = self._where_given() if url else None
        self.proxies = [Proxy(lambda: where or self._socket()) for _ in range(3)]
        if url:
            self._check_reach()

    @property
    def url(self) -> str:
        """The database, directly."""
        if self.cluster is None:
            return str(self._given)
        return psycopg.conninfo.make_conninfo(self.cluster.primary.url)

    def _socket(self) -> str:
        if self.cluster is None:
            raise RuntimeError("a given server has no socket of ours")
        return self.cluster.primary.socket

    def _where_given(self) -> str | tuple[str, int]:
        with psycopg.connect(str(self._given)) as connection:
            host, port = connection.info.host, connection.info.port
        return f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port)

    def _check_reach(self) -> None:
        """Check that a given server can be reached the way all processes will: through a proxy."""
        try:
            psycopg.connect(self.proxies[0].url(self.url)).close()
        except psycopg.OperationalError as error:
            for proxy in self.proxies:
                proxy.close()
            raise StageFailed(
                "Workers cannot reach the server through the proxies, which speak no TLS: "
                f"{' '.join(str(error).split())}"
            ) from error

    def _way(self, number: int) -> str:
        """The address by which a process reaches the database, usually through a proxy."""
        return self.url if self.calm else self.proxies[number % len(self.proxies)].url(self.url)

    @contextlib.contextmanager
    def connect(self, *, patience_s: float = 30.0) -> Iterator[psycopg.Connection[Any]]:
        """A direct connection of the nemesis, as soon as there is one."""
        deadline = monotonic() + patience_s
        while True:
            try:
                connection = DatabaseAddress(self.url, name="torture nemesis").open("nemesis")
                break
            except psycopg.OperationalError:
                if monotonic() > deadline:
                    raise
                time.sleep(0.05)
        with connection:
            yield connection

    def note(self, what: str, **more: Any) -> None:
        """Write a line to the nemesis' own diary."""
        note(self.history, "nemesis", what, **more)

    def start_worker(self, number: int, **more: str) -> Process:
        """Start the worker with this number, behind a proxy."""
        self._started += 1
        name = f"torture-{number}-{self._started}"
        log = self.folder / f"worker-{number}-{self._started}.log"
        settings = {"log_format": "json", "lease": f"{LEASE_S}s", "grace": f"{GRACE_S}s"}
        settings |= {"hands": "2", "concurrency": "20", "worker_id": name, "poll_interval": "500ms"}
        env = environment(self._way(number), settings) | more
        process = self.spawn(name, ["byrote.cli.main", "worker", APP], log, env)
        self.workers.append(process)
        self.note("worker", name=name, pid=process.pid, **more)
        return process

    def start_producer(self, number: int, *, runs: int) -> Process:
        """Start a producer behind a proxy; it spreads its runs over the time that is left."""
        self._started += 1
        name = f"producer-{number}-{self._started}"
        per_s = runs / max(self.producing_until - monotonic(), 1.0)
        seed = self.seed + self._started
        order = Order(self._way(number), str(self.history), name, seed, per_s, runs)
        if self.calm:
            order = msgspec.structs.replace(order, batches=CALM_BATCHES)
        self._orders[name] = order
        words = ["byrote.lab.torture.producer", msgspec.json.encode(order).decode()]
        process = self.spawn(name, words, self.folder / f"{name}.log", dict(os.environ))
        self.producers.append(process)
        return process

    def left_of(self, producer: Process) -> int | None:
        """How many runs a producer has not sent yet, by its diary; None for other processes."""
        order = self._orders.get(producer.name)
        if order is None:
            return None
        notes = read(self.history, f"{producer.name}-")
        return order.runs - sum(len(line["ids"]) for line in notes if line["what"] == "enqueue")

    def spawn(self, name: str, words: list[str], log: Path, env: dict[str, str]) -> Process:
        """Start one of our modules as a process."""
        with log.open("ab") as out:
            popen = subprocess.Popen(  # noqa: S603 -- our own modules, our own arguments.
                [sys.executable, "-m", *words],
                env=env,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        return Process(name, popen, log)

    def tend(self, wanted: int) -> None:
        """Replace the workers that have ended."""
        self.workers = [worker for worker in self.workers if worker.alive]
        running = {int(worker.name.split("-")[1]) for worker in self.workers}
        for number in range(wanted):
            if number not in running and not self.ending:
                self.start_worker(number)

    def busy_worker(self, chosen: Random) -> Process:
        """A worker that has runs under way, if there is one within a few seconds."""
        text = """select leased_by from byrote_task_runs where status = 'RUNNING'
                  and leased_until > clock_timestamp()"""
        deadline = monotonic() + BUSY_S
        while True:
            with self.connect() as connection:
                holders = {row[0] for row in connection.execute(text)}
            alive = sorted((w for w in self.workers if w.alive), key=lambda worker: worker.name)
            busy = [worker for worker in alive if worker.name in holders]
            if busy or (alive and monotonic() > deadline):
                return chosen.choice(busy or alive)
            if monotonic() > deadline:
                raise StageFailed("No worker is alive to do anything to.")
            time.sleep(0.1)

    def held_by(self, worker: str) -> list[str]:
        """The runs a worker holds now, longest first."""
        with self.connect() as connection:
            text = """select result_id::text from byrote_task_runs
                      where status = 'RUNNING' and leased_by = %s order by last_attempted_at"""
            return [row[0] for row in connection.execute(text, (worker,))]

    def send(self, *specs: Spec) -> list[str]:
        """Enqueue runs of the nemesis itself."""
        sent = [(new_id(), spec) for spec in specs]
        ids = [run_id for run_id, _ in sent]
        self.note("enqueue", ids=ids)
        with self.connect() as connection:
            fetch(connection, queries.enqueue(sent))
        self.note("ok", ids=ids)
        return ids

    def database_now(self) -> str:
        """The database's time, as text."""
        with self.connect() as connection:
            row = connection.execute("select clock_timestamp()::text").fetchone()
            return str(row[0]) if row else ""

    def close(self) -> None:
        """End everything that was started, by process id."""
        self.ending = True
        for process in (*self.producers, *self.workers):
            process.signal(signal.SIGCONT)
            for pid in process.hands if process.log.name.startswith("worker") else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            process.signal(signal.SIGTERM)
        for process in (*self.producers, *self.workers):
            if process.wait(GRACE_S + 5.0) is None:
                process.signal(signal.SIGKILL)
                process.wait(5.0)
        for proxy in self.proxies:
            proxy.close()
        if self.cluster is not None:
            self.cluster.close()


def delivery(**more: Any) -> Delivery:
    """How the nemesis' own runs are delivered."""
    return Delivery(**more)


LEASE = timedelta(seconds=LEASE_S)

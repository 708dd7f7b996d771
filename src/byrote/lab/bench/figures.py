# SPDX-License-Identifier: MIT
"""The figures: each function measures one in its own database and returns it as plain data."""

import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from byrote.assembly.handles import RunHandle
from byrote.lab.bench import cpu, database
from byrote.lab.bench.database import BenchServer
from byrote.lab.bench.stage import StageFailed, WorkerProcess, log_step, worker
from byrote.lab.bench.tasks import BenchTasks, bind
from byrote.store import queries
from byrote.store.connect import PLAN_GUARDS, DatabaseAddress

type Figure = dict[str, float | None]

APP = "byrote.lab.bench.tasks:app"
APPS = {
    "noop": "byrote.lab.bench.tasks:async_app",
    "noop_sync": "byrote.lab.bench.tasks:sync_app",
}
"""The app with the tasks of one kind."""
WARM_UP = 20
_START_UPS = 3
"""How often the start-up is measured; its CPU time varies by a tenth."""
_START_S = 30.0
_SLOWEST_PER_S = 500
"""A drain slower than this is aborted as stuck."""
_READY_S = 30.0
_LOOK_S = 0.1
_TURNS = 5


class Sizes(msgspec.Struct, frozen=True):
    """How many runs each figure takes."""

    one: int = 2_000
    bulk: int = 50_000
    drain: int = 60_000
    latency: int = 600
    growth: int = 100_000
    ready: int = 1_000_000
    done: int = 5_000_000


FULL = Sizes()
QUICK = Sizes(one=300, bulk=10_000, drain=10_000, latency=60, growth=10_000, ready=100_000,
              done=500_000)  # fmt: skip


class Bench(msgspec.Struct, frozen=True):
    """The context of every figure."""

    server: BenchServer
    folder: Path
    sizes: Sizes

    @contextmanager
    def database(self) -> Iterator[tuple[str, BenchTasks]]:
        """An empty database: its URL, and the tasks that are sent to it."""
        with database.scratch(self.server) as url:
            tasks = bind(url)
            try:
                yield url, tasks
            finally:
                tasks.app.close()


def enqueue_one(bench: Bench) -> Figure:
    """One call, one commit, then the next call."""
    count = bench.sizes.one
    log_step(f"one: {count:,} calls")
    with bench.database() as (_, tasks):
        for n in range(WARM_UP):
            tasks.noop.enqueue(n)
        began = time.perf_counter()
        for n in range(count):
            tasks.noop.enqueue(n)
        return {"per_s": count / (time.perf_counter() - began)}


def enqueue_bulk(bench: Bench) -> Figure:
    """One call with a generator of specs, described and hashed inside the measured time."""
    count = bench.sizes.bulk
    log_step(f"bulk: {count:,} specs")
    with bench.database() as (_, tasks):
        send(tasks, "noop", WARM_UP)
        began = time.perf_counter()
        handles = send(tasks, "noop", count)
        seconds = time.perf_counter() - began
        if len(handles) != count:
            raise StageFailed(f"{count:,} specs were sent and {len(handles):,} accepted.")
        return {"per_s": count / seconds}


def drain_async(bench: Bench) -> Figure:
    """A backlog of async no-ops, processed by the default worker."""
    return _drain(bench, "drain-async", "noop")


def drain_sync(bench: Bench) -> Figure:
    """A backlog of sync no-ops, processed by the default worker."""
    return _drain(bench, "drain-sync", "noop_sync")


def drain_inline(bench: Bench) -> Figure:
    """A backlog of async no-ops, processed by inline workers: one per core, as hands are."""
    return _drain(bench, "drain-inline", "noop", workers=os.cpu_count() or 1, executor="inline")


def _drain(bench: Bench, name: str, task: str, workers: int = 1, **settings: str) -> Figure:
    count = bench.sizes.drain
    with bench.database() as (url, tasks):
        log_step(f"{name}: start-up")
        app = APPS[task]
        idle_s = median(
            _drained(bench, url, app, workers=workers, settings=settings) for _ in range(_START_UPS)
        )
        log_step(f"{name}: {count:,} runs")
        send(tasks, task, count)
        database.tidy(url)
        before = cpu.seconds(bench.server.postmaster)
        worker_s = _drained(bench, url, app, workers=workers, settings=settings)
        after = cpu.seconds(bench.server.postmaster)
        server_s = None if before is None or after is None else after - before
        return {
            "per_s": count / database.drained(url, count),
            "worker_cpu_us": (worker_s - idle_s) / count * 1e6,
            "postgres_cpu_us": None if server_s is None else server_s / count * 1e6,
        }


def _drained(
    bench: Bench, url: str, app: str, *, workers: int, settings: Mapping[str, str]
) -> float:
    """Have so many workers drain the queue; the processor time they took, in seconds."""
    with ExitStack() as stack:
        crew = [
            stack.enter_context(worker(app, url, folder=bench.folder, drain=True, **settings))
            for _ in range(workers)
        ]
        for member in crew:
            member.finish(patience_s(bench.sizes.drain))
    return sum(member.cpu_s for member in crew)


def patience_s(runs: int) -> float:
    """How long a drain of this many runs may take before it is aborted."""
    return _START_S + runs / _SLOWEST_PER_S


def send(tasks: BenchTasks, task: str, count: int) -> list[RunHandle[Any]]:
    """Enqueue this many runs of a task."""
    handle = getattr(tasks, task)
    return tasks.app.enqueue_many(handle.spec(n) for n in range(count))


def latency(bench: Bench) -> Figure:
    """From the enqueue call to the task's first line, with one idle worker."""
    count = bench.sizes.latency
    log_step(f"latency: {count:,} enqueues")
    with (
        bench.database() as (url, tasks),
        worker(APP, url, folder=bench.folder) as crew,
    ):
        _await(crew, lambda: _idle(tasks), "a worker that waits for work", _READY_S)
        for n in range(WARM_UP):
            tasks.stamp.enqueue(n).result(timeout=_READY_S)
        sent = []
        for n in range(count):
            # 15 to 31 ms, never in step with a poll of the worker's.
            time.sleep(0.015 + n * 7 % 17 / 1000)
            began = time.monotonic_ns()
            sent.append((began, tasks.stamp.enqueue(n)))
        waits = [run.result(timeout=_READY_S) - began for began, run in sent]
    return percentiles(waits)


def _idle(tasks: BenchTasks) -> bool:
    return any(row.idle for row in tasks.app.store.all(queries.workers()))


def percentiles(waits: list[int]) -> Figure:
    """The 50th, 95th and 99th percentiles in milliseconds, from nanoseconds."""
    ordered = sorted(waits)
    return {
        f"p{percent}_ms": ordered[math.ceil(percent / 100 * len(ordered)) - 1] / 1e6
        for percent in (50, 95, 99)
    }


def growth(bench: Bench) -> Figure:
    """The same backlog in an empty database and before many other rows, in turns; medians."""
    sizes = bench.sizes
    rates: dict[str, list[float]] = {"empty": [], "full": []}
    with bench.database() as (small, few), bench.database() as (large, many):
        log_step(f"growth: filling {sizes.ready:,} ready and {sizes.done:,} finished")
        database.fill(large, ready=sizes.ready, done=sizes.done)
        for turn in range(1, _TURNS + 1):
            log_step(f"growth: {sizes.growth:,} runs, turn {turn} of {_TURNS}")
            both = [("empty", small, few), ("full", large, many)]
            # During the second measurement the machine may be warmer, or its disk busier.
            for name, url, tasks in both if turn % 2 else reversed(both):
                rates[name].append(_first_runs(bench, url, tasks))
    empty, full = statistics.median(rates["empty"]), statistics.median(rates["full"])
    return {"empty_per_s": empty, "full_per_s": full, "ratio": full / empty}


def _first_runs(bench: Bench, url: str, tasks: BenchTasks) -> float:
    """Runs per second of the ones enqueued now, which rank before all others."""
    count = bench.sizes.growth
    send(tasks, "noop", count)
    database.tidy(url)
    # Guarded like a worker's connection: the check must not scan the table.
    watching = DatabaseAddress(url).open("bench", *PLAN_GUARDS)
    with watching as connection, worker(APP, url, folder=bench.folder) as crew:
        _await(
            crew, lambda: not database.left(connection), "the last run to end", patience_s(count)
        )
    seconds = database.drained(url, count)
    database.clear(url)
    return count / seconds


def _await(crew: WorkerProcess, fact: Callable[[], bool], what: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not fact():
        crew.check()
        if time.monotonic() > deadline:
            raise StageFailed(f"Waited {seconds:g} s for {what}. {crew.last_words()}")
        time.sleep(_LOOK_S)


FIGURES: Mapping[str, tuple[str, Callable[[Bench], Figure]]] = {
    "one": ("enqueue_one", enqueue_one),
    "bulk": ("enqueue_bulk", enqueue_bulk),
    "drain-async": ("drain_async", drain_async),
    "drain-sync": ("drain_sync", drain_sync),
    "drain-inline": ("drain_inline", drain_inline),
    "latency": ("latency", latency),
    "growth": ("growth", growth),
}
"""The figures by option name: the name in the report, and the function that measures it."""

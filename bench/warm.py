# SPDX-License-Identifier: MIT
"""What provenance, seeding, capture and measuring cost warm hands: `python -m bench.warm`.

The same backlog of no-ops is worked off by a worker as it is and by workers without one of the
four, or without all; in turns, so that whatever else the machine does falls on all of them alike.
All workers are warm, and idle while another one works. Told are microseconds of processor time per
run, of the worker (supervisor and hands) and of PostgreSQL, as medians over the rounds; and what
each feature adds, in per cent of the run without it. Rates would tell how busy the machine is;
processor time tells what the work costs. How far that can be trusted is told too: a second worker
that lacks nothing should add nothing.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from byrote.assembly.clock import monotonic
from byrote.assembly.settings import resolve
from byrote.assembly.worker import build_worker
from byrote.executors.hands.pool import Hands
from byrote.lab.bench import database
from byrote.lab.bench.stage import WorkerProcess, environment, own_folder
from byrote.lab.bench.tasks import bind
from byrote.store import queries
from byrote.store.connect import PLAN_GUARDS, DatabaseAddress

FEATURES = ("provenance", "seeding", "capture", "measuring")
VARIANTS = {
    "all": (),
    "without nothing": (),
    **{f"without {feature}": (feature,) for feature in FEATURES},
    "without all": FEATURES,
}
ALLOWED = {"provenance": 2.0, "measuring": 2.0, "all": 5.0}
"""Per cent that issue and documents promise."""
PATIENCE_S = 300.0


def work(without: str) -> None:
    """Be a worker that lacks these features, until told to stop."""
    if "provenance" in without:
        welcome = Hands._welcome  # noqa: SLF001 -- there is no switch, and nobody else wants one.

        def forgetful(self: Hands, child: Any, told: Any) -> None:
            welcome(self, child, told)
            child.provenance = None

        Hands._welcome = forgetful  # type: ignore[method-assign]  # noqa: SLF001
    settings = resolve({"deterministic": "seeding" not in without}).settings
    worker = build_worker("bench.warm_app:app", settings, emit=lambda _events: None)
    signal.signal(signal.SIGTERM, lambda *_: worker.stop("bench"))
    worker.run()


class Crew:
    """A worker of one variant, warm, with a database of its own."""

    def __init__(
        self, stack: ExitStack, server: database.BenchServer, variant: str, task: str
    ) -> None:
        self._url = stack.enter_context(database.scratch(server))
        self._tasks = bind(self._url)
        stack.callback(self._tasks.app.close)
        self._handle = getattr(self._tasks, task)
        self._server = server
        log = Path(stack.enter_context(own_folder())) / "worker.log"
        env = environment(self._url, {}) | {"BENCH_WITHOUT": ",".join(VARIANTS[variant])}
        with log.open("ab") as out:
            argv = [sys.executable, "-m", "bench.warm", "--work"]
            process = subprocess.Popen(argv, env=env, stdout=out, stderr=out)
        self._worker = WorkerProcess(process, log)
        stack.callback(self._worker.close)
        self._look = stack.enter_context(DatabaseAddress(self._url).open("bench", *PLAN_GUARDS))
        self._await(lambda: any(w.idle for w in self._tasks.app.store.all(queries.workers())))

    def drain(self, runs: int) -> tuple[float, float]:
        """Microseconds of processor time of worker and PostgreSQL for each of so many runs."""
        store = self._tasks.app.store
        store.all(queries.pause("default"))
        self._tasks.app.enqueue_many(self._handle.spec(n) for n in range(runs))
        database.tidy(self._url)
        worker, server = self._worker.pid, self._server.postmaster or 0
        before = running_ns(worker), running_ns(server)
        store.all(queries.resume("default"))
        self._await(lambda: not database.left(self._look))
        after = running_ns(worker), running_ns(server)
        database.drained(self._url, runs)
        database.clear(self._url)
        return spent_us(before[0], after[0]) / runs, spent_us(before[1], after[1]) / runs

    def _await(self, fact: Callable[[], bool]) -> None:
        deadline = monotonic() + PATIENCE_S
        while not fact():
            self._worker.check()
            assert monotonic() < deadline, self._worker.last_words()
            threading.Event().wait(0.05)


def running_ns(pid: int) -> dict[str, int]:
    """Nanoseconds that each thread of a process and of all processes below it has run."""
    found: dict[str, int] = {}
    # A process may end while we look.
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found[task.name] = int((task / "schedstat").read_text().split()[0])
            for child in (task / "children").read_text().split():
                found |= running_ns(int(child))
    return found


def spent_us(before: dict[str, int], after: dict[str, int]) -> float:
    return sum(ns - before.get(thread, 0) for thread, ns in after.items()) / 1e3


def measure(crews: dict[str, Crew], runs: int, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Microseconds of worker and PostgreSQL per run: for every variant one pair per round."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in crews}
    names = list(crews)
    for turn in range(-1, rounds):
        # Another order each time: who comes first finds a colder machine.
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            spent = crews[name].drain(runs)
            if turn >= 0:
                found[name].append(spent)
                told = f"round {turn + 1}, {name}: {spent[0]:.1f} + {spent[1]:.1f} µs"
                sys.stderr.write(told + "\n")
    return found


def report(found: dict[str, list[tuple[float, float]]]) -> dict[str, Any]:
    totals = {name: [sum(pair) for pair in pairs] for name, pairs in found.items()}

    def added(name: str) -> dict[str, float]:
        whole, part = totals["all"], totals[f"without {name}"]
        median, middle = statistics.median(whole), statistics.median(part)
        return {
            "median_percent": round((median / middle - 1) * 100, 2),
            "best_percent": round((min(whole) / min(part) - 1) * 100, 2),
        }

    return {
        "cpu_us_per_run": {
            name: {
                "worker": round(statistics.median(pair[0] for pair in pairs), 2),
                "postgres": round(statistics.median(pair[1] for pair in pairs), 2),
                "both_at_best": round(min(totals[name]), 2),
            }
            for name, pairs in found.items()
        },
        "added": {name: added(name) for name in (*FEATURES, "all", "nothing")},
        "allowed_percent": ALLOWED,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--task", choices=["noop", "noop_sync"], default="noop")
    parser.add_argument("--url", help="a PostgreSQL of yours; else one of our own")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.work:
        work(os.environ.get("BENCH_WITHOUT", ""))
        return
    with (
        own_folder() as folder,
        database.target(wanted.url, folder) as server,
        ExitStack() as stack,
    ):
        crews = {name: Crew(stack, server, name, wanted.task) for name in VARIANTS}
        found = measure(crews, wanted.runs, wanted.rounds)
        print(json.dumps(report(found), indent=2))


if __name__ == "__main__":
    main()

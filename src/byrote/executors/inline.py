# SPDX-License-Identifier: MIT
"""Runs tasks in the worker's own process: for tests, tiny deployments, and the lowest latency.

No child process can be killed here: an async task past its timeout is cancelled, a sync one cannot
be stopped, and a crash ends the worker too. Everything else is as with hands.
"""

import asyncio
import os
import sys
import threading
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from byrote.core.errors import BadOption
from byrote.core.outcome import Outcome, Printing, Released
from byrote.core.ports.executor import (
    Asks,
    Capacity,
    Clock,
    OnceStatement,
    ReportOutcomes,
    ReportStored,
)
from byrote.core.ports.hooks import stored_attempt
from byrote.core.replay.provenance import Provenance
from byrote.core.run import Leased
from byrote.core.task import Registry
from byrote.core.verdict import Judged
from byrote.executors.capacity import CapacityPlanner
from byrote.executors.hooks.registered import AppHooks
from byrote.executors.hooks.runner import HookFailed, HookRunner
from byrote.executors.runtime import call
from byrote.executors.runtime.asks import AskClient, ReplayMode, pass_on
from byrote.executors.runtime.engine import Engine
from byrote.executors.runtime.failure_log import FailureLog, OnRaised, both
from byrote.executors.runtime.job import (
    DeclinedResult,
    Result,
    TaskMode,
    job_of,
    mode_of,
    none_of_each,
)
from byrote.executors.runtime.seeding import install
from byrote.executors.shared.board import SLOTS, Board

SWITCH_S = 0.0005
"""How long a task that never waits may block the threads that claim and write."""


LEAVE_S = 15.0
"""How long hooks may take after the last task."""


class Inline:
    """An executor with its own event loop in this process."""

    def __init__(
        self,
        registry: Registry,
        *,
        concurrency: int,
        threads: int = 1,
        worker: str,
        clock: Clock,
        asks: Asks | None = None,
        once: OnceStatement | None = None,
        provenance: Provenance | None = None,
        deterministic: bool = True,
        failures: FailureLog | None = None,
    ) -> None:
        self._failures = failures
        self.replay: ReplayMode | None = None
        self.hooks: AppHooks | None = None
        """The hooks of the app that this process calls."""
        self._runner: HookRunner | None = None
        self._refusal: BadOption | None = None
        """How steps are answered where every run is a replay; set before the start."""
        self._asks = asks
        self._once = once
        self._provenance = provenance
        if deterministic:
            install(task.key for task in registry.served if not task.deterministic)
        self._registry = registry
        self._limits = {TaskMode.SYNC: threads, TaskMode.ASYNC: concurrency}
        self._worker = worker
        tasks = [task for task in registry.served if task.command is None]
        self._modes = {task.key: mode_of(task.is_async) for task in tasks}
        self._mode_by_name = {(task.name, task.version): mode_of(task.is_async) for task in tasks}
        self._pid = os.getpid()
        self._jobs: dict[int, Leased] = {}
        self._running = none_of_each()
        self._revoked: set[int] = set()
        self._forgotten: set[int] = set()
        self._free: deque[int] = deque(range(SLOTS))
        self._tempos = CapacityPlanner(clock)
        self._lock = threading.RLock()
        self._draining = False
        board = Board.make()
        self._board = Board(board)
        os.close(board)

    def start(self, report: ReportOutcomes) -> None:
        """Start the loop's thread."""
        if not len(self._registry):
            raise BadOption("The app has no tasks; import the modules that define them.")
        self._report = report
        self._patience_s = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_S)
        started = threading.Event()
        self._thread = threading.Thread(
            target=asyncio.run, args=(self._live(started),), name="byrote-inline", daemon=True
        )
        self._thread.start()
        started.wait()
        if self._refusal is not None:
            raise self._refusal

    async def _live(self, started: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        self._ask_client = (
            None if self._once is None else AskClient(self._ask, self._once, self.replay)
        )
        self._engine = Engine(
            self._registry,
            self._board,
            self._done,
            concurrency=self._limits[TaskMode.ASYNC],
            threads=self._limits[TaskMode.SYNC],
            ask_client=self._ask_client,
            failures=self._on_raised(),
        )
        await self._start_hooks()
        started.set()
        if self._refusal is None:
            await self._stopped.wait()
        self._engine.close()
        if self._runner is not None and self._refusal is None:
            await self._runner.close(worker=True)

    async def _start_hooks(self) -> None:
        """Call the start hooks; `start` raises the error of one."""
        if self._runner is None:
            return
        try:
            await self._runner.start_hand()
            await self._runner.start_worker()
        except HookFailed as error:
            sys.stderr.write(error.traceback)
            self._refusal = BadOption(str(error))

    def _on_raised(self) -> OnRaised | None:
        """Return what takes failed attempts, and prepare the hooks; a replay reports none."""
        if self.hooks is not None:
            self._runner = HookRunner(self.hooks, replaying=self.replay is not None)
        if self.replay is not None or self._failures is None:
            return None
        return both(self._failures, None if self._runner is None else self._runner.failed)

    @property
    def reporter(self) -> ReportStored | None:
        """Takes attempts whose verdicts were stored; None if no hook wants them."""
        wanted = self.hooks is not None and self.hooks.wants.reports and self.replay is None
        return self._report_stored if wanted else None

    def _report_stored(self, judged: Sequence[Judged], letters: Mapping[str, str]) -> None:
        assert self.hooks is not None  # noqa: S101 -- `reporter` has checked it.
        wants = self.hooks.wants
        found = (stored_attempt(run, end, letters.get(run.id), wants) for run, end, _ in judged)
        stored = [one for one in found if one is not None]
        if stored and self._runner is not None:
            self._loop.call_soon_threadsafe(self._runner.stored, stored)

    def _ask(self, slot: int, number: int, verb: str, payload: Mapping[str, Any]) -> None:
        ask_client = self._ask_client
        assert ask_client is not None  # noqa: S101 -- only an ask client sends asks.

        def answer(ok: bool, payload: Any) -> None:
            ask_client.answer(number, ok, payload)

        pass_on(self._asks, self._jobs.get(slot), (verb, payload), answer)

    @property
    def tasks(self) -> Sequence[str]:
        """Every task of the registry."""
        return sorted(self._modes)

    def room(self) -> Capacity:
        """How much may be claimed now, of which tasks."""
        if self._draining:
            return Capacity(0, ())
        room = self._tempos.room(self._modes, self._running, self._limits)
        slots = len(self._free)
        return room if room.limit <= slots else Capacity(slots, room.tasks, min(room.worth, slots))

    def submit(self, runs: Sequence[Leased]) -> None:
        """Pass runs to the loop in one call."""
        jobs = []
        counts = none_of_each()
        with self._lock:
            for run in runs:
                slot = self._free.popleft()
                self._board.assign(slot)
                self._jobs[slot] = run
                counts[self._mode(run)] += 1
                jobs.append(job_of(slot, run))
            for mode, count in counts.items():
                self._running[mode] += count
        self._tempos.note(counts)
        self._loop.call_soon_threadsafe(self._engine.put, jobs)

    def _mode(self, run: Leased) -> TaskMode:
        return self._mode_by_name.get((run.task, run.version), TaskMode.SYNC)

    def _done(self, results: Sequence[Result]) -> None:
        reports: list[tuple[Leased, Outcome]] = []
        counts = none_of_each()
        with self._lock:
            for result in results:
                slot = result.slot
                self._free.append(slot)
                if isinstance(result, DeclinedResult):
                    self._revoked.discard(slot)
                    if slot in self._jobs:
                        # Its lease expired before it could begin.
                        run = self._jobs.pop(slot)
                        self._running[self._mode(run)] -= 1
                        reports.append((run, Released()))
                    continue
                run = self._jobs.pop(slot)
                mode = self._mode(run)
                self._running[mode] -= 1
                counts[mode] += 1
                run.provenance = self._provenance
                if self._runner is not None:
                    run.hand = self._pid
                if slot in self._forgotten:
                    self._forgotten.discard(slot)
                    continue
                reports.append((run, call.outcome_of(result, run.attempt, self._worker)))
        self._tempos.count(counts)
        self._report(reports)

    def cancel(self, runs: Collection[Leased]) -> None:
        """Cancel async attempts; a sync one runs to its end and counts."""
        with self._lock:
            slots = self._slots(runs)
        self._loop.call_soon_threadsafe(self._engine.cancel, slots)

    def forget(self, runs: Collection[Leased]) -> None:
        """Cancel async attempts; none of these attempts is reported."""
        with self._lock:
            self._forgotten.update(self._slots(runs))
        self.cancel(runs)

    def _slots(self, runs: Collection[Leased]) -> list[int]:
        wanted = {id(run) for run in runs}
        return [slot for slot, run in self._jobs.items() if id(run) in wanted]

    def printed(self, run: Leased) -> Printing | None:  # noqa: ARG002 -- the port's signature.
        """Always None: tasks print to the worker's own output."""
        return None

    def give_back(self) -> None:
        """Start no more runs; report those that have not begun as released."""
        self._draining = True
        back = []
        with self._lock:
            for slot, run in list(self._jobs.items()):
                if slot not in self._revoked and self._board.take_back(slot):
                    self._revoked.add(slot)
                    self._running[self._mode(run)] -= 1
                    back.append(self._jobs.pop(slot))
        self._report([(run, Released()) for run in back])

    def kill(self) -> None:
        """Release running attempts; their code runs on without a report until the process ends."""
        with self._lock:
            back = list(self._jobs.values())
            self._forgotten.update(self._jobs)
        self._report([(run, Released()) for run in back])

    def stop(self) -> None:
        """End the loop."""
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(timeout=1.0 if self._runner is None else LEAVE_S)
        sys.setswitchinterval(self._patience_s)

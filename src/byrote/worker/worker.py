# SPDX-License-Identifier: MIT
"""The supervisor: starts the parts, watches over them, and stops them in the right order."""

import os
import platform
import threading
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

import msgspec

from byrote.core import events
from byrote.core.errors import Unreachable
from byrote.core.outcome import Outcome, kind_and_type
from byrote.core.ports.app import Announced
from byrote.core.ports.executor import Asks, Executor, ReportStored
from byrote.core.ports.replies import Remainder
from byrote.core.ports.store import PartContext, WorkerStore
from byrote.core.run import Leased
from byrote.core.schedule.schedule import Schedule
from byrote.worker.asks.artifacts import ArtifactCleaner
from byrote.worker.asks.ask_server import AskHandler, AskServer
from byrote.worker.asks.ledger_server import LedgerServer
from byrote.worker.claiming.claimer import Claimer, ClaimOptions
from byrote.worker.claiming.discovery import Discovery, DiscoveryHooks, DiscoveryPort
from byrote.worker.claiming.watermark import Watermark
from byrote.worker.context import WorkerContext
from byrote.worker.lease_keeper import LeaseKeeper
from byrote.worker.leases import HeldLeases
from byrote.worker.notices import Notices, stopping_note
from byrote.worker.options import WorkerOptions
from byrote.worker.recorder import Recorder
from byrote.worker.upkeep.live_output import OutputWatcher
from byrote.worker.upkeep.maintenance import CHAINED, EVERY, LEAST, Maintenance

SIGNALS_S = 0.5
"""How long the main thread waits at a time. A signal that arrives just before the wait begins is
handled when it ends: Python runs handlers in the main thread, and only between two waits."""
LAST_WORDS_S = 1.0
"""The end of the grace period is for writing verdicts, not for finishing more runs."""


class _Parts(NamedTuple):
    recorder: Recorder
    claimer: Claimer
    keeper: LeaseKeeper
    sweeper: Maintenance | None


class _Closes(Protocol):
    def close(self) -> None: ...


class Worker:
    """One supervisor and its executor."""

    def __init__(
        self,
        store: Callable[[], WorkerStore],
        executor: Executor,
        options: WorkerOptions,
        context: WorkerContext,
        *,
        asks: Asks | None = None,
        answers: Mapping[str, AskHandler] | None = None,
        on_finished: ReportStored | None = None,
        unknown_tasks: DiscoveryHooks | None = None,
        schedules: Callable[[], Sequence[Schedule]] = tuple,
        announced: Callable[[], Announced] = Announced,
    ) -> None:
        self._announced, self._schedules = announced, schedules
        self._on_finished, self._unknown_tasks = on_finished, unknown_tasks
        self._finder: Discovery | None = None
        self._looking: DiscoveryPort | None = None
        """The store with which a draining claimer looks for more tasks to serve."""
        self._answers = answers or {}
        self._tidier: ArtifactCleaner | None = None
        self._find_store = store
        self._asks: Asks = SimpleQueue() if asks is None else asks
        self._executor, self._options, self._context = executor, options, context
        self._beginning = threading.Lock()
        self._begun = False
        """Whether the worker was announced and its parts were started."""
        self._given_up = threading.Event()
        self._wanted, self._hurried = threading.Event(), threading.Event()
        self._notice = Notices(options.worker, context.emit)
        self._reason = ""
        self._failure: BaseException | None = None
        self._held = HeldLeases()
        self.left: Remainder | None = None
        """The runs that a drain left; None before it has ended by itself."""
        self._parts: _Parts | None = None
        self._threads: dict[str, threading.Thread] = {}
        self._ends: dict[str, Callable[[], None]] = {}

    def stop(self, reason: str) -> None:
        """Stop claiming, and finish what fits into the grace; a second call releases all runs."""
        if self._wanted.is_set():
            self._hurried.set()
        self._end(reason)

    def _end(self, reason: str) -> None:
        self._reason = self._reason or reason
        self._wanted.set()

    @property
    def ready(self) -> bool:
        """Whether the worker is claiming."""
        return self._begun and not self._wanted.is_set()

    def run(self) -> None:
        """Work until stopped or, when draining, until nothing is left; raises any fatal error."""
        # The hands first: only they import the app, and it may be the app that names the store.
        self._executor.start(self._report)
        if not self._options.queues:
            named = dict.fromkeys(self._announced().queues, 1) or {"default": 1}
            self._options = msgspec.structs.replace(self._options, queues=named)
        try:
            self._store = self._find_store()
            self._parts = self._build()
            # On a thread: a stop is handled even while the database delays the first statements.
            self._start("starter", self._begin)
            while not self._wanted.wait(SIGNALS_S):
                pass
        finally:
            self._leave()
        if self._failure is not None:
            raise self._failure

    def _begin(self) -> None:
        """Announce the worker and start its parts, unless it was stopped meanwhile."""
        assert self._parts is not None  # noqa: S101 -- threads start after the parts are built.
        recorder, claimer, keeper, sweeper = self._parts
        database = self._store.check()
        keeper.register()
        if sweeper is not None:
            sweeper.announce()
            if self._options.drain:
                # It may be the only kind of worker there is: a sweep, a tick
                # or a promotion that is overdue must not wait for a worker that stays.
                sweeper.turn()
        finder = self._find(claimer)
        with self._beginning:
            self._begun = not self._wanted.is_set()
        if not self._begun:
            keeper.leave()
            return
        self._emit_start(database)
        self._start("recorder", recorder.run)
        self._start("keeper", keeper.run)
        if sweeper is not None:
            self._start("sweeper", sweeper.run)
        self._start_helpers()
        if finder is not None:
            self._finder = finder
            self._start("finder", finder.run)
        self._start("claimer", self._claim_until_dry)

    def _start_helpers(self) -> None:
        others: Asks = SimpleQueue()
        ledgers = self._with_end("scribe", self._store.ledgers(self._part("steps")))
        self._start("scribe", LedgerServer(ledgers, self._asks, others).run)
        artifact_rows = self._with_end("clerk", self._store.artifact_rows(self._part("ask")))
        self._start("clerk", AskServer(artifact_rows, others, self._answers).run)
        if self._options.artifacts is not None:
            artifact_rows = self._with_end("tidier", self._store.artifact_rows(self._part("tidy")))
            self._tidier = ArtifactCleaner(artifact_rows, self._context, self._options.artifacts)
            self._start("tidier", self._tidier.run)

    def _find(self, claimer: Claimer) -> Discovery | None:
        """Look for tasks to serve; returns the thread that continues beside the claimer."""
        if self._unknown_tasks is None:
            return None
        discovery = self._unknown_tasks.open(self._part("find"))
        finder = Discovery(discovery, self._executor, claimer, self._unknown_tasks)
        finder.look()
        if self._options.drain:
            # The claimer looks itself before the queues count as empty, on its own thread.
            claimer.look_around = finder.look
            self._looking = discovery
            return None
        self._with_end("finder", discovery)
        return finder

    def _report(self, ended: Sequence[tuple[Leased, Outcome]]) -> None:
        if self._parts is not None:
            self._parts.recorder.report(ended)

    def _build(self) -> _Parts:
        options, context, held = self._options, self._context, self._held
        verdicts = self._with_end("recorder", self._store.verdicts(self._part("finish")))
        recorder = Recorder(verdicts, held, context)
        recorder.on_finished = self._on_finished
        if not options.log_tracebacks:
            recorder.describe = kind_and_type
        keeper = LeaseKeeper(
            self._with_end("keeper", self._store.registry(self._part("renew"))),
            self._executor,
            held=held,
            lease_for=options.lease_for,
            context=context,
            description=self._describe,
            load=self._load,
            on_contested=self._withhold,
        )
        wanted = ClaimOptions(
            weights=options.queues,
            lease_for=options.lease_for,
            poll_s=options.poll.total_seconds(),
            drain=options.drain,
        )
        watermark = Watermark()
        leases = self._store.leases(
            self._part("claim"), on_cancel=keeper.look, on_return=watermark.lower
        )
        claimer = Claimer(
            self._with_end("claimer", leases),
            self._executor,
            recorder=recorder,
            held=held,
            options=wanted,
            context=context,
            watermark=watermark,
        )
        return _Parts(recorder, claimer, keeper, self._sweeper(claimer))

    def _sweeper(self, claimer: Claimer) -> Maintenance | None:
        duties = self._store.duties(self._part("duties"))
        if duties is None:
            return None
        duties = self._with_end("sweeper", duties)
        watch = OutputWatcher(duties, self._executor, self._held, clock=self._context.clock)
        every = EVERY if self._options.housekeeping else LEAST
        if self._options.chain_events:
            every = {**every, **CHAINED}
        return Maintenance(
            duties,
            self._context,
            idle=lambda: claimer.idle,
            watch=watch,
            every=every,
            schedules=self._schedules() if self._options.housekeeping else (),
        )

    def _part(self, purpose: str) -> PartContext:
        # A stop interrupts claims and duties at once; verdicts and leases continue.
        needed = purpose in {"finish", "renew", "steps", "ask"}
        stopped = self._given_up_within if needed else self._wanted.wait
        return PartContext(purpose, stopped, self._notice, self._context.jitter, self._is_impatient)

    def _given_up_within(self, seconds: float) -> bool:
        # A worker that has not started holds nothing that must be written.
        return (self._given_up if self._begun else self._wanted).wait(seconds)

    def _is_impatient(self) -> bool:
        return not (self._begun and self._options.insists)

    def _with_end[Part: _Closes](self, thread: str, part: Part) -> Part:
        """A port of the store that is closed when its thread ends."""
        self._ends[thread] = part.close
        return part

    def _describe(self) -> dict[str, Any]:
        options = self._options
        claimer = None if self._parts is None else self._parts.claimer
        return {
            "worker": options.worker,
            "pid": os.getpid(),
            "hands": options.hands,
            "concurrency": options.concurrency,
            "host": platform.node(),
            "version": options.version,
            "python": platform.python_version(),
            "queues": list(options.queues if claimer is None else claimer.queues),
            "tasks": list(self._executor.tasks if claimer is None else claimer.tasks),
            **self._announced().description,
        }

    def _withhold(self, contested: Sequence[str]) -> None:
        """Claim no runs of default aliases that are tasks of another worker; a replay does."""
        if self._parts is not None and self._options.housekeeping:
            self._parts.claimer.withheld = frozenset(contested)

    def _load(self) -> dict[str, Any]:
        return {
            "idle": self._parts is not None and self._parts.claimer.idle,
            "stopping": self._wanted.is_set(),
            "running": len(self._held),
            "finished": 0 if self._parts is None else self._parts.recorder.finished,
        }

    def _emit_start(self, database: str) -> None:
        options = self._options
        queues = ",".join(options.queues)
        size = options.hands, options.concurrency
        self._context.emit([events.WorkerStarted(options.worker, queues, *size, database)])

    def _start(self, name: str, part: Callable[[], None]) -> None:
        thread = threading.Thread(
            target=self._guard, args=(name, part), name=f"byrote-{name}", daemon=True
        )
        self._threads[name] = thread
        thread.start()

    def _guard(self, name: str, part: Callable[[], None]) -> None:
        try:
            part()
        except Unreachable as error:
            if not self._wanted.is_set():
                self._failure = self._failure or error
                self._end(f"{name} failed: {error}")
        except BaseException as error:  # noqa: BLE001 -- a part that ends unexpectedly ends the worker, loudly.
            self._failure = self._failure or error
            self._end(f"{name} failed: {type(error).__name__}: {error}")
        finally:
            self._ends.get(name, lambda: None)()

    def _claim_until_dry(self) -> None:
        assert self._parts is not None  # noqa: S101 -- threads start after the parts are built.
        try:
            self._parts.claimer.run()
        finally:
            if self._looking is not None:
                self._looking.close()
        left = self.left = self._parts.claimer.left
        self._end(str(left or "stopped"))

    # -- Leaving ---------------------------------------------------------------------------------

    def _leave(self) -> None:
        with self._beginning:
            begun = self._begun
            self._wanted.set()
        if self._parts is None or not begun:
            self._executor.kill()
            self._executor.stop()
            self._leave_early()
            return
        recorder, claimer, keeper, sweeper = self._parts
        grace = self._options.grace.total_seconds()
        last = self._context.clock() + max(grace, 0.5)
        deadline = last - min(LAST_WORDS_S, grace / 4)
        self._emit_stopping()
        self._join("starter", deadline)
        # Stop claiming before draining: a run claimed now would only be handed back at the end.
        claimer.stop()
        if sweeper is not None:
            sweeper.stop()
        if self._tidier is not None:
            self._tidier.stop()
        if self._finder is not None:
            self._finder.stop()
        self._join("claimer", deadline)
        self._executor.give_back()
        self._drain(deadline)
        if self._held:
            self._executor.kill()
        self._executor.stop()
        self._asks.put(None)
        recorder.close()
        self._join("recorder", last)
        keeper.stop()
        self._join("keeper", last)
        # Threads that still wait for the store stop now; leases expire by themselves.
        self._given_up.set()
        for name in self._threads:
            self._join(name, self._context.clock() + 0.2)
        self._context.emit(
            [events.WorkerStopped(self._options.worker, recorder.finished, recorder.released)]
        )

    def _leave_early(self) -> None:
        """Close what a start that was not finished has opened, unless it is stuck in there."""
        if self._parts is not None:
            self._parts.keeper.stop()
        self._join("starter", self._context.clock() + LAST_WORDS_S)
        starter = self._threads.get("starter")
        if starter is not None and not starter.is_alive():
            for close in self._ends.values():
                close()

    def _emit_stopping(self) -> None:
        reason = self._reason or "failed to start"
        running = len(self._held)
        note = stopping_note(running, self._options.grace, reason)
        self._context.emit([events.WorkerStopping(self._options.worker, reason, running, note)])

    def _drain(self, deadline: float) -> None:
        """Wait for running attempts until the grace period or a second stop ends the wait."""
        if self._failure is not None and not isinstance(self._failure, Unreachable):
            return
        while self._held and self._context.clock() < deadline:
            if self._hurried.wait(0.02):
                return

    def _join(self, name: str, deadline: float) -> None:
        thread = self._threads.get(name)
        if thread is not None:
            thread.join(max(deadline - self._context.clock(), 0.0))

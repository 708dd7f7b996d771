# SPDX-License-Identifier: MIT
"""The warm pool: child processes that imported the app once, fed in batches over sockets.

State: `roster.py` records which hand has which run; the kernel (`EndWatch`) reports which hands are
alive. One thread, `_serve`, does all reading, starts every hand (they die with the thread that
started them, so it must be the one that lives longest), and enforces the deadlines. Claimers submit
from their own thread.

Failures: a hand that dies is cleaned up at once and replaced; one that cannot even import the app
is replaced with a growing delay. For a run past its timeout, or whose lease expired unrenewed, the
pool kills the hand: the only way to stop code that ignores a cancellation. Other runs of that hand
that had begun are released uncharged; those that had not are executed in other hands. A hand that
has stopped reading gets no more work, and is killed in the end (`send_buffer.py`).
"""

import math
import os
import selectors
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from byrote.core.command import Command
from byrote.core.errors import BadOption
from byrote.core.events import HandEnded, HandStarted, Troubled
from byrote.core.outcome import Cancelled, Failed, Printing, Released
from byrote.core.ports.app import Announced
from byrote.core.ports.executor import Asks, Capacity, Clock, Emit, ReportOutcomes
from byrote.core.replay.provenance import Provenance, provenance_of
from byrote.core.run import Leased
from byrote.core.schedule.schedule import Schedule
from byrote.core.verdict import Judged
from byrote.executors.hands.crash import ExitReason, printed_by, take_leave
from byrote.executors.hands.messages import (
    Answer,
    Asked,
    Done,
    FromHand,
    Malformed,
    Ready,
    RefusedRuns,
    Stop,
    WorkerHooksCalled,
)
from byrote.executors.hands.options import HandOptions
from byrote.executors.hands.orphans import end_orphans
from byrote.executors.hands.process import WORKER, HandProcess
from byrote.executors.hands.roster import STOP_GRACE_S, Roster
from byrote.executors.runtime import call
from byrote.executors.runtime.asks import ASKS_MAX, TOO_MANY, pass_on
from byrote.executors.runtime.async_hands import HAND_COUNT
from byrote.executors.runtime.job import Result, TaskMode, mode_of
from byrote.executors.runtime.provenance.environment import FIXED
from byrote.executors.selector_loop import TICK_S, SelectorLoop
from byrote.executors.shared.messages import GARBLED, Introduction, MalformedMessage, Question
from byrote.system.processes import adopt_orphans, oom_kills
from byrote.system.wake import clear

RESPAWN_MAX_S = 10.0
LEAVE_S = 15.0
"""How long hands may take to end after `stop`; an app may use ten seconds for its `flush`."""


class Hands(SelectorLoop):
    """An executor of child processes."""

    def __init__(
        self,
        options: HandOptions,
        *,
        worker: str,
        clock: Clock,
        emit: Emit,
        environment: Mapping[str, str] | None = None,
        asks: Asks | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._asks = asks
        self._options, self._settings = options, options.settings
        added = {WORKER: worker, HAND_COUNT: str(options.hands)}
        self._environment = {**(os.environ if environment is None else environment), **added}
        self._environment |= FIXED if options.deterministic else {}
        self._about = dict(about or {})
        self._provenances: dict[str, Provenance] = {}
        self._worker, self._clock, self._emit = worker, clock, emit
        self._roster = Roster(options, worker=worker, clock=clock)
        self.learn = self._roster.learn
        self._first = threading.Event()
        self._refusal: str | None = None
        self._stopping = self._draining = False
        self._failures, self._respawn_at, self._leave_at = 0, 0.0, math.inf
        self._ooms = oom_kills()
        self.url: str | None = None
        self.schema: str | None = None
        """The database the app itself names, if it does."""
        self.commands: dict[str, Command] = {}
        """Tasks that hands do not execute, and how they run."""
        self.ignores: dict[str, list[str]] = {}
        """For each task, the parts of its results that a replay does not compare."""
        self.schedules: list[Schedule] = []
        """The schedules that the app declares."""
        self.announced = Announced()
        """The queues and aliases of the app's tasks."""
        self.surroundings: dict[str, Any] = {}
        """The provenance that a hand measured last."""

    # -- The executor's interface ----------------------------------------------------------------

    def start(self, report: ReportOutcomes) -> None:
        """Start the hands and wait for the first; BadOption when the app cannot be imported."""
        adopt_orphans()
        self._begin_serving(report, "byrote-hands")
        self._first.wait()
        if self._refusal is not None:
            self.stop()
            raise BadOption(self._refusal)
        if not (self._roster.modes or self.commands or self._roster.wants_finished):
            self.stop()
            raise BadOption(f"{self._options.app} has no tasks; import modules that define some.")

    @property
    def tasks(self) -> Sequence[str]:
        """The tasks the app registered, as its first hand reported them."""
        return sorted(self._roster.modes)

    def room(self) -> Capacity:
        """How much may be claimed now, of which tasks."""
        self._check()
        return Capacity(0, ()) if self._draining else self._roster.room()

    def submit(self, runs: Sequence[Leased]) -> None:
        """Spread runs over the hands; release those that no hand can take."""
        homeless, backed_up = self._roster.assign(runs)
        if backed_up:
            self._nudge()
        self._release(homeless)

    def cancel(self, runs: Collection[Leased]) -> None:
        """Stop these attempts: cancel async ones, kill the hand of sync ones."""
        self._report_ends(self._roster.end(runs, Cancelled()))

    def forget(self, runs: Collection[Leased]) -> None:
        """Stop these attempts without a report: their leases are lost."""
        self._roster.end(runs, None)

    def printed(self, run: Leased) -> Printing | None:
        """The output of a running attempt so far."""
        return printed_by(self._roster, run)

    def give_back(self) -> None:
        """Start no more runs; report those that have not begun as released."""
        self._draining = True
        self._release(self._roster.take_back_all())

    def kill(self) -> None:
        """Kill every hand; runs that were under way are reported as released."""
        self._stopping = self._draining = True
        with self._roster.lock:
            for child in self._roster.children:
                child.kill()

    def stop(self) -> None:
        """Stop idle hands and wait for their end; kill those that exceed `LEAVE_S`."""
        self._leave_at = self._clock() + LEAVE_S
        self._stopping = self._draining = True
        with self._roster.lock:
            self._roster.hooks.send_stop(self._roster.children)
        self._end_serving()

    def report_finished(self, judged: Sequence[Judged], letters: Mapping[str, str]) -> None:
        """Send the hands how attempts were settled, if their app wants to know."""
        if self._roster.send_finished(judged, letters) and not self._stopping:
            self._nudge()

    # -- The serving thread ----------------------------------------------------------------------

    def _serve(self) -> None:
        next_tick = self._clock()
        while not (self._stopping and not self._roster.children):
            if self._clock() >= next_tick:
                next_tick = self._clock() + TICK_S
                self._tick()
            for key, events in self._selector.select(TICK_S):
                if key.data is None:
                    clear(self._wake.fd)
                    self._watch_writers()
                elif key.fileobj == key.data.end.fd:
                    self._resolve_crash(key.data)
                else:
                    self._converse(key.data, events)

    def _tick(self) -> None:
        now = self._clock()
        if self._roster.attend():
            self._report([])  # There is room again.
        if not self._stopping and now >= self._respawn_at:
            for _ in range(self._roster.missing):
                self._spawn()
        with self._roster.lock:
            for child in self._roster.children:
                self._keep_deadlines(child, now)
                self._recycle(child)
                if now > self._leave_at:
                    child.kill()
            stalled = [child for child in self._roster.children if child.stops_reading(now)]
            stranded = [] if self._draining else self._roster.stranded(now)
            late = self._roster.waited_too_long(now)
        for child in stalled:
            self._crash(child, "which does not read", f"{len(child.outgoing):,} bytes wait")
        self.submit(stranded)
        self._release(late)

    def _spawn(self) -> None:
        child = HandProcess(self._options.python, self._settings, self._environment)
        with self._roster.lock:
            self._roster.join(child)
            if self._stopping:
                # It joined after `stop` or `kill` had gone through the hands.
                child.kill()
        self._selector.register(child.link, selectors.EVENT_READ, child)
        self._selector.register(child.end.fd, selectors.EVENT_READ, child)

    def _watch_writers(self) -> None:
        with self._roster.lock:
            for child in self._roster.children:
                if child.link.fileno() in self._selector.get_map():
                    writing = selectors.EVENT_WRITE if child.outgoing else 0
                    self._selector.modify(child.link, selectors.EVENT_READ | writing, child)

    def _converse(self, child: HandProcess, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            with self._roster.lock:
                was_full = child.outgoing.full
                child.outgoing.send_more()
            self._watch_writers()
            if was_full and not child.outgoing.full:
                self._report([])  # There is room again.
        for message in child.receive():
            try:
                self._heed(child, message)
            except MalformedMessage as error:
                child.garbled = child.garbled or str(error)
            if child.garbled is not None:
                self._crash(child, "which sent a malformed message", child.garbled[:300])
                break
        if child.deaf or child.garbled is not None:
            child.crash()

    def _crash(self, child: HandProcess, why: str, details: str) -> None:
        """Kill a hand that cannot be used any more; its end is handled as a crash."""
        child.crash()
        self._emit([Troubled(self._worker, f"hand {child.pid}, {why}", details)])

    def _heed(self, child: HandProcess, message: FromHand | Malformed) -> None:
        match message:
            case Done():
                self._collect(child, message.results)
            case Asked():
                self._ask(child, message.question)
            case Malformed():
                self._collect(child, message.results)
                raise MalformedMessage(message.reason)
            case Ready() if not child.ready:
                self._welcome(child, message.introduction)
            case RefusedRuns() if not child.ready:
                if self._refusal != message.reason:
                    sys.stderr.write(message.traceback)  # Once, not once per hand.
                self._refusal = message.reason
            case WorkerHooksCalled():
                self._refusal = self._roster.hooks.called(child, message)
                self._stopping = self._stopping or self._refusal is not None
                self._first.set()
            case _:
                raise MalformedMessage("A hand that is ready introduced itself again.")

    def _collect(self, child: HandProcess, results: Sequence[Result]) -> None:
        reports, again = self._roster.collect_results(child, results)
        self._report_ends(reports)
        self._elsewhere(again)
        if child.reserved and self._roster.attend():
            self._report([])

    def _ask(self, child: HandProcess, asked: Question) -> None:
        slot, number = asked.slot, asked.number

        def answer(ok: bool, payload: Any) -> None:
            with self._roster.lock:
                child.asks -= 1
                child.send(Answer(slot, number, ok, payload))
                backed_up = bool(child.outgoing)
            if backed_up and not self._stopping:
                self._nudge()

        with self._roster.lock:
            child.asks += 1
        if child.asks > ASKS_MAX:
            answer(False, TOO_MANY)
            return
        pass_on(self._asks, child.jobs.get(slot), (asked.verb, asked.payload), answer)

    def _welcome(self, child: HandProcess, intro: Introduction) -> None:
        self._roster.register({task: mode_of(is_async) for task, is_async in intro.tasks.items()})
        self.url, self.schema, self.commands = intro.url, intro.schema, intro.commands
        self.surroundings, self.ignores = intro.provenance, intro.ignores
        self.schedules, self.announced = intro.schedules, intro.announced
        self._roster.wants_finished = intro.wants_finished
        doc = {**self.surroundings, "worker": self._about, "executor": "hand"}
        provenance = provenance_of(doc, intro.memos)
        self._failures = 0
        with self._roster.lock:
            # Hands with equal provenance share one object, so that it is registered once.
            child.provenance = self._provenances.setdefault(provenance.digest, provenance)
            child.ready = True
            begins = self._roster.hooks.admits(child, intro.hooks)
        self._emit([HandStarted(self._worker, child.pid)])
        if begins:
            self._first.set()
        self._report([])  # Nothing has ended, but there is room now.

    # -- Deadlines -------------------------------------------------------------------------------

    def _keep_deadlines(self, child: HandProcess, now: float) -> None:
        for slot, run in list(child.jobs.items()):
            begun = child.board.begun(slot)
            if begun is None:
                continue
            grace = STOP_GRACE_S if child.modes[slot] is TaskMode.ASYNC else 0.0
            if run.timeout_ms is not None and now > begun + run.timeout_ms / 1000 + grace:
                fault = call.timeout_fault(run.timeout_ms, run.attempt, self._worker)
                child.fates.setdefault(slot, Failed(fault))
                child.kill()
            elif now > run.deadline:
                # The database may still accept the release, if it arrives in time.
                self._roster.end_begun(child, slot, Released())
            if now > child.stopping.get(slot, now):
                child.kill()

    def _recycle(self, child: HandProcess) -> None:
        """Retire a hand that has done enough or grown too large; stop it once it is idle."""
        most = self._options.max_rss
        if child.able and not self._stopping:
            child.retiring = most is not None and child.rss > most
        if child.retiring and not child.jobs and not child.dismissed:
            child.dismissed = True
            child.send(Stop())

    # -- Ends of hands ---------------------------------------------------------------------------

    def _resolve_crash(self, child: HandProcess) -> None:
        self._converse(child, 0)
        code = child.process.wait()
        self._read_late(child)
        ooms, self._ooms = self._ooms, oom_kills()
        memory = code == -9 and not child.killed and self._ooms > ooms
        death = ExitReason(code, child.killed, memory)
        self._selector.unregister(child.link)
        self._selector.unregister(child.end.fd)
        verdict = take_leave(self._roster, child, death, worker=self._worker)
        child.close()
        end_orphans(child.mark)
        if child.jobs or child.finished or not (death.ours and self._stopping):
            # An idle hand of a worker that could not start is not worth an event.
            self._emit([HandEnded(self._worker, child.pid, death.reason)])
        self._mourn(child, death.reason)
        self._report_ends([(child.jobs[slot], end) for slot, end in verdict.outcomes.items()])
        self._elsewhere([child.jobs[slot] for slot in verdict.elsewhere])

    def _read_late(self, child: HandProcess) -> None:
        """Collect the results that a dead hand had ready but could not send."""
        if child.garbled is not None:
            return
        try:
            self._collect(child, child.results.left(child.jobs))
        except GARBLED:
            return  # A task has overwritten the shared memory; none of the results is trusted.

    def _elsewhere(self, runs: Sequence[Leased]) -> None:
        """Resubmit runs whose leases still hold, unless draining; release the others."""
        live = [] if self._draining else [run for run in runs if run.deadline > self._clock()]
        self.submit(live)
        self._release([run for run in runs if run not in live])

    def _mourn(self, child: HandProcess, reason: str) -> None:
        if child.ready and not self._roster.hooks.awaits(child):
            return
        # It ended before it had imported the app: wait longer each time before the next try.
        self._failures += 1
        self._respawn_at = self._clock() + min(0.1 * 2**self._failures, RESPAWN_MAX_S)
        if not self._first.is_set():
            self._refusal = self._refusal or f"A hand {reason} before it was ready."
            self._stopping = True
            self._first.set()

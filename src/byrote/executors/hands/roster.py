# SPDX-License-Identifier: MIT
"""Records which hand has which run; guarded by one lock.

A submitted run is in its hand's `jobs` until it is reported, taken back, or lost with the hand. The
board shows which runs have begun; only the others can be taken back.
"""

import threading
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from byrote.core.outcome import Cancelled, Outcome
from byrote.core.ports.executor import Capacity, Clock
from byrote.core.run import Leased
from byrote.core.verdict import Judged
from byrote.executors.capacity import CapacityPlanner
from byrote.executors.hands.hooks import HandHooks
from byrote.executors.hands.messages import CancelJobs, Concurrency, FinishedRuns, Work
from byrote.executors.hands.options import HandOptions
from byrote.executors.hands.placement import Placement, used_by
from byrote.executors.hands.process import HandProcess
from byrote.executors.hands.quarantine import Quarantine
from byrote.executors.hands.waiting import WaitingRuns
from byrote.executors.runtime import call
from byrote.executors.runtime.job import (
    DeclinedResult,
    Result,
    TaskMode,
    none_of_each,
)
from byrote.executors.runtime.output import inherit
from byrote.executors.selector_loop import Outcomes
from byrote.executors.shared.messages import GARBLED

PATIENCE_S = 1.0
"""How long a run may wait behind others in a hand before it is given back for other workers."""
SLOW_S = 0.05
"""A task that has run this long is not worth waiting behind."""
STOP_GRACE_S = 1.0
"""How long an async task may take to heed a cancellation before its hand is killed."""

UNTOLD_MAX = 10_000
"""Settled attempts that are buffered while no hand can receive them."""


class Roster:
    """The hands of a pool and the runs they were given."""

    def __init__(self, options: HandOptions, *, worker: str, clock: Clock) -> None:
        self._options = options
        self._max_tasks = options.max_tasks
        self._worker = worker
        self._clock = clock
        self._tempos = CapacityPlanner(clock, options.buffer_s)
        self._suspects = Quarantine()
        self._waiting = WaitingRuns()
        self._mixed = False
        """Whether the app has tasks of both modes."""
        self._extended = False
        """Whether one mode has used all hands, so that there is one hand more."""
        self.lock = threading.RLock()
        self.children: list[HandProcess] = []
        self.modes: dict[str, TaskMode] = {}
        """The mode of each task."""
        self._untold: deque[tuple[str, str | None]] = deque(maxlen=UNTOLD_MAX)
        self.wants_finished = False
        """Whether the app has an `on_finished` callback."""
        self.hooks = HandHooks()

    def mode(self, run: Leased) -> TaskMode:
        """The mode of a run's task; an unregistered task fails in a sync thread."""
        return self.modes.get(f"{run.task}@{run.version}", TaskMode.SYNC)

    def room(self) -> Capacity:
        """How much may be claimed now, of which tasks."""
        with self.lock:
            live = [child for child in self.children if child.able]
            slots = sum(len(child.free) for child in live)
            running = {k: sum(child.running[k] for child in live) for k in TaskMode}
            at_once = self._placement(live).at_once(self._options.limits)
            room = self._tempos.room(self.modes, running, at_once)
        return room if room.limit <= slots else Capacity(slots, room.tasks, min(room.worth, slots))

    def assign(self, runs: Sequence[Leased]) -> tuple[list[Leased], bool]:
        """Send runs to the least busy hands. Returns the unplaced, and whether a socket is full."""
        now = self._clock()
        counts = none_of_each()
        with self.lock:
            able = [child for child in self.children if child.able]
            dealt: list[list[tuple[Leased, TaskMode]]] = [[] for _ in able]
            placement = self._placement(able)
            homeless: list[Leased] = []
            waiting: list[Leased] = []
            for run in runs:
                if run.losses and (not able or len(self._suspects) < len(able)):
                    self._suspects.add(run, now)
                    continue
                mode = self.mode(run)
                number = placement.choose(mode)
                if number is None:
                    waits = placement.lacks(mode)
                    (waiting if waits else homeless).append(run)
                    continue
                counts[mode] += 1
                dealt[number].append((run, mode))
            given = zip(able, dealt, strict=True)
            batches = {child: child.take(runs, now) for child, runs in given if runs}
            self._tempos.note(counts)
            self._suspects.reserve_hands(self.children, now, self._give, self._fits)
            self._divide()
            for run in waiting:
                self._waiting.add(run, now)
            for child, jobs in batches.items():
                child.send(Work(jobs))
            return homeless, any(child.outgoing for child in batches)

    def collect_results(
        self, child: HandProcess, results: Sequence[Result]
    ) -> tuple[Outcomes, list[Leased]]:
        """Apply a hand's results. Returns outcomes to report, and declined runs to resubmit."""
        reports: Outcomes = []
        again: list[Leased] = []
        counts = none_of_each()
        provenance = child.provenance
        known = self.wants_finished or self.hooks.wants.reports
        with self.lock:
            try:
                for result in results:
                    slot = result.slot
                    if isinstance(result, DeclinedResult):
                        again += self._declined(child, slot)
                        continue
                    # Decode before any change: after a malformed result the run is still in
                    # `jobs`, where the cleanup of the hand finds it.
                    outcome = call.outcome_of(result, child.jobs[slot].attempt, self._worker)
                    counts[child.modes[slot]] += 1
                    run = child.drop(slot)
                    child.free.append(slot)
                    child.finished += 1
                    run.provenance = provenance
                    if known:
                        run.hand = child.pid
                    fate = _fated(child, slot, outcome) if child.fates else outcome
                    if fate is not None:
                        reports.append((run, fate))
            except GARBLED as error:
                child.garbled = f"a result that is none: {error!r}"
            if self._max_tasks is not None and child.finished >= self._max_tasks:
                child.retiring = True
        self._tempos.count(counts)
        return reports, again

    def register(self, modes: Mapping[str, TaskMode]) -> None:
        """Accept runs of the tasks that a hand has found in its app."""
        with self.lock:
            self.modes = {**self.modes, **modes}
            self._mixed = len(set(self.modes.values())) > 1

    def learn(self, task: str) -> None:
        """Accept runs of another task; each hand looks up its mode itself."""
        with self.lock:
            self.register({task: TaskMode.SYNC, **self.modes})

    def send_finished(self, judged: Sequence[Judged], letters: Mapping[str, str]) -> bool:
        """Send settled attempts to their hand or another. Returns whether a socket is full."""
        full = False
        if self.hooks.wants.reports:
            with self.lock:
                full = self.hooks.send_stored(self.children, judged, letters)
        if not self.wants_finished:
            return full
        with self.lock:
            # A hand that is starting reads it when ready; without any hand, the next one gets it.
            staying = [child for child in self.children if not (child.killed or child.dismissed)]
            alive = {child.pid: child for child in staying}
            batches: dict[HandProcess, list[tuple[str, str | None]]] = {}
            for run, _, _ in judged:
                child = alive.get(run.hand) or next(iter(alive.values()), None)
                batch = self._untold if child is None else batches.setdefault(child, [])
                batch.append((run.id, letters.get(run.id)))
            for child, runs in batches.items():
                child.send(FinishedRuns(runs))
            return full or any(child.outgoing for child in batches)

    def join(self, child: HandProcess) -> None:
        """Add a new hand, and send it the settled attempts that no hand has received."""
        with self.lock:
            self.children.append(child)
            if self._untold:
                child.send(FinishedRuns(list(self._untold)))
                self._untold.clear()
            self.hooks.join(child)

    def attend(self) -> bool:
        """Place runs that wait to be alone. Returns whether a hand takes more work than before."""
        with self.lock:
            self._divide()
            now = self._clock()
            if self._waiting:
                runs = self._waiting.runs
                fitting = [run for run in runs if any(self._fits(c, run) for c in self.children)]
                self._waiting.take({id(run) for run in fitting})
                homeless, _ = self.assign(fitting)
                for run in homeless:
                    self._waiting.add(run, now)
            return self._suspects.reserve_hands(self.children, now, self._give, self._fits)

    @property
    def missing(self) -> int:
        """How many hands are to be started."""
        with self.lock:
            staying = sum(not child.retiring for child in self.children)
            return self._options.hands + self._extended - staying

    def _placement(self, able: Sequence[HandProcess]) -> Placement:
        # Reserved hands take no other run, but count as hands of the mode they execute.
        kept = [child for child in self.children if child.reserved and not child.retiring]
        return Placement(
            able,
            mixed=self._mixed,
            hands=self._options.hands,
            concurrency=self._options.concurrency,
            kept=kept,
        )

    def _fits(self, child: HandProcess, run: Leased) -> bool:
        able = [child for child in self.children if child.able]
        return not self._mixed or self._placement(able).may_take(child, self.mode(run))

    def _divide(self) -> None:
        """Divide `concurrency` among the hands with async tasks; note if one mode has all hands."""
        if not self._mixed:
            return
        staying = [child for child in self.children if child.ready and not child.retiring]
        uses = {mode: used_by(staying, mode) for mode in TaskMode}
        self._extended = self._extended or max(uses.values()) >= self._options.hands
        among = max(uses[TaskMode.ASYNC], 1)
        for child in staying:
            if child.running[TaskMode.ASYNC] and child.async_hands != among:
                child.async_hands = among
                child.send(Concurrency(-(-self._options.concurrency // among), among))

    def _give(self, child: HandProcess, run: Leased) -> None:
        child.send(Work(child.take([(run, self.mode(run))], self._clock())))

    def _declined(self, child: HandProcess, slot: int) -> list[Leased]:
        if slot not in child.jobs and slot not in child.revoked:
            raise LookupError(f"slot {slot!r} was declined, but not taken")
        child.free.append(slot)
        child.revoked.discard(slot)
        if slot not in child.jobs:
            return []
        # Both sides saw each other: the supervisor left it to the hand, and the hand declined it.
        return [child.drop(slot)]

    def take_back(self, child: HandProcess, slots: Iterable[int]) -> list[Leased]:
        """Remove and return the runs of these slots that had not begun."""
        back = []
        for slot in slots:
            if slot not in child.revoked and child.board.take_back(slot):
                child.revoked.add(slot)
                back.append(child.drop(slot))
        return back

    def stranded(self, now: float) -> list[Leased]:
        """Runs that wait behind a slow one while another hand is free; the caller's again."""
        threads = self._options.threads
        full = [child for child in self.children if child.running[TaskMode.SYNC] > threads]
        able = [child for child in self.children if child.able]
        if not full or not self._placement(able).has_idle(TaskMode.SYNC):
            return []
        return [run for child in full for run in self.take_back(child, child.unbegun(now - SLOW_S))]

    def waited_too_long(self, now: float) -> list[Leased]:
        """Remove and return runs that wait here while another worker might be free."""
        return [
            run
            for child in self.children
            for run in self.take_back(child, child.unbegun(now - PATIENCE_S))
        ] + self._waiting.take_late(now)

    def take_back_all(self) -> list[Leased]:
        """Every run that has not begun."""
        with self.lock:
            back = [
                run for child in self.children for run in self.take_back(child, list(child.jobs))
            ]
            return back + self._suspects.take() + self._waiting.take()

    def end(self, runs: Collection[Leased], fate: Outcome | None) -> Outcomes:
        """Stop these attempts. Returns the outcomes of those that had not begun."""
        reports: Outcomes = []
        wanted = {id(run) for run in runs}
        with self.lock:
            unbegun = self._suspects.take(wanted) + self._waiting.take(wanted)
            reports += [(run, fate) for run in unbegun if fate is not None]
            for child in self.children:
                for slot in [slot for slot, run in child.jobs.items() if id(run) in wanted]:
                    back = self.take_back(child, [slot])
                    if not back:
                        self.end_begun(child, slot, fate)
                    elif fate is not None:
                        reports.append((back[0], fate))
        return reports

    def end_begun(self, child: HandProcess, slot: int, fate: Outcome | None) -> None:
        """Stop a running attempt: cancel an async one, kill the hand of a sync one."""
        if slot in child.stopping:
            return
        child.fates[slot] = fate
        if child.modes[slot] is TaskMode.ASYNC:
            child.stopping[slot] = self._clock() + STOP_GRACE_S
            child.send(CancelJobs([slot]))
        else:
            child.kill()


def _fated(child: HandProcess, slot: int, outcome: Outcome) -> Outcome | None:
    """The outcome to report for an attempt of a hand with runs to be stopped; None for nothing.

    An attempt that was stopped gets the outcome it was stopped with. One that ended by itself just
    before keeps its own outcome, unless nothing is to be reported.
    """
    fate = child.fates.pop(slot, outcome)
    if fate is None:
        return None
    return inherit(fate, outcome) if isinstance(outcome, Cancelled) else outcome

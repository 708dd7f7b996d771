# SPDX-License-Identifier: MIT
"""Housekeeping: whichever worker finds a duty due does it. All are idempotent, set-based.

Promoting, ticking and sweeping are urgent: runs wait for them. They come first in each turn, and
between the steps of every other duty, so that a long prune or archive does not delay them.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from byrote.core import events, unserved
from byrote.core.errors import StoreRefused
from byrote.core.ports.replies import Archived
from byrote.core.ports.store import MaintenancePort
from byrote.core.schedule.schedule import Schedule
from byrote.worker.asks import artifacts
from byrote.worker.context import WorkerContext
from byrote.worker.upkeep.archiver import START, Archiver
from byrote.worker.upkeep.event_counter import EventCounter
from byrote.worker.upkeep.live_output import OutputWatcher
from byrote.worker.upkeep.scheduler import Scheduler

EVERY = {
    "promote": timedelta(milliseconds=200),
    "beat": timedelta(milliseconds=500),
    "sweep": timedelta(milliseconds=500),
    "archive": timedelta(seconds=1),
    "stats": timedelta(seconds=1),
    "unserved": timedelta(seconds=10),
    "depths": timedelta(minutes=10),
    "partition": timedelta(hours=1),
    "prune": timedelta(minutes=10),
    "artifacts": timedelta(minutes=10),
}
URGENT = frozenset({"promote", "beat", "sweep"})
"""Duties that runs wait for."""
LEAST = {"sweep": EVERY["sweep"]}
"""Duties of a worker without housekeeping: reclaim expired leases only."""
CHAINED = {"chain": timedelta(seconds=1)}
"""The additional duty if the log is chained."""
TICK_S = 0.25
REFUSED_S = 3.0
"""The pause while the store refuses even to list the duties that are due."""
PROMOTE_MAX = 1_000
SWEEP_MAX = 1_000
FORGET_STEP = 5_000
FAIL_STEP = 500
CHAIN_STEP = 1_000
ARCHIVE_BUSY_S = 0.05
ARCHIVE_IDLE_S = 0.5
"""How much of each second goes to looking for what can be archived, beside work and otherwise."""


class Maintenance:
    """Does the duties, on its own thread and connection."""

    def __init__(
        self,
        duties: MaintenancePort,
        context: WorkerContext,
        *,
        idle: Callable[[], bool],
        watch: OutputWatcher | None = None,
        every: Mapping[str, timedelta] = EVERY,
        schedules: Sequence[Schedule] = (),
    ) -> None:
        self._duties = duties
        self._every = every
        self._context = context
        self._idle = idle
        self._watch = watch
        self._urgent = {duty: pause for duty, pause in every.items() if duty in URGENT}
        self._urgent_at = 0.0
        self._archivist = Archiver(self._archive_step, context.clock)
        self._beat = Scheduler(duties, context, schedules=schedules)
        self._counter = EventCounter(duties, context.clock, keep_up=self._keep_up, idle=idle)
        self._stopped = threading.Event()
        self._refused: set[str] = set()
        """The last refusal of the store: logged once when it begins and once when it ends."""
        self._next_due_s: float | None = None

    def stop(self) -> None:
        """Stop doing duties."""
        self._stopped.set()

    def announce(self) -> None:
        """Store the schedules of the worker's app, before it claims: it may not run for long."""
        self._try("schedules", self._beat.announce)

    def run(self) -> None:
        """Do due duties until stopped."""
        while not self._stopped.wait(self._pause()):
            self._try("duties", self.turn)

    def turn(self) -> None:
        """Do the duties that are due now."""
        self._next_due_s = None
        if self._watch is not None:
            self._try("watch", self._watch.serve)
        due = self._duties.due(worker=self._context.worker, every=self._every)
        self._urgent_at = self._context.clock() + TICK_S
        for duty in sorted(due, key=lambda duty: duty.name not in URGENT):
            self._try(f"duty {duty.name}", self._do, duty.name, duty.cursor)

    def _keep_up(self) -> None:
        """Do the urgent duties that have become due during a long one."""
        if self._context.clock() < self._urgent_at:
            return
        self._urgent_at = self._context.clock() + TICK_S
        for duty in self._duties.due(worker=self._context.worker, every=self._urgent):
            self._try(f"duty {duty.name}", self._do, duty.name, duty.cursor)

    def _try(self, about: str, act: Callable[..., None], *args: str | None) -> None:
        try:
            act(*args)
        except StoreRefused as error:
            # A duty that fails is due again in a moment; the others must not wait for it.
            if about not in self._refused:
                self._refused.add(about)
                self._context.emit([events.Troubled(self._context.worker, about, str(error))])
        else:
            if about in self._refused:
                self._refused.discard(about)
                self._context.emit([events.Recovered(self._context.worker, about)])

    def _pause(self) -> float:
        if "duties" in self._refused:
            return REFUSED_S
        tick = TICK_S * (0.75 + 0.5 * self._context.jitter())
        # A run that becomes due before the next tick is promoted on time, not at the tick.
        return tick if self._next_due_s is None else max(min(tick, self._next_due_s), 0.001)

    def _do(self, duty: str, cursor: str | None) -> None:
        """Do one duty; cursors are those of the duties that have one."""
        deeds: dict[str, Callable[[], None]] = {
            "promote": self._promote,
            "beat": self._beat.turn,
            "sweep": self._sweep,
            "stats": lambda: self._counter.turn(cursor),
            "depths": self._counter.request_recount,
            "unserved": self._unserved,
            "archive": lambda: self._archive(cursor or START),
            "partition": self._duties.partition,
            "prune": self._prune,
            "chain": self._chain,
            "artifacts": lambda: self._prune_artifacts(cursor),
        }
        deeds[duty]()

    def _prune(self) -> None:
        self._duties.prune()
        self._duties.prune_stats()
        self._forget()

    def _chain(self) -> None:
        while not self._stopped.is_set():
            if self._duties.chain(limit=CHAIN_STEP) < CHAIN_STEP:
                return
            self._keep_up()

    def _forget(self) -> None:
        while not self._stopped.is_set():
            if self._duties.forget(limit=FORGET_STEP) < FORGET_STEP:
                return
            self._keep_up()

    def _prune_artifacts(self, cursor: str | None) -> None:
        deadline = self._context.clock() + ARCHIVE_BUSY_S
        reached = artifacts.prune(
            self._duties, cursor, going_on=lambda: self._context.clock() < deadline
        )
        self._duties.bookmark("artifacts", reached)

    def _promote(self) -> None:
        while True:
            promotion = self._duties.promote(limit=PROMOTE_MAX)
            if promotion.promoted:
                self._context.emit([events.Promoted(promotion.promoted)])
            if promotion.promoted < PROMOTE_MAX:
                self._next_due_s = promotion.next_due_s
                return

    def _sweep(self) -> None:
        while not self._stopped.is_set():
            swept = self._duties.sweep(limit=SWEEP_MAX)
            if swept:
                self._context.emit(
                    [events.Lost(row.id, row.status, row.attempt, row.worker) for row in swept]
                )
            if len(swept) < SWEEP_MAX:
                return

    def _archive_step(self, after: str, limit: int) -> Archived:
        self._keep_up()
        return self._duties.archive(after=after, limit=limit)

    def _unserved(self) -> None:
        fresh = self._duties.note_unserved()
        if fresh:
            self._context.emit(
                [events.Unserved(one.queue, one.key, one.nearest, one.runs) for one in fresh]
            )
        while not self._stopped.is_set():
            ended = self._duties.fail_unserved(limit=FAIL_STEP)
            self._context.emit(
                [
                    events.Failed(run.id, run.task, run.queue, run.attempt, error=unserved.FAULT)
                    for run in ended
                ]
            )
            if len(ended) < FAIL_STEP:
                return

    def _archive(self, cursor: str) -> None:
        patience_s = ARCHIVE_IDLE_S if self._idle() else ARCHIVE_BUSY_S
        self._duties.bookmark("archive", self._archivist.turn(cursor, patience_s=patience_s))

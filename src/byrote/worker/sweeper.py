# SPDX-License-Identifier: MIT
"""Housekeeping: whichever worker finds a duty due does it. All are idempotent, set-based."""

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from byrote.core import event
from byrote.core.errors import StoreRefused
from byrote.core.ports import Duties
from byrote.core.schedule import Schedule
from byrote.worker import artifacts
from byrote.worker.archivist import START, Archivist
from byrote.worker.beat import Beat
from byrote.worker.means import Means
from byrote.worker.watch import Watch

EVERY = {
    "promote": timedelta(milliseconds=200),
    "beat": timedelta(milliseconds=500),
    "sweep": timedelta(seconds=1),
    "archive": timedelta(seconds=1),
    "partition": timedelta(hours=1),
    "prune": timedelta(minutes=10),
    "artifacts": timedelta(minutes=10),
}
LEAST = {"sweep": EVERY["sweep"]}
"""What even a worker that must leave everything as it is has to do: its own lost leases return."""
CHAINED = {"chain": timedelta(seconds=1)}
"""What a worker does besides, if the log is to be chained."""
TICK_S = 0.25
PROMOTE_MAX = 1_000
FORGET_STEP = 5_000
CHAIN_STEP = 1_000
ARCHIVE_BUSY_S = 0.05
ARCHIVE_IDLE_S = 0.5
"""How much of each second goes to looking for what can be archived, beside work and otherwise."""


class Sweeper:
    """Does the duties, on a thread and a line of its own."""

    def __init__(
        self,
        duties: Duties,
        means: Means,
        *,
        idle: Callable[[], bool],
        watch: Watch | None = None,
        every: Mapping[str, timedelta] = EVERY,
        schedules: Sequence[Schedule] = (),
    ) -> None:
        self._duties = duties
        self._every = every
        self._means = means
        self._idle = idle
        self._watch = watch
        self._archivist = Archivist(
            lambda after, limit: duties.archive(after=after, limit=limit), means.clock
        )
        self._beat = Beat(duties, means, schedules=schedules)
        self._stopped = threading.Event()
        self._next_due_s: float | None = None

    def stop(self) -> None:
        """Do no more duties."""
        self._stopped.set()

    def announce(self) -> None:
        """Keep the schedules of the worker's app, before it claims: it may not be here for long."""
        self._try("schedules", self._beat.announce)

    def run(self) -> None:
        """Do what is due until stopped."""
        while not self._stopped.wait(self._pause()):
            self._next_due_s = None
            if self._watch is not None:
                self._try("watch", self._watch.serve)
            for duty in self._duties.due(worker=self._means.worker, every=self._every):
                self._try(f"duty {duty.name}", self._do, duty.name, duty.cursor)

    def _try(self, about: str, act: Callable[..., None], *args: str | None) -> None:
        try:
            act(*args)
        except StoreRefused as error:
            # A duty that fails is somebody's again in a moment; the others must not wait for it.
            self._means.emit([event.Troubled(self._means.worker, about, str(error))])

    def _pause(self) -> float:
        tick = TICK_S * (0.75 + 0.5 * self._means.chance())
        # A run that becomes due before the next tick is promoted on time, not at the tick.
        return tick if self._next_due_s is None else max(min(tick, self._next_due_s), 0.001)

    def _do(self, duty: str, cursor: str | None) -> None:
        match duty:
            case "promote":
                self._promote()
            case "beat":
                self._beat.turn()
            case "sweep":
                self._sweep()
            case "archive":
                self._archive(cursor or START)
            case "partition":
                self._duties.partition()
            case "prune":
                self._duties.prune()
                self._forget()
            case "chain":
                self._chain()
            case "artifacts":
                self._prune_artifacts(cursor)

    def _chain(self) -> None:
        while not self._stopped.is_set():
            if self._duties.chain(limit=CHAIN_STEP) < CHAIN_STEP:
                return

    def _forget(self) -> None:
        while not self._stopped.is_set():
            if self._duties.forget(limit=FORGET_STEP) < FORGET_STEP:
                return

    def _prune_artifacts(self, cursor: str | None) -> None:
        deadline = self._means.clock() + ARCHIVE_BUSY_S
        reached = artifacts.prune(
            self._duties, cursor, going_on=lambda: self._means.clock() < deadline
        )
        self._duties.bookmark("artifacts", reached)

    def _promote(self) -> None:
        while True:
            promotion = self._duties.promote(limit=PROMOTE_MAX)
            if promotion.promoted:
                self._means.emit([event.Promoted(promotion.promoted)])
            if promotion.promoted < PROMOTE_MAX:
                self._next_due_s = promotion.next_due_s
                return

    def _sweep(self) -> None:
        swept = self._duties.sweep()
        if swept:
            self._means.emit(
                [event.Swept(row.id, row.status, row.attempt, row.worker) for row in swept]
            )

    def _archive(self, cursor: str) -> None:
        patience_s = ARCHIVE_IDLE_S if self._idle() else ARCHIVE_BUSY_S
        self._duties.bookmark("archive", self._archivist.turn(cursor, patience_s=patience_s))

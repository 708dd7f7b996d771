# SPDX-License-Identifier: MIT
"""Renews leases, and sends the heartbeats of the worker.

The database's clock decides whether a lease holds. This process trusts a lease until `deadline`, a
monotonic time taken *before* the claim or renewal was sent, with a margin. A lease is renewed when
a third of it has passed, all that need it in one statement.

A renewal that is not answered in time changes nothing here: the executor ends the attempt at its
deadline, before the database would lease the run to another worker. A run that is missing from the
answer is lost: its attempt ends now. A run whose row another transaction has locked is neither
renewed nor lost: it is renewed at the next tick, until its deadline. The lease of an attempt that
has ended is renewed until its end is written; if its row stays locked, it is given up when its
lease is over, so that no stop or drain waits for it.

No task code runs in this process, so no task can keep this thread from its work.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from byrote.core import events
from byrote.core.errors import BadOption
from byrote.core.ports.executor import Executor
from byrote.core.ports.replies import LOCKED, NAME_SILENT_FOR, NameHeld
from byrote.core.ports.store import RegistryPort
from byrote.core.run import Leased
from byrote.worker.claiming.claimer import DEADLINE_MARGIN
from byrote.worker.context import WorkerContext
from byrote.worker.leases import HeldLeases

HEARTBEAT_S = 10.0
TICK_MAX_S = 1.0
NAME_TICK_S = 1.0
"""How often a worker whose id another process has tries to register."""
BATCH_MAX = 1_000


class LeaseKeeper:
    """Renews leases and sends heartbeats, on its own thread and connection."""

    def __init__(
        self,
        registry: RegistryPort,
        executor: Executor,
        *,
        held: HeldLeases,
        lease_for: timedelta,
        context: WorkerContext,
        description: Callable[[], Mapping[str, Any]],
        load: Callable[[], dict[str, Any]],
        on_contested: Callable[[Sequence[str]], None] = lambda _keys: None,
    ) -> None:
        self._registry = registry
        self._executor = executor
        self._held = held
        self._lease_for = lease_for
        self._lease_s = lease_for.total_seconds()
        self._context = context
        self._description = description
        self._load = load
        self._on_contested = on_contested
        """Called with the default aliases that are names of tasks of other live workers."""
        self._wake = threading.Event()
        self._look_at_all = False
        self._stopped = False
        self._heartbeat_at = 0.0
        self._announced: tuple[Sequence[str], Sequence[str]] = ((), ())

    def register(self) -> None:
        """Announce the worker, before anything is claimed.

        If another process has the name, waits until it has been silent for long enough, as after a
        `kill -9`; raises BadOption if it turns out to be alive.
        """
        first = holder = self._announce()
        if first is None:
            return
        self._context.emit([events.Troubled(self._context.worker, "worker id", _wait_for(first))])
        while holder is not None and not self._stopped:
            if holder.seen_at != first.seen_at:
                raise BadOption(_taken(holder))
            self._wake.wait(NAME_TICK_S)
            holder = self._announce()
        if holder is None:
            self._context.emit([events.Recovered(self._context.worker, "worker id")])

    def _announce(self) -> NameHeld | None:
        description = self._description()
        registered = self._registry.register(description)
        if isinstance(registered, NameHeld):
            self._heartbeat_at = self._context.clock() + HEARTBEAT_S
            return registered
        self._announced = _served(description)
        if description["aliases"]:
            self._on_contested(registered)
            if _served(description := self._description()) != self._announced:
                self._registry.register(description)
                self._announced = _served(description)
        self._heartbeat_at = self._context.clock() + HEARTBEAT_S
        return None

    def leave(self) -> None:
        """Take the worker off the list."""
        self._registry.deregister(self._context.worker)

    def look(self) -> None:
        """One of the runs was cancelled: renew all of them now, to learn which.

        Or a worker registered a task whose name is a default alias here: a heartbeat reads which.
        """
        self._look_at_all = True
        self._heartbeat_at = 0.0
        self._wake.set()

    def stop(self) -> None:
        """Stop renewing."""
        self._stopped = True
        self._wake.set()

    def run(self) -> None:
        """Renew until stopped, then take the worker off the list."""
        tick = min(self._lease_s / 6, TICK_MAX_S)
        while not self._stopped:
            self._wake.wait(tick)
            self._wake.clear()
            self._renew()
            if self._context.clock() >= self._heartbeat_at:
                self._beat()
        self.leave()

    def _renew(self) -> None:
        everything, self._look_at_all = self._look_at_all, False
        horizon = self._lease_s * DEADLINE_MARGIN
        now = self._context.clock()
        due = self._held.ageing(
            now + (horizon + 1.0 if everything else horizon * 2 / 3), unwritten=now + horizon / 2
        )
        for start in range(0, len(due), BATCH_MAX):
            self._renew_some(due[start : start + BATCH_MAX])

    def _renew_some(self, due: Sequence[Leased]) -> None:
        before = self._context.clock()
        answer = self._registry.renew(due, lease_for=self._lease_for)
        for run in due:
            if answer.get(run.id, LOCKED) != LOCKED:
                run.deadline = before + self._lease_s * DEADLINE_MARGIN
        # A lease that was finished during the renewal is not lost: it is no longer held.
        lost = [run for run in due if run in self._held and self._is_lost(run, answer)]
        if lost:
            self._lose(lost)
        unwanted = [run for run in due if answer.get(run.id) is True]
        if unwanted:
            self._executor.cancel(unwanted)

    def _is_lost(self, run: Leased, answer: Mapping[str, bool | str]) -> bool:
        if not run.settling:
            return run.id not in answer
        # The end of a locked run is not accepted once the database's lease is over.
        margin = self._lease_s * (1 - DEADLINE_MARGIN)
        return answer.get(run.id) == LOCKED and self._context.clock() > run.deadline + margin

    def _lose(self, lost: Sequence[Leased]) -> None:
        self._held.drop(lost)
        self._executor.forget(lost)
        self._context.emit(
            [
                events.LeaseRefused(run.id, run.task, run.queue, run.attempt, self._context.worker)
                for run in lost
            ]
        )

    def _beat(self) -> None:
        self._heartbeat_at = self._context.clock() + HEARTBEAT_S
        contested = self._registry.heartbeat(self._context.worker, self._load())
        if contested is not None:
            self._on_contested(contested)
        if contested is None or _served(self._description()) != self._announced:
            # It serves more by now, or was forgotten while it was cut off. If another process has
            # its name by now, it goes on without an entry in the list: leases have their tokens.
            self._announce()


def _wait_for(holder: NameHeld) -> str:
    return (
        f"a worker on {holder.host}, process {holder.pid}, has this id; starting when it has sent "
        f"no heartbeat for {NAME_SILENT_FOR.total_seconds():g} s"
    )


def _taken(holder: NameHeld) -> str:
    return (
        f"The worker id {holder.worker!r} belongs to a live worker on {holder.host}, process "
        f"{holder.pid}. Stop that one, or start this one with another --worker-id or none."
    )


def _served(description: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[str]]:
    return description["queues"], description["tasks"]

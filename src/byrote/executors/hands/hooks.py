# SPDX-License-Identifier: MIT
"""What a supervisor does for the hooks of an app, which only its hands can call.

Stored verdicts go to the hand that executed the attempt; if it has ended, or never reported the
attempt, to any other. The hooks of the worker itself are called in one hand: at the start in the
first one that is ready, before the worker claims a run, and at the stop in that hand if it is still
there, else in another.
"""

import sys
from collections import deque
from collections.abc import Mapping, Sequence

from byrote.core.ports.hooks import HookWants, StoredAttempt, stored_attempt
from byrote.core.verdict import Judged
from byrote.executors.hands.messages import StartWorker, Stop, StoredAttempts, WorkerHooksCalled
from byrote.executors.hands.process import HandProcess

UNSENT_MAX = 10_000
"""Stored attempts that are buffered while no hand can receive them."""


class HandHooks:
    """The hooks of one pool's app. Guarded by the roster's lock."""

    def __init__(self) -> None:
        self.wants = HookWants()
        self._unsent: deque[StoredAttempt] = deque(maxlen=UNSENT_MAX)
        self._chosen: HandProcess | None = None
        """The hand that calls the hooks of the worker."""
        self._called = False
        """Whether the hooks of the worker's start have been called."""

    # -- The worker's start and stop -------------------------------------------------------------

    def admits(self, child: HandProcess, wants: HookWants) -> bool:
        """Whether the worker may begin now that `child` is ready; if not, it calls hooks first."""
        self.wants = wants
        if self._called or not wants.worker_start:
            self._chosen = self._chosen or child
            return True
        if self._chosen is None:
            self._chosen = child
            child.send(StartWorker())
        return False

    def awaits(self, child: HandProcess) -> bool:
        """Whether the worker waits for the hooks that this hand is calling."""
        return child is self._chosen and self.wants.worker_start and not self._called

    def called(self, child: HandProcess, reply: WorkerHooksCalled) -> str | None:
        """Take a hand's reply; returns why the worker cannot begin, if a hook raised."""
        if not self.awaits(child):
            return None
        self._called = True
        sys.stderr.write(reply.traceback)
        return reply.refusal or None

    def send_stop(self, children: Sequence[HandProcess]) -> None:
        """Send `Stop` to all hands; one of them calls the hooks of the worker's stop."""
        staying = [child for child in children if child.ready and not child.dismissed]
        last = self._chosen if self._chosen in staying else next(iter(staying), None)
        for child in children:
            child.send(Stop(worker=child is last and self.wants.worker_stop))

    # -- Stored verdicts -------------------------------------------------------------------------

    def send_stored(
        self, children: Sequence[HandProcess], judged: Sequence[Judged], letters: Mapping[str, str]
    ) -> bool:
        """Send attempts that were stored to hands. Returns whether a socket is full."""
        staying = [child for child in children if not (child.killed or child.dismissed)]
        alive = {child.pid: child for child in staying}
        batches: dict[HandProcess, list[StoredAttempt]] = {}
        for run, outcome, _ in judged:
            stored = stored_attempt(run, outcome, letters.get(run.id), self.wants)
            if stored is not None:
                child = alive.get(run.hand) or next(iter(staying), None)
                batch = self._unsent if child is None else batches.setdefault(child, [])
                batch.append(stored)
        for child, attempts in batches.items():
            child.send(StoredAttempts(attempts))
        return any(child.outgoing for child in batches)

    def join(self, child: HandProcess) -> None:
        """Send a new hand the stored attempts that no hand has received."""
        if self._unsent:
            child.send(StoredAttempts(list(self._unsent)))
            self._unsent.clear()

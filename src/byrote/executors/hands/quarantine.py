# SPDX-License-Identifier: MIT
"""Runs that were lost before are executed alone in a hand for a while, if there are few of them.

A run that went down with a hand or a worker may have been the cause. Alone in a hand, the next
crash proves it, and no other run is lost with it.

Most lost runs are innocent, though: a worker that is killed loses everything it held. So being
alone must not delay runs. A suspect waits for an empty hand for `PATIENCE_S` at most, then it
shares one. The only hand of a worker is kept for one suspect for `ALONE_S` at most, then it takes
more work again; one of several is kept until the suspect ends. Of many suspects that come at once
only as many wait as there are hands; the others share from the start. Executing them one after the
other would delay the last of them by as long as all the others take.
"""

from collections import deque
from collections.abc import Callable, Collection, Sequence

from byrote.core.run import Leased
from byrote.executors.hands.process import HandProcess

PATIENCE_S = 1.0
"""How long a suspect waits for a hand to empty before it shares one."""
ALONE_S = 0.5
"""How long a suspect may keep all other runs from starting; a poison pill dies sooner than that."""


class Quarantine:
    """Suspects waiting for a hand to themselves. Guarded by the roster's lock.

    As many wait as there are hands; while no hand takes work, those of the last claim or crash.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[float, Leased]] = deque()
        self._kept: HandProcess | None = None
        """The hand that is kept empty for a suspect, or executes one alone."""
        self._alone_since: float | None = None
        """When a suspect began in the kept hand; None while that has to empty first."""

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, run: Leased, now: float) -> None:
        """Add a run that waits for an empty hand."""
        self._waiting.append((now, run))

    def reserve_hands(
        self,
        children: Sequence[HandProcess],
        now: float,
        give: Callable[[HandProcess, Leased], None],
    ) -> bool:
        """Place suspects where possible. Returns whether a hand takes more work than before."""
        lifted = self._lift(children, now)
        while self._waiting:
            since, run = self._waiting[0]
            child = self._empty(children, now) or self._shared(children, now - since)
            if child is None:
                break
            self._waiting.popleft()
            give(child, run)
        return lifted

    def _lift(self, children: Sequence[HandProcess], now: float) -> bool:
        """Let the reserved hand take other work again, once it need not be reserved any longer."""
        kept = self._kept
        if kept is None:
            return False
        if kept in children and not kept.killed:
            if self._alone_since is None:
                wanted = bool(self._waiting)
            else:
                spare = any(child.able for child in children)
                wanted = bool(kept.jobs) and (spare or now - self._alone_since < ALONE_S)
            if wanted:
                return False
        kept.reserved, self._kept, self._alone_since = False, None, None
        return True

    def _empty(self, children: Sequence[HandProcess], now: float) -> HandProcess | None:
        """The reserved hand once it is empty; reserves the least busy hand if there is none."""
        if self._kept is None:
            able = [child for child in children if child.able]
            chosen = min(able, key=lambda child: len(child.jobs), default=None)
            if chosen is None or (chosen.jobs and len(able) == 1):
                return None
            chosen.reserved, self._kept = True, chosen
        kept = self._kept
        if self._alone_since is not None or kept.jobs or not (kept.free and kept.takes_runs):
            return None
        self._alone_since = now
        return kept

    @staticmethod
    def _shared(children: Sequence[HandProcess], waited_s: float) -> HandProcess | None:
        """A hand with other runs, for a suspect that has waited long enough."""
        if waited_s < PATIENCE_S:
            return None
        free = [child for child in children if child.able and child.free]
        return min(free, key=lambda child: len(child.jobs), default=None)

    def take(self, wanted: Collection[int] | None = None) -> list[Leased]:
        """Remove and return waiting runs: all, or those whose `id()` is in `wanted`."""
        taken = [run for _, run in self._waiting if wanted is None or id(run) in wanted]
        gone = {id(run) for run in taken}
        self._waiting = deque(entry for entry in self._waiting if id(entry[1]) not in gone)
        return taken

# SPDX-License-Identifier: MIT
"""Runs that went down with a hand before, nobody knows whose fault it was, get a hand of their own.

There the next crash proves who the culprit is: at most one loss is unexplained, and neighbours are
left in peace.
"""

from collections import deque
from collections.abc import Callable, Collection, Sequence

from byrote.core.run import Leased
from byrote.executors.child import Child

PATIENCE_S = 10.0
"""How long a suspect waits for a hand to empty before it has to share one."""


class Suspects:
    """Suspects waiting for a hand to themselves. Guarded by the roster's lock."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[float, Leased]] = deque()

    def add(self, run: Leased, now: float) -> None:
        """Let a run wait for a hand of its own."""
        self._waiting.append((now, run))

    def settle(
        self, children: Sequence[Child], now: float, give: Callable[[Child, Leased], None]
    ) -> None:
        """Reserve the least busy hand while somebody waits, and use it once it is empty."""
        for child in children:
            child.reserved = child.reserved and bool(self._waiting or child.jobs)
        if not self._waiting:
            return
        chosen = next((child for child in children if child.reserved), None)
        if chosen is None:
            free = [child for child in children if child.able]
            if not free:
                return
            chosen = min(free, key=lambda child: len(child.jobs))
            chosen.reserved = True
        since, run = self._waiting[0]
        if not chosen.jobs or now - since > PATIENCE_S:
            self._waiting.popleft()
            give(chosen, run)

    def take(self, wanted: Collection[int] | None = None) -> list[Leased]:
        """Take back those that wait: all, or those whose identity is wanted."""
        taken = [run for _, run in self._waiting if wanted is None or id(run) in wanted]
        gone = {id(run) for run in taken}
        self._waiting = deque(entry for entry in self._waiting if id(entry[1]) not in gone)
        return taken

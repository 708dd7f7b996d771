# SPDX-License-Identifier: MIT
"""How much work to keep in hand: as much as was lately done in a few milliseconds, and no more.

No-op tasks need hundreds of runs in flight or the database round trips show; tasks that take a
minute need none, or other workers would stand idle while their work waits here. One rule serves
both.
"""

from collections.abc import Mapping

from byrote.core.ports import Clock, Room

BUFFER_S = 0.05
WINDOW_S = 0.02
BUFFER_MAX = 1_500
WORTH_MAX = 250
"""Room for this many runs is always worth a claim; batches gain nothing beyond."""


class Tempo:
    """Completions per second, smoothed, of one kind of task."""

    def __init__(self, now: float) -> None:
        self._since = now
        self._count = 0
        self._rate = 0.0

    def count(self, done: int, now: float) -> None:
        """Note that some were done."""
        self._count += done
        elapsed = now - self._since
        if elapsed >= WINDOW_S:
            self._rate = (self._rate + self._count / elapsed) / 2
            self._since, self._count = now, 0

    @property
    def buffer(self) -> int:
        """How many runs beyond those executing are worth holding."""
        return min(int(self._rate * BUFFER_S), BUFFER_MAX)


class Tempos:
    """The tempo of sync tasks and of async ones, and the room they leave."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._of = {False: Tempo(clock()), True: Tempo(clock())}

    def count(self, done: Mapping[bool, int]) -> None:
        """Note how many of each kind were done."""
        now = self._clock()
        for kind, count in done.items():
            self._of[kind].count(count, now)

    def buffer(self, kind: bool) -> int:
        """How many runs of a kind beyond those executing are worth holding."""
        return self._of[kind].buffer

    def room(self, kinds: Mapping[str, bool], free: Mapping[bool, int], slots: int) -> Room:
        """What may be claimed: of all tasks when both kinds have room, else of those that have."""
        open_kinds = [kind for kind in free if free[kind] > 0]
        if not open_kinds or slots < 1:
            return Room(0, ())
        tasks = [task for task, kind in kinds.items() if kind in open_kinds]
        limit = min(slots, *(free[kind] for kind in open_kinds))
        worth = min(self.buffer(kind) for kind in open_kinds) // 4
        return Room(limit, tasks, max(min(worth, WORTH_MAX), 1))

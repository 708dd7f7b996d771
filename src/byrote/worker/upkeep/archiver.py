# SPDX-License-Identifier: MIT
"""Moves runs that ended long ago from the hot table to the archive, as fast as others end.

Ids are in the order of time, so what has stayed long enough is one stretch, behind a front
that moves on as time does. The front is followed as far as it yields much, whatever else the worker
has to do: what has ended must not pile up. Besides, and a little at a time, the whole table is
walked: that finds the front at first, and later what it has passed by, such as runs of queues that
keep theirs for longer.
"""

from collections.abc import Callable

from byrote.core.ports.executor import Clock
from byrote.core.ports.replies import Archived

START = "00000000-0000-0000-0000-000000000000"
STEP = 1_000
MANY = STEP // 10
"""A step that moves this many runs is followed by another one at once."""
FRONT_S = 0.4
"""How long the front is followed in one turn; other duties wait meanwhile."""
REST_S = 60.0
"""How long after the end of the table it is walked again; young runs stay there for a while."""

type Archive = Callable[[str, int], Archived]
"""Moves the old ones among this many runs after a cursor."""


class Archiver:
    """Records where the front is."""

    def __init__(self, archive: Archive, clock: Clock) -> None:
        self._archive = archive
        self._clock = clock
        self._front = START
        self._rested_at = clock()

    def turn(self, cursor: str, *, patience_s: float) -> str:
        """Follow the front, and walk on from the cursor for `seconds`; returns where to walk on."""
        followed = self._follow(self._clock() + FRONT_S)
        if self._clock() < self._rested_at:
            return cursor
        deadline = self._clock() + patience_s
        while self._clock() < deadline:
            step = self._archive(cursor, STEP)
            # At the end of the table the walk begins again.
            cursor = step.reached or START
            # A front that yields runs stays: what the walk finds elsewhere is another queue's.
            if not followed and step.archived >= MANY:
                self._front = step.last or self._front
            if step.reached is None:
                self._rested_at = self._clock() + REST_S
                break
        return cursor

    def _follow(self, deadline: float) -> bool:
        """Move the runs at the front; returns whether there were many."""
        followed = False
        while self._clock() < deadline:
            step = self._archive(self._front, STEP)
            if step.archived < MANY:
                break
            self._front, followed = step.last or self._front, True
        return followed

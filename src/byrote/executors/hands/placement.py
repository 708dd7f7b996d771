# SPDX-License-Identifier: MIT
"""Decides which hand takes a run: sync and async tasks do not share a hand.

The only way to stop a sync task is to kill its hand. An async task in the same hand would be
executed again from its first line. So in an app with tasks of both modes, a hand takes only the
mode that it is executing; an idle hand takes either.

- One mode uses at most `hands` hands. As soon as one uses them all, the pool starts one hand more
  (`Roster.missing`), which is left to the other mode. So neither mode waits for the other to end,
  and sync tasks have as many hands as in an app without async tasks.
- Sync tasks spread over idle hands. Async tasks take another hand only when theirs execute as many
  as `concurrency` allows: a hundred that wait for the network need one event loop, and each hand
  they take is lost for sync tasks. Quick ones exceed it by their buffer and so use every core.
- `concurrency` is divided among the hands that execute async tasks; each receives its part when
  their number changes. If it is wrong: until the tasks above the new limit have ended, a worker
  executes more than `concurrency`, at most by the buffer that it holds.
- A run whose mode has no hand waits for the hand that is starting (`waiting.py`), and no more runs
  of that mode are claimed.

In an app with tasks of one mode, every hand takes every run.
"""

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from byrote.executors.runtime.job import PerMode, TaskMode


class PlaceableHand(Protocol):
    """The part of a hand that decides what it takes."""

    @property
    def running(self) -> Mapping[TaskMode, int]:
        """How many runs of each mode it has."""

    @property
    def free(self) -> Collection[int]:
        """Its free slots."""


def used_by(hands: Iterable[PlaceableHand], mode: TaskMode) -> int:
    """The number of hands that have runs of a mode."""
    return sum(hand.running[mode] > 0 for hand in hands)


class Placement:
    """Chooses among the hands that take work (`able`) for the runs of one claim.

    `kept` are hands that take none because a suspect executes alone in them.
    """

    def __init__(
        self,
        able: Sequence[PlaceableHand],
        *,
        mixed: bool,
        hands: int,
        concurrency: int,
        kept: Sequence[PlaceableHand] = (),
    ) -> None:
        self._able = able
        self._mixed = mixed
        self._concurrency = concurrency
        self._free = [len(hand.free) for hand in able]
        self._most = {mode: hands - used_by(kept, mode) for mode in TaskMode}
        """How many of these hands a mode may use."""
        self._idle = [n for n, hand in enumerate(able) if mixed and not any(hand.running.values())]
        self._loads = {
            mode: [
                (hand.running[mode], number)
                for number, hand in enumerate(able)
                if hand.running[mode] or not mixed
            ]
            for mode in TaskMode
        }
        """For each mode, a heap of the hands that take it: (its runs, index)."""
        for loads in self._loads.values():
            heapq.heapify(loads)

    def choose(self, mode: TaskMode) -> int | None:
        """Assign one run of this mode. Returns the index of its hand, or None if there is none."""
        loads = self._loads[mode]
        if self._idle and self._expands(mode):
            heapq.heappush(loads, (0, self._idle.pop(0)))
        if not loads:
            return None
        load, number = loads[0]
        if not self._free[number]:
            return None
        self._free[number] -= 1
        heapq.heapreplace(loads, (load + 1, number))
        return number

    def _expands(self, mode: TaskMode) -> bool:
        """Whether this mode takes an idle hand instead of one that it has."""
        loads = self._loads[mode]
        full = 1 if mode is TaskMode.SYNC else -(-self._concurrency // max(len(loads), 1))
        return len(loads) < self._most[mode] and (not loads or loads[0][0] >= full)

    def may_take(self, hand: PlaceableHand, mode: TaskMode) -> bool:
        """Whether a hand may take a run of this mode now."""
        numbers = [number for _, number in self._loads[mode]]
        if len(numbers) < self._most[mode]:
            numbers += self._idle
        return any(self._able[number] is hand for number in numbers)

    def lacks(self, mode: TaskMode) -> bool:
        """Whether there are hands, but none of them takes this mode."""
        return bool(self._able) and not self._loads[mode] and not self.has_idle(mode)

    def has_idle(self, mode: TaskMode) -> bool:
        """Whether a hand without runs of this mode may take one."""
        loads = self._loads[mode]
        if self._mixed:
            return bool(self._idle) and len(loads) < self._most[mode]
        return bool(loads) and loads[0][0] == 0

    def at_once(self, limits: PerMode) -> PerMode:
        """How many tasks of each mode these hands may execute; `limits` are those of one hand."""
        if not self._mixed:
            return {mode: limits[mode] * len(self._able) for mode in TaskMode}
        counts = {
            mode: len(loads) + max(min(len(self._idle), self._most[mode] - len(loads)), 0)
            for mode, loads in self._loads.items()
        }
        return {
            TaskMode.SYNC: limits[TaskMode.SYNC] * counts[TaskMode.SYNC],
            TaskMode.ASYNC: self._concurrency if counts[TaskMode.ASYNC] else 0,
        }

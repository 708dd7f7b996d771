# SPDX-License-Identifier: MIT
"""How much work to buffer: as much as was recently done in a tenth of a second, and no more.

No-op tasks need hundreds of runs in flight to hide the database round trips; tasks that take a
minute need none, or other workers would be idle while runs wait here. One rule covers both.
`worker/claiming/claim_size.py` describes how the rules of a claim's size work together.
"""

from collections.abc import Mapping

from byrote.core.ports.executor import Capacity, Clock
from byrote.executors.runtime.job import TaskMode

BUFFER_S = 0.1
WINDOW_S = 0.02
STALE_S = 0.1
"""A rate that nothing has confirmed for this long fades."""
BUFFER_MAX = 1_800
WORTH_MAX = 250
"""Room for this many runs is always worth a claim; larger batches gain nothing."""
SHARE_MIN = 0.0005
COMMANDS_MIN = 0.01
"""A share of commands below this counts as zero."""
SEEN_MAX = 19
"""Runs that a share is made of: older ones are forgotten."""


class Throughput:
    """Completions per second, smoothed, of the tasks of one mode."""

    def __init__(self, now: float) -> None:
        self._since = now
        self._count = 0
        self._rate = 0.0

    def count(self, done: int, now: float) -> None:
        """Record completions."""
        self._count += done
        elapsed = now - self._since
        if elapsed >= WINDOW_S:
            self._rate = (self._rate + self._count / elapsed) / 2
            self._since, self._count = now, 0

    def buffer(self, now: float, buffer_s: float = BUFFER_S) -> int:
        """How many runs beyond those executing are worth holding."""
        faded = min(STALE_S / max(now - self._since, STALE_S), 1.0)
        return min(int(self._rate * faded * buffer_s), BUFFER_MAX)


class CapacityPlanner:
    """The tempo of sync tasks and of async ones, and the room they leave."""

    def __init__(self, clock: Clock, buffer_s: float = BUFFER_S) -> None:
        self._clock = clock
        self._buffer_s = buffer_s
        self._of = {mode: Throughput(clock()) for mode in TaskMode}
        self._share = dict.fromkeys(TaskMode, 0.5)
        self._seen = 1

    def count(self, done: Mapping[TaskMode, int]) -> None:
        """Record how many tasks of each mode were completed."""
        now = self._clock()
        for mode, count in done.items():
            self._of[mode].count(count, now)

    def note(self, claimed: Mapping[TaskMode, int]) -> None:
        """Learn the modes of waiting tasks from a claim: the next one will be similar."""
        total = sum(claimed.values())
        # The first few count for much, or a worker would claim one by one at first.
        weight = min(total / max(self._seen + total, 1), 0.5)
        self._seen = min(self._seen + total, SEEN_MAX)
        for mode, count in claimed.items():
            self._share[mode] += (count / max(total, 1) - self._share[mode]) * weight

    def room(
        self,
        modes: Mapping[str, TaskMode],
        running: Mapping[TaskMode, int],
        at_once: Mapping[TaskMode, int],
    ) -> Capacity:
        """What may be claimed: of all tasks if both modes have room, else of those that have.

        `at_once`: how many tasks of each mode can be executed at once; 0 if no hand takes them.
        """
        now = self._clock()
        served = {mode for mode in set(modes.values()) if at_once[mode]}
        buffer = {mode: self._of[mode].buffer(now, self._buffer_s) for mode in served}
        whole = {mode: at_once[mode] + buffer[mode] for mode in served}
        free = {mode: whole[mode] - running[mode] for mode in served if whole[mode] > running[mode]}
        if not free:
            return Capacity(0, ())
        tasks = [task for task, mode in modes.items() if mode in free]
        worth = min(max(buffer[mode] for mode in free) // 4, WORTH_MAX, self._fit(whole) // 4)
        # Claim half the buffer at a time, so that claiming overlaps with execution.
        limit = min(self._fit(free), max(self._fit(whole) // 2, 1))
        return Capacity(limit, tasks, max(min(worth, limit), 1))

    def _fit(self, free: Mapping[TaskMode, int]) -> int:
        # Room for two sync runs must not keep a hundred async ones out, if that is what comes.
        # If a claim returns other modes than expected, runs that cannot begin are released.
        each = [count / max(self._share[mode], SHARE_MIN) for mode, count in free.items()]
        return max(int(min(sum(free.values()), *each)), 1)


class CommandShare:
    """The share of commands among recently claimed runs, which bounds a claim for both.

    Hands take hundreds of runs at a time, commands a few. A claim is one statement for both, so it
    may return more commands than have room; those are released at once, uncharged.
    """

    def __init__(self) -> None:
        self._share = 0.0

    def note(self, commands: int, claimed: int) -> None:
        """Learn from a claim how many of its runs were commands."""
        share = commands / claimed if claimed else 0.0
        self._share = share if share > self._share else (self._share + share) / 2
        self._share = self._share if self._share > COMMANDS_MIN else 0.0

    def room(self, others: Capacity, commands: Capacity) -> Capacity:
        """Return the capacity for tasks and commands, or for one of them if the other is full."""
        if commands.limit < 1:
            return others
        if others.limit < others.worth:
            return commands
        limit = others.limit
        if self._share:
            limit = min(limit, max(int(commands.limit / self._share), 1))
        return Capacity(limit, [*others.tasks, *commands.tasks], min(others.worth, limit))

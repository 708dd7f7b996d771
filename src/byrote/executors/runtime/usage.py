# SPDX-License-Identifier: MIT
"""Resource usage of an attempt: wall time, CPU time, and the peak memory of its hand.

Reported for attempts of a millisecond or more; storing it for all would cost small ones too much.
Reading the CPU time from the kernel may take longer than a small task, so a thread reads it at most
every half millisecond, which is the precision of the figure. For shorter steps of coroutines the
wall time counts. Threads and processes that a task starts itself are not counted.
"""

import threading
from time import perf_counter_ns, thread_time_ns

from byrote.executors.runtime.output import current_scope
from byrote.system.memory import rss_max_bytes

REPORTED_NS = 1_000_000
STALE_NS = 500_000


class _Thread(threading.local):
    """When a thread last read its usage, and the CPU time it had used by then."""

    def __init__(self) -> None:
        self.last = (0, 0)


_thread = _Thread()


def begin() -> tuple[int, int]:
    """The time and this thread's usage at the start of an attempt or of a step of it."""
    now, last = perf_counter_ns(), _thread.last
    if now - last[0] > STALE_NS:
        _thread.last = last = (now, thread_time_ns())
    return now, last[1]


def end(begun: tuple[int, int]) -> None:
    """End an attempt that never waited: store its usage for its result."""
    wall_ns = perf_counter_ns() - begun[0]
    if wall_ns >= REPORTED_NS:
        _record(wall_ns, _used(begun[1], wall_ns))


class SteppedUsage:
    """The usage of an attempt that waits at times while others run."""

    __slots__ = ("_begun", "_cpu_ns", "_since")

    def __init__(self, begun: tuple[int, int]) -> None:
        self._begun = self._since = begun
        self._cpu_ns = 0

    def pause(self) -> None:
        """The attempt begins to wait."""
        self._cpu_ns += self._of_step()

    def resume(self) -> None:
        """The attempt continues."""
        self._since = begin()

    def end(self) -> None:
        """The attempt has ended with this step: store its usage for its result."""
        wall_ns = perf_counter_ns() - self._begun[0]
        if wall_ns >= REPORTED_NS:
            _record(wall_ns, self._cpu_ns + self._of_step())

    def _of_step(self) -> int:
        took_ns = perf_counter_ns() - self._since[0]
        return took_ns if took_ns < STALE_NS else _used(self._since[1], took_ns)


def _used(before_ns: int, wall_ns: int) -> int:
    used_ns = thread_time_ns()
    _thread.last = (perf_counter_ns(), used_ns)
    return min(used_ns - before_ns, wall_ns)


def _record(wall_ns: int, cpu_ns: int) -> None:
    scope = current_scope()
    if scope is not None:
        usage = {"wall_us": wall_ns // 1000, "cpu_us": cpu_ns // 1000, "rss_max": rss_max_bytes()}
        scope.keep("usage", lambda: usage)

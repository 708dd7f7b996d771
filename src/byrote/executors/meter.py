# SPDX-License-Identifier: MIT
"""What an attempt uses: wall time, CPU time, and how large its hand has been.

Told of attempts that took a millisecond or more; storing it of all would cost small ones too much.
Asking the kernel for CPU time may take longer than a small task, so a thread asks no more often
than each half millisecond: that is how exact it is. Steps of coroutines that are shorter count as
the time they took. What a task has done by threads or processes of its own is not counted.
"""

import resource
import threading
from time import perf_counter_ns, thread_time_ns

from byrote.executors.output import current_tray

TOLD_NS = 1_000_000
STALE_NS = 500_000


class _Thread(threading.local):
    """What a thread had used when it last asked."""

    asked_ns = 0
    used_ns = 0


_thread = _Thread()


def begin() -> tuple[int, int]:
    """The time, and what this thread has used, as an attempt or a step of it begins."""
    now = perf_counter_ns()
    if now - _thread.asked_ns > STALE_NS:
        _thread.asked_ns, _thread.used_ns = now, thread_time_ns()
    return now, _thread.used_ns


def end(begun: tuple[int, int]) -> None:
    """An attempt that was one piece has ended: keep what it used, for its result."""
    wall_ns = perf_counter_ns() - begun[0]
    if wall_ns >= TOLD_NS:
        _tell(wall_ns, _used(begun[1], wall_ns))


def of_step(begun: tuple[int, int]) -> int:
    """Nanoseconds of CPU time that a step of a coroutine has used."""
    took_ns = perf_counter_ns() - begun[0]
    return took_ns if took_ns < STALE_NS else _used(begun[1], took_ns)


def end_steps(begun: tuple[int, int], step: tuple[int, int], cpu_ns: int) -> None:
    """An attempt of many steps has ended with this one, after others that used so much."""
    wall_ns = perf_counter_ns() - begun[0]
    if wall_ns >= TOLD_NS:
        _tell(wall_ns, cpu_ns + of_step(step))


def _used(before_ns: int, wall_ns: int) -> int:
    used_ns = thread_time_ns()
    _thread.asked_ns, _thread.used_ns = perf_counter_ns(), used_ns
    return min(used_ns - before_ns, wall_ns)


def _tell(wall_ns: int, cpu_ns: int) -> None:
    tray = current_tray()
    if tray is not None:
        rss_max = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        usage = {"wall_us": wall_ns // 1000, "cpu_us": cpu_ns // 1000, "rss_max": rss_max}
        tray.keep("usage", lambda: usage)

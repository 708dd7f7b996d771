# SPDX-License-Identifier: MIT
"""CPU time of whole process trees, read from /proc."""

import os
from collections.abc import Iterable
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Fields of /proc/<pid>/stat after the parenthesised name; see proc(5).
_PARENT, _UTIME, _CUTIME_END = 1, 11, 15


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()


def parent(pid: int) -> int | None:
    """The parent of a process, or None when there is no such process here."""
    fields = _stat(pid)
    return int(fields[_PARENT]) if fields else None


def seconds(pids: Iterable[int]) -> float:
    """CPU seconds of these processes, their living children, and their children that ended."""
    here = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    stats = {pid: _stat(pid) for pid in here}
    wanted = set(pids)
    children = {pid for pid, fields in stats.items() if fields and int(fields[_PARENT]) in wanted}
    # utime, stime, and cutime, cstime: what reaped children used, so a closed backend still counts.
    ticks = sum(
        sum(int(field) for field in stats[pid][_UTIME:_CUTIME_END])
        for pid in wanted | children
        if stats.get(pid)
    )
    return ticks / _TICKS_PER_SECOND

# SPDX-License-Identifier: MIT
"""CPU time of PostgreSQL, read from /proc when it runs on this machine."""

import os
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Fields of /proc/<pid>/stat after the parenthesised name; see proc(5).
_PARENT, _UTIME, _CSTIME = 1, 11, 14
_TRIES = 20


def postmaster_of(backend: int) -> int | None:
    """The parent of a backend; None if the process is not on this machine or is not a backend."""
    command = Path(f"/proc/{backend}/cmdline")
    try:
        if not command.read_bytes().startswith(b"postgres:"):
            return None
    except OSError:
        return None
    fields = _stat(backend)
    return int(fields[_PARENT]) if fields else None


def seconds(postmaster: int | None) -> float | None:
    """CPU seconds of the server so far, with ended backends; None if it runs elsewhere."""
    if postmaster is None:
        return None
    # A backend that is reaped between the two looks at the postmaster would be missing, or counted
    # twice; then the sum is read again.
    for _ in range(_TRIES):
        own = _ticks(postmaster)
        total = own + sum(_ticks(child) for child in _children(postmaster))
        if _ticks(postmaster) == own:
            break
    return total / _TICKS_PER_SECOND


def _children(parent: int) -> list[int]:
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    return [pid for pid in pids if (fields := _stat(pid)) and int(fields[_PARENT]) == parent]


def _ticks(pid: int) -> int:
    """Return utime, stime and those of reaped children, cutime and cstime."""
    return sum(int(field) for field in _stat(pid)[_UTIME : _CSTIME + 1])


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []

# SPDX-License-Identifier: MIT
"""CPU time of PostgreSQL, read from /proc when it runs on this machine."""

import os
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Fields of /proc/<pid>/stat after the parenthesised name; see proc(5).
_PARENT, _UTIME, _CSTIME = 1, 11, 14


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
    ticks = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        fields = _stat(int(entry.name))
        if fields and (int(entry.name) == postmaster or int(fields[_PARENT]) == postmaster):
            # utime, stime, and those of reaped children: cutime, cstime.
            ticks += sum(int(field) for field in fields[_UTIME : _CSTIME + 1])
    return ticks / _TICKS_PER_SECOND


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []

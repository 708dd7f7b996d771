# SPDX-License-Identifier: MIT
"""Kills the processes that a task started and left behind, even if they began a new session.

The supervisor adopts every orphan among its descendants (a subreaper), so the processes that a hand
leaves behind become its children. The hand's mark in their environment identifies them.

`commands/warden.py` also scans /proc for its children, with its own code, for two reasons. It must
not import Byrote, nor pathlib, to start fast and stay small. And it kills every child it has, while
the supervisor has other children (hands, the launcher) and may only kill those with the mark.
"""

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path

MARK = "BYROTE_HAND"
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of every orphan among this process's descendants."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_orphans(mark: str) -> None:
    """Kill this process's children that carry the mark, and whatever they leave in turn."""
    wanted = f"{MARK}={mark}".encode()
    for _ in range(100):
        found = [pid for pid in _children() if wanted in _environment(pid)]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _children() -> list[int]:
    """Pids of this process's children, by the parent each process names in its `stat`."""
    here = os.getpid()
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        # The command's name, in parentheses, may hold anything; the parent is the second field on.
        with contextlib.suppress(OSError, IndexError, ValueError):
            if int(stat.read_bytes().rpartition(b")")[2].split()[1]) == here:
                found.append(int(stat.parent.name))
    return found


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []

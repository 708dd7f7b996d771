# SPDX-License-Identifier: MIT
"""Kills the processes that a task started and left behind, even if they began a new session.

The supervisor adopts every orphan among its descendants (a subreaper), so the processes that a hand
leaves behind become its children. The hand's mark in their environment identifies them.
Where the system has no subreapers (macOS), only the hand's process group is killed.

`commands/warden.py` also scans /proc for its children, with its own code, for two reasons. It must
not import Byrote, nor pathlib, to start fast and stay small. And it kills every child it has, while
the supervisor has other children (hands, the launcher) and may only kill those with the mark.
"""

import contextlib
import os
import signal

from byrote.system.processes import children, environment

MARK = "BYROTE_HAND"


def end_orphans(mark: str) -> None:
    """Kill this process's children that carry the mark, and the processes they leave behind."""
    wanted = f"{MARK}={mark}".encode()
    for _ in range(100):
        found = [pid for pid in children() if wanted in environment(pid)]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)

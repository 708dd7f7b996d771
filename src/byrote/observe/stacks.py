# SPDX-License-Identifier: MIT
"""Stacks of all threads of this process, to find out why it hangs."""

import sys
import threading
import traceback


def stacks() -> str:
    """Return the stack of every thread, the last call last.

    Taken with the interpreter's lock held: `faulthandler` walks the frames of running threads
    without it, and what they do meanwhile can spoil its report or the process.
    """
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = []
    for ident, frame in sys._current_frames().items():  # noqa: SLF001 -- documented, if underscored.
        parts.append(f"Thread {names.get(ident, 'of no name')} (most recent call last):\n")
        parts.extend(traceback.format_stack(frame))
    return "".join(parts)

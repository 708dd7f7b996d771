# SPDX-License-Identifier: MIT
"""Removes what Linux has and macOS does not, from every Python process with this on its path.

`PYTHONPATH=tests/system/mac_like pytest …` runs tests on a simulated Mac: no eventfd, memfd, pidfd,
prctl, pipe2 or O_PATH, and no /proc.
"""

import builtins
import ctypes
import os
import signal
import sys
from typing import Any

GONE = (
    *("eventfd", "eventfd_read", "eventfd_write", "memfd_create", "pidfd_open", "pipe2"),
    *("O_PATH", "sched_getaffinity", "splice", "posix_fadvise", "epoll", "timerfd_create"),
)

for _name in GONE:
    if hasattr(os, _name):
        delattr(os, _name)
if hasattr(signal, "pidfd_send_signal"):
    del signal.pidfd_send_signal


class _Library(ctypes.CDLL):
    def __getattr__(self, name: str) -> Any:
        if name == "prctl":
            raise AttributeError(name)
        return super().__getattr__(name)


ctypes.CDLL = _Library  # type: ignore[misc]


def _without_proc(call: Any) -> Any:
    def checked(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
        if not isinstance(path, int):
            text = os.fspath(path)
            text = text if isinstance(text, str) else os.fsdecode(text)
            if text == "/proc" or text.startswith("/proc/"):
                raise FileNotFoundError(2, "No such file or directory", text)
        return call(path, *args, **kwargs)

    return checked


for _name in ("open", "stat", "lstat", "readlink", "scandir", "listdir"):
    setattr(os, _name, _without_proc(getattr(os, _name)))
builtins.open = _without_proc(builtins.open)
_io = sys.modules.get("io") or __import__("io")
_io.open = _without_proc(_io.open)

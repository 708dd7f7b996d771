# SPDX-License-Identifier: MIT
"""Removes what Linux has and macOS does not, from every Python process with this on its path.

`PYTHONPATH=tests/system/mac_like pytest …` runs tests on a simulated Mac: without the names in
`linux_only.py` (eventfd, memfd, pidfd, epoll, pipe2, …), prctl, /proc and cgroups.
"""

import builtins
import ctypes
import importlib
import os
import sys
from typing import Any

from linux_only import LINUX_ONLY

for _module_name, _names in LINUX_ONLY.items():
    _module = importlib.import_module(_module_name)
    for _name in _names:
        if hasattr(_module, _name):
            delattr(_module, _name)
# `selectors`, imported later, has no EpollSelector then; one that was imported would keep it.
assert "selectors" not in sys.modules or not hasattr(sys.modules["selectors"], "EpollSelector")


class _Library(ctypes.CDLL):
    def __getattr__(self, name: str) -> Any:
        if name == "prctl":
            raise AttributeError(name)
        return super().__getattr__(name)


ctypes.CDLL = _Library  # type: ignore[misc]


GONE = ("/proc", "/sys/fs/cgroup")


def _without_proc(call: Any) -> Any:
    def checked(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
        if not isinstance(path, int):
            text = os.fspath(path)
            text = text if isinstance(text, str) else os.fsdecode(text)
            if text in GONE or text.startswith(tuple(f"{folder}/" for folder in GONE)):
                raise FileNotFoundError(2, "No such file or directory", text)
        return call(path, *args, **kwargs)

    return checked


for _name in ("open", "stat", "lstat", "readlink", "scandir", "listdir"):
    setattr(os, _name, _without_proc(getattr(os, _name)))
builtins.open = _without_proc(builtins.open)
_io = sys.modules.get("io") or __import__("io")
_io.open = _without_proc(_io.open)

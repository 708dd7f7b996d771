# SPDX-License-Identifier: MIT
"""File locks that the kernel drops when their holder dies.

`start.lock` is held alone, and only while a server is started, joined, left or stopped.
`use.lock` is shared by every user of the server: it is a count that the kernel keeps, so a
process killed with -9 is no longer counted. It is tried alone only by a holder of `start.lock`,
because turning a shared lock into an exclusive one is not atomic.

A lock belongs to the opened file, not to the process. A child made by a plain fork() (no exec)
therefore keeps its parent's lock until it ends too: it counts as a user of the server, and if it
ends last, no process is left to stop the server; the next user adopts it. Children made by exec
(subprocess, multiprocessing's spawn) do not inherit it. Use a local file system: over NFS, flock
may not be kept between machines.
"""

import os
from pathlib import Path
from typing import Self


class Lock:
    """A lock on a file, held until it is closed or its process ends."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def close(self) -> None:
        """Release the lock; a second call does nothing."""
        # Closed, not LOCK_UN: unlocking would also take it from a forked child.
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def hold(path: Path) -> Lock:
    """Wait for the lock and hold it alone."""
    return _locked(path, alone=True)


def share(path: Path) -> Lock:
    """Wait for the lock and hold it together with others."""
    return _locked(path, alone=False)


def try_hold(path: Path) -> Lock | None:
    """Hold the lock alone if it is free, else return None at once."""
    try:
        return _locked(path, alone=True, wait=False)
    except BlockingIOError:
        return None


def _locked(path: Path, *, alone: bool, wait: bool = True) -> Lock:
    import fcntl  # noqa: PLC0415 -- absent on Windows, where apps without workers import this.

    operation = (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB)
    while True:
        lock = Lock(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        try:
            fcntl.flock(lock.fd, operation)
            current = _is_current(lock.fd, path)
        except BaseException:
            lock.close()
            raise
        if current:
            return lock
        lock.close()


def _is_current(fd: int, path: Path) -> bool:
    """Whether the file was not removed (by destroy) while we waited for it."""
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False

# SPDX-License-Identifier: MIT
"""A descriptor by which one thread wakes another that waits in `select` or `poll`."""

import contextlib
import os
import sys

READ_MAX = 4096
"""Bytes to read from a wake's descriptor to clear it; an eventfd needs 8, a pipe has more."""
_ONE = (1).to_bytes(8, sys.byteorder)


class Wake:
    """An eventfd, or a pipe where the system has none (macOS)."""

    def __init__(self) -> None:
        if hasattr(os, "eventfd"):
            self.fd = self._written = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            return
        self.fd, self._written = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._written, False)

    def set(self) -> None:
        """Make the descriptor readable; any thread may call this."""
        # A pipe that is full is readable already.
        with contextlib.suppress(BlockingIOError):
            os.write(self._written, _ONE)

    def close(self) -> None:
        """Close the descriptors."""
        for fd in {self.fd, self._written}:
            os.close(fd)


def clear(fd: int) -> None:
    """Make the descriptor of a wake unreadable until the next `set`."""
    with contextlib.suppress(BlockingIOError):
        os.read(fd, READ_MAX)

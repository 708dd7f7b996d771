# SPDX-License-Identifier: MIT
"""What a worker process did, in shared memory: how many tasks it started, and when.

One file per worker, one writer each, so nothing is locked. Times are CLOCK_MONOTONIC, which every
process of one machine shares. A note costs a fraction of a microsecond: the task stays a no-op.
"""

import mmap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_COUNT, _FIRST, _SLOTS = 0, 1, 2
_CELL_BYTES = 8


class Ledger:
    """The cells of one worker: tasks started, first start, and a start per numbered task."""

    def __init__(self, cells: memoryview) -> None:
        self._cells = cells

    def tick(self, _number: object) -> None:
        """Note that one more task started."""
        if not self._cells[_COUNT]:
            self._cells[_FIRST] = time.monotonic_ns()
        self._cells[_COUNT] += 1

    def stamp(self, number: str | bytes | int) -> None:
        """Note when the task with this number started."""
        self._cells[_SLOTS + int(number)] = time.monotonic_ns()
        self._cells[_COUNT] += 1

    @property
    def count(self) -> int:
        """Tasks started so far."""
        return int(self._cells[_COUNT])

    @property
    def first_ns(self) -> int:
        """When the first task started, 0 if none has."""
        return int(self._cells[_FIRST])

    def start_ns(self, number: int) -> int:
        """When the task with this number started, 0 if it has not."""
        return int(self._cells[_SLOTS + number])


@contextmanager
def open_ledger(path: Path) -> Iterator[Ledger]:
    """Open the ledger in an existing file."""
    with (
        path.open("r+b") as file,
        mmap.mmap(file.fileno(), 0) as memory,
        memoryview(memory) as data,
        data.cast("Q") as cells,
    ):
        yield Ledger(cells)


def make_ledger(path: Path, slots: int = 0) -> Path:
    """Make an empty ledger file with room for the starts of `slots` numbered tasks."""
    path.write_bytes(bytes(_CELL_BYTES * (_SLOTS + slots)))
    return path

# SPDX-License-Identifier: MIT
"""Shared memory to which a hand writes the result of each attempt before it runs other code.

A result is sent to the supervisor with the next batch. If the hand crashes before that, no result
is lost: the complete ones in this memory are recorded, and their runs are not executed again. A
small result is stored in the cell of its slot, which the supervisor clears when it assigns the slot
to another run; the few larger ones go to a spool. Copying one takes a microsecond.
"""

import mmap
from collections.abc import Mapping

import msgspec

from byrote.core.run import Leased
from byrote.executors.runtime.job import Job, Result
from byrote.executors.shared.board import SLOTS
from byrote.executors.shared.spool import Spool, latest, serial_of
from byrote.system.memory import make_file

CELL = 512
SPOOL_SIZE = 8 * 1024 * 1024
"""More than the largest result and all that its attempt has printed."""
_LENGTH = 4
_CELLS_AT = SLOTS * _LENGTH
"""The lengths of all slots come first, then their cells."""
_SIZE = _CELLS_AT + SLOTS * CELL
_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Result] = msgspec.msgpack.Decoder(Result)


class Results:
    """The results of one hand; both sides map the same memory."""

    def __init__(self, cells_fd: int, spool_fd: int) -> None:
        self._memory = mmap.mmap(cells_fd, _SIZE)
        view = memoryview(self._memory)
        self._lengths = view[:_CELLS_AT].cast("I")
        self._cells = view[_CELLS_AT:]
        self._spool = Spool(spool_fd, SPOOL_SIZE)

    @staticmethod
    def make() -> tuple[int, int]:
        """Descriptors of fresh shared memory, to be passed to the hand."""
        return make_file("results", _SIZE), Spool.make(SPOOL_SIZE)

    def assign(self, slot: int) -> None:
        """Supervisor: a new run is about to be sent into this slot."""
        self._lengths[slot] = 0

    def keep(self, job: Job, result: Result) -> None:
        """Hand: store the result of an attempt."""
        piece = _encode(result)
        length = len(piece)
        if length > CELL:
            self._spool.write(serial_of(job.id, job.attempt), 0, piece, length)
            return
        slot = job.slot
        start = slot * CELL
        self._cells[start : start + length] = piece
        # Last: a cell that has a length is complete.
        self._lengths[slot] = length

    def left(self, jobs: Mapping[int, Leased]) -> list[Result]:
        """Supervisor: results of a dead hand's runs; raises ValueError if one is malformed."""
        large = latest(self._spool.copy())
        found = (
            self._of(slot) or large.get(serial_of(r.shown.id, r.shown.attempt))
            for slot, r in jobs.items()
        )
        results = [_decoder.decode(piece) for piece in found if piece]
        return [result for result in results if result.slot in jobs]

    def _of(self, slot: int) -> bytes:
        start = slot * CELL
        return bytes(self._cells[start : start + min(self._lengths[slot], CELL)])

    def close(self) -> None:
        """Unmap the memory."""
        self._lengths.release()
        self._cells.release()
        self._memory.close()
        self._spool.close()

# SPDX-License-Identifier: MIT
"""Shared memory to which a hand writes the result of each attempt before it runs other code.

A result is sent to the supervisor with the next batch. If the hand crashes before that, no result
is lost: the complete ones in this memory are recorded, and their runs are not executed again. A
small result is stored in the cell of its slot, which the supervisor clears when it assigns the slot
to another run; the few larger ones go to a spool. Copying one takes a microsecond.
"""

import mmap
import os
import struct
from collections.abc import Mapping

import msgspec

from byrote.core.run import Leased
from byrote.executors.runtime.job import Job, Result
from byrote.executors.shared.board import SLOTS
from byrote.executors.shared.spool import Spool, latest, serial_of

CELL = 512
SPOOL_SIZE = 8 * 1024 * 1024
"""More than the largest result and all that its attempt has printed."""
_LENGTH = struct.Struct("<I")
_ROOM = CELL - _LENGTH.size
_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Result] = msgspec.msgpack.Decoder(Result)


class Results:
    """The results of one hand; both sides map the same memory."""

    def __init__(self, cells_fd: int, spool_fd: int) -> None:
        self._cells = mmap.mmap(cells_fd, SLOTS * CELL)
        self._spool = Spool(spool_fd, SPOOL_SIZE)

    @staticmethod
    def make() -> tuple[int, int]:
        """Descriptors of fresh shared memory, to be passed to the hand."""
        cells = os.memfd_create("byrote-results", 0)
        os.ftruncate(cells, SLOTS * CELL)
        return cells, Spool.make(SPOOL_SIZE)

    def assign(self, slot: int) -> None:
        """Supervisor: a new run is about to be sent into this slot."""
        _LENGTH.pack_into(self._cells, slot * CELL, 0)

    def keep(self, job: Job, result: Result) -> None:
        """Hand: an attempt has come to this result."""
        piece = _encode(result)
        if len(piece) > _ROOM:
            self._spool.write(serial_of(job.id, job.attempt), 0, piece, len(piece))
            return
        start = job.slot * CELL
        self._cells[start + _LENGTH.size : start + _LENGTH.size + len(piece)] = piece
        # Last: whatever has a length is whole.
        _LENGTH.pack_into(self._cells, start, len(piece))

    def left(self, jobs: Mapping[int, Leased]) -> list[Result]:
        """Supervisor: results of a dead hand's runs; raises ValueError if one is malformed."""
        large = latest(self._spool.copy())
        found = (
            self._of(slot) or large.get(serial_of(r.id, r.attempt)) for slot, r in jobs.items()
        )
        results = [_decoder.decode(piece) for piece in found if piece]
        return [result for result in results if result.slot in jobs]

    def _of(self, slot: int) -> bytes:
        start = slot * CELL
        length = min(_LENGTH.unpack_from(self._cells, start)[0], _ROOM)
        return self._cells[start + _LENGTH.size : start + _LENGTH.size + length]

    def close(self) -> None:
        """Unmap the memory."""
        self._cells.close()
        self._spool.close()

# SPDX-License-Identifier: MIT
"""Shared memory for the output of a hand, which its supervisor can read after the hand has ended.

A hand buffers the output of its attempts and sends it with their results. A killed hand sends
nothing, and a busy one cannot answer; but all output is in this memory before `print` returns. It
is a ring buffer: new records overwrite the oldest, so that a hand with a thousand attempts needs no
more memory than a hand with one. Nothing is written for tasks that print nothing.

A record is a header (length, stream, serial of the attempt, bytes its stream has printed including
this record) and the bytes, padded to a multiple of eight. `head` and `tail` only increase, and the
records are between them. The hand moves `tail` before it overwrites and `head` after it has
written, so the records between them are complete. Tasks can overwrite this memory: the reader must
accept any content without harm.
"""

import mmap
import os
import struct
import threading
from typing import NamedTuple

from byrote.core.outcome import OUTPUT_MAX, Printing
from byrote.system.memory import make_file

SIZE = 4 * 1024 * 1024
"""More than one attempt can have stored of both its streams."""
_CELLS = struct.Struct("<QQ")
_HEADER = struct.Struct("<IIQQ")
_BASE = 64


def serial_of(run_id: str, attempt: int) -> int:
    """A number for one attempt that no other of the same hand has."""
    return int(run_id[-12:], 16) << 16 | attempt & 0xFFFF


class _Record(NamedTuple):
    stream: int
    serial: int
    total: int
    piece: bytes


class Spool:
    """One hand's spool; both sides map the same memory."""

    def __init__(self, fd: int, size: int = SIZE) -> None:
        self._size = size
        self._memory = mmap.mmap(fd, _BASE + size)
        self._lock = threading.Lock()
        self._open = True

    @staticmethod
    def make(size: int = SIZE) -> int:
        """A descriptor of fresh shared memory, to be passed to the hand."""
        return make_file("spool", _BASE + size)

    # -- The hand's side -------------------------------------------------------------------------

    def belong_to_this_process(self) -> None:
        """Write nothing in processes that a task forks: they have the memory, but not the lock."""
        os.register_at_fork(after_in_child=self._shut)

    def _shut(self) -> None:
        self._open = False

    def write(self, serial: int, stream: int, piece: bytes, total: int) -> None:
        """Store a piece of a stream, which has `total` bytes including it."""
        if not self._open:
            return
        record = _HEADER.pack(len(piece), stream, serial, total) + piece + bytes(-len(piece) % 8)
        if len(record) > self._size:
            return
        with self._lock:
            head, tail = _CELLS.unpack_from(self._memory)
            room = head + len(record) - self._size
            if room > tail:
                while tail < room:
                    length = _HEADER.unpack(self._get(tail, _HEADER.size))[0]
                    tail += _HEADER.size + length + -length % 8
                _CELLS.pack_into(self._memory, 0, head, tail)
            self._put(head, record)
            _CELLS.pack_into(self._memory, 0, head + len(record), tail)

    def _put(self, position: int, data: bytes) -> None:
        offset = position % self._size
        first = min(self._size - offset, len(data))
        self._memory[_BASE + offset : _BASE + offset + first] = data[:first]
        if first < len(data):
            self._memory[_BASE : _BASE + len(data) - first] = data[first:]

    def _get(self, position: int, length: int) -> bytes:
        offset = position % self._size
        first = self._memory[_BASE + offset : _BASE + min(offset + length, self._size)]
        rest = length - len(first)
        return first + self._memory[_BASE : _BASE + rest] if rest else first

    # -- The supervisor's side -------------------------------------------------------------------

    def copy(self) -> bytes:
        """Everything from the oldest record to the newest that is whole."""
        head, tail = _CELLS.unpack_from(self._memory)
        if not 0 <= head - tail <= self._size:
            return b""
        content = self._get(tail, head - tail)
        # Output that the hand has written since may have overwritten it.
        gone = _CELLS.unpack_from(self._memory)[1] - tail
        return content[gone:] if 0 <= gone <= len(content) else b""

    def close(self) -> None:
        """Unmap the memory."""
        self._memory.close()


def latest(content: bytes) -> dict[int, bytes]:
    """The last record of each attempt, by its serial."""
    return {record.serial: record.piece for record in _records(content)}


def printings(content: bytes, limit: int = OUTPUT_MAX) -> dict[int, Printing]:
    """Return the output of attempts by serial: the end of each stream, and its whole size."""
    pieces: dict[int, tuple[list[bytes], list[bytes]]] = {}
    sizes: dict[int, list[int]] = {}
    for record in _records(content):
        pieces.setdefault(record.serial, ([], []))[record.stream].append(record.piece)
        sizes.setdefault(record.serial, [0, 0])[record.stream] = record.total
    return {
        serial: Printing(b"".join(out)[-limit:], b"".join(err)[-limit:], *sizes[serial])
        for serial, (out, err) in pieces.items()
    }


def _records(content: bytes) -> list[_Record]:
    records, start = [], 0
    while start + _HEADER.size <= len(content):
        length, stream, serial, total = _HEADER.unpack_from(content, start)
        end = start + _HEADER.size + length
        if stream > 1 or end > len(content) or total < length:
            break  # Not a valid record: the hand's code has overwritten it.
        records.append(_Record(stream, serial, total, content[start + _HEADER.size : end]))
        start = end + -length % 8
    return records

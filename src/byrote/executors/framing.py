# SPDX-License-Identifier: MIT
"""Length-prefixed MessagePack over a socket: messages between the supervisor and its hands.

To a hand: `["work", [job, …]]`, `["cancel", [slot, …]]`, `["stop"]`,
`["answer", slot, number, ok, payload]`, `["finished", [[run, verdict], …]]`.
From a hand: `["ready", {…}]`, `["refused", reason]`, `["done", [result, …]]`,
`["ask", [slot, number, verb, payload]]`.
`hands/messages.py` and `shared/messages.py` have their types. A job and a result are flat arrays,
see `runtime/job.py`.
"""

from collections.abc import Callable

import msgspec

HEADER = 4
FRAME_MAX = 256 * 1024 * 1024

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def frame(message: object) -> bytes:
    """One message, ready to be sent."""
    body = _encode(message)
    return len(body).to_bytes(HEADER, "big") + body


class Frames[T]:
    """Reassembles messages from the pieces in which they arrive; buffers at most one message."""

    def __init__(self, decode: Callable[[memoryview], T] = _decode) -> None:
        self._decode = decode
        self._buffer = bytearray()

    def feed(self, piece: bytes) -> list[T]:
        """Every message that this piece completes; raises ValueError if one is malformed."""
        self._buffer += piece
        messages, start = [], 0
        while len(self._buffer) - start >= HEADER:
            length = int.from_bytes(self._buffer[start : start + HEADER], "big")
            if length > FRAME_MAX:
                raise ValueError(
                    f"A frame of {length:,} bytes is announced; {FRAME_MAX:,} is the most."
                )
            end = start + HEADER + length
            if len(self._buffer) < end:
                break
            with memoryview(self._buffer) as view:
                messages.append(self._decode(view[start + HEADER : end]))
            start = end
        del self._buffer[:start]
        return messages

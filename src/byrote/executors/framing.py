# SPDX-License-Identifier: MIT
"""Length-prefixed MessagePack over a socket: what the supervisor and its hands say to each other.

To a hand: `["work", [job, …]]`, `["cancel", [slot, …]]`, `["stop"]`,
`["answer", slot, number, ok, payload]`.
From a hand: `["ready", {…}]`, `["done", [result, …]]`, `["ask", [slot, number, verb, payload]]`.
A job and a result are flat arrays, see `engine.py`: fifty of them cost less than one round trip.
"""

from typing import Any

import msgspec

HEADER = 4
FRAME_MAX = 256 * 1024 * 1024

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def frame(message: list[Any]) -> bytes:
    """One message, ready to be sent."""
    body = _encode(message)
    return len(body).to_bytes(HEADER, "big") + body


def body_of(message: list[Any]) -> bytes:
    """One message as it is kept, without its length."""
    return _encode(message)


def unframed(body: bytes) -> list[Any]:
    """The message that `body_of` made; raises one of `words.GARBLED` if it is none."""
    return _decode(body)  # type: ignore[no-any-return]


class Frames:
    """Puts messages together again from whatever pieces arrive."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, piece: bytes) -> list[list[Any]]:
        """Every message that this piece completes."""
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
                messages.append(_decode(view[start + HEADER : end]))
            start = end
        del self._buffer[:start]
        return messages

# SPDX-License-Identifier: MIT
"""Bytes for a hand that its socket has not accepted yet, and when a hand counts as stalled.

The supervisor never waits for a hand: a message that does not fit into the socket waits here. A
hand reads on its event loop, which a task can block, and a stopped process does not read at all.

Bound: while the buffer holds more than `UNSENT_MAX` bytes, the hand gets no more work. What can
still be added is small or limited elsewhere: the batch that crossed the limit, answers to the
`ASKS_MAX` open asks of the hand, and ids of runs it has executed.

Stalled: more than `UNSENT_MAX` bytes wait and the socket has accepted none of them for `STALLED_S`.
The pool kills such a hand and handles it as a crash: the run whose code blocks the event loop is
charged, if the board proves which it is; the others are given back. A hand that is slow but reads
is never stalled, and neither is one with fewer bytes to read: timeouts and leases end its runs.
"""

import socket

UNSENT_MAX = 64 * 1024 * 1024
"""Bytes that may wait for a hand before it gets no more work."""
STALLED_S = 30.0
"""How long a hand with a full buffer may accept nothing before it is killed."""


class SendBuffer:
    """The unsent bytes of one hand. Guarded by the pool's lock."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._unsent = bytearray()
        self._accepted = False
        """Whether the socket has accepted bytes since the last call of `stalled`."""
        self._well_at: float | None = None
        """When the buffer was last seen within its limit, or accepted bytes."""

    def __len__(self) -> int:
        return len(self._unsent)

    @property
    def full(self) -> bool:
        """Whether more bytes wait than `UNSENT_MAX`."""
        return len(self._unsent) > UNSENT_MAX

    def send(self, piece: bytes) -> None:
        """Send what the socket accepts, and buffer the rest."""
        self._unsent += piece
        self.send_more()

    def send_more(self) -> None:
        """Send the rest. A closed socket is not an error here: the pool sees the hand's end."""
        while self._unsent:
            try:
                del self._unsent[: self._link.send(self._unsent)]
            except BlockingIOError:
                return
            except OSError:
                self._unsent.clear()
            self._accepted = True

    def stalled(self, now: float) -> bool:
        """Whether the hand has stopped reading; called at every tick of the pool."""
        # First try to send: a supervisor that was frozen itself must not blame the hand.
        self.send_more()
        if self._accepted or not self.full or self._well_at is None:
            self._accepted, self._well_at = False, now
        return now - self._well_at > STALLED_S

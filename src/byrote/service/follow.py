# SPDX-License-Identifier: MIT
"""Following the log of events without missing one and without reading all of it.

Events become visible in another order than they were numbered in. So the log is read in the order
of transactions, and only up to the oldest one still under way. Only the number has an index; hence
the floor, a number below which everything has been read. It is raised so: a transaction has its id
before it numbers its events; so once every transaction that had begun by some moment has ended and
was read, all numbers that had been given by that moment were, too.
"""

from byrote.store.looking import Bounds, Position

SEQ_MAX = 2**63 - 1
SLACK = 10_000
"""Numbers below the latest at which a reader begins that was not there before."""


def from_now(bounds: Bounds) -> Position:
    """The position of whoever wants only what happens from now on."""
    return Position(str(max(bounds.low - 1, 0)), SEQ_MAX, max(bounds.seq - SLACK, 0))


def written(position: Position) -> str:
    """A position as text."""
    return f"{position.xid}:{position.seq}:{position.floor}"


def read(text: str) -> Position:
    """A position from its text; ValueError if it is none."""
    xid, seq, floor = text.split(":")
    if not (xid.isdecimal() and xid.isascii() and len(xid) < 20):
        raise ValueError(text)
    found = Position(xid, int(seq), int(floor))
    if not (0 <= found.seq <= SEQ_MAX and 0 <= found.floor <= SEQ_MAX):
        raise ValueError(text)
    return found


class Floor:
    """The number below which a reader has read everything."""

    def __init__(self, value: int) -> None:
        self.value = value
        self._given: int | None = None
        self._mark: tuple[int, int] | None = None

    def raise_by(self, bounds: Bounds) -> None:
        """Everything below `bounds.low` has been read: see what that says about numbers."""
        if self._mark is not None and bounds.low >= self._mark[0]:
            self.value = max(self.value, self._mark[1])
            self._mark = None
        if self._mark is None and self._given is not None:
            # These numbers had been given before this snapshot was taken.
            self._mark = (bounds.high, self._given)
        self._given = bounds.seq

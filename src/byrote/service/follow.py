# SPDX-License-Identifier: MIT
"""Following the log of events without missing one.

Events become visible in another order than they were numbered in. So the log is read in the order
of transactions, and only up to the oldest one still under way. What is read is on disk by then
(`stream.sql`): after a crash of the server, the ids of transactions that were not are used again.
"""

from byrote.store.queries.log import Position

SEQ_MAX = 2**63 - 1


def from_now(low: int) -> Position:
    """The position of a reader that wants only events from now on."""
    return Position(str(max(low - 1, 0)), SEQ_MAX)


def written(position: Position) -> str:
    """A position as text."""
    return f"{position.xid}:{position.seq}"


def read(text: str) -> Position:
    """A position from its text; ValueError if it is malformed."""
    xid, seq = text.split(":")
    if not (xid.isdecimal() and xid.isascii() and len(xid) < 20):
        raise ValueError(text)
    found = Position(xid, int(seq))
    if not 0 <= found.seq <= SEQ_MAX:
        raise ValueError(text)
    return found

# SPDX-License-Identifier: MIT
"""Positions in the event log.

Events become visible in another order than they were numbered in, so the log is read in the order
of transactions, and only up to the oldest one still under way. A cursor is therefore the id of a
transaction and the number of an event, `4711.812`: every event up to this one was read. An event
may be about many runs; `4711.812.3` was read up to its third run. `0` is the beginning.

`log_after.sql` returns what comes after a cursor. Those events are on disk by then: after a crash,
the server uses the ids of transactions that were not on disk again.
"""

import re
from typing import Final, Self

import msgspec

BIGINT_MAX: Final = 2**63 - 1
_FORM: Final = re.compile(r"(\d{1,19})\.(\d{1,19})(?:\.(\d{1,9}))?", re.ASCII)


class Cursor(msgspec.Struct, frozen=True):
    """A position in the event log: behind an event, or behind one of its runs."""

    xid: int
    seq: int
    ordinal: int | None = None
    """The number of the run in the event, from 1; None for the whole event."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a cursor from its text; raises ValueError with a message for users."""
        if text == "0":
            return cls(0, 0)
        form = _FORM.fullmatch(text)
        xid, seq, ordinal = form.groups() if form is not None else ("", "", None)
        if form is None or max(int(xid), int(seq)) > BIGINT_MAX:
            raise ValueError(
                f"{text!r} is not a cursor of the event log: send that of an event, "
                "such as 4711.812 or 4711.812.3, or 0 for the beginning."
            )
        return cls(int(xid), int(seq), None if ordinal is None else int(ordinal))

    def __str__(self) -> str:
        """Return the text that `parse` reads."""
        ordinal = "" if self.ordinal is None else f".{self.ordinal}"
        return f"{self.xid}.{self.seq}{ordinal}"

    @property
    def event_end(self) -> Self:
        """The cursor behind the whole event."""
        return msgspec.structs.replace(self, ordinal=None)


BEGINNING: Final = Cursor(0, 0)
"""The cursor before all events."""

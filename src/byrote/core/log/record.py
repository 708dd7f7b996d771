# SPDX-License-Identifier: MIT
"""Entries of the event log on a run, move by move, in the newest form of their kind.

Every event carries the version of its kind's form. `upcast` reads an older form as the newest one,
so that `fold` handles only that. A field that an old form lacks is None, never a guess.

    kind       version  what is new
    Enqueued   2        `run_after` in the data of a run that is not due yet, else it is READY;
                        `shadow` in that of one that only checks another
    Signalled  2        `status` in the data: whether the signal resumed the run
    Snoozed    2        `status` and `wait` in the data
    Retried, Cancelled, Failed, Crashed, Succeeded, Released (by finish)
               2        `status`, and `reported`, the verdict before a cancellation overruled it
    Enqueued   3        the digest is the spec's hash
    Succeeded, Remembered
               3        the digest is the result's hash
    Retried, Failed, Crashed, Cancelled, Lost
               3        the digest is the hash of the attempt's error, if there was one
    Signalled  3        the digest is the payload's hash, and `name` in the data that of the signal
    Claimed    2        steps and artifacts of the attempt are logged (StepStored, ArtifactStored)

StepStored and ArtifactStored record what an attempt has stored. They are not moves and have no
runs; their data has the facts of each, by run and by step or artifact.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from byrote.core.log.cursor import Cursor
from byrote.core.log.kinds import EventKind


class LogEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One move of one run, as its statement logged it; or an event that moved no run."""

    kind: str
    at: datetime
    move: int
    attempt: int
    schema: int = 1
    run: str | None = None
    """None if the event moved no run; its data is then that of the whole event."""
    xid: int = 0
    seq: int = 0
    ordinal: int | None = None
    """The number of the run in the event, from 1."""
    worker: str | None = None
    token: str | None = None
    leased_until: datetime | None = None
    data: Mapping[str, Any] | None = None
    digest: bytes | None = None
    """The hash of the subject of the event, such as the spec or the result."""

    @property
    def cursor(self) -> Cursor:
        """The position behind this entry."""
        return Cursor(self.xid, self.seq, self.ordinal)


def upcast(entry: LogEntry) -> LogEntry:
    """Returns the entry in the newest form of its kind; deterministic."""
    while (step := UPCASTERS.get((entry.kind, entry.schema))) is not None:
        entry = msgspec.structs.replace(entry, schema=entry.schema + 1, data=step(entry))
    return entry


def _enqueued_1(entry: LogEntry) -> Mapping[str, Any]:
    del entry
    return {"status": None}


def _signalled_1(entry: LogEntry) -> Mapping[str, Any]:
    del entry
    return {"status": None}


def _snoozed_1(entry: LogEntry) -> Mapping[str, Any]:
    data = entry.data or {}
    # Without a delay it was READY; with one it waited, unless its signal had come meanwhile.
    status = None if (data.get("delay_us") or 0) > 0 else "READY"
    return {**data, "reported": "Z", "status": status, "wait": None}


def _retried_1(entry: LogEntry) -> Mapping[str, Any]:
    data = entry.data or {}
    waits = (data.get("delay_us") or 0) > 0
    return {
        **data,
        "reported": "R",
        "status": "WAITING" if waits else "READY",
        "wait": "retry" if waits else None,
    }


def _cancelled_1(entry: LogEntry) -> Mapping[str, Any] | None:
    data = entry.data
    if data is None:
        return None
    # Only a retry had both a delay and an error, and only a crash an error alone.
    overruled = "R" if data.get("delay_us") is not None else "X"
    reported = "C" if data.get("kind") is None else overruled
    return {**data, "reported": reported, "status": "CANCELLED"}


UPCASTERS: Final[Mapping[tuple[str, int], Callable[[LogEntry], Mapping[str, Any] | None]]] = {
    (EventKind.ENQUEUED, 1): _enqueued_1,
    (EventKind.SIGNALLED, 1): _signalled_1,
    (EventKind.SNOOZED, 1): _snoozed_1,
    (EventKind.RETRIED, 1): _retried_1,
    (EventKind.CANCELLED, 1): _cancelled_1,
}
"""From one version of a kind to the next; a kind that is not here never changed its meaning."""

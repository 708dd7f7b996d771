# SPDX-License-Identifier: MIT
"""The kinds of events in the event log, spelled as the SQL statements write them."""

from enum import StrEnum, unique
from typing import Final


@unique
class EventKind(StrEnum):
    """The kind of an event: a change of a run, or a record stored by one of its attempts.

    A log may also hold kinds of a newer version, so a `LogEntry` has its kind as plain text.
    """

    ENQUEUED = "Enqueued"
    PROMOTED = "Promoted"
    CLAIMED = "Claimed"
    RENEWED = "Renewed"
    CANCEL_REQUESTED = "CancelRequested"
    SUCCEEDED = "Succeeded"
    REMEMBERED = "Remembered"
    """A memo supplied the result; no attempt was made."""
    RETRIED = "Retried"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    SNOOZED = "Snoozed"
    RELEASED = "Released"
    CRASHED = "Crashed"
    """The attempt's process died, and nothing proves that the task was the cause."""
    LOST = "Lost"
    """The lease ran out and was taken back."""
    REVIVED = "Revived"
    SIGNALLED = "Signalled"
    DELETED = "Deleted"
    STEP_STORED = "StepStored"
    ARTIFACT_STORED = "ArtifactStored"


NOT_MOVES: Final = frozenset({EventKind.STEP_STORED, EventKind.ARTIFACT_STORED})
"""Kinds that record what an attempt has stored, and move no run."""
MOVES: Final = frozenset(EventKind) - NOT_MOVES
"""Kinds that move a run: each has a rule in `core/log/fold.py`."""

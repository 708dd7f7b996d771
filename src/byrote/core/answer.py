# SPDX-License-Identifier: MIT
"""What a store answers to the parts of a worker."""

from datetime import datetime

import msgspec


class Swept(msgspec.Struct, frozen=True):
    """A run whose lease ran out, and what became of it."""

    id: str
    status: str
    attempt: int
    worker: str


class Stranger(msgspec.Struct, frozen=True):
    """A task that waits in a queue, unknown to the worker that asks."""

    queue: str
    task: str
    version: int

    @property
    def key(self) -> str:
        """Name and version, as workers announce them."""
        return f"{self.task}@{self.version}"


class Promotion(msgspec.Struct, frozen=True):
    """How many runs became due, and when the next one does."""

    promoted: int
    woken: int
    next_due_s: float | None


class Archived(msgspec.Struct, frozen=True):
    """What one step of archiving did."""

    archived: int
    seen: int
    reached: str | None
    """The last run it has looked at; None at the end of the table."""
    last: str | None
    """The last one that was old enough."""


class Noted(msgspec.Struct, frozen=True):
    """A step as the ledger has it now."""

    id: str
    sequence: int
    open: bool
    """A sleep or a wait that is not over."""
    result_json: str | None
    left_us: int | None
    """Until it is over by itself; None when it never is."""


class StepRow(msgspec.Struct, frozen=True):
    """One line of a run's ledger."""

    run_id: str
    sequence: int
    kind: str
    """`step`, `sleep` or `event`."""
    name: str
    open: bool
    result_json: str | None
    result_hash: str | None
    attempt: int
    at: datetime
    wake_at: datetime | None


class Recorded(msgspec.Struct, frozen=True):
    """One line of a run's ledger, as much of it as an attempt needs."""

    run_id: str
    sequence: int
    kind: str
    name: str
    open: bool
    result_json: str | None


class Duty(msgspec.Struct, frozen=True):
    """A duty that is due and was taken."""

    name: str
    cursor: str | None


class Keeping(msgspec.Struct, frozen=True):
    """What became of an artifact, and what is under its name now."""

    verdict: str
    media_type: str
    place: str
    at: datetime


class Walked(msgspec.Struct, frozen=True):
    """One page of a walk: how much was removed, and where it ended; None at the very end."""

    removed: int
    reached: str | None

# SPDX-License-Identifier: MIT
"""What a store answers to the parts of a worker."""

from datetime import datetime
from typing import Final

import msgspec

LOCKED: Final = "locked"
"""Instead of an answer: the row is locked by another transaction, and nothing was changed."""


class Locked(msgspec.Struct, frozen=True, gc=False):
    """A run that a statement left as it was, because another transaction has locked its row."""

    id: str


def say_locked(number: int) -> str:
    """The sentence about runs that were left out because their rows are locked."""
    are = "1 run is" if number == 1 else f"{number:,} runs are"
    return f"{are} locked by another transaction; try again."


class ReclaimedRun(msgspec.Struct, frozen=True):
    """A run whose lease ran out, and what became of it."""

    id: str
    status: str
    attempt: int
    worker: str


class UnknownTaskRef(msgspec.Struct, frozen=True):
    """A task that waits in a queue, unknown to the worker that asks."""

    queue: str
    task: str
    version: int

    @property
    def key(self) -> str:
        """Name and version, as workers announce them."""
        return f"{self.task}@{self.version}"


class Remainder(msgspec.Struct, frozen=True):
    """What is left in the queues of a worker that drains them."""

    due: bool
    """Whether the worker has to stay: something is ready for it, due, or to be taken back."""
    elsewhere: int = 0
    """Runs under a lease that has not expired; counted only when nothing is due."""
    unknown: int = 0
    """Ready runs of tasks that the worker does not know; counted only when nothing is due."""

    def __str__(self) -> str:
        """What a worker reports when it leaves."""
        told = ["nothing left to do"]
        if self.elsewhere:
            are = "1 run is" if self.elsewhere == 1 else f"{self.elsewhere} runs are"
            told.append(f"{are} being executed by other workers")
        if self.unknown:
            are = "1 ready run is" if self.unknown == 1 else f"{self.unknown} ready runs are"
            told.append(f"{are} of tasks or versions that this worker does not know")
        return "; ".join(told)


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


class StepReply(msgspec.Struct, frozen=True):
    """A step as the ledger has it now."""

    id: str
    sequence: int
    open: bool
    """A sleep or a wait that is not over."""
    result_json: str | None
    left_us: int | None
    """Until it is over by itself; None when it never is."""
    written: bool = True
    """False: an earlier copy of the statement had written it, and nothing was changed."""


class StepRow(msgspec.Struct, frozen=True):
    """One line of a run's ledger."""

    run_id: str
    sequence: int
    kind: str
    """`step`, `sleep` or `event`; `raised` for a step whose function raised."""
    name: str
    open: bool
    result_json: str | None
    result_hash: str | None
    attempt: int
    at: datetime
    wake_at: datetime | None
    place: str | None = None
    """Which call of the task it is, see `executors/runtime/steps/branches.py`; absent: its
    sequence."""
    args_hash: str | None = None
    """That of the arguments the step was called with, if they could be hashed."""


class RecordedStep(msgspec.Struct, frozen=True):
    """One line of a run's ledger, as much of it as an attempt needs."""

    run_id: str
    sequence: int
    kind: str
    name: str
    open: bool
    result_json: str | None
    place: str | None = None
    args_hash: str | None = None


def line_of(row: RecordedStep | StepRow) -> list[str | int | bool | None]:
    """A line as it is sent to the attempt that asks for its ledger."""
    return [row.sequence, row.kind, row.name, row.open, row.result_json, row.place, row.args_hash]


class Duty(msgspec.Struct, frozen=True):
    """A duty that is due and was taken."""

    name: str
    cursor: str | None


class ArtifactReply(msgspec.Struct, frozen=True):
    """What became of an artifact, and what is under its name now."""

    verdict: str
    media_type: str
    place: str
    at: datetime


class Walked(msgspec.Struct, frozen=True):
    """One page of a walk: how much was removed, and where it ended; None at the very end."""

    removed: int
    reached: str | None

# SPDX-License-Identifier: MIT
"""Replies of a store to the parts of a worker."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, Self

import msgspec

LOCKED: Final = "locked"
"""Instead of a reply: another transaction has locked the row, and nothing was changed."""


class Locked(msgspec.Struct, frozen=True, gc=False):
    """A run that a statement did not change, because another transaction has locked its row."""

    id: str


class DoneRuns[T](list[T]):
    """The runs that a command changed; `locked` has the ids of those it skipped.

    Another transaction has locked their rows: try again for those.
    """

    def __init__(self) -> None:
        super().__init__()
        self.locked: list[str] = []

    def add(self, done: Iterable[T], locked: Iterable[str]) -> Self:
        """Add the effect of one batch."""
        self.extend(done)
        self.locked += locked
        return self


def locked_text(number: int) -> str:
    """Returns the message about runs that were skipped because their rows are locked."""
    are = "1 run is" if number == 1 else f"{number:,} runs are"
    return f"{are} locked by another transaction; try again."


class ReclaimedRun(msgspec.Struct, frozen=True):
    """A run whose lease ran out, and its status now."""

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
    """Runs that remain in the queues of a worker that drains them."""

    due: bool
    """Whether the worker has to stay: something is ready for it, due, or to be taken back."""
    elsewhere: int = 0
    """Runs under a lease that has not expired; counted only when nothing is due."""
    unknown: int = 0
    """Ready runs of tasks that the worker does not know; counted only when nothing is due."""
    paused: int = 0
    """Runs in paused queues that are ready or due; counted only when nothing is due."""
    later: int = 0
    """Waiting runs that are not due; counted only when nothing is due."""
    tasks: Sequence[str] = ()
    """Some of the tasks that the worker does not know, as `name@version`."""

    @property
    def stuck(self) -> bool:
        """Whether runs are left that no further drain like this one would execute."""
        return bool(self.unknown or self.paused)

    def __str__(self) -> str:
        """The message that a worker reports when it exits."""
        parts = ["no run is left that this worker can execute" if self.stuck else DRAINED]
        if self.unknown:
            named = f": {', '.join(self.tasks)}" if self.tasks else ""
            unknown = "of tasks or versions that this worker does not know"
            parts.append(f"{_are(self.unknown, 'ready run')} {unknown}{named}")
        if self.paused:
            parts.append(f"{_are(self.paused, 'run')} in paused queues")
        if self.later:
            parts.append(f"{_are(self.later, 'run')} not due")
        if self.elsewhere:
            parts.append(f"{_are(self.elsewhere, 'run')} being executed by other workers")
        return "; ".join(parts)


DRAINED = "nothing left to do"


def _are(count: int, what: str) -> str:
    return f"1 {what} is" if count == 1 else f"{count} {what}s are"


class Promotion(msgspec.Struct, frozen=True):
    """How many runs became due, and when the next one does."""

    promoted: int
    woken: int
    next_due_s: float | None


class Archived(msgspec.Struct, frozen=True):
    """The result of one step of archiving."""

    archived: int
    seen: int
    reached: str | None
    """The last run that was examined; None at the end of the table."""
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
    """Time until it ends by itself; None if it never does."""
    written: bool = True
    """False: an earlier copy of the statement had written it, and nothing was changed."""


class StepRow(msgspec.Struct, frozen=True):
    """One step in a run's ledger."""

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
    """Identifies the call in the task, see `executors/runtime/steps/branches.py`; absent: its
    sequence."""
    args_hash: str | None = None
    """The hash of the arguments of the step, if they could be hashed."""


class RecordedStep(msgspec.Struct, frozen=True):
    """The columns of a step that an attempt needs."""

    run_id: str
    sequence: int
    kind: str
    name: str
    open: bool
    result_json: str | None
    place: str | None = None
    args_hash: str | None = None


def entry_of(row: RecordedStep | StepRow) -> list[str | int | bool | None]:
    """Returns a step in the form that is sent to the attempt."""
    return [row.sequence, row.kind, row.name, row.open, row.result_json, row.place, row.args_hash]


class Duty(msgspec.Struct, frozen=True):
    """A duty that is due and was taken."""

    name: str
    cursor: str | None


NAME_SILENT_FOR = timedelta(seconds=25)
"""A worker without a heartbeat for this long loses its id to another process that wants it.

Heartbeats are sent every ten seconds.
"""


class NameHeld(msgspec.Struct, frozen=True):
    """The live worker that has the name with which another process wants to register."""

    worker: str
    host: str
    pid: int
    seen_at: datetime


class ArtifactReply(msgspec.Struct, frozen=True):
    """Whether an artifact was stored, and what is stored under its name now."""

    verdict: str
    media_type: str
    location: str
    at: datetime


class Walked(msgspec.Struct, frozen=True):
    """One page of a walk: how many rows were removed, and its last key; None at the end."""

    removed: int
    reached: str | None

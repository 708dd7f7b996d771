# SPDX-License-Identifier: MIT
"""Events that workers emit for logs and metrics. No payloads, but messages of errors."""

import msgspec


class Event(msgspec.Struct, frozen=True, tag_field="event", tag=True, omit_defaults=True, gc=False):
    """A fact that has happened."""


class RunEvent(Event, frozen=True, tag=True):
    """A fact about a run."""

    run: str
    task: str
    queue: str
    attempt: int
    worker: str = ""


class Claimed(RunEvent, frozen=True, tag=True):
    """A worker leased a run."""

    waited_s: float = 0.0


class Succeeded(RunEvent, frozen=True, tag=True):
    """A run ended with a result."""

    took_s: float = 0.0


class Retried(RunEvent, frozen=True, tag=True):
    """An attempt failed and the run will be tried again."""

    after_s: float = 0.0
    error: str = ""


class Failed(RunEvent, frozen=True, tag=True):
    """A run failed for good and is a dead letter."""

    error: str = ""


class Cancelled(RunEvent, frozen=True, tag=True):
    """A run was cancelled."""


class Snoozed(RunEvent, frozen=True, tag=True):
    """A run was postponed by its task."""

    after_s: float = 0.0


class Released(RunEvent, frozen=True, tag=True):
    """A run was released: it is READY again, and the attempt does not count."""


class Crashed(RunEvent, frozen=True, tag=True):
    """The attempt's process died, cause unproven; the run is READY again and the loss counts."""

    error: str = ""


class LeaseRefused(RunEvent, frozen=True, tag=True):
    """A worker lost its lease on a run; its verdict was rejected or not sent."""


class Lost(Event, frozen=True, tag=True):
    """A lease ran out and was taken back."""

    run: str
    status: str
    attempt: int
    worker: str


class Unserved(Event, frozen=True, tag=True):
    """Ready runs are of a task or version that no live worker of their queue knows."""

    queue: str
    task: str
    """As `name@version`."""
    nearest: str = ""
    """The most similar task that a live worker knows, or other versions of the task."""
    runs: int = 0
    """How many of them are among the first 200 runs of the queue."""


class Promoted(Event, frozen=True, tag=True):
    """Runs became due."""

    runs: int


class Scheduled(Event, frozen=True, tag=True):
    """A schedule that a worker's app defines is new or has changed."""

    schedule: str


class Ticked(Event, frozen=True, tag=True):
    """A schedule was due, and a run was enqueued."""

    schedule: str
    tick: str
    run: str


class TickSkipped(Event, frozen=True, tag=True):
    """A schedule was due, but no run was enqueued: an earlier one is unfinished."""

    schedule: str
    tick: str


class WorkerStarted(Event, frozen=True, tag=True):
    """A worker is ready to claim."""

    worker: str
    queues: str
    hands: int
    concurrency: int
    database: str = ""
    """Host, database and role, or the service; never a password."""


class WorkerStopping(Event, frozen=True, tag=True):
    """A worker claims no more."""

    worker: str
    reason: str
    running: int = 0
    note: str = ""
    """For how long it waits for which runs, and what a second signal does."""


class WorkerStopped(Event, frozen=True, tag=True):
    """A worker has stopped."""

    worker: str
    finished: int
    released: int


class CommandsLeftOut(Event, frozen=True, tag=True):
    """A worker does not serve the app's commands, because its system cannot execute them."""

    worker: str
    tasks: str
    """As `name@version`, separated by commas."""
    note: str


class HandStarted(Event, frozen=True, tag=True):
    """A hand is ready for work."""

    worker: str
    pid: int


class HandEnded(Event, frozen=True, tag=True):
    """A hand's process has ended."""

    worker: str
    pid: int
    reason: str


class Troubled(Event, frozen=True, tag=True):
    """A database, service or store did not answer; the worker will retry."""

    worker: str
    what: str
    error: str
    run: str = ""
    """The run whose outcome could not be stored, if any."""


class Recovered(Event, frozen=True, tag=True):
    """The database, service or store answers again."""

    worker: str
    what: str


def level_of(event: Event) -> int:
    """The level of an event, as in `logging`; INFO for a hand that exited on request."""
    if isinstance(event, Failed):
        return ERROR
    warns = isinstance(event, TROUBLE) and getattr(event, "reason", "") != ENDED_WELL
    return WARNING if warns else INFO


INFO, WARNING, ERROR = 20, 30, 40
ENDED_WELL = "exited with code 0"
TROUBLE = (Retried, LeaseRefused, Crashed, Lost, HandEnded, Troubled, Unserved, CommandsLeftOut)
"""Events worth a warning."""

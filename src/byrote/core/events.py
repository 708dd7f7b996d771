# SPDX-License-Identifier: MIT
"""Facts the path of a run leaves behind, for others to watch. No payloads: ids, names, numbers."""

import msgspec


class Event(msgspec.Struct, frozen=True, tag_field="event", tag=True, omit_defaults=True, gc=False):
    """Something that has happened."""


class RunEvent(Event, frozen=True, tag=True):
    """Something that has happened to a run."""

    run: str
    task: str
    queue: str
    attempt: int
    worker: str = ""


class Enqueued(Event, frozen=True, tag=True):
    """A run was accepted."""

    run: str
    task: str
    queue: str


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
    """A run failed for good and lies among the dead letters."""

    error: str = ""


class Cancelled(RunEvent, frozen=True, tag=True):
    """A run was cancelled."""


class Snoozed(RunEvent, frozen=True, tag=True):
    """A run stepped aside."""

    after_s: float = 0.0


class Released(RunEvent, frozen=True, tag=True):
    """A run was given back, uncharged."""


class Crashed(RunEvent, frozen=True, tag=True):
    """The attempt's process died, cause unproven; the run was given back and the loss counted."""

    error: str = ""


class LeaseLost(RunEvent, frozen=True, tag=True):
    """A worker's word on a run came too late and was not heard."""


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
    """What live workers know that may be meant."""


class Promoted(Event, frozen=True, tag=True):
    """Runs became due."""

    runs: int


class Scheduled(Event, frozen=True, tag=True):
    """A schedule that a worker's app defines is new or has changed."""

    schedule: str


class Ticked(Event, frozen=True, tag=True):
    """A schedule was due, and has a run."""

    schedule: str
    tick: str
    run: str


class TickSkipped(Event, frozen=True, tag=True):
    """A schedule was due and has no run, since an earlier one is unfinished."""

    schedule: str
    tick: str


class WorkerStarted(Event, frozen=True, tag=True):
    """A worker is ready to claim."""

    worker: str
    queues: str
    hands: int
    concurrency: int


class WorkerStopping(Event, frozen=True, tag=True):
    """A worker claims no more."""

    worker: str
    reason: str


class WorkerStopped(Event, frozen=True, tag=True):
    """A worker has gone."""

    worker: str
    finished: int
    released: int


class HandStarted(Event, frozen=True, tag=True):
    """A hand is ready for work."""

    worker: str
    pid: int


class HandEnded(Event, frozen=True, tag=True):
    """A hand's process has gone."""

    worker: str
    pid: int
    reason: str


class Troubled(Event, frozen=True, tag=True):
    """Something outside did not answer; it will be asked again."""

    worker: str
    what: str
    error: str
    run: str = ""
    """The run whose outcome could not be stored, if that is the trouble."""


class Recovered(Event, frozen=True, tag=True):
    """What was troubled answers again."""

    worker: str
    what: str


def is_trouble(event: Event) -> bool:
    """Whether somebody should look at an event; a hand that was told to end is none."""
    return isinstance(event, TROUBLE) and getattr(event, "reason", "") != ENDED_WELL


ENDED_WELL = "exited with code 0"
TROUBLE = (Failed, LeaseLost, Crashed, Lost, HandEnded, Troubled, Unserved)
"""Events worth a warning."""

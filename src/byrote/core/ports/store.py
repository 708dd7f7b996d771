# SPDX-License-Identifier: MIT
"""The ports between a worker and its store, one for each part of the worker."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

from byrote.core.log.cursor import Cursor
from byrote.core.outcome import Printing
from byrote.core.ports.replies import (
    Archived,
    ArtifactReply,
    Duty,
    NameHeld,
    Promotion,
    ReclaimedRun,
    RecordedStep,
    Remainder,
    StepReply,
    Walked,
)
from byrote.core.run import Leased
from byrote.core.schedule.schedule import Schedule, ScheduleMove, StoredSchedule, TickResult
from byrote.core.unserved import UnservedEnd, UnservedTask
from byrote.core.verdict import Judged


class PartContext(NamedTuple):
    """The parameters of the connection of a worker's part."""

    purpose: str
    stopped: Callable[[float], bool]
    """Waits for `seconds` or until the worker has stopped; returns whether it has."""
    notice: Callable[[str, str | None], None]
    """Receives the purpose and the error, or None once it works again."""
    jitter: Callable[[], float]
    impatient: Callable[[], bool] = lambda: False
    """Whether to raise errors of missing privileges instead of retrying later."""


class ClaimRequest(NamedTuple):
    """The parameters of a claim, and when it was sent."""

    quotas: Mapping[str, int]
    """How many of each queue, at most."""
    tasks: Sequence[str]
    worker: str
    token: str
    lease_for: timedelta
    deadline: float
    claimed_at: float
    floors: Mapping[str, int]
    """Ranks to start from, by queue; without one, from the front."""


class ClaimPort(Protocol):
    """The store as the claimer uses it."""

    @property
    def listening(self) -> bool:
        """Whether `rest` ends when work arrives, so that frequent polling is not needed."""

    def claim(self, wanted: ClaimRequest) -> list[Leased] | None:
        """Lease runs; None if the reply was lost and nothing had been leased."""

    def idle(self, *, worker: str, idle: bool) -> None:
        """Ask to be woken when work comes, or stop asking."""

    def rest(self, wake: int, seconds: float, *, for_room: bool = False) -> None:
        """Wait until the descriptor is readable, for `seconds`, or until there may be work.

        With `for_room`, the worker has no free slot, and new work does not end the wait.
        """

    def unfinished(self, *, queues: Sequence[str], tasks: Sequence[str]) -> Remainder:
        """Returns what remains in these queues for a worker that knows these tasks."""

    def close(self) -> None:
        """Close the connection; the next call opens it again."""


class FinishPort(Protocol):
    """The store as the recorder uses it."""

    def finish(self, judged: Sequence[Judged]) -> Mapping[str, str]:
        """Write verdicts; returns the accepted ids and their code letters. A missing id was lost.

        LOCKED instead of a letter: the verdict was not written and must be sent again later.
        """

    def close(self) -> None:
        """Close the connection; the next call opens it again."""


class RegistryPort(Protocol):
    """The store as the lease keeper uses it: leases and the list of workers."""

    def register(self, description: Mapping[str, Any]) -> Sequence[str] | NameHeld:
        """Announce a worker.

        Returns those of its `aliases` that are tasks of other workers. Not registered: returns the
        live worker of another process that has its name.
        """

    def heartbeat(self, worker: str, load: Mapping[str, Any]) -> Sequence[str] | None:
        """Report that a worker is alive; returns what `register` does, None if it is unknown."""

    def deregister(self, worker: str) -> None:
        """Take a worker off the list."""

    def renew(self, leases: Sequence[Leased], *, lease_for: timedelta) -> Mapping[str, bool | str]:
        """Extend leases; returns the ids still held, and whether their cancellation was requested.

        LOCKED for a lease that could not be extended: it still ends when it did before.
        """

    def close(self) -> None:
        """Close the connection; the next call opens it again."""


class StepPort(Protocol):
    """The store as the ledger server uses it."""

    def load(self, leases: Sequence[Leased]) -> list[RecordedStep]:
        """Returns the ledgers of these runs, each in order."""

    def note(self, steps: Sequence[Mapping[str, Any]]) -> list[StepReply]:
        """Write steps under their leases; a missing one was lost, unless it is `holding`."""

    def progress(self, reports: Sequence[Mapping[str, Any]]) -> list[str]:
        """Write progress, one report per attempt; returns the runs it was written for.

        A missing run was lost, unless it is `holding`.
        """

    def holding(self, leases: Sequence[Mapping[str, Any]]) -> list[str]:
        """Returns which of these leases, by `id` and `token`, are valid now."""

    def close(self) -> None:
        """Close the connection; the next call opens it again."""


class ArtifactPort(Protocol):
    """The store as the parts that handle artifacts use it."""

    def prefix(self) -> str:
        """Returns the prefix of this store in an artifact store that others may share."""

    def keep(self, lease: Leased, artifact: Mapping[str, Any]) -> ArtifactReply:
        """Store an artifact under a lease; small contents are passed as `data`."""

    def referred(self, hashes: Sequence[str]) -> list[str]:
        """Returns which of these hashes an artifact refers to."""

    def close(self) -> None:
        """Close the connection; the next call opens it again."""


class MaintenancePort(Protocol):
    """The store as a worker's maintenance uses it, where workers are responsible for it."""

    def due(self, *, worker: str, every: Mapping[str, timedelta]) -> list[Duty]:
        """Take every duty that is due."""

    def promote(self, *, limit: int) -> Promotion:
        """Make due runs READY, oldest first."""

    def sweep(self, *, limit: int) -> list[ReclaimedRun]:
        """Take back runs whose lease ran out."""

    def note_unserved(self) -> list[UnservedTask]:
        """Note the tasks that no live worker of their queue knows; returns those that are new."""

    def fail_unserved(self, *, limit: int) -> list[UnservedEnd]:
        """End runs whose task was unknown for as long as their queue waits."""

    def archive(self, *, after: str, limit: int) -> Archived:
        """Move finished runs after a cursor to the archive."""

    def partition(self) -> None:
        """Create the partitions of the coming days."""

    def prune(self) -> None:
        """Delete rows whose retention has ended."""

    def prune_stats(self) -> None:
        """Delete counts by minute whose retention has ended."""

    def begin_counting(self) -> Cursor | None:
        """Begin to count events at the end of the log. None if another process has begun."""

    def count(self, cursor: Cursor, *, limit: int) -> tuple[int, Cursor | None]:
        """Count events after a cursor. Returns how many were read, and the new cursor.

        The new cursor is None if the cursor was not that of the duty `stats`: nothing was counted.
        """

    def recount(self, cursor: Cursor, *, most: int) -> None:
        """Correct the depths as of a cursor, unless there are more than `most` runs."""

    def forget(self, *, limit: int) -> int:
        """Delete one batch of orphaned rows. Returns the largest count per table."""

    def chain(self, *, limit: int) -> int:
        """Add a link to the chain of the log. Returns the number of events in it."""

    def prune_artifacts(self, after: str) -> Walked:
        """Delete a page of artifacts whose runs were pruned."""

    def prune_blobs(self, after: str) -> Walked:
        """Delete a page of small contents that nothing refers to."""

    def announce(self, schedules: Sequence[Schedule]) -> list[str]:
        """Store the schedules that an app defines. Returns the names of those that changed."""

    def due_schedules(self, *, limit: int) -> list[StoredSchedule]:
        """Returns schedules that are due, the longest due first."""

    def tick(self, turns: Sequence[ScheduleMove]) -> list[TickResult]:
        """Advance schedules, and enqueue the runs of their ticks."""

    def set_aside(self, name: str, fault: str) -> None:
        """Pause a schedule that cannot tick because of a fault."""

    def bookmark(self, duty: str, cursor: str) -> None:
        """Store the cursor of a duty."""

    def watch_asked(self) -> bool:
        """Whether a client has begun to watch a run of this worker since the last call."""

    def watched(self) -> list[str]:
        """Returns the runs that clients watch now."""

    def live_output(self, run: Leased, printed: Printing) -> None:
        """Send the output of an attempt so far to the clients that watch its run."""

    def close(self) -> None:
        """Close the connection; the next call opens it again."""


class WorkerStore(Protocol):
    """The store of a worker's runs: a port for each part of the worker."""

    def check(self) -> str:
        """Raise an error that a person must fix before the worker can start.

        Returns the name of the database or of the service, without secrets.
        """

    def leases(
        self, part: PartContext, *, on_cancel: Callable[[], None], on_return: Callable[[], None]
    ) -> ClaimPort:
        """Returns the claimer's port.

        `on_cancel` is called when a run of this worker was cancelled, `on_return` when runs of lost
        workers are READY again; a store that cannot notify calls neither.
        """

    def verdicts(self, part: PartContext) -> FinishPort:
        """Returns the recorder's port."""

    def registry(self, part: PartContext) -> RegistryPort:
        """Returns the lease keeper's port."""

    def ledgers(self, part: PartContext) -> StepPort:
        """Returns the ledger server's port."""

    def artifact_rows(self, part: PartContext) -> ArtifactPort:
        """Returns the port for artifacts."""

    def duties(self, part: PartContext) -> MaintenancePort | None:
        """Returns the port for maintenance; None if the store maintains itself."""

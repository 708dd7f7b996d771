# SPDX-License-Identifier: MIT
"""What a worker needs of a store, one port for each of its parts."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

from byrote.core.outcome import Printing
from byrote.core.ports.replies import (
    Archived,
    ArtifactReply,
    Duty,
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
    """What a part brings along to its line."""

    purpose: str
    stopped: Callable[[float], bool]
    """Waits so many seconds, or until the worker has stopped: whether it has."""
    notice: Callable[[str, str | None], None]
    """Hears the purpose and what goes wrong, or None when it goes well again."""
    chance: Callable[[], float]
    impatient: Callable[[], bool] = lambda: False
    """Whether to raise what is refused for lack of rights, instead of asking again later."""


class ClaimRequest(NamedTuple):
    """What a claim asks for, and when it was asked."""

    quotas: Mapping[str, int]
    """How many of each queue, at most."""
    tasks: Sequence[str]
    worker: str
    token: str
    lease_for: timedelta
    deadline: float
    claimed_at: float
    floors: Mapping[str, int]
    """Ranks to start from; where there is none, from the very front."""


class ClaimPort(Protocol):
    """The line of a claimer."""

    @property
    def listening(self) -> bool:
        """Whether `rest` ends when work comes, so that looking often is needless."""

    def claim(self, wanted: ClaimRequest) -> list[Leased] | None:
        """Lease what is wanted; None when the answer was lost and nothing had come of it."""

    def idle(self, *, worker: str, idle: bool) -> None:
        """Ask to be woken when work comes, or stop asking."""

    def rest(self, wake: int, seconds: float, *, for_room: bool = False) -> None:
        """Wait until the descriptor can be read, or so long, or until there may be work.

        One that waits for room rather than for work does not want to hear of work.
        """

    def unfinished(self, *, queues: Sequence[str], tasks: Sequence[str]) -> Remainder:
        """What is left in these queues for a worker that knows these tasks."""

    def close(self) -> None:
        """Leave; the line may be used again."""


class FinishPort(Protocol):
    """The line of a recorder."""

    def finish(self, judged: Sequence[Judged]) -> Mapping[str, str]:
        """Settle attempts: the ids accepted, and as which letter; what is missing was lost.

        LOCKED for those that could not be written: they are to be sent again later.
        """

    def close(self) -> None:
        """Leave; the line may be used again."""


class RegistryPort(Protocol):
    """The line of a keeper: leases kept alive, and the list of workers."""

    def register(self, description: Mapping[str, Any]) -> None:
        """Announce a worker."""

    def heartbeat(self, worker: str, load: Mapping[str, Any]) -> bool:
        """Say that a worker lives; False when it is not on the list."""

    def deregister(self, worker: str) -> None:
        """Take a worker off the list."""

    def renew(self, leases: Sequence[Leased], *, lease_for: timedelta) -> Mapping[str, bool | str]:
        """Extend leases: ids still held, and whether their cancellation is wanted.

        LOCKED for those that could not be extended: they hold for as long as they did before.
        """

    def close(self) -> None:
        """Leave; the line may be used again."""


class StepPort(Protocol):
    """The line of a scribe."""

    def load(self, leases: Sequence[Leased]) -> list[RecordedStep]:
        """The ledgers of these runs, each in order."""

    def note(self, steps: Sequence[Mapping[str, Any]]) -> list[StepReply]:
        """Write steps under their leases; what is missing was lost, unless it is `holding`."""

    def progress(self, reports: Sequence[Mapping[str, Any]]) -> list[str]:
        """Write how far attempts have come, one report each; returns the runs it was written for.

        What is missing was lost, unless it is `holding`.
        """

    def holding(self, leases: Sequence[Mapping[str, Any]]) -> list[str]:
        """Which of these leases, by `id` and `token`, hold now."""

    def close(self) -> None:
        """Leave; the line may be used again."""


class ArtifactPort(Protocol):
    """The line of whoever looks after artifacts."""

    def home(self) -> str:
        """The name of this store's part of a place that others may share."""

    def keep(self, lease: Leased, artifact: Mapping[str, Any]) -> ArtifactReply:
        """Store an artifact under a lease; small contents come along as `data`."""

    def referred(self, hashes: Sequence[str]) -> list[str]:
        """Which of these hashes some artifact refers to."""

    def close(self) -> None:
        """Leave; the line may be used again."""


class MaintenancePort(Protocol):
    """The line of a sweeper, where housekeeping is the workers' affair."""

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
        """Move finished runs that lie after a cursor to the archive."""

    def partition(self) -> None:
        """Make the coming days' partitions."""

    def prune(self) -> None:
        """Forget what has been kept long enough."""

    def forget(self, *, limit: int) -> int:
        """Delete some of what is not wanted any more; gives the most of one kind."""

    def chain(self, *, limit: int) -> int:
        """Add a link to the chain of the log; gives how many events it holds."""

    def prune_artifacts(self, after: str) -> Walked:
        """Forget a page of artifacts whose runs were pruned."""

    def prune_blobs(self, after: str) -> Walked:
        """Forget a page of small contents that nothing refers to."""

    def announce(self, schedules: Sequence[Schedule]) -> list[str]:
        """Keep the schedules that an app defines; gives the names of those that it changed."""

    def due_schedules(self, *, limit: int) -> list[StoredSchedule]:
        """Schedules that are due, the longest due first."""

    def tick(self, turns: Sequence[ScheduleMove]) -> list[TickResult]:
        """Move schedules on, and accept the runs of their ticks."""

    def set_aside(self, name: str, fault: str) -> None:
        """Pause a schedule that cannot go on as it is."""

    def bookmark(self, duty: str, cursor: str) -> None:
        """Remember how far a duty came."""

    def watch_asked(self) -> bool:
        """Whether somebody has asked to watch a run of this worker since this was last asked."""

    def watched(self) -> list[str]:
        """Which runs somebody watches now."""

    def tell(self, run: Leased, printed: Printing) -> None:
        """Tell those who watch a run what its attempt has printed so far."""

    def close(self) -> None:
        """Leave; the line may be used again."""


class WorkerStore(Protocol):
    """Where a worker's runs come from and go to: a line for each of its parts."""

    def check(self) -> None:
        """Raise what a person has to do something about before a worker can work."""

    def leases(
        self, line: PartContext, *, on_cancel: Callable[[], None], on_return: Callable[[], None]
    ) -> ClaimPort:
        """A claimer's line.

        `on_cancel` is called when a run of this worker was cancelled, `on_return` when runs of lost
        workers are READY again; where the store cannot notify, neither is.
        """

    def verdicts(self, line: PartContext) -> FinishPort:
        """A recorder's line."""

    def roll(self, line: PartContext) -> RegistryPort:
        """A keeper's line."""

    def ledgers(self, line: PartContext) -> StepPort:
        """A scribe's line."""

    def shelf(self, line: PartContext) -> ArtifactPort:
        """A line for artifacts."""

    def duties(self, line: PartContext) -> MaintenancePort | None:
        """A sweeper's line; None where the store keeps house itself."""

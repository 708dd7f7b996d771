# SPDX-License-Identifier: MIT
"""Requests of producers and people to the service, and its replies.

Values of tasks (arguments, results) travel as `Raw`: the JSON text as it was sent, byte for byte.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from byrote.core.state import Status
from byrote.wire.progress import ProgressView, UnderWayView
from byrote.wire.terms import (
    BATCH_MAX,
    JSON_LIST,
    JSON_OBJECT,
    Duration,
    Id,
    Identified,
    Name,
    Reply,
    Request,
    Seconds,
    TaskVersion,
    UniqueKey,
)


class RetryPolicy(Request, frozen=True, kw_only=True):
    """How often a run is tried and how long it waits in between."""

    attempts: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 5
    backoff: Literal["exponential", "linear", "fixed"] = "exponential"
    delay_first: Duration | Seconds = "2s"
    delay_max: Duration | Seconds = "1h"
    factor: Annotated[float, msgspec.Meta(ge=1, le=100)] = 2.0
    jitter: bool = True
    age_max: Duration | Seconds | None = None


class NewRun(Request, frozen=True, kw_only=True):
    """One piece of work to be done; either `payload`, or `args` and `kwargs`."""

    task: Name
    version: TaskVersion = 1
    payload: Annotated[
        Raw | UnsetType, msgspec.Meta(description="The only argument of the task, any JSON value.")
    ] = UNSET
    args: Annotated[Raw | UnsetType, msgspec.Meta(extra_json_schema=JSON_LIST)] = UNSET
    kwargs: Annotated[Raw | UnsetType, msgspec.Meta(extra_json_schema=JSON_OBJECT)] = UNSET
    queue: Name = "default"
    priority: Annotated[int, msgspec.Meta(ge=-100, le=100)] = 0
    run_after: Annotated[
        str | Seconds | None,
        msgspec.Meta(
            description="A moment (RFC 3339 with time zone), a delay such as `10m`, or seconds."
        ),
    ] = None
    timeout: Duration | Seconds | None = None
    retry: RetryPolicy | None = None
    """Absent: one attempt only."""
    labels: Annotated[dict[str, str], msgspec.Meta(max_length=32)] | None = None
    traceparent: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    unique_key: UniqueKey | None = None
    """While a run of the task with it is unfinished, that run is returned."""


type NewRuns = NewRun | Annotated[list[NewRun], msgspec.Meta(min_length=1, max_length=BATCH_MAX)]


class Accepted(Reply, frozen=True, kw_only=True):
    """An accepted run, or the unfinished one that has its unique key."""

    id: str
    """The run's id."""
    spec_hash: str
    """The spec hash of the returned run; an earlier run may have other arguments."""
    created: bool = True
    """False: an unfinished run with this unique key was returned."""


class AcceptedRuns(Reply, frozen=True, kw_only=True):
    """Accepted runs, in the order they were sent."""

    runs: list[Accepted]


class RunBrief(Reply, frozen=True, kw_only=True):
    """A run without its arguments and its result."""

    id: str
    status: Status
    wait_reason: str | None
    queue: str
    task: str
    version: int
    priority: int
    run_after: datetime
    attempts: int
    charged: int
    losses: int
    max_attempts: int
    timeout_s: float | None
    spec_hash: str
    result_hash: str | None
    errors: list[dict[str, Any]]
    """One per failed attempt, oldest first."""
    labels: dict[str, str]
    worker_ids: list[str]
    leased_by: str | None
    leased_until: datetime | None
    cancel_requested_at: datetime | None
    replay_of: str | None
    traceparent: str | None
    enqueued_at: datetime
    started_at: datetime | None
    last_attempted_at: datetime | None
    finished_at: datetime | None
    as_of: datetime


class RunView(RunBrief, frozen=True, kw_only=True):
    """A run with all its fields."""

    spec: Annotated[Raw, msgspec.Meta(extra_json_schema=JSON_OBJECT)]
    """`{"task", "version", "args", "kwargs"}`, verbatim."""
    result: Raw | None
    """The value that the task returned, verbatim; null without a result."""
    retry: Raw | None
    provenance: list[int | None]
    usage: list[dict[str, Any]]
    memo_of: str | None = None
    """The run whose result was reused."""
    unique_key: str | None = None
    """Until it has ended, its task accepts no other run with this key."""
    progress: ProgressView | None = None
    """Its progress; null while its task has not reported any."""
    why: str | None = None
    """Why a READY or WAITING run is not executed now; null for others, and in the past."""


class RunPage(Reply, frozen=True, kw_only=True):
    """Runs, newest first."""

    runs: list[RunBrief]
    next: str | None
    """The cursor of the next page; null on the last one."""


class Ids(Identified, frozen=True, kw_only=True):
    """Ids of runs to change."""

    runs: Annotated[list[Id], msgspec.Meta(min_length=1, max_length=BATCH_MAX)]


class Moved(Reply, frozen=True, kw_only=True):
    """A run and its status now; RUNNING after a cancel: its worker was asked to stop it."""

    id: str
    status: Status


class MovedRuns(Reply, frozen=True, kw_only=True):
    """Runs that were changed; a missing one was in another status or is unknown."""

    runs: list[Moved]
    locked: list[str] | UnsetType = UNSET
    """Runs that are unchanged: another transaction has locked the row. Try again."""


class SignalRun(Request, frozen=True, kw_only=True):
    """A signal for a run that waits for it, now or later."""

    event: Name
    payload: Raw | UnsetType = UNSET
    """Any JSON value; absent: null."""


class QueueView(Reply, frozen=True, kw_only=True):
    """A queue and its counts by status, which stop at `count_max`."""

    queue: str
    paused_at: datetime | None
    ready: int
    waiting: int
    running: int
    dead: int
    oldest_ready_s: float | None
    """How long the next run to be claimed has been due."""
    depth: int | None = None
    """Runs accepted and not begun, ready or waiting, however many; null before the first count."""
    unserved: list[str] = msgspec.field(default_factory=list)
    """Tasks with ready runs that no live worker of the queue knows, as `name@version`."""


class QueuesReply(Reply, frozen=True, kw_only=True):
    """Every queue the token may see."""

    queues: list[QueueView]
    count_max: int
    """A count that has reached this may be higher: counting stops here."""


class QueueState(Reply, frozen=True, kw_only=True):
    """Whether a queue is paused."""

    queue: str
    paused: bool


class SetUnserved(Request, frozen=True, kw_only=True):
    """How long ready runs of a queue wait for a worker that knows their task."""

    after: Annotated[str, msgspec.Meta(max_length=40)]
    """A duration from one minute on, as in `2h`, or `never`: they wait without limit."""


class QueuePatience(Reply, frozen=True, kw_only=True):
    """How long ready runs of a queue wait for a worker that knows their task."""

    queue: str
    unserved_for_s: float | None
    """Seconds without one after which they end FAILED; null: they wait without limit."""


class Percentiles(Reply, frozen=True, kw_only=True):
    """The 50th, 95th and 99th percentile in seconds, within a tenth; null without data."""

    p50: float | None
    p95: float | None
    p99: float | None


class TaskStats(Reply, frozen=True, kw_only=True):
    """Runs of one task in one queue: counts now, and statistics of the window."""

    queue: str
    task: str
    version: int
    enqueued: int
    succeeded: int
    retried: int
    failed: int
    cancelled: int
    lost: int
    """Leases that expired, and attempts whose process died without a proven cause."""
    per_s: float
    """Runs that ended, per second."""
    wait_s: Percentiles
    """From due to claimed."""
    run_s: Percentiles
    """From claimed to ended."""
    errors: dict[str, int]
    """Failed attempts by the class of their error."""
    depth: int | None = None
    """Runs accepted and not begun, now, ready or waiting; null before the first count."""
    running: int | None = None
    """Runs that workers execute now; null before the first count."""
    oldest_ready_s: float | None = None
    """How long the first of them has been due, among the first `count_max` of its queue."""


class StatsReply(Reply, frozen=True, kw_only=True):
    """Queues now, and tasks over a window."""

    window_s: float
    as_of: datetime | None
    """Up to when events are counted; null before the first count."""
    queues: list[QueueView]
    count_max: int
    tasks: list[TaskStats]
    under_way: list[UnderWayView] = msgspec.field(default_factory=list)
    """Runs that report progress: the latest fifty to begin, among the last thousand."""


class Scale(Reply, frozen=True, kw_only=True):
    """The load of some queues, for an autoscaler."""

    backlog: int
    """Ready and running runs, counted up to `count_max` each."""
    oldest_ready_s: float
    workers: int


class EventView(Reply, frozen=True, kw_only=True):
    """An event of a run."""

    id: str
    """Its cursor in the event log: send it as Last-Event-ID to continue from here."""
    at: datetime
    kind: str
    run: str
    attempt: int
    move: int
    worker: str | None
    data: dict[str, Any] | None = None


class EventsReply(Reply, frozen=True, kw_only=True):
    """The events of a run, oldest first."""

    events: list[EventView]


class ArtifactView(Reply, frozen=True, kw_only=True):
    """An artifact of an attempt; the route of its hash returns the content."""

    attempt: int
    name: str
    hash: str
    size: int
    media_type: str
    at: datetime


class ArtifactsReply(Reply, frozen=True, kw_only=True):
    """The artifacts of a run, attempt by attempt."""

    artifacts: list[ArtifactView]


class WorkerView(Reply, frozen=True, kw_only=True):
    """A worker as it last described itself."""

    worker: str
    host: str
    pid: int
    started_at: datetime
    seen_at: datetime
    idle: bool
    stopping: bool
    hands: int
    concurrency: int
    running: int
    finished: int
    version: str
    python: str
    queues: list[str]
    tasks: list[str]
    alive: bool


class WorkersReply(Reply, frozen=True, kw_only=True):
    """Registered workers."""

    workers: list[WorkerView]


class Deleted(Reply, frozen=True, kw_only=True):
    """Dead letters that were deleted."""

    runs: list[str]
    locked: list[str] | UnsetType = UNSET
    """Dead letters that are still there: another transaction has locked the row. Try again."""


class Whoami(Reply, frozen=True, kw_only=True):
    """The permissions of a token."""

    name: str
    role: str
    queues: list[str]
    tasks: list[str]
    expires_at: datetime | None


class Health(Reply, frozen=True, kw_only=True):
    """Whether the service is alive, or ready for requests."""

    status: Literal["ok", "stopping"]

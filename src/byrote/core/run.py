# SPDX-License-Identifier: MIT
"""A run as a frozen record for readers, and as a lean lease for workers."""

from datetime import datetime, timedelta
from typing import Any, NamedTuple, Self

import msgspec

from byrote.core.json.codec import unpack
from byrote.core.progress import Progress
from byrote.core.replay.provenance import Provenance
from byrote.core.state import FINAL, Status


class ShownAs(NamedTuple):
    """The run id, queue and attempt number that a replayed attempt sees."""

    id: str
    queue: str
    attempt: int


class Leased(msgspec.Struct, gc=False):
    """A run together with the right to attempt it until `deadline`, proved by `token`."""

    id: str
    queue: str
    task: str
    version: int
    spec_json: str
    attempt: int
    charged: int
    losses: int
    max_attempts: int
    timeout_ms: int | None
    retry_json: str | None
    labels_json: str | None
    traceparent: str | None
    spec_hash: bytes
    rank: int
    age_us: int
    as_of_us: int
    """The value of `ctx.now()`, in microseconds since 1970."""
    token: str
    deadline: float
    """Monotonic time of this process after which the lease must not be trusted."""
    claimed_at: float = 0.0
    """Monotonic time of this process at which the claim was sent."""
    settling: bool = False
    """Its verdict is being written; no other part of the worker may change the lease."""
    provenance: Provenance | None = None
    """The environment that executed the attempt, once it has ended."""
    hand: int = 0
    """Process id of the hand that wants to be notified of the stored verdict; 0 for none."""
    shown_as: ShownAs | None = None
    """The identity that the task sees in a replay; None: its own."""

    @property
    def shown(self) -> Self | ShownAs:
        """The id, queue and attempt number that the task sees."""
        return self if self.shown_as is None else self.shown_as

    @property
    def key(self) -> str:
        """Identifies this attempt among all others, also from the one that a replay repeats."""
        return f"{self.id}/{self.attempt}/{self.token}"

    @property
    def age(self) -> timedelta:
        """How old the run was when it was claimed."""
        return timedelta(microseconds=self.age_us)


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One accepted spec on its way to a terminal status, as it was when it was read."""

    id: str
    """A UUID of version 7, so ids sort by the time of enqueueing."""
    status: Status
    """WAITING, READY, RUNNING, SUCCESSFUL, FAILED or CANCELLED."""
    wait_reason: str | None
    """Why it is WAITING: `due`, `retry`, `snooze`, `sleep` or `event`; otherwise None."""
    queue: str
    """The queue it waits in."""
    task: str
    """The name of its task."""
    version: int
    """The version of its task."""
    priority: int
    """-100 to 100, higher first."""
    run_after: datetime
    """When it is, or was, due."""
    attempts: int
    """Claims so far."""
    charged: int
    """Attempts that count against `max_attempts`."""
    losses: int
    """How often it was lost with its worker."""
    max_attempts: int
    """The budget of its retry policy."""
    timeout: timedelta | None
    """How long one attempt may take."""
    spec_json: str
    """Task, version and arguments as JSON text, exactly as sent."""
    spec_hash: str
    """SHA-256 of the canonical spec, in hexadecimal."""
    result_json: str | None
    """The result as JSON text."""
    result_hash: str | None
    """SHA-256 of the canonical result."""
    faults: list[dict[str, Any]]
    """One structured error per failed attempt, oldest first."""
    retry_json: str | None
    """Its retry policy as JSON text."""
    labels: dict[str, str]
    """The caller's labels."""
    worker_ids: list[str]
    """The workers that claimed it, attempt by attempt."""
    leased_by: str | None
    """The worker that executes it now."""
    leased_until: datetime | None
    """When the lease expires unless that worker renews it."""
    cancel_requested_at: datetime | None
    """When a caller asked to cancel it while it was running."""
    replay_of: str | None
    """The run that it repeats."""
    traceparent: str | None
    """The W3C trace context of the caller."""
    enqueued_at: datetime
    """When it was accepted."""
    started_at: datetime | None
    """When its first attempt began."""
    last_attempted_at: datetime | None
    """When its latest attempt began."""
    finished_at: datetime | None
    """When it reached a terminal status."""
    as_of: datetime
    """The value of `ctx.now()`: when the run, or the run that it repeats, was accepted."""
    provenance: list[int | None]
    """Attempt by attempt, the number of the environment that executed it."""
    usage: list[dict[str, Any]]
    """Wall time, CPU time and memory of attempts of tasks that ask to be measured."""
    shadow: bool
    """Whether it only checks if the run it repeats would end the same today."""
    memo_of: str | None = None
    """The run whose stored result was reused; it may have been pruned since."""
    unique_key: str | None = None
    """Until it has ended, its task accepts no other run with this key."""
    progress: Progress | None = None
    """Its progress, if its task reports any; not read for lists of runs."""

    @property
    def finished(self) -> bool:
        """Whether the run has a terminal status."""
        return self.status in FINAL

    @property
    def hidden(self) -> bool:
        """Whether it was read without arguments and result: in a list, or without the right."""
        return self.spec_json == "null"

    @property
    def args(self) -> list[Any]:
        """The positional arguments, exactly as sent."""
        return unpack(self.spec_json)["args"]  # type: ignore[no-any-return]

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments, exactly as sent."""
        return unpack(self.spec_json)["kwargs"]  # type: ignore[no-any-return]

    @property
    def result(self) -> Any:
        """The value that the task returned; None without a result."""
        return None if self.result_json is None else unpack(self.result_json)

# SPDX-License-Identifier: MIT
"""Runs as others see them: a frozen record for people, a lean lease for workers."""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from byrote.core.json.codec import unpack
from byrote.core.progress import Progress
from byrote.core.replay.provenance import Provenance
from byrote.core.state import FINAL, Status


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
    """What `ctx.now()` says, in microseconds since 1970."""
    token: str
    deadline: float
    """Monotonic time of this process after which the lease must not be believed."""
    claimed_at: float = 0.0
    """Monotonic time of this process at which the claim was sent."""
    settling: bool = False
    """Its verdict is on the way to the database; nobody else has anything to say about it."""
    provenance: Provenance | None = None
    """What executed the attempt, once it has ended."""
    hand: int = 0
    """Whose attempt it was, where it wants to hear how it was settled: a process id."""

    @property
    def key(self) -> str:
        """What no other attempt has, not even the one that a replay repeats."""
        return f"{self.id}/{self.attempt}/{self.token}"

    @property
    def age(self) -> timedelta:
        """How old the run was when it was claimed."""
        return timedelta(microseconds=self.age_us)


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One accepted spec on its way to a terminal state, as the database had it when it was read."""

    id: str
    status: Status
    wait_reason: str | None
    queue: str
    task: str
    version: int
    priority: int
    run_after: datetime
    attempts: int
    """Claims so far."""
    charged: int
    """Attempts that count against `max_attempts`."""
    losses: int
    """How often its worker vanished under it."""
    max_attempts: int
    timeout: timedelta | None
    spec_json: str
    spec_hash: str
    result_json: str | None
    result_hash: str | None
    faults: list[dict[str, Any]]
    """One structured error per failed attempt, oldest first."""
    retry_json: str | None
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
    """What `ctx.now()` says: when the run was accepted, or the run it repeats."""
    provenance: list[int | None]
    """Attempt by attempt, the number of the environment that executed it."""
    usage: list[dict[str, Any]]
    """Wall time, CPU time and memory of attempts of tasks that ask to be measured."""
    shadow: bool
    """Whether it only checks if the run it repeats would end the same today."""
    memo_of: str | None = None
    """The run whose stored result answered this one at once; it may have been pruned since."""
    unique_key: str | None = None
    """Until it has ended, its task accepts no other run with this key."""
    progress: Progress | None = None
    """How far it has come, if its task tells; read with the run itself, not with lists of runs."""

    @property
    def finished(self) -> bool:
        """Whether the run has come to its end."""
        return self.status in FINAL

    @property
    def hidden(self) -> bool:
        """Whether the login that read it may not see arguments, results and errors."""
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
        """What the task returned; None while there is nothing."""
        return None if self.result_json is None else unpack(self.result_json)

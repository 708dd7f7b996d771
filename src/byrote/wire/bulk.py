# SPDX-License-Identifier: MIT
"""Requests that change all runs that match filters, or a queue's retention, and their replies."""

from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from byrote.core.state import Status
from byrote.wire.messages import MovedRuns
from byrote.wire.terms import (
    BATCH_MAX,
    Digest,
    Duration,
    Id,
    Identified,
    Reply,
    Request,
    Seconds,
)

type Filter = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
type BatchCursor = Annotated[str, msgspec.Meta(max_length=100)]
type BatchSize = Annotated[int, msgspec.Meta(ge=1, le=BATCH_MAX)]
type Moment = Annotated[
    str,
    msgspec.Meta(max_length=40, description="An age such as `1h`, or RFC 3339 with time zone."),
]


class ChosenRuns(Identified, frozen=True, kw_only=True):
    """Runs to change: by their ids, or a batch of all that match filters."""

    runs: Annotated[list[Id], msgspec.Meta(min_length=1, max_length=BATCH_MAX)] | UnsetType = UNSET
    """Ids; send either these or filters."""
    status: Status | None = None
    """Cancel: WAITING, READY or RUNNING, default all. Retry: FAILED, the default, or WAITING."""
    queue: Filter | None = None
    task: Filter | None = None
    hash: Digest | None = None
    """The spec hash."""
    labels: dict[str, str] | None = None
    """Runs that have all of these."""
    since: Moment | None = None
    """Dead letters that failed, and unfinished runs that were enqueued, since then."""
    dry_run: bool = False
    """Count the runs that match, and change nothing."""
    limit: BatchSize = BATCH_MAX
    """Runs that this request changes at most."""
    cursor: BatchCursor | None = None
    """The `next` of the reply before, sent with the same filters."""

    @property
    def filtered(self) -> bool:
        """Whether it has any field beside ids."""
        return self != ChosenRuns(runs=self.runs)


class PurgeQueue(Request, frozen=True, kw_only=True):
    """Cancel a batch of the waiting and ready runs of a queue; running attempts continue."""

    dry_run: bool = False
    """Count the runs that match, and change nothing."""
    limit: BatchSize = BATCH_MAX
    """Runs that this request changes at most."""
    cursor: BatchCursor | None = None
    """The `next` of the reply before."""


class MatchedRuns(MovedRuns, frozen=True, kw_only=True):
    """Runs that were changed; a missing one was in another status or is unknown."""

    matched: dict[Status, int] | UnsetType = UNSET
    """How many runs matched the filters, by status; absent for ids and after a `cursor`."""
    next: str | None = None
    """The cursor for the rest of the runs that matched; null if none remain."""


class SetRetention(Request, frozen=True, kw_only=True):
    """How long a queue keeps ended runs and dead letters; an absent setting stays."""

    keep_done: Duration | Seconds | None = None
    """At least a day: `7d`, or seconds."""
    keep_dead: Duration | Seconds | None = None
    """Such as `180d`, or seconds."""


class QueueKeeps(Reply, frozen=True, kw_only=True):
    """How long a queue keeps ended runs and dead letters now."""

    queue: str
    keep_done_s: float
    """Seconds that it keeps ended runs."""
    keep_dead_s: float
    """Seconds that it keeps dead letters."""

# SPDX-License-Identifier: MIT
"""Queries about all dead and unfinished runs that match filters, and which filters commands take.

The command line, Python and HTTP make their filters here, so that the rules and the messages are
the same.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from byrote.core.duration import duration
from byrote.core.errors import BadOption
from byrote.core.ports.replies import Locked
from byrote.core.state import Status
from byrote.store.queries.queues import within
from byrote.store.queries.runs import retry, since_args
from byrote.store.query import Query

RETRIED = (Status.FAILED, Status.WAITING)
CANCELLED = (Status.WAITING, Status.READY, Status.RUNNING)
PURGED = (Status.WAITING, Status.READY)
FIRST = "00000000-0000-0000-0000-000000000000"
"""Before the id of any run."""

type Since = datetime | timedelta | str | float | None
"""A moment, or an age such as `"1h"`."""


class RunFilter(msgspec.Struct, frozen=True):
    """Which dead and unfinished runs a command changes; an absent filter matches all."""

    statuses: tuple[Status, ...]
    queue: str | None = None
    task: str | None = None
    spec_hash: str | None = None
    labels: Mapping[str, str] | None = None
    since: datetime | timedelta | None = None
    """Dead runs that failed, and unfinished ones that were enqueued, since then or this long ago"""
    queues: Sequence[str] | None = None
    """The queues that the caller may change; None: all."""
    tasks: Sequence[str] | None = None
    """The tasks that the caller may change; None: all."""

    @property
    def args(self) -> dict[str, Any]:
        """The parameters of the statements."""
        return {
            "statuses": [status.value for status in self.statuses],
            "queue": self.queue,
            "task": self.task,
            "hash": self.spec_hash,
            "label": msgspec.json.encode(self.labels).decode() if self.labels else None,
            **since_args(self.since),
            **within(self.queues, self.tasks),
        }


def retry_filter(*, status: str | None = None, **filters: Any) -> RunFilter:
    """Return which runs a retry by filter changes: dead letters, unless `status` is waiting."""
    return _filter(RETRIED, status or Status.FAILED, "retried", **filters)


def cancel_filter(*, status: str | None = None, **filters: Any) -> RunFilter:
    """Return which runs a cancel by filter changes: unfinished ones, or those of one status."""
    return _filter(CANCELLED, status, "cancelled", **filters)


def retry_verb(chosen: RunFilter) -> Callable[[Sequence[str]], Query[str | Locked]]:
    """Return the command that retries the runs of a filter, all of which have one status."""
    [was] = chosen.statuses
    return partial(retry, was=was)


def _filter(
    allowed: tuple[Status, ...],
    status: str | None,
    verb: str,
    *,
    queue: str | None = None,
    task: str | None = None,
    spec_hash: str | None = None,
    labels: Mapping[str, str] | None = None,
    since: Since = None,
) -> RunFilter:
    if status is not None and status.upper() not in allowed:
        known = " or ".join(one.lower() for one in allowed)
        raise BadOption(f"Runs that are {known} can be {verb}, not {status.lower()!r} ones.")
    if not (queue or task or spec_hash or labels or since is not None):
        raise BadOption("Name a queue, task, spec hash, label or time, or the ids of the runs.")
    return RunFilter(
        statuses=allowed if status is None else (Status(status.upper()),),
        queue=queue,
        task=task,
        spec_hash=spec_hash,
        labels=labels or None,
        since=read_since(since),
    )


def read_since(since: Since) -> datetime | timedelta | None:
    """Return a moment or an age; raises BadOption for anything else."""
    match since:
        case None | timedelta():
            return since
        case datetime():
            if since.tzinfo is None:
                raise BadOption(f"since: {since!r} has no time zone; add one, such as UTC.")
            return since
        case _:
            try:
                return duration(since)
            except ValueError as error:
                raise BadOption(f"since: {error}") from None


class MatchCount(msgspec.Struct, frozen=True):
    """How many runs of a status match, and the newest of their ids."""

    status: Status
    runs: int
    newest: str


def count_matching(chosen: RunFilter) -> Query[MatchCount]:
    """Count the runs that match, by status."""
    return Query(
        "count_matching", chosen.args, lambda row: MatchCount(Status(row[0]), row[1], row[2])
    )


def matching(chosen: RunFilter, *, after: str, newest: str, limit: int) -> Query[str]:
    """The ids of the runs that match, oldest first, between two ids."""
    args = chosen.args | {"after": after, "newest": newest, "limit": limit}
    return Query("matching", args, lambda row: str(row[0]))

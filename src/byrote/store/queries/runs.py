# SPDX-License-Identifier: MIT
"""Queries about runs: look up, list, cancel, retry, delete."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from byrote.core.outcome import Printing
from byrote.core.ports import replies
from byrote.core.ports.replies import Locked
from byrote.core.run import Leased, Run
from byrote.core.state import Status
from byrote.store import rows
from byrote.store.queries.queues import within
from byrote.store.query import Query, Resend
from byrote.store.rows import id_from

_encode = msgspec.json.Encoder().encode


def cancel(ids: Sequence[str]) -> Query[rows.MovedRun | replies.Locked]:
    """Cancel runs that have not finished: at once, or by asking their worker."""
    return Query("cancel", {"ids": list(ids)}, rows.moved_run_from, Resend.ONCE)


def retry(ids: Sequence[str], *, was: Status | None = None) -> Query[str | replies.Locked]:
    """Requeue dead runs, and make waiting ones READY; `was` FAILED or WAITING selects one kind."""
    return Query("retry", {"ids": list(ids), "was": was and was.value}, rows.id_from, Resend.ONCE)


def run(run_id: str) -> Query[Run]:
    """One run, in whichever table it is."""
    return Query("run", {"id": run_id}, rows.run_from)


def runs(  # noqa: PLR0913 -- one parameter per filter.
    *,
    status: str | None = None,
    queue: str | None = None,
    task: str | None = None,
    spec_hash: str | None = None,
    labels: Mapping[str, str] | None = None,
    queues: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    before: str | None = None,
    limit: int = 50,
    shadow: bool = False,
    since: datetime | timedelta | None = None,
) -> Query[Run]:
    """The newest runs that match, without arguments and results; shadow runs with `shadow`.

    `since` is a moment or an age: runs that ended since then or, if they have not, were enqueued.
    """
    args = {
        **since_args(since),
        "status": status,
        "queue": queue,
        "task": task,
        "hash": spec_hash,
        "label": None if labels is None else _encode(labels).decode(),
        "before": before,
        "limit": limit,
        "shadow": shadow,
    }
    return Query("runs", args | within(queues, tasks), rows.run_from)


def since_args(since: datetime | timedelta | None) -> dict[str, Any]:
    """Return the parameters of a moment or an age."""
    ago = isinstance(since, timedelta)
    return {"since": None if ago else since, "within": since if ago else None}


def outcome(run_id: str) -> Query[rows.RunOutcome]:
    """The status, result and errors of a run, for a waiting caller."""
    return Query("outcome", {"id": run_id}, rows.ended_from)


def outputs(run_id: str, *, attempt: int | None = None) -> Query[rows.Printed]:
    """The output of a run's attempts, in order."""
    return Query("outputs", {"id": run_id, "attempt": attempt}, lambda row: rows.Printed(*row))


class RunAccess(msgspec.Struct, frozen=True):
    """The queue, task and spec hash of a run, which decide who may see it."""

    id: str
    queue: str
    task: str
    spec_hash: str


def run_access(ids: Sequence[str]) -> Query[RunAccess]:
    """The queue, task and spec hash of runs."""
    return Query("run_access", {"ids": list(ids)}, lambda row: RunAccess(*row))


def ended_runs(ids: Sequence[str]) -> Query[str]:
    """Which of these runs have ended."""
    return Query("ended_runs", {"ids": list(ids)}, lambda row: str(row[0]))


LIST_MAX = 1_000
"""Beyond this, a list for people shows "many"."""


NAMES_MAX = 500


def filter_names(*, limit: int = NAMES_MAX) -> Query[tuple[str, str]]:
    """Names to filter a list by: pairs of `queue` or `task` and the name."""
    return Query("filter_names", {"limit": limit}, lambda row: (row[0], row[1]))


def delete_runs(ids: Sequence[str]) -> Query[str | Locked]:
    """Delete finished runs with all their rows; returns the ids of those it deleted."""
    return Query("delete_runs", {"ids": list(ids)}, id_from, Resend.ONCE)


def dead(
    *,
    queue: str | None = None,
    task: str | None = None,
    queues: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    before: tuple[datetime, str] | None = None,
    limit: int = 50,
) -> Query[Run]:
    """Dead letters, the latest first, without arguments and results."""
    at, run_id = (None, None) if before is None else before
    args: dict[str, Any] = {"queue": queue, "task": task, "before": at, "before_id": run_id}
    return Query("dead", args | {"limit": limit} | within(queues, tasks), rows.run_from)


def delete_dead(ids: Sequence[str]) -> Query[str | Locked]:
    """Delete dead letters for good."""
    return Query("delete_dead", {"ids": list(ids)}, rows.id_from, Resend.ONCE)


def watch(run_id: str) -> Query[rows.LiveOutput | None]:
    """Watch a run for ten seconds; returns the latest output of its attempt under way."""
    return Query("watch", {"id": run_id}, rows.seen_from)


def watched() -> Query[str]:
    """The runs that a client watches now."""
    return Query("watched", {}, lambda row: str(row[0]))


def live_output(run: Leased, printed: Printing) -> Query[int]:
    """Store the output of an attempt so far; no row if no client watches its run."""
    args = {"id": run.id, "attempt": run.attempt, **printed._asdict()}
    return Query("live_output", args, lambda row: int(row[0]))

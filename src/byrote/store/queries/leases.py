# SPDX-License-Identifier: MIT
"""Queries of the path of a run: promote, claim, renew, finish, sweep."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from byrote.core.policy import LOSSES_MAX
from byrote.core.ports import replies
from byrote.core.run import Leased
from byrote.store import rows
from byrote.store.query import Query

_encode = msgspec.json.Encoder().encode


RANK_MIN = -(2**62)
"""The floor below every rank: claim from the front of the queue."""


def promote(*, limit: int = 1_000) -> Query[replies.Promotion]:
    """Make due runs READY, oldest first."""
    return Query("promote", {"limit": limit}, lambda row: replies.Promotion(*row))


def claim(
    *,
    quotas: Mapping[str, int],
    tasks: Sequence[str],
    worker: str,
    token: str,
    lease_for: timedelta,
    deadline: float = 0.0,
    claimed_at: float = 0.0,
    floors: Mapping[str, int] | None = None,
) -> Query[Leased]:
    """Lease up to each queue's quota of ready runs, highest priority first, then oldest."""
    floors = floors or {}
    args = {
        "queues": list(quotas),
        "quotas": list(quotas.values()),
        "floors": [floors.get(queue, RANK_MIN) for queue in quotas],
        "tasks": list(tasks),
        "worker": worker,
        "token": token,
        "lease_for": lease_for,
    }
    return Query("claim", args, rows.leased_from(token, deadline, claimed_at))


def claimed(*, worker: str, token: str, deadline: float, claimed_at: float) -> Query[Leased]:
    """The runs leased by a claim whose answer was lost."""
    return Query(
        "claimed", {"worker": worker, "token": token}, rows.leased_from(token, deadline, claimed_at)
    )


def renew(leases: Sequence[Leased], *, lease_for: timedelta) -> Query[rows.Renewal]:
    """Extend leases that are still held; a lease missing from the answer is lost."""
    args = {"leases": _leases(leases), "lease_for": lease_for}
    return Query("renew", args, lambda row: rows.Renewal(*row), yields=True)


def finish(
    verdicts: Sequence[Mapping[str, Any]], *, provenance: int | None = None
) -> Query[tuple[str, str]]:
    """Settle attempts; returns accepted ids and their verdicts. A missing id lost its lease.

    `provenance` is the environment of those that have no other in their `more`.
    """
    args = {"verdicts": _encode(verdicts).decode(), "provenance": provenance}
    return Query("finish", args, lambda row: (row[0], row[1]), yields=True)


def succeed(
    successes: Sequence[tuple[str, str, int, str, str, dict[str, int] | None]],
    *,
    provenance: int | None = None,
) -> Query[tuple[str, str]]:
    """Settle attempts that succeeded with nothing but a result, as `finish` would, at less cost.

    Each is id, token, attempt, result, the result's hash, and its resource usage if known.
    """
    args = {"successes": _encode(successes).decode(), "provenance": provenance}
    return Query("succeed", args, lambda row: (row[0], "S"), yields=True)


def finished_leases(leases: Sequence[Leased]) -> Query[tuple[str, str | None]]:
    """Which of these leases were settled already, and by which verdict, if known."""
    return Query("finished_leases", {"leases": _leases(leases)}, lambda row: (row[0], row[1]))


def _leases(leases: Sequence[Leased]) -> str:
    sent = [{"id": held.id, "token": held.token, "attempt": held.attempt} for held in leases]
    return _encode(sent).decode()


def sweep(*, limit: int = 1_000) -> Query[replies.ReclaimedRun]:
    """Take back runs whose lease has expired."""
    args = {"limit": limit, "losses_max": LOSSES_MAX}
    return Query("sweep", args, lambda row: replies.ReclaimedRun(*row[:4]))


def unfinished(*, queues: Sequence[str], tasks: Sequence[str]) -> Query[replies.Remainder]:
    """Count the runs left in these queues for a worker that knows these tasks."""
    args = {"queues": list(queues), "tasks": list(tasks)}
    return Query("unfinished", args, _left)


def _left(row: tuple[Any, ...]) -> replies.Remainder:
    due, elsewhere, unknown, paused, later, tasks = row
    return replies.Remainder(due, elsewhere, unknown, paused, later, tuple(tasks))


def unknown_tasks(*, queues: Sequence[str], tasks: Sequence[str]) -> Query[replies.UnknownTaskRef]:
    """Tasks at the front of the queues that are not among these."""
    args = {"queues": list(queues), "tasks": list(tasks)}
    return Query("unknown_tasks", args, lambda row: replies.UnknownTaskRef(*row))


def leased_runs(leases: Sequence[tuple[str, str]]) -> Query[Leased]:
    """The facts that a verdict on runs under way depends on, by id and token."""
    sent = _encode([{"id": run, "token": token} for run, token in leases]).decode()
    return Query("leased_runs", {"leases": sent}, rows.leased_from("", 0.0, 0.0))


def ready_queues(queues: Sequence[str]) -> Query[str]:
    """Which of these queues have runs to claim."""
    return Query("ready_queues", {"queues": list(queues)}, lambda row: str(row[0]))

# SPDX-License-Identifier: MIT
"""Every verb of the store: one function each, named for its statement, giving a Query."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from byrote.core import answer
from byrote.core.codec import Packed
from byrote.core.duration import micros
from byrote.core.policy import LOSSES_MAX, ONCE
from byrote.core.run import Leased, Run
from byrote.core.spec import Delivery, Spec
from byrote.core.state import Status
from byrote.store import rows
from byrote.store.query import Query, Resend

RANK_MIN = -(2**62)
"""The floor below every rank: claim from the very front of the queue."""

_encode = msgspec.json.Encoder().encode


def enqueue(specs: Sequence[tuple[str, Spec]]) -> Query[int]:
    """Accept specs under ids their sender chose: all of them or none."""
    return Query("enqueue", batch(described(specs)), lambda row: int(row[0]), Resend.BY_ID)


def described(specs: Sequence[tuple[str, Spec]]) -> list[dict[str, Any]]:
    """What statements that accept specs are told of each of them."""
    deliveries: dict[int, dict[str, Any]] = {}
    sent = []
    for run_id, spec in specs:
        # Thousands of specs usually share one Delivery object; describe it once per batch.
        delivery = deliveries.get(id(spec.delivery))
        if delivery is None:
            delivery = deliveries[id(spec.delivery)] = _delivery(spec.delivery)
        sent.append(_identity(run_id, spec) | delivery)
    return sent


def batch(sent: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The parameters of such a statement."""
    # `first` is for asking whether the batch was accepted, when its answer was lost (known.sql).
    return {"runs": _encode(sent).decode(), "first": sent[0]["id"] if sent else None}


def enqueue_one(run_id: str, spec: Spec) -> Query[datetime]:
    """Accept one spec under an id its sender chose, as cheaply as one can be; gives the moment."""
    args = {**_NOTHING_SPECIAL, **_identity(run_id, spec), **_delivery(spec.delivery)}
    if args["labels"] is not None:
        args["labels"] = _encode(args["labels"]).decode()
    args |= {"hash": spec.digest, "first": run_id}
    return Query("enqueue_one", args, lambda row: row[0], Resend.BY_ID)


_NOTHING_SPECIAL: Mapping[str, Any] = {
    "priority": 0, "due": None, "delay_us": None, "timeout_ms": None, "retry": None, "labels": None,
    "trace": None,
}  # fmt: skip


def known(run_id: str) -> Query[bool]:
    """Whether a run has been accepted, wherever it lies."""
    return Query("known", {"id": run_id}, lambda row: bool(row[0]))


def _identity(run_id: str, spec: Spec) -> dict[str, Any]:
    return {
        "id": run_id,
        "task": spec.task,
        "version": spec.version,
        "spec": spec.text,
        "hash": spec.digest.hex(),
    }


def _delivery(delivery: Delivery) -> dict[str, Any]:
    sent: dict[str, Any] = {"queue": delivery.queue, "max_attempts": delivery.retry.attempts}
    if delivery.priority:
        sent["priority"] = delivery.priority
    match delivery.run_after:
        case datetime():
            sent["due"] = delivery.run_after
        case timedelta():
            sent["delay_us"] = micros(delivery.run_after)
    if delivery.timeout is not None:
        sent["timeout_ms"] = max(delivery.timeout // timedelta(milliseconds=1), 1)
    if delivery.retry != ONCE:
        sent["retry"] = _encode(delivery.retry).decode()
    if delivery.labels:
        sent["labels"] = dict(delivery.labels)
    if delivery.traceparent is not None:
        sent["trace"] = delivery.traceparent
    if delivery.unique_key is not None:
        sent["key"] = delivery.unique_key
    return sent


def promote(*, limit: int = 1_000) -> Query[answer.Promotion]:
    """Make due runs READY, oldest first."""
    return Query("promote", {"limit": limit}, lambda row: answer.Promotion(*row))


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
    """What a claim whose answer was lost had leased."""
    return Query(
        "claimed", {"worker": worker, "token": token}, rows.leased_from(token, deadline, claimed_at)
    )


def renew(leases: Sequence[Leased], *, lease_for: timedelta) -> Query[rows.Renewal]:
    """Extend leases that are still held; what is missing from the answer is lost."""
    args = {"leases": _leases(leases), "lease_for": lease_for}
    return Query("renew", args, lambda row: rows.Renewal(*row), yields=True)


def finish(
    verdicts: Sequence[Mapping[str, Any]], *, provenance: int | None = None
) -> Query[tuple[str, str]]:
    """Settle attempts; gives ids accepted and as what, what is missing lost its lease.

    `provenance` is what executed those that do not say otherwise in their `more`.
    """
    args = {"verdicts": _encode(verdicts).decode(), "provenance": provenance}
    return Query("finish", args, lambda row: (row[0], row[1]), yields=True)


def succeed(
    successes: Sequence[tuple[str, str, int, str, str, dict[str, int] | None]],
    *,
    provenance: int | None = None,
) -> Query[tuple[str, str]]:
    """Settle attempts that succeeded and say no more, as `finish` would, for less.

    Each is its id, token, attempt, result, the result's hash, and what it used if that is known.
    """
    args = {"successes": _encode(successes).decode(), "provenance": provenance}
    return Query("succeed", args, lambda row: (row[0], "S"), yields=True)


def settled(leases: Sequence[Leased]) -> Query[tuple[str, str | None]]:
    """Which of these leases were settled already, and as what, if that is known."""
    return Query("settled", {"leases": _leases(leases)}, lambda row: (row[0], row[1]))


def _leases(leases: Sequence[Leased]) -> str:
    sent = [{"id": held.id, "token": held.token, "attempt": held.attempt} for held in leases]
    return _encode(sent).decode()


def step(steps: Sequence[Mapping[str, Any]]) -> Query[answer.Noted]:
    """Write steps under their leases; what is missing from the answer lost its lease."""
    return Query("step", {"steps": _encode(steps).decode()}, lambda row: answer.Noted(*row))


def steps(ids: Sequence[str]) -> Query[answer.StepRow]:
    """The ledgers of these runs, each in order."""
    return Query("steps", {"ids": list(ids)}, lambda row: answer.StepRow(*row))


def signal(run_id: str, signal_id: str, event: str, payload: Packed) -> Query[str]:
    """Send an unfinished run a signal; gives its status, nothing when there is no such run."""
    args = {
        "id": run_id,
        "signal": signal_id,
        "event": event,
        "payload": payload.text,
        "hash": payload.digest,
    }
    return Query("signal", args, lambda row: str(row[0]), Resend.ONCE)


def once(run_id: str, key: str) -> Query[int]:
    """Mark an effect of a run as done; no row when it was done before."""
    return Query("once", {"id": run_id, "key": key}, lambda row: int(row[0]))


def forget(*, keep_done: timedelta | None = None, limit: int = 5_000) -> Query[tuple[int, ...]]:
    """Delete steps, signals, marks and progress of runs that are gone; how many of each."""
    args = {"keep_done": keep_done, "limit": limit}
    return Query("forget", args, lambda row: tuple(map(int, row)))


def sweep(*, limit: int = 1_000) -> Query[answer.Swept]:
    """Take back runs whose lease ran out."""
    args = {"limit": limit, "losses_max": LOSSES_MAX}
    return Query("sweep", args, lambda row: answer.Swept(*row[:4]))


def cancel(ids: Sequence[str]) -> Query[rows.Settlement | answer.Locked]:
    """Cancel runs that have not finished: at once, or by asking their worker."""
    return Query("cancel", {"ids": list(ids)}, rows.settlement_from, Resend.ONCE)


def retry(ids: Sequence[str], *, was: Status | None = None) -> Query[str | answer.Locked]:
    """Bring dead runs back, and let waiting ones go now; `was` FAILED or WAITING: only those."""
    return Query("retry", {"ids": list(ids), "was": was and was.value}, rows.id_from, Resend.ONCE)


def replay(*, original: str, id: str) -> Query[str]:  # noqa: A002 -- the column's name.
    """Enqueue an earlier run's spec again as a new run."""
    args = {"original": original, "id": id}
    return Query("replay", args, lambda row: str(row[0]), Resend.ONCE)


def latest_by_hash(spec_hash: str, *, ended: bool = False) -> Query[str]:
    """The newest run with this spec hash, or the newest of those that ended by themselves."""
    return Query("latest_by_hash", {"hash": spec_hash, "ended": ended}, lambda row: str(row[0]))


def pause(queue: str) -> Query[bool]:
    """Stop claims from a queue; the row says whether it was not paused before."""
    return Query("pause", {"queue": queue}, lambda row: bool(row[2]))


def resume(queue: str) -> Query[bool]:
    """Allow claims from a queue again; the row says whether it was paused."""
    return Query("resume", {"queue": queue}, lambda row: bool(row[2]))


def archive(*, after: str, limit: int = 5_000) -> Query[answer.Archived]:
    """Move finished runs that lie after a cursor to the archive."""
    return Query("archive", {"after": after, "limit": limit}, lambda row: answer.Archived(*row))


def prune(
    *,
    keep_done: timedelta | None = None,
    keep_dead: timedelta | None = None,
    keep_events: timedelta = timedelta(days=30),
    keep_worker: timedelta = timedelta(hours=1),
    keep_shadow: timedelta = timedelta(days=1),
) -> Query[rows.Pruned]:
    """Forget what has been kept long enough, as queues say, or as is said here."""
    args: dict[str, Any] = {"keep_done": keep_done, "keep_dead": keep_dead}
    args |= {"keep_events": keep_events, "keep_worker": keep_worker, "keep_shadow": keep_shadow}
    return Query("prune", args, lambda row: rows.Pruned(*row))


def prune_memos(*, limit: int = 5_000) -> Query[int]:
    """Forget some results that have been kept long enough; gives how many."""
    return Query("prune_memos", {"limit": limit}, lambda row: int(row[0]))


def partition(*, days: int = 14) -> Query[int]:
    """Make the coming days' partitions."""
    return Query("partition", {"days": days}, lambda row: int(row[0]))


def duties(*, worker: str, every: Mapping[str, timedelta]) -> Query[answer.Duty]:
    """Take every duty that is due."""
    args = {"worker": worker, "duties": list(every), "every": list(every.values())}
    return Query("duties", args, lambda row: answer.Duty(*row))


def bookmark(*, duty: str, cursor: str | None) -> Query[str]:
    """Remember how far a duty came."""
    return Query("bookmark", {"duty": duty, "cursor": cursor}, lambda row: str(row[0]))


def register(description: Mapping[str, Any]) -> Query[str]:
    """Announce a worker; no row when its name is another holder's."""
    return Query("register", {"holder": None, **description}, lambda row: str(row[0]))


def heartbeat(
    *,
    worker: str,
    idle: bool,
    stopping: bool,
    running: int,
    finished: int,
    holder: str | None = None,
) -> Query[str]:
    """Say that a worker lives."""
    args: dict[str, Any] = {"worker": worker, "holder": holder, "idle": idle}
    args |= {"stopping": stopping, "running": running, "finished": finished}
    return Query("heartbeat", args, lambda row: str(row[0]))


def idle(*, worker: str, idle: bool) -> Query[str]:
    """Ask to be woken, or stop asking."""
    return Query("idle", {"worker": worker, "idle": idle}, lambda row: str(row[0]))


def deregister(*, worker: str, holder: str | None = None) -> Query[str]:
    """Take a worker off the list."""
    args = {"worker": worker, "holder": holder}
    return Query("deregister", args, lambda row: str(row[0]))


def writable() -> Query[bool]:
    """Whether the session may write."""
    return Query("writable", {}, lambda row: bool(row[0]))


def unfinished(*, queues: Sequence[str], tasks: Sequence[str]) -> Query[answer.Remainder]:
    """What is left in these queues for a worker that knows these tasks."""
    asked = {"queues": list(queues), "tasks": list(tasks)}
    return Query("unfinished", asked, lambda row: answer.Remainder(*row))


def strangers(*, queues: Sequence[str], tasks: Sequence[str]) -> Query[answer.Stranger]:
    """What waits at the front of the queues and is not among these."""
    args = {"queues": list(queues), "tasks": list(tasks)}
    return Query("strangers", args, lambda row: answer.Stranger(*row))


def run(run_id: str) -> Query[Run]:
    """One run, wherever it lies."""
    return Query("run", {"id": run_id}, rows.run_from)


def runs(
    *,
    status: str | None = None,
    queue: str | None = None,
    task: str | None = None,
    spec_hash: str | None = None,
    labels: Mapping[str, str] | None = None,
    before: str | None = None,
    limit: int = 50,
    shadow: bool = False,
) -> Query[Run]:
    """The newest runs that match; shadow runs only if they are asked for."""
    args = {
        "status": status,
        "queue": queue,
        "task": task,
        "hash": spec_hash,
        "before": before,
        "limit": limit,
        "shadow": shadow,
    }
    label = None if labels is None else _encode(labels).decode()
    return Query("runs", args | {"label": label}, rows.run_from)


def outcome(run_id: str) -> Query[rows.Ended]:
    """What a waiting caller needs to know of a run."""
    return Query("outcome", {"id": run_id}, rows.ended_from)


def outputs(run_id: str, *, attempt: int | None = None) -> Query[rows.Printed]:
    """What the attempts of a run printed, in order."""
    return Query("outputs", {"id": run_id, "attempt": attempt}, lambda row: rows.Printed(*row))


def register_provenance(*, digest: str, doc: str) -> Query[int]:
    """Give an environment its number; the same environment has the same one."""
    args = {"hash": digest, "doc": doc}
    return Query("register_provenance", args, lambda row: int(row[0]))


def provenances(ids: Sequence[int]) -> Query[rows.Environment]:
    """The environments with these numbers."""
    return Query("provenances", {"ids": list(ids)}, rows.environment_from)


def queues() -> Query[rows.QueueRow]:
    """Every queue with what waits in it."""
    return Query("queues", {}, lambda row: rows.QueueRow(*row))


def workers() -> Query[rows.WorkerRow]:
    """Every worker that has not been forgotten."""
    return Query("workers", {}, lambda row: rows.WorkerRow(*row))


def schema() -> Query[rows.Applied]:
    """Which migrations the database has."""
    return Query("schema", {}, lambda row: rows.Applied(*row))

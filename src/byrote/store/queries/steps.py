# SPDX-License-Identifier: MIT
"""Queries of durable steps, signals and effects that happen once."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from byrote.core.json.codec import Packed
from byrote.core.ports import replies
from byrote.core.progress import Progress, Reported, progress_of
from byrote.core.state import Status
from byrote.store.query import Query, Resend

_encode = msgspec.json.Encoder().encode


def step(steps: Sequence[Mapping[str, Any]]) -> Query[replies.StepReply]:
    """Write steps under their leases; a step missing from the answer lost its lease."""
    return Query("step", {"steps": _encode(steps).decode()}, lambda row: replies.StepReply(*row))


def record_steps(steps: Sequence[Mapping[str, Any]]) -> Query[replies.StepReply]:
    """Write results of steps; those missing from the answer are to be sent as `step`."""
    args = {"steps": _encode(steps).decode()}
    return Query("record_steps", args, lambda row: replies.StepReply(*row))


def write_steps(
    steps: Sequence[Mapping[str, Any]],
    ask: Callable[[Query[replies.StepReply]], list[replies.StepReply]],
) -> list[replies.StepReply]:
    """Write steps as `step` does, the results among them by the cheaper `record_steps`."""
    results = [sent for sent in steps if sent["kind"] == "step"]
    written = ask(record_steps(results)) if results else []
    recorded = {(reply.id, reply.sequence) for reply in written}
    others = [sent for sent in steps if (sent["id"], sent["sequence"]) not in recorded]
    return written + (ask(step(others)) if others else [])


def steps(ids: Sequence[str]) -> Query[replies.StepRow]:
    """The ledgers of these runs, each in order."""
    return Query("steps", {"ids": list(ids)}, lambda row: replies.StepRow(*row))


def signal(run_id: str, signal_id: str, event: str, payload: Packed) -> Query[str]:
    """Send an unfinished run a signal; returns its status, no row if it does not exist."""
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


FIELDS = ("id", "token", "percent", "done", "total", "message", "data")


def progress(reports: Sequence[Mapping[str, Any]]) -> Query[str]:
    """Store the progress of attempts, one report each; a missing run lost its lease."""
    sent = [{name: report.get(name) for name in FIELDS} for report in reports]
    return Query("progress", {"reports": _encode(sent).decode()}, lambda row: str(row[0]))


def progressed(run_id: str) -> Query[datetime]:
    """When a run last reported progress; no row if it never has."""
    return Query("progressed", {"id": run_id}, lambda row: row[0])


class UnderWay(msgspec.Struct, frozen=True):
    """A run under way that reports progress."""

    run: str
    task: str
    queue: str
    progress: Progress


def progressing(
    *, queues: Sequence[str] | None = None, tasks: Sequence[str] | None = None, limit: int = 50
) -> Query[UnderWay]:
    """Runs under way that report progress, the latest to begin first."""
    args = {
        "queues": None if queues is None else list(queues),
        "tasks": None if tasks is None else list(tasks),
        "limit": limit,
    }
    return Query("progressing", args, _under_way)


def _under_way(row: tuple[Any, ...]) -> UnderWay:
    run, task, queue, *reported = row
    return UnderWay(run, task, queue, progress_of(Reported(*reported), Status.RUNNING, []))

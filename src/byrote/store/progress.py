# SPDX-License-Identifier: MIT
"""The verbs of progress, as `queries.py` has those of runs; a run's own query reads it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from byrote.core.progress import Progress, Reported, progress_of
from byrote.core.state import Status
from byrote.store.query import Query

FIELDS = ("id", "token", "percent", "done", "total", "message", "data")

_encode = msgspec.json.Encoder().encode


def progress(reports: Sequence[Mapping[str, Any]]) -> Query[str]:
    """Write how far attempts have come, one report each; what is missing lost its lease."""
    sent = [{name: report.get(name) for name in FIELDS} for report in reports]
    return Query("progress", {"reports": _encode(sent).decode()}, lambda row: str(row[0]))


def progressed(run_id: str) -> Query[datetime]:
    """When a run last told how far it has come; no row when it never has."""
    return Query("progressed", {"id": run_id}, lambda row: row[0])


class UnderWay(msgspec.Struct, frozen=True):
    """A run under way that tells how far it is."""

    run: str
    task: str
    queue: str
    progress: Progress


def progressing(
    *, queues: Sequence[str] | None = None, tasks: Sequence[str] | None = None, limit: int = 50
) -> Query[UnderWay]:
    """Runs under way that tell how far they are, the latest to begin first."""
    args = {
        "queues": None if queues is None else list(queues),
        "tasks": None if tasks is None else list(tasks),
        "limit": limit,
    }
    return Query("progressing", args, _under_way)


def _under_way(row: tuple[Any, ...]) -> UnderWay:
    run, task, queue, *told = row
    return UnderWay(run, task, queue, progress_of(Reported(*told), Status.RUNNING, []))

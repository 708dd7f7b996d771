# SPDX-License-Identifier: MIT
"""Converts rows into records; no other module does."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from byrote.core.log.record import LogEntry
from byrote.core.ports.replies import Locked
from byrote.core.progress import Progress, Reported, progress_of
from byrote.core.run import Leased, Run
from byrote.core.state import Status


def leased_from(
    token: str, deadline: float, claimed_at: float
) -> Callable[[tuple[Any, ...]], Leased]:
    """Return a reader of claimed rows: leases that this token proves until this deadline."""

    def read(row: tuple[Any, ...]) -> Leased:
        return Leased(*row, token, deadline, claimed_at)  # type: ignore[call-arg]

    return read


_RUN_COLUMNS = (
    "id", "status", "wait_reason", "queue", "task", "version", "priority", "run_after", "attempts",
    "charged", "losses", "max_attempts", "timeout", "spec_json", "spec_hash", "result_json",
    "result_hash", "faults", "retry_json", "labels", "worker_ids", "leased_by", "leased_until",
    "cancel_requested_at", "replay_of", "traceparent", "enqueued_at", "started_at",
    "last_attempted_at", "finished_at", "as_of", "provenance", "usage",
    "shadow", "memo_of", "unique_key",
)  # fmt: skip


def run_from(row: tuple[Any, ...]) -> Run:
    """Read a row of run.sql, which includes progress, or of runs.sql or dead.sql."""
    fields = dict(zip(_RUN_COLUMNS, row, strict=False))
    timeout, status = fields["timeout"], Status(fields["status"])
    faults = _json(fields["faults"], [])
    return Run(
        **fields
        | {
            "status": status,
            "timeout": None if timeout is None else timedelta(milliseconds=timeout),
            "faults": faults,
            "labels": _json(fields["labels"], {}),
            "provenance": fields["provenance"] or [],
            "usage": _json(fields["usage"], []),
            "progress": _progress(row[len(_RUN_COLUMNS) :], status, faults),
        }
    )


def _progress(
    row: tuple[Any, ...], status: Status, faults: list[dict[str, Any]]
) -> Progress | None:
    return progress_of(Reported(*row), status, faults) if row and row[0] is not None else None


def _json(text: str | None, absent: Any) -> Any:
    return absent if text is None else msgspec.json.decode(text)


_ENTRY_COLUMNS = (
    "run", "xid", "seq", "ordinal", "at", "kind", "schema", "attempt", "move", "worker",
    "leased_until", "data", "token", "digest",
)  # fmt: skip


def entry_from(row: tuple[Any, ...]) -> LogEntry:
    """Read a row of run_history.sql or of verify_events.sql."""
    fields = dict(zip(_ENTRY_COLUMNS, row, strict=True))
    fields["data"] = _object(_json(fields["data"], None))
    return LogEntry(**fields)


_EVENT_COLUMNS = ("xid", "seq", "at", "kind", "schema", "worker", "leased_until")


def entries_from(row: tuple[Any, ...]) -> list[LogEntry]:
    """Read a row of log_after.sql: an entry for each run, or one without a run."""
    *event, runs, attempts, moves, text = row
    fields = dict(zip(_EVENT_COLUMNS, event, strict=True))
    data = _object(_json(text, None))
    # A forged event may have fewer attempts than runs; its readers must not fail.
    entries = [
        LogEntry(
            **fields,
            run=run,
            ordinal=ordinal,
            attempt=attempt,
            move=move,
            data=None if data is None else _object(data.get(run)),
        )
        for ordinal, (run, attempt, move) in enumerate(zip(runs, attempts, moves, strict=False), 1)
    ]
    return entries or [LogEntry(**fields, attempt=0, move=0, data=data)]


def _object(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


class MovedRun(msgspec.Struct, frozen=True, gc=False):
    """A cancelled run and its status now."""

    id: str
    status: str


def moved_run_from(row: tuple[Any, ...]) -> MovedRun | Locked:
    """Read a run that a statement has moved and its status, or one whose row is locked."""
    return Locked(row[0]) if row[1] == "LOCKED" else MovedRun(row[0], row[1])


def id_from(row: tuple[Any, ...]) -> str | Locked:
    """Read the id of a run that a statement has moved, or one whose row is locked."""
    return Locked(row[0]) if row[1] == "LOCKED" else str(row[0])


class RunOutcome(msgspec.Struct, frozen=True):
    """The status, result and errors of a run, for a waiting caller."""

    status: Status
    result_json: str | None
    faults: list[dict[str, Any]]


def ended_from(row: tuple[Any, ...]) -> RunOutcome:
    """Read a row of outcome.sql."""
    return RunOutcome(Status(row[0]), row[1], _json(row[2], []))


class Renewal(NamedTuple):
    """A lease that was extended."""

    id: str
    cancel: bool
    """Whether the run's cancellation was requested."""


class Pruned(msgspec.Struct, frozen=True):
    """The counts of one call of `prune`."""

    archives: int
    events: int
    dead: int
    workers: int
    outputs: int
    shadows: int


class Printed(msgspec.Struct, frozen=True):
    """The output of an attempt: the end of each stream, and how many bytes came before it."""

    attempt: int
    at: datetime
    stdout: str
    stderr: str
    stdout_dropped: int
    stderr_dropped: int


class LiveOutput(msgspec.Struct, frozen=True):
    """The latest output of an attempt under way: the end of each stream, and its whole size."""

    attempt: int
    stdout: bytes
    stderr: bytes
    stdout_size: int
    stderr_size: int


def seen_from(row: tuple[Any, ...]) -> LiveOutput | None:
    """Read a row of watch.sql; None until the worker has stored output."""
    return LiveOutput(*row[:5]) if row[0] else None


class Environment(msgspec.Struct, frozen=True):
    """An environment that executed attempts, by its number."""

    id: int
    hash: str
    doc: dict[str, Any]


def environment_from(row: tuple[Any, ...]) -> Environment:
    """Read a row of provenances.sql."""
    return Environment(row[0], row[1], _json(row[2], {}))


class ReplayRow(msgspec.Struct, frozen=True):
    """A run that replays another."""

    id: str
    status: str
    shadow: bool


class QueueRow(msgspec.Struct, frozen=True):
    """A queue and its unfinished and dead runs."""

    queue: str
    paused_at: datetime | None
    ready: int
    waiting: int
    running: int
    dead: int
    oldest_ready_s: float | None
    depth: int | None = None
    """Accepted and not begun, ready or not, as counted so far; None if not counted."""


class WorkerRow(msgspec.Struct, frozen=True):
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

    @property
    def state(self) -> str:
        """The worker's state: gone, stopping, idle or busy."""
        if not self.alive:
            return "gone"
        if self.stopping:
            return "stopping"
        # A worker is idle while its last task still runs: it has a free slot.
        return "idle" if self.idle and not self.running else "busy"


class Applied(msgspec.Struct, frozen=True):
    """A migration the database has."""

    version: int
    name: str
    checksum: str

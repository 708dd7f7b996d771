# SPDX-License-Identifier: MIT
"""The checks of `byrote verify`, and the findings that it reports."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final

import msgspec

CHECKS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "leases": "no two leases of one run overlap",
        "fence": "every accepted write came from the holder of a live lease",
        "ends": "a run that has ended stays as it ended, in one table",
        "kept": "no accepted run is missing",
        "attempts": "attempts rise one by one and stay within the budget",
        "moves": "every move of a run is logged once, and was a possible one",
        "rows": "the log and the row agree",
        "early": "nothing was claimed before it was due",
        "specs": "stored specs match their hashes, and name their runs' tasks",
        "results": "what succeeded has a result; whatever else has a hash matches it",
        "records": "steps, artifacts, signals and errors match the log",
        "stuck": "no run is stuck while a worker is alive",
        "catalog": "tables, indexes and partitions are as they should be",
        "chain": "the chained part of the log is as it was written",
    }
)
"""Every check by its name, as the promise it tests."""


class Finding(msgspec.Struct, frozen=True):
    """One violation of a check, with its details."""

    check: str
    message: str
    run: str | None = None
    move: int | None = None


class RunRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The columns of a run's row that are verified."""

    id: str
    table: str
    """`queue`, `archive` or `dead`."""
    queue: str
    task: str
    version: int
    status: str
    wait_reason: str | None
    moves: int
    attempts: int
    charged: int
    losses: int
    max_attempts: int
    run_after: datetime
    leased_by: str | None
    lease_token: str | None
    leased_until: datetime | None
    enqueued_at: datetime
    started_at: datetime | None
    last_attempted_at: datetime | None
    cancel_requested_at: datetime | None
    finished_at: datetime | None
    spec_json: str
    spec_hash: bytes
    result_json: str | None
    result_hash: bytes | None
    provenance: list[int | None] | None
    """The environment of each attempt, None where it is not known."""
    errors: list[bytes]
    """The hashes of the stored errors."""


class LoggedRecord(msgspec.Struct, frozen=True, gc=False):
    """A step or an artifact as the log has it."""

    run: str
    kind: str
    """The kind of the event: StepStored or ArtifactStored."""
    entry: str
    """Which step or artifact of the run it is."""
    facts: str


class AttemptWrite(msgspec.Struct, frozen=True, gc=False):
    """A record of a run that is stored outside its row."""

    run: str
    at: datetime
    attempt: int | None
    """The attempt that wrote it under its lease; None for a signal, which came from outside."""
    kind: str
    """The kind of the event that records it."""
    entry: str
    what: str
    facts: str | None = None
    result_json: str | None = None
    result_hash: bytes | None = None


class DatabaseFacts(msgspec.Struct, frozen=True):
    """Facts about the whole database that the audit of one run needs."""

    now: datetime
    horizon: datetime
    """The log was pruned up to here."""
    alive: bool
    """Whether a worker is alive, so that no run may be left behind."""
    quiet: Mapping[str, datetime]
    """Queues that log fewer kinds of events, and since when."""
    kept_until: Mapping[str, datetime]
    """By the kind of its last event, since when an ended run must still be stored."""
    environments: frozenset[int]
    """The numbers of the stored environments."""
    overdue: Mapping[tuple[str, str, int], datetime] = {}
    """Tasks, by queue, that no live worker knew for too long: runs due by then must have ended."""

# SPDX-License-Identifier: MIT
"""What `byrote verify` looks for, and what it says when it finds something."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final

import msgspec

CHECKS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "leases": "no two leases of one run overlap",
        "fence": "every accepted write came from the holder of a live lease",
        "ends": "a run that has ended stays as it ended, in one place",
        "kept": "no accepted run is missing",
        "attempts": "attempts rise one by one and stay within the budget",
        "moves": "every move of a run is told once, and was a possible one",
        "rows": "the log and the row agree",
        "early": "nothing was claimed before it was due",
        "specs": "stored specs match their hashes, and name their runs' tasks",
        "results": "what succeeded has a result; whatever else has a hash matches it",
        "records": "steps, artifacts, signals and errors are what the log tells of them",
        "stuck": "no run is stuck while a worker lives",
        "catalog": "tables, indexes and partitions are as they should be",
        "chain": "the chained part of the log is as it was written",
    }
)
"""Every check by its name, as the promise it tests."""


class Finding(msgspec.Struct, frozen=True):
    """One thing that should not be, and why."""

    check: str
    said: str
    run: str | None = None
    move: int | None = None


class RunRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A run's row, as far as it is verified."""

    id: str
    home: str
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
    """The hashes of the errors that are kept."""


class LoggedRecord(msgspec.Struct, frozen=True, gc=False):
    """A step or an artifact as the log tells of it."""

    run: str
    kind: str
    """The kind of the event: StepStored or ArtifactStored."""
    entry: str
    """Which step or artifact of the run it is."""
    facts: str


class AttemptWrite(msgspec.Struct, frozen=True, gc=False):
    """Something that is stored of a run besides its row."""

    run: str
    at: datetime
    attempt: int | None
    """The attempt that wrote it under its lease; None for a signal, which came from outside."""
    kind: str
    """The kind of event that tells of it."""
    entry: str
    what: str
    facts: str | None = None
    result_json: str | None = None
    result_hash: bytes | None = None


class DatabaseFacts(msgspec.Struct, frozen=True):
    """What must be known of the whole database to judge one run."""

    now: datetime
    horizon: datetime
    """The log has nothing older: it was pruned up to here."""
    alive: bool
    """Whether some worker lives, so that nothing may be left lying."""
    quiet: Mapping[str, datetime]
    """Queues that tell fewer kinds of events, and since when."""
    kept_until: Mapping[str, datetime]
    """By the kind of its last event, from when on an ended run must still be there."""
    environments: frozenset[int]
    """The environments that are there, by their numbers."""
    overdue: Mapping[tuple[str, str, int], datetime] = {}
    """Tasks, by queue, that no live worker knew for too long: what was due by then has ended."""

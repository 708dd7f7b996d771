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
        "specs": "stored specs match their hashes",
        "results": "whatever else is stored with a hash matches it",
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


class Kept(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A run's row, as far as it is verified."""

    id: str
    home: str
    """`queue`, `archive` or `dead`."""
    queue: str
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


class Written(msgspec.Struct, frozen=True, gc=False):
    """Something an attempt wrote under its lease besides its end: a step or an artifact."""

    run: str
    at: datetime
    attempt: int
    what: str
    result_json: str | None = None
    result_hash: bytes | None = None


class Scene(msgspec.Struct, frozen=True):
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

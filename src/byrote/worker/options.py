# SPDX-License-Identifier: MIT
"""Options of a worker."""

from collections.abc import Mapping
from datetime import timedelta

import msgspec


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a worker."""

    worker: str
    queues: Mapping[str, int]
    """Queues and their weights; empty: those that the app names."""
    hands: int
    concurrency: int
    lease_for: timedelta = timedelta(seconds=30)
    grace: timedelta = timedelta(seconds=25)
    poll: timedelta = timedelta(seconds=1)
    drain: bool = False
    version: str = ""
    artifacts: str | None = None
    """Where large artifacts are stored; absent: nothing to sweep."""
    housekeeping: bool = True
    """Whether it archives and prunes; False for one that only replays existing runs."""
    insists: bool = True
    """Whether it retries statements that the database refuses for lack of rights, once started."""
    log_tracebacks: bool = True
    """Whether events contain the messages of errors, which may quote arguments."""
    chain_events: bool = False
    """Whether it adds to the chain of the log."""

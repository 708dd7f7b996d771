# SPDX-License-Identifier: MIT
"""How a worker works."""

from collections.abc import Mapping
from datetime import timedelta

import msgspec


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker works."""

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
    """Where large artifacts are stored; absent: there are none to clean up."""
    housekeeping: bool = True
    """Whether it archives and prunes; not where it only looks at what is there."""
    insists: bool = True
    """Whether it asks again, once it works, for what the database refuses for lack of rights."""
    log_tracebacks: bool = True
    """Whether events contain the messages of errors, which may quote arguments."""
    chain_events: bool = False
    """Whether it adds to the chain of the log."""

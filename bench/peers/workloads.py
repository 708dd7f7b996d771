# SPDX-License-Identifier: MIT
"""Which peers are measured, in which configuration, and how much work they get."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """One peer: its drain processes and how its tables are read."""

    name: str
    version: str
    configuration: str
    processes: int
    analyzed: bool  # Drains faster with fresh planner statistics? Each gets what suits it better.
    queued: str  # SQL: how many tasks the database holds
    unfinished: str  # SQL: is there a task that has not ended?
    succeeded: str  # SQL: how many tasks ended well


@dataclass(frozen=True)
class Sizes:
    """How many tasks each workload has."""

    one: int
    bulk: int
    batch: int
    backlog: dict[str, int]
    latency: int


PEERS = (
    Peer(
        name="pgqueuer",
        version="1.6.0",
        configuration="2 processes, PgQueuer.run(batch_size=500), asyncpg, uvloop",
        processes=2,
        analyzed=True,
        queued="select count(*) from pgqueuer",
        unfinished="select exists (select from pgqueuer)",
        succeeded="select count(*) from pgqueuer_log where status = 'successful'",
    ),
    Peer(
        name="procrastinate",
        version="3.10.0",
        configuration="2 processes, concurrency 20, pool 10, delete_jobs=never",
        processes=2,
        analyzed=True,
        queued="select count(*) from procrastinate_jobs",
        unfinished="select exists (select from procrastinate_jobs"
        " where status in ('todo', 'doing'))",
        succeeded="select count(*) from procrastinate_jobs where status = 'succeeded'",
    ),
    Peer(
        name="oban",
        version="0.7.0",
        configuration="2 processes, queue limit 200, default pool, uvloop",
        processes=2,
        analyzed=False,
        queued="select count(*) from oban_jobs",
        unfinished="select exists (select from oban_jobs"
        " where state in ('available', 'scheduled', 'executing', 'retryable'))",
        succeeded="select count(*) from oban_jobs where state = 'completed'",
    ),
)

FULL = Sizes(
    one=2_000,
    bulk=20_000,
    batch=1_000,
    backlog={"pgqueuer": 60_000, "procrastinate": 3_000, "oban": 15_000},
    latency=600,
)

QUICK = Sizes(
    one=300,
    bulk=5_000,
    batch=1_000,
    backlog={"pgqueuer": 20_000, "procrastinate": 500, "oban": 3_000},
    latency=60,
)

# Unmeasured tasks before a measurement: connections, prepared statements and caches are warm.
WARM_UP = 20

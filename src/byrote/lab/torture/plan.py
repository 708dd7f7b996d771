# SPDX-License-Identifier: MIT
"""Which fault strikes when: one seed, one schedule, printed before anything happens."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import islice

import msgspec

from byrote.executors.runtime.seeding import Random, seeded

GAP_S = 9.0
"""A fault every nine seconds is four hundred in an hour."""
WARM_UP_S = 4.0

KINDS = {
    "kill_worker": "SIGKILL to a supervisor; its hands must die with it",
    "kill_hand": "SIGKILL to a hand in the middle of its work",
    "freeze_worker": "SIGSTOP to a supervisor for two leases, then SIGCONT",
    "freeze_tree": "SIGSTOP to a supervisor and its hands for two leases, then SIGCONT",
    "term_worker": "SIGTERM: finish what fits into the grace, give the rest back",
    "term_storm": "SIGTERM to every worker in turn, again and again",
    "term_then_kill": "SIGTERM, and SIGKILL somewhere in the middle of the shutdown",
    "rolling": "every worker replaced in turn by one that knows another set of tasks",
    "kill_producer": "SIGKILL to a producer in the middle of its enqueues",
    "kill_service": "SIGKILL to the HTTP service under requests; the same key is sent again",
    "clock_skew": "a worker whose wall clock is an hour or a day off, by preload",
    "poison": "tasks that take their process down each time",
    "gil": "tasks that hold the GIL for two leases",
    "cancel_storm": "runs cancelled while they wait and while they run",
    "pg_restart": "PostgreSQL stopped fast and started again",
    "pg_immediate": "PostgreSQL stopped in the middle of everything; crash recovery",
    "pg_kill": "SIGKILL to the postmaster; crash recovery",
    "kill_backend": "SIGKILL to one backend, which takes all connections down",
    "terminate_backends": "pg_terminate_backend on every connection, again and again",
    "read_only": "the database refuses to write for a while",
    "connections": "no free connection is left",
    "table_lock": "ACCESS EXCLUSIVE on the runs for longer than a lease",
    "row_locks": "rows under way are locked by a stranger",
    "held_snapshot": "an old snapshot keeps vacuum from cleaning up",
    "failed_commits": "commits fail after the statements' rows were sent: refused, or cut off",
    "disk_full": "a partition is on a full tablespace",
    "failover_sync": "the primary is killed, its synchronous replica promoted",
    "failover_async": "the primary is killed, its asynchronous replica promoted",
    "cut": "every connection is reset at once",
    "sever": "no process can connect for a while",
    "delay": "every packet takes half a second",
    "blackhole": "packets vanish for longer than a lease, connections stay",
    "lost_answers": "answers to claims, finishes and enqueues are lost after the commit",
    "lost_requests": "the connection breaks before the statement arrives",
    "torn_answers": "connections break in the middle of an answer",
    "torn_ends": "connections break after the rows of an answer and before its end",
    "late_requests": "connections break and the statement arrives seconds later, or not at all",
}
"""Every kind of fault, with a description."""

SHORT = (
    "kill_worker", "kill_hand", "freeze_worker", "term_then_kill", "pg_kill", "terminate_backends",
    "lost_answers", "failover_sync", "failed_commits", "late_requests",
)  # fmt: skip
"""The kinds that the test suite uses."""

OWN_SERVER = frozenset(
    {"pg_restart", "pg_immediate", "pg_kill", "kill_backend", "read_only", "disk_full",
     "failover_sync", "failover_async", "connections"}
)  # fmt: skip
"""Kinds that are only applied to the torture's own server."""


MORE = {"failover_sync": 5}
"""How many more of a kind come up each time all kinds have: fifty failovers in four hundred."""

TAKES_S = {
    "kill_worker": 4.0, "freeze_worker": 5.0, "freeze_tree": 5.0, "kill_service": 16.0,
    "clock_skew": 6.0, "gil": 4.5, "disk_full": 10.0, "pg_restart": 4.0, "pg_immediate": 5.0,
    "pg_kill": 6.0, "failover_sync": 13.0, "failover_async": 13.0, "delay": 4.5,
}  # fmt: skip
"""About how long a kind and its recovery took on two busy cores; all others less than three."""
OTHERS_TAKE_S = 3.0
LAST_AT = 0.95
"""The part of the time that the schedule fills; after it, faults that failed are repeated."""


class PlannedFault(msgspec.Struct, frozen=True):
    """A fault and its time; `dice` makes every choice within it."""

    at_s: float
    kind: str
    number: int
    seed: int
    spare: bool = False
    """Used only in place of one that did not happen."""

    @property
    def dice(self) -> Random:
        """The random generator of this fault alone: the same seed, the same choices."""
        return dice(self.seed, f"fault {self.number}")

    @property
    def takes_s(self) -> float:
        """About how long it will take."""
        return TAKES_S.get(self.kind, OTHERS_TAKE_S)


def dice(seed: int, purpose: str) -> Random:
    """A generator for one purpose, from the seed of the whole."""
    return seeded(sha256(f"byrote torture {seed} {purpose}".encode()).digest())


def schedule(seed: int, *, seconds: float, faults: int, kinds: Sequence[str]) -> list[PlannedFault]:
    """The whole schedule, spares at its end: every kind comes up before any comes up twice."""
    chance = dice(seed, "schedule")
    coming = _endless(kinds, chance)
    end = seconds * LAST_AT
    room = max(end - WARM_UP_S, 0.0) / max(faults, 1)
    spares = faults // 10 + 1 if faults else 0
    planned = []
    for number, kind in enumerate(islice(coming, faults + spares)):
        at = min(WARM_UP_S + room * (number + 0.5 * chance.random()), end)
        planned.append(PlannedFault(round(at, 2), kind, number, seed, spare=number >= faults))
    return planned


def _endless(kinds: Sequence[str], chance: Random) -> Iterator[str]:
    yield from chance.sample(list(kinds), len(kinds))
    bag = [kind for kind in kinds for _ in range(1 + MORE.get(kind, 0))]
    while bag:
        yield from chance.sample(bag, len(bag))

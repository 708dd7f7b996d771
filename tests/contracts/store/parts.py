# SPDX-License-Identifier: MIT
"""A store on the parts: lines of every kind to it, and a proxy that breaks its exchanges."""

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import psycopg

from byrote.assembly.clock import monotonic
from byrote.assembly.identity import jitter, new_token
from byrote.core.json.codec import pack
from byrote.core.outcome import (
    Fault,
    Outcome,
    Succeeded,
)
from byrote.core.policy import judge
from byrote.core.ports.store import (
    ArtifactPort,
    ClaimPort,
    ClaimRequest,
    FinishPort,
    PartContext,
    RegistryPort,
    StepPort,
    WorkerStore,
)
from byrote.core.run import Leased
from byrote.core.verdict import Judged
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.faults.proxy import Proxy

type Db = psycopg.Connection[Any]

LEASE = timedelta(seconds=30)
WORDS = {
    "postgres": {
        "claim": "set status = 'RUNNING'",
        "renew": "'Renewed'",
        "finish": "'Succeeded'",
        "note": "byrote_steps as step (",
        "progress": "byrote_progress as known (",
    },
    "http": {
        "claim": "POST /v1/leases ",
        "renew": "POST /v1/leases/renew",
        "finish": "POST /v1/leases/finish",
        "note": "POST /v1/leases/steps",
        "progress": "POST /v1/leases/progress",
    },
}
NO = Fault("raised", "ValueError", "no")


class Parts:
    """A store, and a line of each kind to it."""

    def __init__(self, store: WorkerStore, kind: str, proxy: Proxy) -> None:
        self.kind = kind
        self.proxy = proxy
        self.store = store
        self.heard: list[tuple[str, str | None]] = []
        self.leases: ClaimPort = store.leases(
            self._line("claim"), on_cancel=lambda: None, on_return=lambda: None
        )
        self.verdicts: FinishPort = store.verdicts(self._line("finish"))
        self.registry: RegistryPort = store.registry(self._line("renew"))
        self.ledgers: StepPort = store.ledgers(self._line("steps"))
        self.artifact_rows: ArtifactPort = store.artifact_rows(self._line("ask"))

    def _line(self, purpose: str) -> PartContext:
        stopped = threading.Event().wait
        return PartContext(purpose, stopped, lambda *said: self.heard.append(said), jitter)

    def break_next(self, verb: str, moment: Any) -> Any:
        """Have the next exchange of this verb break."""
        return self.proxy.plan(WORDS[self.kind][verb], moment)

    def claim(
        self,
        limit: int = 1,
        *,
        queues: Sequence[str] = ("default",),
        tasks: Sequence[str] = ("t@1",),
        worker: str = "w",
    ) -> list[Leased]:
        """Lease up to so many runs of each queue."""
        before = monotonic()
        quotas = dict.fromkeys(queues, limit)
        wanted = ClaimRequest(quotas, tasks, worker, new_token(), LEASE, before + 27, before, {})
        found = self.leases.claim(wanted)
        return self.claim(limit, queues=queues, tasks=tasks) if found is None else found

    def finish(self, lease: Leased, outcome: Outcome) -> str | None:
        """Report how an attempt ended; returns the verdict that was stored."""
        return self.verdicts.finish([judged(lease, outcome)]).get(lease.id)

    def close(self) -> None:
        """Leave."""
        for line in (self.leases, self.verdicts, self.registry, self.ledgers, self.artifact_rows):
            line.close()
        self.proxy.close()


def judged(lease: Leased, outcome: Outcome) -> Judged:
    return lease, outcome, judge(lease, outcome)


def returned(value: Any) -> Succeeded:
    packed = pack(value)
    return Succeeded(packed.text, packed.digest.hex())


def expire(db: Db, run_id: str) -> None:
    """Let a lease run out, and have it swept."""
    past = "set leased_until = byrote_now() - interval '1 s'"
    db.execute(f"update byrote_task_runs {past} where result_id = %s", (run_id,))  # type: ignore[call-overload]
    fetch(db, queries.sweep())

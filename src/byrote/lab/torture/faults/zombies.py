# SPDX-License-Identifier: MIT
"""Zombies on purpose: a thread that claims runs, sleeps past the lease, and then reports.

It sends the very statements of a worker straight to the database, so that only the fence protects
the run from its report.
"""

import contextlib
import hashlib
import itertools
import threading
import time
from collections.abc import Sequence
from datetime import timedelta

import psycopg

from byrote.assembly.identity import new_id, new_token
from byrote.core.errors import ByroteError
from byrote.core.run import Leased
from byrote.core.spec import Delivery, describe
from byrote.executors.runtime.seeding import Random
from byrote.lab.torture.stage import TortureSetup
from byrote.store import queries
from byrote.store.query import Query
from byrote.store.runners.sync import fetch

LEASE = timedelta(seconds=1)
OVERSLEPT_S = (1.02, 1.5, 2.6)
"""Just past the lease, not noticed yet; about when it is swept; when other workers have it."""
RESULT = '{"attempt":0,"zombie":true}'
DIGEST = hashlib.sha256(RESULT.encode()).hexdigest()


class Zombies:
    """Forces zombie finishes until it is stopped, and counts those that were accepted."""

    def __init__(self, stage: TortureSetup, dice: Random) -> None:
        self.forced = 0
        self.accepted = 0
        self._stage = stage
        self._dice = dice
        self._naps = itertools.cycle(OVERSLEPT_S)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, once the claimed runs have been reported."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(60.0)

    def _run(self) -> None:
        while not self._stopped.is_set():
            # Other faults break connections on purpose.
            with contextlib.suppress(psycopg.Error, OSError, ByroteError):
                self._once()
            self._stopped.wait(self._dice.uniform(0.2, 1.0))

    def _once(self) -> None:
        number = self._dice.randint(2, 6)
        args = [str(self._stage.history), 0]
        spec = describe("torture.quick", 1, args, {}, delivery=Delivery(priority=100))
        claim = queries.claim(
            quotas={"default": number},
            tasks=["torture.quick@1"],
            worker="zombie",
            token=new_token(),
            lease_for=LEASE,
        )
        with self._stage.connect() as connection, connection.transaction():
            # In one transaction, so that no worker can claim them first.
            fetch(connection, queries.enqueue([(new_id(), spec) for _ in range(number)]))
            leases = fetch(connection, claim)
        if not leases:
            return
        time.sleep(next(self._naps))
        with self._stage.connect() as connection:
            accepted = fetch(connection, self._dice.choice((_finish, _succeed))(leases))
            fetch(connection, queries.renew(leases, lease_for=timedelta(hours=1)))
        self.forced += len(leases)
        self.accepted += len(accepted)
        self._stage.note("zombies", forced=len(leases), accepted=[run_id for run_id, _ in accepted])


def _finish(leases: Sequence[Leased]) -> Query[tuple[str, str]]:
    reports = [
        {
            "id": lease.id,
            "token": lease.token,
            "attempt": lease.attempt,
            "verdict": "S",
            "result": RESULT,
            "hash": DIGEST,
        }
        for lease in leases
    ]
    return queries.finish(reports)


def _succeed(leases: Sequence[Leased]) -> Query[tuple[str, str]]:
    return queries.succeed(
        [(lease.id, lease.token, lease.attempt, RESULT, DIGEST, None) for lease in leases]
    )

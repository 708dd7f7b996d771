# SPDX-License-Identifier: MIT
"""Makes random moves, as many clients and workers would."""

import random
from datetime import timedelta
from typing import Any

from byrote.assembly.identity import new_token
from byrote.core.json.codec import pack
from byrote.core.policy import Retry
from byrote.core.run import Leased
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import LEASE, Db, claim, enqueue, finish, verdict

START = "00000000-0000-0000-0000-000000000000"


class Walker:
    """A seed, a database and a clock; every step is one verb of the store."""

    def __init__(self, db: Db, clock: FakeClock, seed: int) -> None:
        self.db, self.clock, self.dice = db, clock, random.Random(seed)
        self.ids: list[str] = []
        self.leases: list[Leased] = []

    def step(self) -> None:
        self.dice.choice(
            [
                *[self.enqueue, self.claim, self.finish] * 3,
                *[self.renew, self.promote, self.sweep, self.cancel, self.retry, self.archive],
                *[self.wait_for, self.signal],
            ]
        )()

    def some[T](self, of: list[T], most: int = 5) -> list[T]:
        return self.dice.sample(of, min(len(of), self.dice.randint(0, most)))

    def enqueue(self) -> None:
        waits = self.dice.choice([None, None, timedelta(seconds=self.dice.randint(1, 90))])
        number = self.dice.randint(1, 4)
        self.ids += enqueue(self.db, number, run_after=waits, retry=Retry(attempts=50))

    def claim(self) -> None:
        self.leases += claim(self.db, self.dice.randint(1, 4), worker=self.dice.choice("abc"))

    def finish(self) -> None:
        sent = [self.judged(lease) for lease in self.some(self.leases)]
        finish(self.db, sent)

    def judged(self, lease: Leased) -> dict[str, Any]:
        letter = self.dice.choice("SRFCZLX")
        return verdict(lease, letter, delay_us=self.dice.choice([0, 40_000_000]))

    def renew(self) -> None:
        fetch(self.db, queries.renew(self.some(self.leases), lease_for=LEASE))

    def promote(self) -> None:
        self.clock.advance(seconds=self.dice.randint(0, 20))
        fetch(self.db, queries.promote(limit=3))

    def sweep(self) -> None:
        self.clock.advance(seconds=self.dice.randint(0, 20))
        fetch(self.db, queries.sweep(limit=3))

    def cancel(self) -> None:
        fetch(self.db, queries.cancel(self.some(self.ids, 2)))

    def retry(self) -> None:
        fetch(self.db, queries.retry(self.some(self.ids, 2)))

    def archive(self) -> None:
        self.clock.advance(minutes=self.dice.choice([0, 0, 0, 40]))
        fetch(self.db, queries.archive(after=START, limit=20))

    def wait_for(self) -> None:
        """Durable waits: for a signal, which may have come already, and for a while."""
        for number, lease in enumerate(self.some(self.leases, 2)):
            kind = self.dice.choice(["event", "sleep"])
            step = {"id": lease.id, "token": lease.token, "sequence": lease.attempt, "name": "go"}
            fetch(self.db, queries.step([{**step, "kind": kind, "delay_us": 40_000_000}]))
            waits = {"wait": kind, "event": "go" if kind == "event" else None}
            finish(self.db, [verdict(lease, "Z", delay_us=40_000_000 + number, **waits)])

    def signal(self) -> None:
        for run_id in self.some(self.ids, 2):
            fetch(self.db, queries.signal(run_id, new_token(), "go", pack(1)))

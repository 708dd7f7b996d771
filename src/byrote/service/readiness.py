# SPDX-License-Identifier: MIT
"""Checks whether the database answers: one query for all requests, with a short timeout."""

import asyncio

from byrote.core.ports.executor import Clock
from byrote.store import queries
from byrote.store.runners.aio import AsyncStore
from byrote.wire.problems import Unavailable

FRESH_S = 0.5
"""How long an answer counts."""


class Readiness:
    """Sends the database a small query to see whether it answers."""

    def __init__(self, store: AsyncStore, clock: Clock, seconds: float) -> None:
        self._store = store
        self._clock = clock
        self._seconds = seconds
        self._asking: asyncio.Task[None] | None = None
        self._good_until = 0.0

    async def check(self) -> None:
        """Raise Unavailable unless the database has answered just now."""
        if self._clock() < self._good_until:
            return
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._ask())
            self._asking.add_done_callback(self._asked)
        asking = self._asking
        # Not a timeout around the statement: cancelling one takes long if the database hangs.
        await asyncio.wait({asking}, timeout=self._seconds)
        if not asking.done():
            raise Unavailable("The database does not answer.", retry_after_s=2)
        asking.result()

    async def _ask(self) -> None:
        await self._store.all(queries.last_event())
        self._good_until = self._clock() + FRESH_S

    def _asked(self, done: asyncio.Task[None]) -> None:
        self._asking = None
        if not done.cancelled():
            done.exception()  # Else asyncio logs the exception as never retrieved.

# SPDX-License-Identifier: MIT
"""Periodic duties that any one service does: deletes old rows, notes which tokens were used.

The duties of workers, such as counting events, are done by the service's maintenance thread.
"""

import asyncio
import contextlib
from datetime import timedelta

import psycopg

from byrote.core.errors import ByroteError
from byrote.service.http.auth import Keyring
from byrote.service.options import ServiceContext
from byrote.store import queries
from byrote.store.runners.aio import AsyncStore
from byrote.store.runners.sync import Interrupted

EVERY = {"service": timedelta(minutes=10)}
TICK_S = 1.0
NOTE_EVERY = 5
"""Ticks between two notes of which tokens were used."""


class Chores:
    """Does the service's duties on the loop, a statement at a time."""

    def __init__(self, store: AsyncStore, keyring: Keyring, context: ServiceContext) -> None:
        self._store = store
        self._keyring = keyring
        self._context = context

    async def run(self) -> None:
        """Do due chores for as long as the process lives."""
        ticks = 0
        while True:
            await asyncio.sleep(TICK_S * (0.75 + 0.5 * self._context.jitter()))
            ticks += 1
            # A chore that fails is due again in a moment; no error may end the service.
            with contextlib.suppress(ByroteError, psycopg.Error, Interrupted):
                await self._do()
            if ticks % NOTE_EVERY == 0:
                await self.note_used()

    async def _do(self) -> None:
        if await self._store.all(queries.duties(worker=self._context.name, every=EVERY)):
            await self._store.all(queries.prune_service())

    async def note_used(self) -> None:
        """Store which tokens were used since the last call."""
        used, self._keyring.used = self._keyring.used, set()
        if used:
            with contextlib.suppress(ByroteError, psycopg.Error, Interrupted):
                await self._store.ask(queries.use_tokens(sorted(used)))

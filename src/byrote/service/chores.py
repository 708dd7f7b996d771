# SPDX-License-Identifier: MIT
"""Periodic duties that any one service does: counts events, deletes old rows."""

import asyncio
import contextlib
from datetime import timedelta

import psycopg

from byrote.core.errors import ByroteError
from byrote.core.log.cursor import BEGINNING, Cursor
from byrote.service.http.auth import Keyring
from byrote.service.options import ServiceContext
from byrote.store import queries
from byrote.store.runners.aio import AsyncStore
from byrote.store.runners.sync import Interrupted

EVERY = {
    "stats": timedelta(seconds=1),
    "depths": timedelta(minutes=10),
    "service": timedelta(minutes=10),
}
TICK_S = 1.0
COUNT_MAX = 500
"""Statements counted in one batch; each may have events of a thousand runs."""
RECOUNT_MAX = 100_000
"""Runs that are few enough to be counted again at intervals, so that no miscount stays."""
BUSY_S = 0.3
"""How much of each second counting may take."""
NOTE_EVERY = 5
"""Ticks between two notes of which tokens were used."""


class Chores:
    """Does the service's duties on the loop, a statement at a time."""

    def __init__(self, store: AsyncStore, keyring: Keyring, context: ServiceContext) -> None:
        self._store = store
        self._keyring = keyring
        self._context = context
        self._recount_due = False

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
        for duty in await self._store.all(queries.duties(worker=self._context.name, every=EVERY)):
            match duty.name:
                case "stats":
                    await self._count(duty.cursor)
                case "depths":
                    self._recount_due = True
                case _:
                    await self._store.all(queries.prune_service())

    async def _count(self, cursor: str | None) -> None:
        if cursor is None:
            begin = await self._store.first(queries.cursor(back=0)) or BEGINNING
            await self._store.all(queries.save_cursor(duty="stats", cursor=str(begin)))
            self._recount_due = True
        else:
            begin = Cursor.parse(cursor)
        end = await self._to_the_end(begin)
        # With a cursor far behind, all later events would have to be subtracted again.
        if end is not None and self._recount_due:
            await self._store.ask(queries.recount(end, most=RECOUNT_MAX))
            self._recount_due = False

    async def _to_the_end(self, cursor: Cursor) -> Cursor | None:
        """Count on; returns the end of the log, None if it is far or another service counts."""
        deadline = self._context.clock() + BUSY_S
        while self._context.clock() < deadline:
            [(events, moved)] = await self._store.ask(queries.count_stats(cursor, limit=COUNT_MAX))
            if events < COUNT_MAX:
                return cursor if events == 0 else moved
            if moved is None:
                return None
            cursor = moved
        return None

    async def note_used(self) -> None:
        """Store which tokens were used since the last call."""
        used, self._keyring.used = self._keyring.used, set()
        if used:
            with contextlib.suppress(ByroteError, psycopg.Error, Interrupted):
                await self._store.ask(queries.use_tokens(sorted(used)))

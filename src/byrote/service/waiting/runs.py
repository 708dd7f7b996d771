# SPDX-License-Identifier: MIT
"""Wakes requests that wait for a run to end, and streams that follow the log.

One look for all of them: a number that rises with every event is read some thirty times a second
while any request waits, and the runs that are waited for are looked up when it moves.
"""

import asyncio
import contextlib

import psycopg

from byrote.core.errors import ByroteError
from byrote.core.ports.executor import Clock
from byrote.store import queries
from byrote.store.runners.aio import AsyncStore

TICK_S = 0.03
QUIET_S = 0.5
"""How long the number may stay the same before the runs are looked up nevertheless: an event may be
committed later than it is counted."""
IDS_MAX = 5_000


class RunWaiters:
    """Requests and streams that wait for events."""

    def __init__(self, store: AsyncStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._runs: dict[str, set[asyncio.Future[None]]] = {}
        self._news: set[asyncio.Future[None]] = set()
        self._wanted = asyncio.Event()
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many wait for runs to end."""
        return sum(map(len, self._runs.values()))

    async def until_ended(self, run_id: str, seconds: float, gone: asyncio.Future[None]) -> None:
        """Wait until a run has ended, up to `seconds`, or until the client has disconnected."""
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiters = self._runs.setdefault(run_id, set())
        waiters.add(ended)
        try:
            await self._await({ended, gone}, seconds)
        finally:
            waiters.discard(ended)
            if not waiters and self._runs.get(run_id) is waiters:
                del self._runs[run_id]

    async def until_news(self, seconds: float, gone: asyncio.Future[None]) -> None:
        """Wait until an event has happened, up to `seconds`, or until `gone`."""
        news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._news.add(news)
        try:
            await self._await({news, gone}, seconds)
        finally:
            self._news.discard(news)

    async def _await(self, futures: set[asyncio.Future[None]], seconds: float) -> None:
        self._wanted.set()
        if not self._closed:
            await asyncio.wait(futures, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)

    def close(self) -> None:
        """End all waits."""
        self._closed = True
        for future in [*self._news, *(f for waiters in self._runs.values() for f in waiters)]:
            _wake(future)

    async def run(self) -> None:
        """Poll while any request waits, as long as the process lives."""
        seen, moved_at, looked_at = -1, 0.0, 0.0
        while True:
            if not self._runs and not self._news:
                self._wanted.clear()
                await self._wanted.wait()
            await asyncio.sleep(TICK_S)
            # A database that does not answer is asked again in a moment.
            with contextlib.suppress(ByroteError, psycopg.Error):
                now = self._clock()
                [count] = await self._store.all(queries.last_event())
                if count != seen:
                    seen, moved_at = count, now
                    for news in list(self._news):
                        _wake(news)
                if now - moved_at < QUIET_S or now - looked_at > QUIET_S:
                    looked_at = now
                    await self._look()

    async def _look(self) -> None:
        ids = list(self._runs)[:IDS_MAX]
        for run_id in await self._store.all(queries.ended_runs(ids)) if ids else ():
            for ended in self._runs.get(run_id, ()):
                _wake(ended)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)

# SPDX-License-Identifier: MIT
"""Wakes claims that wait for runs. They hold no connection meanwhile.

One connection of the process listens for `byrote_ready` (and `byrote_cancel`, `cancellations.py`);
one poll a second of the queues that claims wait for makes up for lost notifications. Producers
notify only while a worker is registered as idle, so the process registers itself, as a worker
that serves the queues and tasks waited for.

Claims for the same queues and tasks wait in one list. A notification wakes the first of each; a
claim that finds runs wakes the next. So one run does not wake a thousand claims, and a thousand
runs do.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import psycopg

from byrote.core.errors import ByroteError
from byrote.service.options import ServiceContext
from byrote.store import queries
from byrote.store.connect import subscription
from byrote.store.retries import pause_before
from byrote.store.runners.aio import AsyncStore, afetch
from byrote.store.runners.sync import Interrupted

HEARTBEAT_S = 10.0
QUEUES_MAX = 1_000
"""Queues that one query asks about."""

type ClaimKey = tuple[tuple[str, ...], tuple[str, ...]]
"""Queues and tasks."""


class ClaimWaiters:
    """Claims that wait for runs."""

    def __init__(
        self,
        store: AsyncStore,
        context: ServiceContext,
        *,
        poll_s: float,
        on_cancel: Callable[[str], None] = lambda _worker: None,
    ) -> None:
        self._store = store
        self._context = context
        self._poll_s = poll_s
        self._on_cancel = on_cancel
        self._waiters: dict[ClaimKey, OrderedDict[asyncio.Future[None], None]] = {}
        self._announced: frozenset[str] = frozenset()
        self._announced_tasks: frozenset[str] = frozenset()
        """The tasks that were announced with the queues: some claim waits for them."""
        self._announcing = asyncio.Lock()
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many claims wait. Callable from any thread."""
        return sum(map(len, list(self._waiters.values())))

    def _tasks(self) -> frozenset[str]:
        return frozenset(task for _, tasks in self._waiters for task in tasks)

    def _queues(self) -> frozenset[str]:
        return frozenset(queue for queues, _ in self._waiters for queue in queues)

    async def wait(
        self,
        key: ClaimKey,
        seconds: float,
        look: Callable[[], Awaitable[bool]],
        gone: asyncio.Future[None],
    ) -> bool:
        """Wait until woken, up to `seconds`, after the earlier claims of the same key.

        `look` runs once more before the wait.

        After a disconnect `look` is not called: no client would hold what it leased.
        """
        waiters = self._waiters.setdefault(key, OrderedDict())
        rung: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiters[rung] = None
        try:
            if not self._knows(key):
                await self._announce()
                # An enqueue that looked before the registration has notified no worker.
                if await look():
                    return True
            if self._closed:
                return False
            await asyncio.wait({rung, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiters.pop(rung, None)
            if not waiters and self._waiters.get(key) is waiters:
                del self._waiters[key]
        if gone.done():
            self.pass_on(key)  # Pass the wake-up on; this client is gone.
            return False
        return rung.done() and await look()

    def ring(self, queue: str) -> None:
        """Wake claims of this queue: there may be runs."""
        for key in [key for key in self._waiters if queue in key[0]]:
            self.pass_on(key)

    def pass_on(self, key: ClaimKey) -> None:
        """Wake the next claim of this key."""
        for rung in self._waiters.get(key, ()):
            if not rung.done():
                rung.set_result(None)
                return

    def close(self) -> None:
        """End all waits."""
        self._closed = True
        for waiters in list(self._waiters.values()):
            for rung in waiters:
                if not rung.done():
                    rung.set_result(None)

    # -- The process as a worker that waits ------------------------------------------------------

    def _knows(self, key: ClaimKey) -> bool:
        return self._announced.issuperset(key[0]) and self._announced_tasks.issuperset(key[1])

    async def _announce(self) -> None:
        async with self._announcing:
            wanted, tasks = self._queues(), self._tasks()
            if wanted <= self._announced and tasks <= self._announced_tasks:
                return
            described: Any = self._context.describe(sorted(wanted), sorted(tasks))
            await self._store.all(queries.register(described))
            await self._beat(idle=True)
            self._announced, self._announced_tasks = wanted, tasks

    async def _beat(self, *, idle: bool) -> bool:
        beat = queries.heartbeat(
            worker=self._context.name, idle=idle, stopping=False, running=0, finished=0
        )
        return bool(await self._store.all(beat))

    async def keep_announced(self) -> None:
        """Send heartbeats that state whether claims wait, while the process lives."""
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            with contextlib.suppress(ByroteError, psycopg.Error):
                if not self._announced:
                    continue
                waits = bool(self._waiters)
                known = await self._beat(idle=waits)
                same = (self._queues(), self._tasks()) == (self._announced, self._announced_tasks)
                if waits and known and same:
                    continue
                # A claim that stopped waiting must not count as served.
                self._announced = self._announced_tasks = frozenset()
                if waits:
                    await self._announce()

    async def leave(self) -> None:
        """Remove the process from the registry of workers."""
        with contextlib.suppress(ByroteError, psycopg.Error, Interrupted):
            await self._store.ask(queries.deregister(worker=self._context.name))

    # -- Listening -------------------------------------------------------------------------------

    async def poll(self) -> None:
        """Check the queues that claims wait for about once a second, while the process lives."""
        while True:
            await asyncio.sleep(self._poll_s * (0.75 + 0.5 * self._context.jitter()))
            wanted: Sequence[str] = sorted(self._queues())[:QUEUES_MAX]
            if wanted:
                # A database that does not answer is asked again in a moment.
                with contextlib.suppress(ByroteError, psycopg.Error):
                    for queue in await self._store.all(queries.ready_queues(wanted)):
                        self.ring(queue)

    async def listen(self) -> None:
        """Listen for new runs and for cancelled runs, while the process lives."""
        tries = 1
        while True:
            try:
                address = self._store.address
                async with await psycopg.AsyncConnection.connect(
                    address.conninfo("listen"), **address.keywords
                ) as connection:
                    channels = dict(await afetch(connection, queries.channels()))
                    heeds = {"byrote_ready": self.ring, "byrote_cancel": self._on_cancel}
                    heard = {name: heeds[kind] for name, kind in channels.items() if kind in heeds}
                    for name in heard:
                        await connection.execute(subscription(name))
                    tries = 1
                    async for notify in connection.notifies():
                        heard[notify.channel](notify.payload)
            except psycopg.Error:
                tries += 1
                await asyncio.sleep(pause_before(tries, self._context.jitter))

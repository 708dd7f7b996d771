# SPDX-License-Identifier: MIT
"""Requests of workers that wait to learn at once that one of their runs was cancelled.

The reply is a hint, as every notification: the next renewal names the runs. A worker need not be
registered to claim, so its name does not identify its holder: a cancellation is stored for each
holder that waits under the name, and one holder cannot take it from another.
Where the service cannot listen, workers learn of cancellations with their renewals.
"""

import asyncio
from collections import OrderedDict

MISSED_MAX = 10_000
"""Workers whose cancellation is stored; beyond that, the oldest are dropped."""


DEAF = ""
"""The name of no worker."""


class CancellationWaiters:
    """Waiting requests, by the name of the worker."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[asyncio.Future[None], str]] = {}
        self._missed: OrderedDict[str, set[str]] = OrderedDict()
        """Workers with a cancelled run, and the holders that were notified of it."""
        self._closed = False
        self.waiting = 0
        """How many wait."""

    async def wait(
        self, worker: str | None, holder: str, seconds: float, gone: asyncio.Future[None]
    ) -> bool:
        """Wait up to `seconds` for a cancellation, or until the client hangs up; whether one came.

        Without a worker no cancellation arrives.
        """
        notified = self._missed.get(worker) if worker is not None else None
        if notified is not None and holder not in notified:
            notified.add(holder)
            return True
        if self._closed or seconds <= 0:
            return False
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        key = DEAF if worker is None else worker
        waiters = self._waiting.setdefault(key, {})
        waiters[called] = holder
        self.waiting += 1
        try:
            await asyncio.wait({called, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.waiting -= 1
            del waiters[called]
            if not waiters and self._waiting.get(key) is waiters:
                del self._waiting[key]
        return called.done() and not self._closed

    def call(self, worker: str) -> None:
        """Notify the requests of this worker that one of its runs was cancelled."""
        waiting = self._waiting.get(worker, {})
        self._missed[worker] = set(waiting.values())
        self._missed.move_to_end(worker)
        if len(self._missed) > MISSED_MAX:
            self._missed.popitem(last=False)
        for called in waiting:
            if not called.done():
                called.set_result(None)

    def close(self) -> None:
        """End all waits."""
        self._closed = True
        for worker in list(self._waiting):
            self.call(worker)

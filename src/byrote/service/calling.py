# SPDX-License-Identifier: MIT
"""The waiting room of workers that want to hear at once when a run of theirs is not wanted.

What is heard is a hint, as every notification: which runs are meant is told by the next renewal.
A call that nobody waits for just then is kept for the next who comes; whoever's service cannot
listen hears of it with its renewals anyway.
"""

import asyncio
from collections import OrderedDict

MISSED_MAX = 10_000
"""Workers whose call is kept; of more, those are forgotten that were called first."""


class Calling:
    """Who waits to be called, by the name of the worker."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._missed: OrderedDict[str, None] = OrderedDict()
        self._closed = False
        self.waiting = 0
        """How many wait."""

    async def wait(self, worker: str, seconds: float, gone: asyncio.Future[None]) -> bool:
        """Wait until the worker is called, for so long, or until it hangs up; whether it was."""
        if worker in self._missed:
            del self._missed[worker]
            return True
        if self._closed or seconds <= 0:
            return False
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiters = self._waiting.setdefault(worker, set())
        waiters.add(called)
        self.waiting += 1
        try:
            await asyncio.wait({called, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.waiting -= 1
            waiters.discard(called)
            if not waiters and self._waiting.get(worker) is waiters:
                del self._waiting[worker]
        return called.done() and not self._closed

    def call(self, worker: str) -> None:
        """Some run of this worker is not wanted any more."""
        if worker not in self._waiting:
            self._missed[worker] = None
            if len(self._missed) > MISSED_MAX:
                self._missed.popitem(last=False)
        for called in self._waiting.get(worker, ()):
            if not called.done():
                called.set_result(None)

    def close(self) -> None:
        """Send everybody away."""
        self._closed = True
        for worker in list(self._waiting):
            self.call(worker)

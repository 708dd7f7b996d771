# SPDX-License-Identifier: MIT
"""One service process: its stores, its waiting requests and its background tasks."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from byrote.service.chores import Chores
from byrote.service.http.auth import Keyring
from byrote.service.http.offload import Offload
from byrote.service.http.slots import Slots
from byrote.service.options import ServiceContext, ServiceOptions
from byrote.service.readiness import Readiness
from byrote.service.waiting.cancellations import CancellationWaiters
from byrote.service.waiting.claims import ClaimWaiters
from byrote.service.waiting.runs import RunWaiters
from byrote.store.connect import PLAN_GUARDS, DatabaseAddress
from byrote.store.locks import Detour
from byrote.store.runners.aio import AsyncStore

READ_GUARDS = ("enable_seqscan=off", "jit=off")
"""Queries that count up to a limit must use an index, whatever the planner's statistics are."""

LOCK_MS = 1_000
"""How long a request waits for a row that another transaction has locked, before it tries again."""

PROBES_MAX = 64
"""Requests at once that only ask whether the service is ready."""

_log = logging.getLogger("byrote.service")


class Service:
    """The state that every route uses."""

    def __init__(
        self,
        address: DatabaseAddress,
        options: ServiceOptions,
        context: ServiceContext,
        *,
        beside: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        self._beside = beside
        self.options = options
        self.context = context
        patience = options.patience_s
        self.work = AsyncStore(
            address,
            *PLAN_GUARDS,
            # Requests that wait for a locked row must not use up the connections of all others.
            f"lock_timeout={LOCK_MS}",
            jitter=context.jitter,
            size=options.connections,
            patience_s=patience,
        )
        """For requests that must be quick: enqueueing and leases, with guarded plans."""
        self.reads = AsyncStore(
            address,
            *READ_GUARDS,
            f"statement_timeout={int(options.request_s * 500)}",
            jitter=context.jitter,
            size=max(options.connections // 2, 2),
            patience_s=patience,
        )
        """For monitoring queries, which may be slow, but have a limit."""
        self.detour = Detour()
        """Sends finishes and renewals around locked rows."""
        self.keyring = Keyring(self.work, context.clock, rate=options.rate, token_s=options.token_s)
        self.calling = CancellationWaiters()
        self.claim_waiters = ClaimWaiters(
            self.work, context, poll_s=options.poll.total_seconds(), on_cancel=self.calling.call
        )
        self.watch = RunWaiters(self.reads, context.clock)
        self.chores = Chores(self.reads, self.keyring, context)
        self.requests = Slots(options.at_once, "Too many requests are under way here")
        self.probes = Slots(PROBES_MAX, "Too many ask after this service")
        self.waits = Slots(options.waiting, "Too many requests wait here")
        self.streams = Slots(options.streams, "Too many streams are open here", retry_after_s=5)
        self.uploads = Slots(
            options.uploads, "Too many files are on their way here", retry_after_s=2
        )
        self.offload = Offload()
        self.readiness = Readiness(self.work, context.clock, options.ready_s)
        self.provenances: set[int] = set()
        """Numbers of environments that are known to exist; as few as `byrote_provenance` has."""
        self.artifact_prefix: str | None = None
        """The name of this database's part of the artifact store, once read."""
        self.stopping = False
        self._abandoned: set[asyncio.Future[Any]] = set()

    def abandon(self, handling: asyncio.Future[Any]) -> None:
        """Cancel a handler without waiting for its end; at most one per connection takes long."""
        handling.cancel()
        self._abandoned.add(handling)
        handling.add_done_callback(self._ended)

    def _ended(self, handling: asyncio.Future[Any]) -> None:
        self._abandoned.discard(handling)
        if not handling.cancelled():
            handling.exception()  # Else asyncio logs the exception as never retrieved.

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the background tasks of the service until the context exits."""
        parts = [
            self.claim_waiters.poll,
            self.claim_waiters.keep_announced,
            self.watch.run,
            self.chores.run,
        ]
        parts.append(self.keyring.run)
        if not self.work.address.pooled:
            parts.append(self.claim_waiters.listen)
        tasks = [asyncio.create_task(_for_ever(part)) for part in parts]
        try:
            with self._beside():
                yield
        finally:
            self.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.chores.note_used()
            await self.claim_waiters.leave()
            self.offload.close()
            await self.work.close()
            await self.reads.close()

    def stop(self) -> None:
        """End the waiting requests; their responses are still sent."""
        self.stopping = True
        self.claim_waiters.close()
        self.calling.close()
        self.watch.close()


async def _for_ever(part: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await part()
        except Exception:  # noqa: BLE001 -- a bug, and the process is worth more with the part.
            _log.exception("a part of the service failed and is started again")
            await asyncio.sleep(1)

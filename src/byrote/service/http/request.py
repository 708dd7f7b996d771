# SPDX-License-Identifier: MIT
"""One request on its way through a route, and the description of a route."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from starlette.responses import Response

from byrote.core.errors import UnknownQueue
from byrote.core.run import Run
from byrote.core.spec import check_name
from byrote.service.http.auth import Grant
from byrote.service.http.slots import Slot
from byrote.service.service import Service
from byrote.store import queries
from byrote.store.locks import Moves, Verb, amove, moved
from byrote.store.query import Query
from byrote.wire.problems import NotFound
from byrote.wire.terms import Reply


class RequestContext(msgspec.Struct, frozen=True):
    """A request that was authorised and decoded."""

    service: Service
    grant: Grant
    id: str
    """The request's id, in every log line and answer about it."""
    address: str | None
    path: Mapping[str, str]
    query: Any
    body: Any
    raw: bytes
    headers: Mapping[str, str]
    gone: asyncio.Future[None]
    """Resolved when the client has disconnected or its token has ended."""
    slot: Slot
    """Its slot among the requests under way."""
    heavy: bool
    """Whether its body is too large to be worked on by the event loop."""
    stream: Callable[[], AsyncIterator[bytes]] | None = None
    """The body as a stream, if the route reads bytes."""

    def audit(
        self, action: str, runs: Sequence[str] = (), *, subject: str | None = None, items: int = 0
    ) -> Query[None]:
        """The audit entry that is written with the changes of this request."""
        return queries.audit(
            token_id=self.grant.token.id,
            action=action,
            request_id=self.id,
            address=self.address,
            subject=subject,
            runs=runs,
            items=items or len(runs),
        )

    async def change[Row](
        self,
        query: Query[Row],
        action: str,
        changed: Callable[[list[Row]], Sequence[str]],
        *,
        subject: str | None = None,
    ) -> list[Row]:
        """Run a statement, and audit in the same transaction what its rows report as changed.

        `changed` returns the ids of the runs that were changed, or with a `subject` that name:
        where it returns nothing, nothing was done and nothing is noted.
        """
        return await self.service.work.all(
            query, behind=self.noted(action, changed, subject=subject)
        )

    async def move[Row](
        self,
        verb: Verb[Row],
        ids: Sequence[str],
        action: str,
        changed: Callable[[list[Row]], Sequence[str]],
    ) -> Moves[Row]:
        """Do something to those of these runs that are the token's, around rows that are locked.

        `changed` returns the ids of the runs that were moved: the audit names those alone.
        """
        mine = await self.mine(ids)
        if not mine:
            return Moves([])
        return await amove(
            verb, mine, lambda query: self.change(query, action, lambda rows: changed(moved(rows)))
        )

    def noted[Row](
        self,
        action: str,
        changed: Callable[[list[Row]], Sequence[str]],
        *,
        subject: str | None = None,
    ) -> Callable[[list[Row]], list[Query[None]]]:
        """Return the audit entry for the rows of a statement, if they changed anything."""

        def entries(rows: list[Row]) -> list[Query[None]]:
            names = changed(rows)
            if not names:
                return []
            runs = () if list(names) == [subject] else names
            return [self.audit(action, runs, subject=subject)]

        return entries

    async def aside[T](self, work: Callable[[], T]) -> T:
        """Return what `work` makes of the body; for a large body, on a thread."""
        if not self.heavy:
            return work()
        return await self.service.offload.run(self.grant.token.id, work)

    @contextlib.contextmanager
    def waits(self) -> Iterator[None]:
        """Count as a waiting request meanwhile, not as one under way."""
        with self.service.waits.take(self.grant.token.id), self.slot.left():
            yield

    async def confirm(self) -> None:
        """Unauthorized if the token was revoked or has expired meanwhile."""
        await self.service.keyring.confirm(self.grant)

    async def mine(self, ids: Sequence[str]) -> list[str]:
        """Return the subset of `ids` that the token may access."""
        if not self.grant.limited:
            return list(ids)
        found = await self.service.work.all(queries.run_access(ids))
        mine = {run.id for run in found if self.grant.allows(run.queue, run.task)}
        return [run_id for run_id in ids if run_id in mine]

    async def check_mine(self, run_id: str) -> None:
        """Raise not-found for a run that does not exist or that the token may not see."""
        found = await self.service.work.first(queries.run_access([run_id]))
        if found is None or not self.grant.allows(found.queue, found.task):
            raise not_here(run_id)


def not_here(run_id: str) -> NotFound:
    """The same message whether the run does not exist or belongs to another token."""
    return NotFound(f"No run {run_id}.")


async def found_run(call: RequestContext) -> Run:
    """The run of a request; not found if the token may not see it."""
    run_id = call.path["id"]
    run = await call.service.reads.first(queries.run(run_id))
    if run is None or not call.grant.allows(run.queue, run.task):
        raise not_here(run_id)
    return run


async def known_queue(call: RequestContext) -> str:
    """The queue of a request's path; raises UnknownQueue: the name is most likely mistyped."""
    name = check_name("queue", call.path["name"])
    call.grant.check([name])
    known = [row.queue for row in await call.service.reads.all(queries.queues())]
    if name not in known:
        raise UnknownQueue(
            name, [one for one in known if call.grant.queues is None or one in call.grant.queues]
        )
    return name


type HandlerResult = Reply | Response
type RouteHandler = Callable[[RequestContext], Awaitable[HandlerResult]]


class NoQuery(msgspec.Struct, frozen=True):
    """A route without query parameters."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One route: its roles, its input and its answer."""

    method: str
    path: str
    handler: RouteHandler
    reply: Any
    """The type of the answer."""
    roles: Sequence[str] = ()
    """One of these roles, or admin; empty: any token."""
    body: Any = None
    query: type = NoQuery
    status: int = 200
    found: bool = False
    """Whether it answers 200 if what it would create exists already."""
    refusals: Sequence[int] = ()
    """Statuses beyond those that every route may answer."""
    keyed: bool = False
    """Whether an Idempotency-Key makes it safe to send twice."""
    summary: str = ""
    waits: bool = False
    """Whether it may wait for something to happen."""
    media: str = "application/json"
    """The media type of the answer; only JSON has a type."""
    probe: bool = False
    """Whether it is about the service itself, and must be answered however busy that is."""
    lasts: bool = False
    """Whether its answer is a stream without an end."""
    streams: bool = False
    """Whether its body is bytes that the handler reads as they arrive."""
    batch_reply: Any = None
    """The type of the answer to a batch, if it is another."""

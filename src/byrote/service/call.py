# SPDX-License-Identifier: MIT
"""One request on its way through a route, and what a route is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from starlette.responses import Response

from byrote.service.access import Grant
from byrote.service.service import Service
from byrote.store import looking, tokens
from byrote.store.query import Query
from byrote.wire.problems import NotFound
from byrote.wire.terms import Reply


class Call(msgspec.Struct, frozen=True):
    """A request that was let in and understood."""

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
    """Done when whoever asked has hung up: what is waited for then is nobody's."""
    stream: Callable[[], AsyncIterator[bytes]] | None = None
    """The body as it comes, where the route takes bytes."""

    def audit(
        self, action: str, runs: Sequence[str] = (), *, subject: str | None = None, items: int = 0
    ) -> Query[None]:
        """The entry of the audit that is to be written with what this request changes."""
        return tokens.audit(
            token_id=self.grant.token.id,
            action=action,
            request_id=self.id,
            address=self.address,
            subject=subject,
            runs=runs,
            items=items or len(runs),
        )

    async def mine(self, ids: Sequence[str]) -> list[str]:
        """Those of these runs that are any business of the token; the others are not there."""
        if not self.grant.limited:
            return list(ids)
        found = await self.service.work.all(looking.whereabouts(ids))
        mine = {place.id for place in found if self.grant.allows(place.queue, place.task)}
        return [run_id for run_id in ids if run_id in mine]

    async def check_mine(self, run_id: str) -> None:
        """Refuse a run that is not there, as far as this token may know."""
        found = await self.service.work.first(looking.whereabouts([run_id]))
        if found is None or not self.grant.allows(found.queue, found.task):
            raise not_here(run_id)


def not_here(run_id: str) -> NotFound:
    """The same words whether there is no such run or it is somebody else's."""
    return NotFound(f"No run {run_id}.")


type Answer = Reply | Response
type Handler = Callable[[Call], Awaitable[Answer]]


class NoQuery(msgspec.Struct, frozen=True):
    """A route without parameters after the question mark."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One route: who may use it, what it takes and what it answers."""

    method: str
    path: str
    handler: Handler
    reply: Any
    """The type of the answer."""
    roles: Sequence[str] = ()
    """Any of these, or admin; none: whoever has a token."""
    body: Any = None
    query: type = NoQuery
    status: int = 200
    found: bool = False
    """Whether it answers 200 where what it would create is there already."""
    refusals: Sequence[int] = ()
    """Statuses beyond those that every route may answer."""
    keyed: bool = False
    """Whether an Idempotency-Key makes it safe to send twice."""
    summary: str = ""
    waits: bool = False
    """Whether it may wait for something to happen."""
    media: str = "application/json"
    """The kind of the answer; of anything but JSON there is no type."""
    streams: bool = False
    """Whether its body is bytes that the handler reads as they come."""
    batch_reply: Any = None
    """The type of the answer to a batch, where that is another."""

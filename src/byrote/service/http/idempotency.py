# SPDX-License-Identifier: MIT
"""Requests that create: once for each Idempotency-Key, and one run for each unique key."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import psycopg
from starlette.responses import Response

from byrote.core.spec import Spec
from byrote.service.http.request import RequestContext, not_here
from byrote.store import queries
from byrote.store.queries.enqueue import EnqueueResult, QueryScript, until_accepted
from byrote.store.queries.enqueue import again as sent_again
from byrote.store.queries.runs import RunAccess
from byrote.store.query import Query
from byrote.wire import messages
from byrote.wire.problems import BadRequest, Conflict, KeyReused
from byrote.wire.terms import KEY_MAX

_encode = msgspec.json.Encoder().encode
FOUND: Final = 200
"""The status of an answer for which nothing had to be created."""

type Created = messages.Accepted | messages.AcceptedRuns


async def once[R: Created](
    call: RequestContext, query: Query[Any], audit: Query[None], reply: R
) -> R:
    """Run a statement that creates; with an Idempotency-Key once, even if answers are lost."""
    key = _key_of(call)
    if key is None:
        await call.service.work.all(query, also=[audit])
        return reply
    try:
        await call.service.work.all(query, also=[_kept(call, key, reply), audit])
    except psycopg.errors.UniqueViolation:
        kept = await _answered(call, key, type(reply))
        if kept is None:
            raise  # If it is not the key, it is a bug in the service.
        return kept
    return reply


async def copied[R: Created](
    call: RequestContext,
    query: Query[str],
    noted: Callable[[list[str]], Sequence[Query[None]]],
    reply: R,
) -> R:
    """Run a statement that copies a run, once for its Idempotency-Key; raises NotFound."""
    key = _key_of(call)

    def behind(made: list[str]) -> list[Query[None]]:
        if not made:
            raise not_here(call.path["id"])
        return [*noted(made), *([] if key is None else [_kept(call, key, reply)])]

    try:
        await call.service.work.all(query, behind=behind)
    except psycopg.errors.UniqueViolation:
        kept = None if key is None else await _answered(call, key, type(reply))
        if kept is None:
            raise
        return kept
    return reply


def _key_of(call: RequestContext) -> str | None:
    key = call.headers.get("idempotency-key")
    if key is None:
        return None
    if not 1 <= len(key) <= KEY_MAX or not (key.isascii() and key.isprintable()):
        raise BadRequest(f"An Idempotency-Key has 1 to {KEY_MAX} printable ASCII characters.")
    return key


def _digest(call: RequestContext) -> bytes:
    return hashlib.sha256(call.path.get("id", "").encode() + b"\n" + call.raw).digest()


def _kept(call: RequestContext, key: str, reply: Created) -> Query[None]:
    holder = call.grant.token.holder
    return queries.store_reply(
        holder=holder, key=key, digest=_digest(call), reply=_encode(reply).decode()
    )


async def _answered[R: Created](call: RequestContext, key: str, reply_type: type[R]) -> R | None:
    """Return the stored answer to an earlier copy of this request."""
    found = await call.service.work.first(
        queries.stored_reply(holder=call.grant.token.holder, key=key)
    )
    if found is None:
        return None
    if found.request_hash != _digest(call):
        raise KeyReused(
            "This Idempotency-Key was sent before with another request. Use a new key for "
            "new work, and the same body with the same key."
        )
    return msgspec.json.decode(found.reply, type=reply_type)


# -- Unique keys -----------------------------------------------------------------------------------


async def enqueue_each[R: Created](
    call: RequestContext,
    sent: Sequence[tuple[str, Spec]],
    query: Query[Any],
    *,
    reply_type: type[R],
    subject: str,
) -> R | Response:
    """Accept runs, except those whose unique key is taken: for these, return its holder."""
    key = _key_of(call)

    def script(resent: bool) -> QueryScript[R]:
        enqueued = yield from until_accepted(sent_again(query) if resent else query)
        runs = yield from _runs(call, sent, enqueued)
        reply = runs[0] if reply_type is messages.Accepted else messages.AcceptedRuns(runs=runs)
        if not enqueued.landed:
            # Else this was committed, with what is noted here, and its answer was lost.
            made = [run.id for run in runs if run.created]
            yield from _note(call, made, subject, kept=_kept(call, key, reply) if key else None)
        return reply  # type: ignore[return-value]  # Of the type that was asked for.

    try:
        reply = await call.service.work.within(script)
    except psycopg.errors.UniqueViolation:
        kept = None if key is None else await _answered(call, key, reply_type)
        if kept is None:
            raise
        reply = kept
    if isinstance(reply, messages.Accepted) and not reply.created:
        return Response(_encode(reply), FOUND, media_type="application/json")
    return reply


def _runs(
    call: RequestContext, sent: Sequence[tuple[str, Spec]], enqueued: EnqueueResult
) -> QueryScript[list[messages.Accepted]]:
    holders: dict[str, RunAccess] = {}
    if enqueued.instead:
        found = yield queries.run_access(sorted(set(enqueued.instead.values())))
        holders = {run.id: run for run in found}
    runs = []
    for run_id, spec in sent:
        holder = holders.get(enqueued.instead.get(run_id, ""))
        if run_id not in enqueued.instead:
            runs.append(messages.Accepted(id=run_id, spec_hash=spec.digest.hex()))
        elif holder is not None and call.grant.allows(holder.queue, holder.task):
            hashed = holder.spec_hash
            runs.append(messages.Accepted(id=holder.id, spec_hash=hashed, created=False))
        else:
            raise Conflict("The unique key is taken by an unfinished run of this task.")
    return runs


def _note(
    call: RequestContext, made: Sequence[str], subject: str, *, kept: Query[None] | None
) -> QueryScript[None]:
    if made:
        yield call.audit("enqueue", made, subject=subject)
    if kept is not None:
        yield kept

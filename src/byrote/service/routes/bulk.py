# SPDX-License-Identifier: MIT
"""Routes that change many runs: by their ids, by filters, and all that wait in a queue.

A request changes one batch of the runs that match. The first one counts them, and its cursor names
the newest of these: a producer that keeps enqueueing does not make the command run forever.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from byrote.core.state import Status
from byrote.service.http.decoding import plain, since_of
from byrote.service.http.request import RequestContext, known_queue
from byrote.service.views import revived
from byrote.store import queries
from byrote.store.locks import Moves, Verb
from byrote.store.queries.matching import (
    FIRST,
    PURGED,
    RunFilter,
    cancel_filter,
    retry_filter,
    retry_verb,
)
from byrote.wire.bulk import ChosenRuns, MatchedRuns, PurgeQueue
from byrote.wire.messages import Moved
from byrote.wire.problems import Invalid
from byrote.wire.terms import Id


async def cancel_many(call: RequestContext) -> MatchedRuns:
    """Cancel runs by id or filter; those that had ended or are unknown are not in the reply."""
    asked: ChosenRuns = call.body
    if (ids := _ids(asked)) is not None:
        return await _cancelled(call, ids)
    return await _batch(call, cancel_filter(**_filters(call, asked)), asked, _cancelled)


async def retry_many(call: RequestContext) -> MatchedRuns:
    """Retry dead runs and make waiting ones ready, by id; by filter, runs of one of the two."""
    asked: ChosenRuns = call.body
    if (ids := _ids(asked)) is not None:
        return await _retried(call, ids, queries.retry)
    chosen = retry_filter(**_filters(call, asked))

    async def retried(call: RequestContext, ids: Sequence[str]) -> MatchedRuns:
        return await _retried(call, ids, retry_verb(chosen))

    return await _batch(call, chosen, asked, retried)


async def purge(call: RequestContext) -> MatchedRuns:
    """Cancel the waiting and ready runs of a queue; running attempts continue."""
    chosen = RunFilter(PURGED, queue=await known_queue(call))
    return await _batch(call, chosen, call.body, _cancelled)


async def _cancelled(call: RequestContext, ids: Sequence[str]) -> MatchedRuns:
    moves = await call.move(queries.cancel, ids, "cancel", lambda rows: [row.id for row in rows])
    runs = [Moved(id=row.id, status=Status(row.status)) for row in moves.done]
    return MatchedRuns(runs=runs, locked=moves.locked or UNSET)


async def _retried(call: RequestContext, ids: Sequence[str], verb: Verb[Any]) -> MatchedRuns:
    moves: Moves[str] = await call.move(verb, ids, "retry", list)
    reply = revived(moves)
    return MatchedRuns(runs=reply.runs, locked=reply.locked)


def _ids(asked: ChosenRuns) -> Sequence[str] | None:
    """Return the ids of a request, None if it has filters."""
    if asked.runs is UNSET:
        return None
    if asked.filtered:
        raise Invalid("runs: send either the ids of runs, or filters with `dry_run` and `cursor`.")
    return asked.runs


def _filters(call: RequestContext, asked: ChosenRuns) -> dict[str, Any]:
    call.grant.check([asked.queue] if asked.queue else [], [asked.task] if asked.task else [])
    for key, value in (asked.labels or {}).items():
        plain(key + value)
    return {
        "status": asked.status,
        "queue": plain(asked.queue),
        "task": plain(asked.task),
        "spec_hash": asked.hash,
        "labels": asked.labels,
        "since": since_of(asked.since),
    }


async def _batch(
    call: RequestContext, chosen: RunFilter, asked: ChosenRuns | PurgeQueue, change: Any
) -> MatchedRuns:
    """Count the runs that match, unless a cursor says which those are, and change a batch."""
    if asked.dry_run and asked.cursor is not None:
        raise Invalid("cursor: a dry run counts all runs that match; send it without a cursor.")
    mine = msgspec.structs.replace(chosen, queues=call.grant.queues, tasks=call.grant.tasks)
    if asked.cursor is not None:
        after, newest = _range(asked.cursor)
        return await _change(call, mine, (after, newest, asked.limit), change)
    found = await call.service.reads.all(queries.count_matching(mine))
    matched = {one.status: one.runs for one in found}
    if asked.dry_run or not found:
        return MatchedRuns(runs=[], matched=matched)
    newest = max(one.newest for one in found)
    reply = await _change(call, mine, (FIRST, newest, asked.limit), change)
    return msgspec.structs.replace(reply, matched=matched)


async def _change(
    call: RequestContext, chosen: RunFilter, batch: tuple[str, str, int], change: Any
) -> MatchedRuns:
    after, newest, limit = batch
    # One more than is changed: whether any remain is known, and a last request finds no empty rest.
    found = await call.service.reads.all(
        queries.matching(chosen, after=after, newest=newest, limit=limit + 1)
    )
    ids = found[:limit]
    reply: MatchedRuns = await change(call, ids) if ids else MatchedRuns(runs=[])
    more = f"{ids[-1]}.{newest}" if len(found) > limit else None
    return msgspec.structs.replace(reply, next=more)


def _range(cursor: str) -> tuple[str, str]:
    after, _, newest = cursor.partition(".")
    try:
        return msgspec.convert(after, Id), msgspec.convert(newest, Id)
    except msgspec.ValidationError:
        raise Invalid("cursor: send the `next` of an earlier reply.") from None

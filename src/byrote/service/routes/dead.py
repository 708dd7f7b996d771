# SPDX-License-Identifier: MIT
"""Routes of dead letters: list, requeue, delete."""

import base64
from datetime import datetime
from functools import partial
from typing import Annotated

import msgspec
from msgspec import UNSET

from byrote.core.state import Status
from byrote.service.http.decoding import plain
from byrote.service.http.request import RequestContext
from byrote.service.views import brief_of, revived
from byrote.store import queries
from byrote.wire import messages
from byrote.wire.problems import Invalid
from byrote.wire.terms import PAGE, PAGE_MAX


class DeadFilters(msgspec.Struct, frozen=True):
    """Filters of dead letters."""

    queue: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    task: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)] = PAGE
    cursor: Annotated[str, msgspec.Meta(max_length=200)] | None = None


async def dead(call: RequestContext) -> messages.RunPage:
    """Dead letters that match, the latest first."""
    asked: DeadFilters = call.query
    found = await call.service.reads.all(
        queries.dead(
            queue=plain(asked.queue),
            task=plain(asked.task),
            queues=call.grant.queues,
            tasks=call.grant.tasks,
            before=_before(asked.cursor),
            limit=asked.limit + 1,
        )
    )
    page, more = found[: asked.limit], len(found) > asked.limit
    last = None
    if more and page[-1].finished_at is not None:
        last = base64.urlsafe_b64encode(
            f"{page[-1].finished_at.isoformat()} {page[-1].id}".encode()
        )
    return messages.RunPage(
        runs=[brief_of(run) for run in page], next=None if last is None else last.decode()
    )


def _before(cursor: str | None) -> tuple[datetime, str] | None:
    if cursor is None:
        return None
    try:
        at, _, run_id = base64.urlsafe_b64decode(cursor.encode()).decode().partition(" ")
        moment = datetime.fromisoformat(at)
        digits = run_id.replace("-", "")
        if moment.tzinfo is None or len(digits) != 32 or int(digits, 16) < 0:
            raise ValueError(cursor)  # noqa: TRY301 -- reported below, once.
    except ValueError:
        raise Invalid("cursor: send the `next` of an earlier page.") from None
    return moment, digits


async def requeue(call: RequestContext) -> messages.MovedRuns:
    """Bring dead letters back with a fresh budget; other runs are missing from the answer."""
    requeued = partial(queries.retry, was=Status.FAILED)
    return revived(await call.move(requeued, call.body.runs, "requeue", list))


async def delete(call: RequestContext) -> messages.Deleted:
    """Delete dead letters for good."""
    moves = await call.move(queries.delete_dead, call.body.runs, "delete", list)
    return messages.Deleted(runs=moves.done, locked=moves.locked or UNSET)

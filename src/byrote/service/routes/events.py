# SPDX-License-Identifier: MIT
"""Routes of events: those of one run, and a stream of all runs or of one."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Annotated

import msgspec
from starlette.responses import Response, StreamingResponse

from byrote.core.log.cursor import BEGINNING, Cursor
from byrote.core.log.record import LogEntry
from byrote.service.http.decoding import plain
from byrote.service.http.request import RequestContext
from byrote.store import queries
from byrote.wire import messages
from byrote.wire.problems import BadRequest
from byrote.wire.terms import Id, Identified

PAGE = 50
"""Statements read in one batch; each may have events of a thousand runs."""
QUIET_S = 1.0
"""The longest sleep: events that an open transaction held back are read after it."""
COMMENT_EVERY = 15
"""Quiet seconds after which a comment shows that the connection is alive."""

PROGRESS = "Progress"
"""The kind of progress reports: they are not in the log and do not move the run."""
HISTORY_MAX = 1_000
"""Events of one run in an answer."""

_encode = msgspec.json.Encoder().encode


async def events(call: RequestContext) -> messages.EventsReply:
    """The events of one run, oldest first."""
    run_id = call.path["id"]
    await call.check_mine(run_id)
    found = await call.service.reads.all(queries.run_history(run_id, limit=HISTORY_MAX))
    return messages.EventsReply(events=[event_of(entry) for entry in found])


def event_of(entry: LogEntry) -> messages.EventView:
    """An event as clients receive it."""
    return messages.EventView(
        id=str(entry.cursor),
        at=entry.at,
        kind=entry.kind,
        run=entry.run or "",
        attempt=entry.attempt,
        move=entry.move,
        worker=entry.worker,
        data=None if entry.data is None else dict(entry.data),
    )


class StreamFilters(Identified, frozen=True, kw_only=True):
    """Filters of events."""

    queue: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    run: Id | None = None


async def stream(call: RequestContext) -> Response:
    """Follow events as server-sent events; `Last-Event-ID` resumes after that event."""
    plain(call.query.queue)
    return StreamingResponse(
        _follow(call, await _begin(call)),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def _begin(call: RequestContext) -> Cursor:
    """The position to begin at: after the last event that was sent, or after all events."""
    last = call.headers.get("last-event-id")
    if not last:
        return await call.service.reads.first(queries.cursor(back=0)) or BEGINNING
    try:
        return Cursor.parse(last)
    except ValueError as error:
        raise BadRequest(f"Last-Event-ID: {error}") from None


async def _follow(call: RequestContext, cursor: Cursor) -> AsyncIterator[bytes]:
    service = call.service
    followed = _Followed(call)
    quiet = 0
    yield b"retry: 1000\n\n"
    while not (service.stopping or call.gone.done()):
        page = await service.reads.all(queries.log_after(cursor, moves=True, limit=PAGE))
        if page:
            cursor = page[-1][-1].cursor.event_end
        sent = [_sent(event_of(entry)) for entry in await _wanted(call, page)]
        if text := b"".join(sent) + await followed.text(cursor):
            if call.grant.ended:
                return
            yield text
            quiet = 0
        if len(page) == PAGE:
            continue
        await service.watch.until_news(QUIET_S, call.gone)
        quiet += 1
        if quiet % COMMENT_EVERY == 0:
            yield b": still here\n\n"


class _Followed:
    """The progress of the run of a stream, read once a second."""

    def __init__(self, call: RequestContext) -> None:
        self._call = call
        self._at: datetime | None = None
        self._look_at = 0.0

    async def text(self, cursor: Cursor) -> bytes:
        """Its progress since the last call. A client that resumes here gets the events after it."""
        reads, clock = self._call.service.reads, self._call.service.context.clock
        asked: StreamFilters = self._call.query
        if asked.run is None or clock() < self._look_at:
            return b""
        self._look_at = clock() + QUIET_S
        at = await reads.first(queries.progressed(asked.run))
        if at is None or at == self._at:
            return b""
        self._at = at
        run = await reads.first(queries.run(asked.run))
        if run is None or run.progress is None or not self._call.grant.allows(run.queue, run.task):
            return b""
        event = messages.EventView(
            id=str(cursor),
            at=at,
            kind=PROGRESS,
            run=run.id,
            attempt=run.progress.attempt,
            move=0,
            worker=run.leased_by,
            data=msgspec.to_builtins(run.progress),
        )
        return _sent(event)


def _sent(event: messages.EventView) -> bytes:
    named = event.id.encode(), event.kind.encode(), _encode(event)
    return b"id: %b\nevent: %b\ndata: %b\n\n" % named


async def _wanted(call: RequestContext, page: Sequence[Sequence[LogEntry]]) -> Sequence[LogEntry]:
    """The entries that the client asked for and may see."""
    asked: StreamFilters = call.query
    entries = [entry for event in page for entry in event if asked.run in (None, entry.run)]
    if not entries or (asked.queue is None and not call.grant.limited):
        return entries
    # Runs that were deleted since are not found: their queue is unknown.
    ids = sorted({entry.run for entry in entries if entry.run is not None})
    mine = {
        found.id
        for found in await call.service.reads.all(queries.run_access(ids))
        if asked.queue in (None, found.queue) and call.grant.allows(found.queue, found.task)
    }
    return [entry for entry in entries if entry.run in mine]

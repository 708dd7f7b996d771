# SPDX-License-Identifier: MIT
"""Routes of events: those of one run, and a stream of all runs or of one."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Annotated

import msgspec
from starlette.responses import Response, StreamingResponse

from byrote.service import follow
from byrote.service.http.decoding import plain
from byrote.service.http.request import RequestContext
from byrote.store import queries
from byrote.store.queries.log import Position, RunFact
from byrote.wire import messages
from byrote.wire.problems import BadRequest
from byrote.wire.terms import Id, Identified

PAGE = 50
"""Statements read in one batch; each may have events of a thousand runs."""
QUIET_S = 1.0
"""The longest sleep: events that an open transaction held back are read after it."""
COMMENT_EVERY = 15
"""Quiet seconds after which a comment shows that the line is alive."""

PROGRESS = "Progress"
"""The kind of progress reports: they are not in the log and do not move the run."""
PLACE_MAX = 2**31 - 1
"""Behind every run of one statement: all of it was sent."""

_encode = msgspec.json.Encoder().encode


async def events(call: RequestContext) -> messages.EventsReply:
    """What happened to one run, oldest first."""
    run_id = call.path["id"]
    await call.check_mine(run_id)
    found = await call.service.desk.all(queries.facts(run_id))
    return messages.EventsReply(events=[event_of(fact) for fact in found])


def event_of(fact: RunFact) -> messages.EventView:
    """An event as clients receive it."""
    return messages.EventView(
        id=f"{fact.xid}:{fact.seq}:{fact.place}",
        at=fact.at,
        kind=fact.kind,
        run=fact.run,
        attempt=fact.attempt,
        move=fact.move,
        worker=fact.worker,
        data=None if fact.data is None else msgspec.json.decode(fact.data),
    )


class StreamFilters(Identified, frozen=True, kw_only=True):
    """Which events."""

    queue: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    run: Id | None = None


async def stream(call: RequestContext) -> Response:
    """Follow what happens, as server-sent events; `Last-Event-ID` goes on where one left off."""
    plain(call.query.queue)
    begin = await _begin(call)
    return StreamingResponse(
        _follow(call, *begin),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def _begin(call: RequestContext) -> tuple[Position, tuple[str, int, int]]:
    """The position to begin at, and the event that was sent last."""
    last = call.headers.get("last-event-id")
    if not last:
        [low] = await call.service.desk.all(queries.stable_xid())
        return follow.from_now(low), ("", 0, 0)
    try:
        text, _, place = last.rpartition(":")
        position = follow.read(text)
        sent = (position.xid, position.seq, int(place))
    except ValueError:
        raise BadRequest("Last-Event-ID: send the id of an event of this stream.") from None
    # That statement may have further events: it is read again from its beginning.
    return msgspec.structs.replace(position, seq=max(position.seq - 1, 0)), sent


async def _follow(
    call: RequestContext, position: Position, last: tuple[str, int, int]
) -> AsyncIterator[bytes]:
    service = call.service
    followed = _Followed(call)
    quiet = 0
    yield b"retry: 1000\n\n"
    while not (service.stopping or call.gone.done()):
        facts = await service.desk.all(queries.stream(position, limit=PAGE))
        if facts:
            position = Position(facts[-1].xid, facts[-1].seq)
        if text := _text(call, facts, last) + await followed.text(position):
            if call.grant.ended:
                return
            yield text
            quiet = 0
        if len({(fact.xid, fact.seq) for fact in facts}) == PAGE:
            continue
        await service.watch.until_news(QUIET_S, call.gone)
        quiet += 1
        if quiet % COMMENT_EVERY == 0:
            yield b": still here\n\n"


class _Followed:
    """The progress of the one run that a stream is about, looked at once a second."""

    def __init__(self, call: RequestContext) -> None:
        self._call = call
        self._at: datetime | None = None
        self._look_at = 0.0

    async def text(self, position: Position) -> bytes:
        """Its progress since the last look. A client that resumes here gets the events after it."""
        desk, clock = self._call.service.desk, self._call.service.means.clock
        asked: StreamFilters = self._call.query
        if asked.run is None or clock() < self._look_at:
            return b""
        self._look_at = clock() + QUIET_S
        at = await desk.first(queries.progressed(asked.run))
        if at is None or at == self._at:
            return b""
        self._at = at
        run = await desk.first(queries.run(asked.run))
        if run is None or run.progress is None or not self._call.grant.allows(run.queue, run.task):
            return b""
        event = messages.EventView(
            id=f"{position.xid}:{position.seq}:{PLACE_MAX}",
            at=at,
            kind=PROGRESS,
            run=run.id,
            attempt=run.progress.attempt,
            move=0,
            worker=run.leased_by,
            data=msgspec.to_builtins(run.progress),
        )
        return _sent(event)


def _text(call: RequestContext, facts: Sequence[RunFact], last: tuple[str, int, int]) -> bytes:
    lines = []
    for fact in facts:
        if (fact.xid, fact.seq) == last[:2] and fact.place <= last[2]:
            continue
        if _wanted(call, fact):
            lines.append(_sent(event_of(fact)))
    return b"".join(lines)


def _sent(event: messages.EventView) -> bytes:
    named = event.id.encode(), event.kind.encode(), _encode(event)
    return b"id: %b\nevent: %b\ndata: %b\n\n" % named


def _wanted(call: RequestContext, fact: RunFact) -> bool:
    asked: StreamFilters = call.query
    if asked.run is not None and fact.run != asked.run:
        return False
    if asked.queue is not None and fact.queue != asked.queue:
        return False
    if fact.queue is None or fact.task is None:
        return not call.grant.limited
    return call.grant.allows(fact.queue, fact.task)

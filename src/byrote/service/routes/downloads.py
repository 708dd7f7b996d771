# SPDX-License-Identifier: MIT
"""Routes that list and send the artifacts of runs: by hash, in pieces, verified on the way."""

import asyncio
from collections.abc import AsyncIterator, Iterator

from starlette.concurrency import iterate_in_threadpool
from starlette.responses import Response, StreamingResponse

from byrote.artifacts.artifact import Artifact, Source
from byrote.artifacts.content_store import open_content_store, pieces
from byrote.core.artifact import POSTGRES, ArtifactEntry, UnknownArtifact
from byrote.service.http.openapi import BYTES
from byrote.service.http.request import RequestContext
from byrote.store import queries
from byrote.wire import messages
from byrote.wire.problems import NotFound, Unauthorized


async def artifacts(call: RequestContext) -> messages.ArtifactsReply:
    """The artifacts of a run."""
    await call.check_mine(call.path["id"])
    found = await call.service.reads.all(queries.artifacts(call.path["id"]))
    return messages.ArtifactsReply(
        artifacts=[
            messages.ArtifactView(
                attempt=row.attempt,
                name=row.name,
                hash=row.hash,
                size=row.size,
                media_type=row.media_type,
                at=row.at,
            )
            for row in found
        ]
    )


async def download(call: RequestContext) -> Response:
    """The content of an artifact, by its hash; damaged content is cut off before its last part."""
    entry = await _entry(call)
    content = Artifact(entry, await _source(call, entry)).chunks()
    try:
        # Read the first piece now, while an error can still be the response.
        first = await asyncio.to_thread(next, content, b"")
    except UnknownArtifact:
        # Without the store's own message, which names a path of this machine.
        raise NotFound(f"The content of {entry.name!r} is gone.") from None
    # As bytes, whatever its media type: no browser may render it as a page of the service.
    headers = {"content-length": str(entry.size), "x-content-type-options": "nosniff"}
    return StreamingResponse(_sent(call, first, content), media_type=BYTES, headers=headers)


async def _entry(call: RequestContext) -> ArtifactEntry:
    run_id, digest = call.path["id"], call.path["hash"]
    await call.check_mine(run_id)
    for entry in await call.service.reads.all(queries.artifacts(run_id)):
        if entry.hash == digest:
            return entry
    raise NotFound(
        f"No artifact of this hash; GET /v1/runs/{run_id}/artifacts lists what is there."
    )


async def _source(call: RequestContext, entry: ArtifactEntry) -> Source:
    if entry.location != POSTGRES:
        return lambda: open_content_store(entry.location).read(entry.hash)
    data = await call.service.reads.first(queries.blob(entry.hash))
    if data is None:
        raise NotFound(f"The content of {entry.name!r} is gone.")
    return lambda: pieces(data)


async def _sent(call: RequestContext, first: bytes, rest: Iterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in iterate_in_threadpool(rest):
        if call.gone.done():
            raise Unauthorized("The token has ended.")  # Closes the connection: the head is sent.
        yield piece

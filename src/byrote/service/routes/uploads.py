# SPDX-License-Identifier: MIT
"""Files of any size for runs under way: read as a stream, stored with the large artifacts.

The lease is checked before anything is read. Then the body is written to a temporary file, so that
a slow sender holds neither a connection of the database nor memory. Small files are stored in
PostgreSQL, as always.
"""

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator, Iterator
from typing import IO, Any, NamedTuple

from byrote.artifacts.artifact import CHUNK
from byrote.artifacts.content_store import ContentStore, content_store_for
from byrote.core.artifact import CONTENT_LOCKED, INLINE_MAX, POSTGRES, check_artifact
from byrote.core.errors import RowLocked
from byrote.core.ports.replies import ArtifactReply
from byrote.service.ends import Pair, held_by
from byrote.service.http.request import RequestContext
from byrote.store import queries
from byrote.store.query import Query
from byrote.wire.leases import ArtifactTerms, Keep, Kept
from byrote.wire.problems import Invalid, TooLarge, TooSlow, Unauthorized, Unavailable
from byrote.wire.terms import Digest, Id, Identified, Word

AGAIN_MAX = 3


class Upload(Identified, frozen=True, kw_only=True):
    """The run and the name of the file."""

    run: Id
    name: Word
    media_type: Word = "application/octet-stream"
    sha256: Digest | None = None
    """The expected hash of the content; not checked if absent."""


class _File(NamedTuple):
    file: IO[bytes]
    digest: bytes
    size: int


async def artifact_terms(call: RequestContext) -> ArtifactTerms:
    """The maximum size of a file."""
    return ArtifactTerms(size_max=_limit(call))


def _limit(call: RequestContext) -> int:
    options = call.service.options
    limit = options.artifact_max
    return limit if options.artifacts is not None else min(limit, INLINE_MAX)


async def upload(call: RequestContext) -> Kept:
    """Store a file with a running run; only the lease holder can. The body is the file."""
    asked: Upload = call.query
    check_artifact(asked.name, asked.media_type)
    with call.service.uploads.take(call.grant.token.id), call.slot.left():
        if not await _holds(call):
            return Kept(verdict="lost")
        with tempfile.TemporaryFile() as file:
            digest, size = await _spool(call, file)
            if asked.sha256 is not None and digest.hex() != asked.sha256:
                raise Invalid("sha256: the content that came has another; send it again.")
            await call.confirm()
            return await _keep(call, _File(file, digest, size))


async def _holds(call: RequestContext) -> bool:
    """Whether the run is under way with this lease token, and the sender may access it.

    Checked before the body is read. The row's statement checks the lease again.
    """
    query = queries.leased_runs([(call.query.run, call.path["token"])])
    # The limit of the whole request allows hours for a large file: too long for this query.
    looking = asyncio.ensure_future(call.service.work.first(query))
    await asyncio.wait({looking}, timeout=call.service.options.request_s)
    if not looking.done():
        call.service.abandon(looking)
        raise Unavailable("The database does not answer.", retry_after_s=2)
    found = looking.result()
    return found is not None and call.grant.allows(found.queue, found.task)


async def _spool(call: RequestContext, file: IO[bytes]) -> tuple[bytes, int]:
    """Write the body to the file; returns its hash and size."""
    known, size, limit = hashlib.sha256(), 0, _limit(call)
    held = bytearray()
    length = call.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > limit:
        raise _too_large(limit)

    def write() -> None:
        known.update(held)
        file.write(held)
        held.clear()

    async for part in _parts(call):
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        held += part
        if len(held) >= CHUNK:
            await asyncio.to_thread(write)
    write()
    return known.digest(), size


async def _parts(call: RequestContext) -> AsyncIterator[bytes]:
    assert call.stream is not None  # noqa: S101 -- the route streams.
    parts, options, clock = call.stream(), call.service.options, call.service.context.clock
    began, size = clock(), 0
    while True:
        left = began + options.upload_s(size) - clock()
        try:
            async with asyncio.timeout(min(left, options.body_s)):
                part = await _next(call, parts)
        except TimeoutError:
            raise TooSlow(
                f"A file must not pause for {options.body_s:g} s, and must arrive with "
                f"{options.upload_rate:,} bytes a second."
            ) from None
        if part is None:
            return
        size += len(part)
        yield part


async def _next(call: RequestContext, parts: AsyncIterator[bytes]) -> bytes | None:
    """The next part, None after the last. Raises Unauthorized once the token has ended."""
    part = asyncio.ensure_future(anext(parts, None))
    try:
        either: set[asyncio.Future[Any]] = {part, call.gone}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if call.gone.done():
            raise Unauthorized("The token has expired or was revoked.")
        return part.result()
    finally:
        part.cancel()


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        f"A file has at most {limit:,} bytes here. Raise artifact_max of the service, or store it "
        "elsewhere and return a reference to it."
    )


async def _keep(call: RequestContext, sent: _File) -> Kept:
    asked: Upload = call.query
    lease: Any = Pair(asked.run, call.path["token"])
    for _ in range(AGAIN_MAX):
        contents = None if sent.size <= INLINE_MAX else await _store(call, sent)
        query = queries.artifact(
            lease,
            name=asked.name,
            digest=sent.digest,
            size=sent.size,
            media_type=asked.media_type,
            location=POSTGRES if contents is None else contents.url,
            data=None if contents is not None else b"".join(_pieces(sent.file)),
        )
        kept = await stored(call, query, lease.id)
        # A sweep may have run between the content and its row.
        if contents is None or await asyncio.to_thread(contents.has, sent.digest.hex()):
            return kept
    raise Unavailable("The file was swept away; send it again.", retry_after_s=1)


async def _store(call: RequestContext, sent: _File) -> ContentStore:
    service = call.service
    if service.artifact_prefix is None:
        [service.artifact_prefix] = await service.work.all(queries.artifact_prefix())
    contents = content_store_for(str(service.options.artifacts), service.artifact_prefix)
    await asyncio.to_thread(contents.store, lambda: _pieces(sent.file))
    return contents


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while piece := file.read(CHUNK):
        yield piece


async def keep(call: RequestContext) -> Kept:
    """Store a small file with a running run; only the lease holder can."""
    asked: Keep = call.body
    check_artifact(asked.name, asked.media_type)
    if not await held_by(call, [asked]):
        return Kept(verdict="lost")
    pair: Any = Pair(asked.run, asked.token)
    query = queries.artifact(
        pair,
        name=asked.name,
        digest=hashlib.sha256(asked.data).digest(),
        size=len(asked.data),
        media_type=asked.media_type,
        location=POSTGRES,
        data=asked.data,
    )
    return await stored(call, query, pair.id)


async def stored(call: RequestContext, query: Query[ArtifactReply], run_id: str) -> Kept:
    """Write an artifact's row; returns what is stored under its name, unless the lease is lost."""

    def changed(found: list[ArtifactReply]) -> list[str]:
        return [run_id for keeping in found if keeping.verdict == "stored"]

    [keeping] = await call.change(query, "artifact", changed)
    if keeping.verdict == "locked":
        raise RowLocked(CONTENT_LOCKED)
    verdict: Any = keeping.verdict
    if verdict not in {"stored", "same", "taken"}:
        return Kept(verdict=verdict)
    return Kept(verdict=verdict, media_type=keeping.media_type, at=keeping.at)

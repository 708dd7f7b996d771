# SPDX-License-Identifier: MIT
"""A client for async code: runs the scripts of `calls.py` on the caller's event loop."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any, Self, overload

import httpx2

from byrote.artifacts.artifact import CHUNK
from byrote.core.ports.script import arun_script
from byrote.sdk.calls import artifacts as fetching
from byrote.sdk.calls import bulk, producer
from byrote.sdk.transport.address import ServiceAddress, answer_of, lost_of
from byrote.sdk.transport.request import (
    LostResponse,
    Pause,
    Program,
    SendRequest,
    ServiceResponse,
    Sink,
)
from byrote.sdk.transport.sse import Stream
from byrote.wire.messages import EventView


class AsyncMethod[**P, T]:
    """A verb of `calls.py` as a coroutine method."""

    def __init__(self, make: Callable[P, Program[T]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __get__(
        self, client: "AsyncClient", _owner: type["AsyncClient"]
    ) -> Callable[P, Awaitable[T]]:
        @wraps(self._make)
        def verb(*args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
            return client.run(self._make(*args, **kwargs))

        return verb


class AsyncClient:
    """Client of a queue service; connections are reused on one event loop."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 10.0,
        verify: Any = True,
    ) -> None:
        self._address = ServiceAddress.find(url, token)
        self._terms = self._address.terms(timeout)
        self._http = httpx2.AsyncClient(**self._address.options(verify))

    enqueue = AsyncMethod(producer.enqueue)
    enqueue_many = AsyncMethod(producer.enqueue_many)
    get = AsyncMethod(producer.get)
    wait = AsyncMethod(producer.wait)
    result = AsyncMethod(producer.result)
    runs = AsyncMethod(producer.runs)
    cancel = AsyncMethod(producer.cancel)
    cancel_many = AsyncMethod(producer.cancel_many)
    retry = AsyncMethod(producer.retry)
    retry_many = AsyncMethod(producer.retry_many)
    cancel_runs = AsyncMethod(bulk.cancel_runs)
    retry_runs = AsyncMethod(bulk.retry_runs)
    replay = AsyncMethod(producer.replay)
    signal = AsyncMethod(producer.signal)
    events = AsyncMethod(producer.events)
    progress = AsyncMethod(producer.progress)
    artifacts = AsyncMethod(fetching.artifacts)
    dead = AsyncMethod(producer.dead)
    requeue = AsyncMethod(producer.requeue)
    delete = AsyncMethod(producer.delete)
    queues = AsyncMethod(producer.queues)
    pause = AsyncMethod(producer.pause)
    resume = AsyncMethod(producer.resume)
    purge = AsyncMethod(bulk.purge)
    set_retention = AsyncMethod(bulk.set_retention)
    unserved = AsyncMethod(producer.unserved)
    stats = AsyncMethod(producer.stats)
    workers = AsyncMethod(producer.workers)
    whoami = AsyncMethod(producer.whoami)

    async def run[T](self, program: Program[T]) -> T:
        """Run a script of requests and pauses; returns its result."""
        return await arun_script(program(self._terms), self._do)

    async def _do(self, todo: SendRequest | Pause) -> ServiceResponse | LostResponse | None:
        if isinstance(todo, Pause):
            await asyncio.sleep(todo.seconds)
            return None
        try:
            request = self._address.request(self._http, todo)
            if todo.call.sink is not None:
                return await self._pour(request, todo.call.sink)
            return answer_of(await self._http.send(request))
        except httpx2.TransportError as error:
            return lost_of(error)

    async def _pour(self, request: httpx2.Request, sink: Sink) -> ServiceResponse:
        answer = await self._http.send(request, stream=True)
        async with contextlib.aclosing(answer):
            if answer.status_code >= 300:
                await answer.aread()
                return answer_of(answer)
            sink.begin()
            try:
                async for piece in answer.aiter_bytes(CHUNK):
                    # A disk may be slow, and other tasks use the loop.
                    await asyncio.to_thread(sink.write, piece)
            except httpx2.TransportError as error:
                sink.cut(lost_of(error).why)
            return ServiceResponse(answer.status_code, b"")

    @overload
    async def fetch(self, run_id: str, artifact: fetching.ArtifactRef) -> bytes: ...

    @overload
    async def fetch(
        self, run_id: str, artifact: fetching.ArtifactRef, *, to: fetching.DownloadTarget
    ) -> Path: ...

    async def fetch(
        self,
        run_id: str,
        artifact: fetching.ArtifactRef,
        *,
        to: fetching.DownloadTarget | None = None,
    ) -> bytes | Path:
        """The content of an artifact, or of its hash: up to 16 MiB as bytes, or in the file `to`.

        The file appears only when it is complete and its hash is right. Raises ArtifactDamaged, or
        ServiceUnreachable if the download was interrupted.
        """
        return await self.run(fetching.fetch(run_id, artifact, to))

    async def stream(
        self, *, queue: str | None = None, run: str | None = None, after: str | None = None
    ) -> AsyncIterator[EventView]:
        """Events as they happen, without an end; a broken stream is resumed."""
        stream = Stream(self._terms, queue=queue, run=run, after=after)
        while True:
            try:
                answer = await self._http.send(stream.request(self._http), stream=True)
                try:
                    if answer.status_code >= 300:
                        await answer.aread()
                    stream.opened(answer)
                    async for piece in answer.aiter_bytes():
                        for event in stream.feed(piece):
                            yield event
                finally:
                    await answer.aclose()
                stream.ended(None)
            except httpx2.TransportError as error:
                stream.ended(error)
            await asyncio.sleep(stream.pause_s)

    async def close(self) -> None:
        """Close every connection."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

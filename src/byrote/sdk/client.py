# SPDX-License-Identifier: MIT
"""A client for code that waits: runs the scripts of `calls.py` in the caller's thread."""

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any, Self, overload

import httpx2

from byrote.artifacts.artifact import CHUNK
from byrote.core.ports.script import run_script
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


class SyncMethod[**P, T]:
    """A verb of `calls.py` as a method that does it."""

    def __init__(self, make: Callable[P, Program[T]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __get__(self, client: "Client", _owner: type["Client"]) -> Callable[P, T]:
        @wraps(self._make)
        def verb(*args: P.args, **kwargs: P.kwargs) -> T:
            return client.run(self._make(*args, **kwargs))

        return verb


class Client:
    """Client of a queue service; connections are reused, threads may share it."""

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
        self._http = httpx2.Client(**self._address.options(verify))

    enqueue = SyncMethod(producer.enqueue)
    enqueue_many = SyncMethod(producer.enqueue_many)
    get = SyncMethod(producer.get)
    wait = SyncMethod(producer.wait)
    result = SyncMethod(producer.result)
    runs = SyncMethod(producer.runs)
    cancel = SyncMethod(producer.cancel)
    cancel_many = SyncMethod(producer.cancel_many)
    retry = SyncMethod(producer.retry)
    retry_many = SyncMethod(producer.retry_many)
    cancel_runs = SyncMethod(bulk.cancel_runs)
    retry_runs = SyncMethod(bulk.retry_runs)
    replay = SyncMethod(producer.replay)
    signal = SyncMethod(producer.signal)
    events = SyncMethod(producer.events)
    progress = SyncMethod(producer.progress)
    artifacts = SyncMethod(fetching.artifacts)
    dead = SyncMethod(producer.dead)
    requeue = SyncMethod(producer.requeue)
    delete = SyncMethod(producer.delete)
    queues = SyncMethod(producer.queues)
    pause = SyncMethod(producer.pause)
    resume = SyncMethod(producer.resume)
    purge = SyncMethod(bulk.purge)
    set_retention = SyncMethod(bulk.set_retention)
    unserved = SyncMethod(producer.unserved)
    stats = SyncMethod(producer.stats)
    workers = SyncMethod(producer.workers)
    whoami = SyncMethod(producer.whoami)

    def run[T](self, program: Program[T]) -> T:
        """Run a script of requests and pauses; returns its result."""
        return run_script(program(self._terms), self._do)

    def _do(self, todo: SendRequest | Pause) -> ServiceResponse | LostResponse | None:
        if isinstance(todo, Pause):
            time.sleep(todo.seconds)
            return None
        try:
            request = self._address.request(self._http, todo)
            if todo.call.sink is not None:
                return self._pour(request, todo.call.sink)
            return answer_of(self._http.send(request))
        except httpx2.TransportError as error:
            return lost_of(error)

    def _pour(self, request: httpx2.Request, sink: Sink) -> ServiceResponse:
        with contextlib.closing(self._http.send(request, stream=True)) as answer:
            if answer.status_code >= 300:
                answer.read()
                return answer_of(answer)
            sink.begin()
            try:
                for piece in answer.iter_bytes(CHUNK):
                    sink.write(piece)
            except httpx2.TransportError as error:
                sink.cut(lost_of(error).why)
            return ServiceResponse(answer.status_code, b"")

    @overload
    def fetch(self, run_id: str, artifact: fetching.ArtifactRef) -> bytes: ...

    @overload
    def fetch(
        self, run_id: str, artifact: fetching.ArtifactRef, *, to: fetching.DownloadTarget
    ) -> Path: ...

    def fetch(
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
        return self.run(fetching.fetch(run_id, artifact, to))

    def stream(
        self, *, queue: str | None = None, run: str | None = None, after: str | None = None
    ) -> Iterator[EventView]:
        """Events as they happen, without an end; a broken stream is resumed."""
        stream = Stream(self._terms, queue=queue, run=run, after=after)
        while True:
            try:
                answer = self._http.send(stream.request(self._http), stream=True)
                with contextlib.closing(answer):
                    if answer.status_code >= 300:
                        answer.read()
                    stream.opened(answer)
                    for piece in answer.iter_bytes():
                        yield from stream.feed(piece)
                stream.ended(None)
            except httpx2.TransportError as error:
                stream.ended(error)
            time.sleep(stream.pause_s)

    def close(self) -> None:
        """Close every connection."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

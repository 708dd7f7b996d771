# SPDX-License-Identifier: MIT
"""A TCP proxy on its own thread; its wires decide what happens to the data."""

import asyncio
import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from psycopg.conninfo import make_conninfo

PIECE = 1 << 16


class Cut(Exception):
    """The connection was broken here."""


class RelayedConnection(Protocol):
    """One client's connection: what is done with the pieces of both directions."""

    async def ask(self, piece: bytes) -> None:
        """Forward a piece of a request, or raise Cut."""

    async def answer(self, piece: bytes) -> None:
        """Forward a piece of an answer, or raise Cut."""


type Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Relay(ABC):
    """Listens on 127.0.0.1 and forwards, piece by piece, as its wires decide."""

    def __init__(self) -> None:
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        started.wait()

    @abstractmethod
    def _refuses(self) -> bool:
        """Whether a client that connects now is refused."""

    @abstractmethod
    async def _far(self) -> Ends:
        """Open a connection to the server that the relay forwards to."""

    @abstractmethod
    def _wire(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> RelayedConnection:
        """Return the wire between a client and the far end."""

    def through(self, direct: dict[str, Any]) -> str:
        """Return the conninfo that reaches the database of `direct` through this relay."""
        tcp = {"host": "127.0.0.1", "port": self.port, "sslmode": "disable"}
        return make_conninfo(**{**direct, **tcp, "gssencmode": "disable"})

    def cut(self) -> int:
        """Reset every connection now; returns how many there were."""
        done, hit = threading.Event(), list[asyncio.StreamWriter]()

        def abort() -> None:
            hit.extend(self._writers)
            for writer in hit:
                writer.transport.abort()
            done.set()

        self._loop.call_soon_threadsafe(abort)
        done.wait(5)
        return len(hit)

    def close(self) -> None:
        """End the proxy."""
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port: int = server.sockets[0].getsockname()[1]
        started.set()
        self._loop.run_forever()
        for listening in server.sockets:
            self._loop.remove_reader(listening.fileno())
        self._loop.run_until_complete(_wind_up())
        server.close()
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self._refuses():
                raise ConnectionRefusedError
            far_reader, far_writer = await self._far()
        except (OSError, asyncio.CancelledError):
            writer.transport.abort()
            return
        wire = self._wire(writer, far_writer)
        self._writers.add(writer)
        pumps = [
            asyncio.ensure_future(_pump(reader, wire.ask)),
            asyncio.ensure_future(_pump(far_reader, wire.answer)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            self._writers.discard(writer)
            # The server receives what was sent: a cut affects the client, not the statement.
            far_writer.close()
            writer.transport.abort()


async def _wind_up() -> None:
    # A client accepted just now gets its task after three turns of the loop. Its socket would stay
    # open if that task were cancelled before its first step, or if the server were closed already.
    # Transports close a turn after an abort.
    for _ in range(5):
        await asyncio.sleep(0)
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.sleep(0)


async def _pump(reader: asyncio.StreamReader, forward: Callable[[bytes], Awaitable[None]]) -> None:
    with contextlib.suppress(ConnectionError, Cut):
        while piece := await reader.read(PIECE):
            await forward(piece)

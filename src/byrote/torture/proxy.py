# SPDX-License-Identifier: MIT
"""A TCP proxy in front of PostgreSQL that cuts, delays, swallows and tears, when it is told to.

It runs on a thread of its own and forwards to wherever the primary is at the moment of connecting.
What it did is counted: a fault that struck nobody did not happen.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable

from psycopg.conninfo import conninfo_to_dict, make_conninfo

PIECE = 1 << 16


class Mood:
    """How the proxy treats what passes through it now."""

    def __init__(self) -> None:
        self.refuse = False
        self.swallow = False
        self.delay_s = 0.0
        self.lose_answers = 0
        """How many answers to writing statements are still to be lost after they took effect."""
        self.lose_requests = 0
        self.tear_after: int | None = None
        """Bytes of an answer after which its connection is to break."""


class Proxy:
    """Listens on 127.0.0.1; `target` says where the primary's socket is."""

    def __init__(self, target: Callable[[], str]) -> None:
        self.mood = Mood()
        self.struck = 0
        """How often something was done to somebody since this was last reset."""
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        started.wait()

    def url(self, direct: str) -> str:
        """The same database, through this proxy."""
        given = conninfo_to_dict(direct)
        tcp = {"host": "127.0.0.1", "port": self.port, "sslmode": "disable"}
        return make_conninfo(**{**given, **tcp, "gssencmode": "disable"})

    def cut(self) -> None:
        """Reset every connection now."""
        done = threading.Event()

        def abort() -> None:
            for writer in tuple(self._writers):
                self.struck += 1
                writer.transport.abort()
            done.set()

        self._loop.call_soon_threadsafe(abort)
        done.wait(5)

    def heal(self) -> None:
        """Treat everybody well again."""
        self.mood = Mood()

    def close(self) -> None:
        """End the proxy."""
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.mood.refuse:
            self.struck += 1
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_unix_connection(self._target())
        except OSError:
            writer.transport.abort()
            return
        wire = _Wire(self, writer, far_writer)
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
            # The server is given what it was sent: a cut hits the client, not the statement.
            far_writer.close()
            writer.transport.abort()


class _Cut(Exception):
    """The connection was broken here."""


async def _pump(reader: asyncio.StreamReader, forward: Callable[[bytes], object]) -> None:
    with contextlib.suppress(ConnectionError, _Cut):
        while piece := await reader.read(PIECE):
            done = forward(piece)
            if asyncio.iscoroutine(done):
                await done


class _Wire:
    """One client's connection, both directions."""

    def __init__(self, proxy: Proxy, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._near = near
        self._far = far
        self._lose_next = False

    async def ask(self, piece: bytes) -> None:
        mood = self._proxy.mood
        await self._dawdle(mood)
        # A Bind with parameters: small ones are renewals of nothing and duties.
        writes = len(piece) > 200 and piece[:1] in b"PB"
        if writes and mood.lose_requests > 0:
            mood.lose_requests -= 1
            self._proxy.struck += 1
            raise _Cut
        if writes and mood.lose_answers > 0:
            mood.lose_answers -= 1
            self._lose_next = True
        if mood.swallow:
            self._proxy.struck += 1
            return
        self._far.write(piece)
        await self._far.drain()

    async def answer(self, piece: bytes) -> None:
        mood = self._proxy.mood
        await self._dawdle(mood)
        if self._lose_next:
            self._proxy.struck += 1
            raise _Cut
        if mood.swallow:
            self._proxy.struck += 1
            return
        if mood.tear_after is not None and len(piece) > mood.tear_after:
            self._near.write(piece[: mood.tear_after])
            mood.tear_after = None
            self._proxy.struck += 1
            raise _Cut
        self._near.write(piece)
        await self._near.drain()

    async def _dawdle(self, mood: Mood) -> None:
        if mood.delay_s:
            self._proxy.struck += 1
            await asyncio.sleep(mood.delay_s)

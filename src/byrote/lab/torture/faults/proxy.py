# SPDX-License-Identifier: MIT
"""A TCP proxy in front of PostgreSQL that cuts, delays, swallows and tears on request.

It forwards to the server that is the primary at the moment of connecting. It counts its effects: a
fault that hit no connection did not happen.
"""

import asyncio
from collections.abc import Callable

from psycopg.conninfo import conninfo_to_dict

from byrote.lab.torture.faults.relay import Cut, Ends, Relay, RelayedConnection

END = 6
"""Bytes of the message that ends an answer of PostgreSQL."""


class Mood:
    """How the proxy treats the data that passes through it now."""

    def __init__(self) -> None:
        self.refuse = False
        self.swallow = False
        self.delay_s = 0.0
        self.lose_answers = 0
        """How many answers to writing statements are still to be lost after they took effect."""
        self.lose_requests = 0
        self.tear_ends = 0
        """How many answers to writing statements are still to be cut off after their rows."""
        self.late_requests = 0
        """How many writing statements are still to arrive after their client was cut off."""
        self.late_s = 0.0
        self.tear_after: int | None = None
        """Bytes of an answer after which its connection is to break."""


type ProxyTarget = str | tuple[str, int]


class Proxy(Relay):
    """A proxy with changing faults; `target` returns the primary: a socket, or host and port."""

    def __init__(self, target: Callable[[], ProxyTarget]) -> None:
        self.mood = Mood()
        self.struck = 0
        """How often a connection was disturbed since this was last reset."""
        self._target = target
        super().__init__()

    def url(self, direct: str) -> str:
        """The same database, through this proxy."""
        given = conninfo_to_dict(direct)
        given.pop("hostaddr", None)
        return self.through(given)

    def cut(self) -> int:
        """Reset every connection now."""
        hit = super().cut()
        self.struck += hit
        return hit

    def heal(self) -> None:
        """Stop all faults."""
        self.mood = Mood()

    def _refuses(self) -> bool:
        self.struck += self.mood.refuse
        return self.mood.refuse

    async def _far(self) -> Ends:
        where = self._target()
        if isinstance(where, str):
            return await asyncio.open_unix_connection(where)
        return await asyncio.open_connection(*where)

    def _wire(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> RelayedConnection:
        return _Wire(self, near, far)


class _Wire:
    """One client's connection, both directions."""

    def __init__(self, proxy: Proxy, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._near = near
        self._far = far
        self._lose_next = False
        self._tear_next = False

    async def ask(self, piece: bytes) -> None:
        mood = self._proxy.mood
        await self._dawdle(mood)
        # A Bind with parameters: small ones are renewals of nothing and duties.
        writes = len(piece) > 200 and piece[:1] in b"PB"
        if writes and mood.lose_requests > 0:
            mood.lose_requests -= 1
            self._proxy.struck += 1
            raise Cut
        if writes and mood.lose_answers > 0:
            mood.lose_answers -= 1
            self._lose_next = True
        if writes and mood.tear_ends > 0:
            mood.tear_ends -= 1
            self._tear_next = True
        if writes and mood.late_requests > 0:
            mood.late_requests -= 1
            self._proxy.struck += 1
            self._near.transport.abort()
            await asyncio.sleep(mood.late_s)
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
            raise Cut
        if self._tear_next:
            self._near.write(piece[:-END])
            await self._near.drain()
            self._proxy.struck += 1
            raise Cut
        if mood.swallow:
            self._proxy.struck += 1
            return
        if mood.tear_after is not None and len(piece) > mood.tear_after:
            self._near.write(piece[: mood.tear_after])
            mood.tear_after = None
            self._proxy.struck += 1
            raise Cut
        self._near.write(piece)
        await self._near.drain()

    async def _dawdle(self, mood: Mood) -> None:
        if mood.delay_s:
            self._proxy.struck += 1
            await asyncio.sleep(mood.delay_s)

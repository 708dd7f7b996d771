# SPDX-License-Identifier: MIT
"""A TCP proxy in front of PostgreSQL that breaks a chosen exchange at a chosen moment.

A statement is recognised by words in it; prepared statements are sent by name, so their first
sending teaches the proxy the name. Moments: `before` cuts when the request arrives, so the server
never sees it; `during` forwards the request and cuts while the server is at it; `after` cuts
instead of forwarding the answer; `torn` cuts after the rows of the answer and before its end;
`late` cuts when the request arrives and forwards it when the test lets it go; `hold` keeps the
answer back until the test lets it go.
"""

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from psycopg.conninfo import conninfo_to_dict

from byrote.lab.torture.faults.relay import Cut, Ends, Relay, RelayedConnection

END = 6
"""Bytes of the message that ends an answer of PostgreSQL."""
Moment = Literal["before", "during", "after", "torn", "late", "hold"]


class Fault:
    """One planned break, and whether it has happened."""

    def __init__(self, words: str, moment: Moment, act: Callable[[], None] | None) -> None:
        self.words = words.encode()
        self.moment = moment
        self.act = act
        self.happened = threading.Event()
        self.let_go = threading.Event()


class Proxy(Relay):
    """Listens on 127.0.0.1 and forwards to a server's socket until a test breaks it."""

    def __init__(self, url: str) -> None:
        self._given = conninfo_to_dict(url)
        self._fault: Fault | None = None
        self._refusing = False
        self.refused = 0
        """Connections that were not let through."""
        self.accepted = 0
        """Connections that were."""
        self.black_hole = False
        """Whether pieces of both directions are swallowed, on connections that stay open."""
        self.delay_s = 0.0
        """How long every piece is on its way."""
        super().__init__()

    @property
    def url(self) -> str:
        """The database behind the proxy."""
        return self.through(self._given)

    def plan(self, words: str, moment: Moment, act: Callable[[], None] | None = None) -> Fault:
        """Break the next exchange whose request holds these words; `act` is done at that moment."""
        self._fault = Fault(words, moment, act)
        return self._fault

    def sever(self) -> None:
        """Cut every connection and refuse new ones."""
        self._refusing = True
        self.cut()

    def restore(self) -> None:
        """Let connections through again."""
        self._refusing = False

    def _refuses(self) -> bool:
        self.refused += self._refusing
        self.accepted += not self._refusing
        return self._refusing

    async def _far(self) -> Ends:
        host, port = self._given["host"], self._given.get("port") or 5432
        return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")

    def _wire(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> RelayedConnection:
        return _Wire(self, near, far)

    def due(self, request: bytes, names: dict[bytes, bytes]) -> Fault | None:
        """The planned fault, if this request is the one it waits for; it strikes once."""
        fault = self._fault
        if fault is None:
            return None
        known = [name for name, statement in names.items() if fault.words in statement]
        if fault.words in request or any(b"\0" + name + b"\0" in request for name in known):
            self._fault = None
            return fault
        return None


class _Wire:
    """One client's connection: both directions, and the names of its prepared statements."""

    def __init__(self, proxy: Proxy, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._near = near
        self._far = far
        self._names: dict[bytes, bytes] = {}
        self._fault: Fault | None = None

    async def ask(self, piece: bytes) -> None:
        for name, statement in re.findall(rb"P....([^\0]+)\0([^\0]*)\0", piece, re.DOTALL):
            self._names[name] = statement
        if self._proxy.delay_s:
            await asyncio.sleep(self._proxy.delay_s)
        if self._proxy.black_hole:
            return
        fault = self._proxy.due(piece, self._names)
        if fault is not None and fault.moment == "before":
            self._strike(fault)
            raise Cut
        if fault is not None and fault.moment == "late":
            self._near.transport.abort()
            self._strike(fault)
            await asyncio.to_thread(fault.let_go.wait, 60)
        self._far.write(piece)
        await self._far.drain()
        if fault is not None and fault.moment == "during":
            self._strike(fault)
            raise Cut
        self._fault = fault or self._fault

    async def answer(self, piece: bytes) -> None:
        if self._proxy.delay_s:
            await asyncio.sleep(self._proxy.delay_s)
        if self._proxy.black_hole:
            return
        fault, self._fault = self._fault, None
        if fault is not None:
            self._strike(fault)
            if fault.moment == "torn":
                self._near.write(piece[:-END])
                await self._near.drain()
            if fault.moment in {"after", "torn"}:
                raise Cut
            await asyncio.to_thread(fault.let_go.wait, 60)
        self._near.write(piece)
        await self._near.drain()

    def _strike(self, fault: Fault) -> None:
        if fault.act is not None:
            fault.act()
        fault.happened.set()


class HttpProxy(Proxy):
    """The same in front of a service; a request is recognised by words of its first piece."""

    def __init__(self, port: int) -> None:
        self.far_port = port
        super().__init__("")

    @property
    def url(self) -> str:
        """The service behind the proxy."""
        return f"http://127.0.0.1:{self.port}"

    async def _far(self) -> Ends:
        return await asyncio.open_connection("127.0.0.1", self.far_port)


@contextmanager
def proxied(url: str) -> Iterator[Proxy]:
    """A proxy for the length of a test."""
    proxy = Proxy(url)
    try:
        yield proxy
    finally:
        proxy.close()

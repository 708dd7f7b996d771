# SPDX-License-Identifier: MIT
"""Database time that a test moves by hand: nothing sleeps, everything is exact."""

from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any

import psycopg

START = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


@cache
def settable() -> bytes:
    """The statement that lets sessions of a test database set `byrote_now()`.

    Only the owner of the functions may run it. It changes nothing where it was run before.
    """
    return files("byrote.testing").joinpath("clock.sql").read_bytes()


class FakeClock:
    """Sets `byrote_now()` on the connections it knows; they see one moment until it is moved.

    The first use makes the database's clock settable, which takes the owner of its functions: a
    database for tests alone.
    """

    def __init__(self, *connections: psycopg.Connection[Any], now: datetime = START) -> None:
        self.now = now
        self._connections: list[psycopg.Connection[Any]] = []
        for connection in connections:
            self.on(connection)

    def on(self, connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
        """Set the time of this connection by this clock, too."""
        connection.execute(settable())
        self._connections.append(connection)
        self._set(connection)
        return connection

    def advance(self, **length: float) -> datetime:
        """Advance the time; takes the arguments of timedelta: `clock.advance(minutes=5)`."""
        self.now += timedelta(**length)
        for connection in self._connections:
            self._set(connection)
        return self.now

    def _set(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute("select set_config('byrote.now', %s, false)", (self.now.isoformat(),))

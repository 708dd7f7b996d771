# SPDX-License-Identifier: MIT
"""What a database session carries from one user of a connection to the next."""

import msgspec

from byrote.store.query import Query


class Session(msgspec.Struct, frozen=True):
    """The server process behind a connection, and a hash of the state of its session."""

    pid: int
    state: str


def session() -> Query[Session]:
    """The session of the connection that runs this; releases its advisory locks."""
    return Query("session", {}, lambda row: Session(row[0], row[1]))


def uptime() -> Query[float]:
    """Seconds since the server was started."""
    return Query("uptime", {}, lambda row: float(row[0]))

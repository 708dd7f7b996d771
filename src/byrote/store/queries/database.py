# SPDX-License-Identifier: MIT
"""Queries about the database itself: clock, schema, session, rights to write."""

from datetime import datetime, timedelta

import msgspec

from byrote.store import rows
from byrote.store.query import Query


def writable() -> Query[bool]:
    """Whether the session may write."""
    return Query("writable", {}, lambda row: bool(row[0]))


def schema() -> Query[rows.Applied]:
    """The migrations that the database has."""
    return Query("schema", {}, lambda row: rows.Applied(*row))


def set_timeout(limit: timedelta) -> Query[str]:
    """Limit the time of each statement of the transaction."""
    millis = max(limit // timedelta(milliseconds=1), 1)
    return Query("set_timeout", {"limit": str(millis)}, lambda row: str(row[0]))


def databases() -> Query[str]:
    """The names of this server's databases."""
    return Query("databases", {}, lambda row: str(row[0]))


def schemas() -> Query[str]:
    """The schemas of this database that contain Byrote's tables, of any version."""
    return Query("schemas", {}, lambda row: str(row[0]))


def in_search_path(schema: str) -> Query[bool]:
    """Whether the session's search path has this schema."""
    return Query("in_search_path", {"schema": schema}, lambda row: bool(row[0]))


def now() -> Query[datetime]:
    """The time by the database's clock."""
    return Query("now", {}, lambda row: row[0])


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

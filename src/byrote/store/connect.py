# SPDX-License-Identifier: MIT
"""How every connection is made: it notices a dead peer, and a worker's plans cannot go astray."""

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from byrote.core.errors import BadOption

# A peer that vanished without a word is noticed in about ten seconds, well inside a lease.
NOTICES_DEATH = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}

# With statistics taken while the table was small or empty, these plans turned out 8 to 260 times
# slower.
PLAN_GUARDS = (
    "enable_seqscan=off",
    "enable_hashjoin=off",
    "enable_mergejoin=off",
    "enable_bitmapscan=off",
    "jit=off",
    "plan_cache_mode=force_generic_plan",
)


class Door:
    """Where the database is and how to knock: a checked URL and the settings of a connection."""

    def __init__(self, url: str, *, name: str = "byrote", pooled: bool = False) -> None:
        try:
            given = conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise BadOption(
                f"The database URL cannot be read ({str(error).strip()}). "
                "Write postgresql://user:password@host:5432/database."
            ) from None
        if "://" in url and not url.startswith(("postgresql://", "postgres://")):
            raise BadOption(
                "The database URL must begin with postgresql://; Byrote runs on PostgreSQL only."
            )
        for port in str(given.get("port") or "").split(","):
            if port and not (port.isdigit() and 0 < int(port) < 65_536):
                raise BadOption(f"The database URL names port {port!r}; a port is a number.")
        self.pooled = pooled
        self._name = name
        self._given = {**NOTICES_DEATH, **given}

    @property
    def place(self) -> str:
        """Host and database, without user and password, for messages."""
        host = self._given.get("host") or "local socket"
        return f"{host}:{self._given.get('port') or 5432}/{self._given.get('dbname') or ''}"

    def conninfo(self, purpose: str, *settings: str) -> str:
        """A libpq connection string for one purpose, with settings for its session."""
        options = str(self._given.get("options") or "")
        if not self.pooled:
            # A transaction pooler has no session to set anything in.
            # UTC, whatever the server says: elsewhere the last day of the year 9999 cannot be read.
            wanted = ("timezone=UTC", *settings)
            options = " ".join([options, *(f"-c {setting}" for setting in wanted)]).strip()
        name = str(self._given.get("application_name") or f"{self._name} {purpose}")
        # Whatever the server or PGCLIENTENCODING says: what is sent here is written in UTF-8.
        known = {"application_name": name, "client_encoding": "UTF8"}
        fields: dict[str, Any] = {**self._given, **known}
        if options:
            fields["options"] = options
        return make_conninfo(**fields)

    @property
    def keywords(self) -> dict[str, Any]:
        """What psycopg is told about every connection."""
        prepare = None if self.pooled else 1
        return {"autocommit": True, "prepare_threshold": prepare}

    def open(self, purpose: str, *settings: str) -> psycopg.Connection[Any]:
        """Open one connection, or raise psycopg.OperationalError."""
        return psycopg.connect(self.conninfo(purpose, *settings), **self.keywords)

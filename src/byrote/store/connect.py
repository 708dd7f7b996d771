# SPDX-License-Identifier: MIT
"""Settings of every connection: detection of dead peers, and safe plans for workers."""

import contextlib
import math
import re
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.sql import SQL, Composed, Identifier

from byrote.core.errors import BadOption
from byrote.core.text.redaction import EXAMPLE
from byrote.core.text.schema_name import checked_schema, search_path

# A peer that vanishes silently is noticed in about ten seconds, well inside a lease.
NOTICES_DEATH = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}

# With statistics taken while the table was small or empty, these plans were 8 to 260 times slower.
PLAN_GUARDS = (
    "enable_seqscan=off",
    "enable_hashjoin=off",
    "enable_mergejoin=off",
    "enable_bitmapscan=off",
    "jit=off",
    "plan_cache_mode=force_generic_plan",
)


FORM = f"Write {EXAMPLE}"
_DRIVER = re.compile(r"^(postgres(?:ql)?)\+\w+://")
ENCODED = "in a password, write @ as %40, / as %2F, : as %3A, % as %25 and a space as %20"


def without_driver(url: str) -> str:
    """Return a URL as SQLAlchemy writes it, `postgresql+asyncpg://`, without the driver's name."""
    return _DRIVER.sub(r"\1://", url)


def _fields(url: str) -> dict[str, Any]:
    """Parse a database URL; raises BadOption, which never quotes the URL.

    libpq's own message is left out: it quotes the part that it could not read, which is often the
    password.
    """
    url = without_driver(url)
    scheme = url.partition("://")[0] if "://" in url else None
    if scheme is not None and scheme not in {"postgresql", "postgres"}:
        raise BadOption(
            "The database URL must begin with postgresql://. Byrote runs on PostgreSQL only."
        )
    fields: dict[str, Any] | None = None
    with contextlib.suppress(psycopg.ProgrammingError):
        fields = conninfo_to_dict(url)
    if fields is None:
        # Not inside the handler: libpq's message would be the context of this error.
        raise BadOption(f"The database URL cannot be read. {FORM}; {ENCODED}.")
    ports = [port for port in str(fields.get("port") or "").split(",") if port]
    if not all(port.isdigit() and 0 < int(port) < 65_536 for port in ports):
        raise BadOption(
            f"The database URL has a port that is not a number from 1 to 65535. {FORM}; {ENCODED}."
        )
    if "@" in str(fields.get("host") or ""):
        raise BadOption(f"The database URL has more than one @. {FORM}; {ENCODED}.")
    return fields


def described(connection: psycopg.Connection[Any]) -> str:
    """Return the host or socket, the database and the role of a connection, for people."""
    info = connection.info
    return f"{info.host or 'local socket'}:{info.port}/{info.dbname} as {info.user}"


def subscription(channel: str) -> Composed:
    """Return the statement that subscribes a session to a channel, which cannot be a parameter."""
    return SQL("listen {}").format(Identifier(channel))


class DatabaseAddress:
    """The address of a database: a checked URL and the settings of a connection."""

    def __init__(
        self,
        url: str,
        *,
        name: str = "byrote",
        pooled: bool = False,
        patience_s: float | None = None,
        schema: str | None = None,
    ) -> None:
        """An impatient caller, below five seconds, gets a shorter time to connect as well.

        `schema` is the home of our tables; None: the search path finds them.
        """
        fields = _fields(url)
        if patience_s is not None and patience_s < NOTICES_DEATH["connect_timeout"]:
            fields = {"connect_timeout": max(math.ceil(patience_s), 1), **fields}
        self.pooled = pooled
        self.schema = None if schema is None else checked_schema(schema)
        self._name = name
        self._fields = {**NOTICES_DEATH, **fields}

    @property
    def redacted(self) -> str:
        """Host and database, without user and password, for messages."""
        host = self._fields.get("host") or "local socket"
        return f"{host}:{self._fields.get('port') or 5432}/{self._fields.get('dbname') or ''}"

    def conninfo(self, purpose: str, *settings: str) -> str:
        """Return a libpq connection string for one purpose, with settings for its session."""
        options = str(self._fields.get("options") or "")
        if not self.pooled:
            # A transaction pooler has no session to set anything in.
            # UTC overrides the server's setting: elsewhere the last day of 9999 cannot be read.
            home = () if self.schema is None else (search_path(self.schema),)
            session = ("timezone=UTC", *home, *settings)
            options = " ".join([options, *(f"-c {setting}" for setting in session)]).strip()
        name = str(self._fields.get("application_name") or f"{self._name} {purpose}")
        # Overrides the server and PGCLIENTENCODING: statements are sent in UTF-8.
        known = {"application_name": name, "client_encoding": "UTF8"}
        fields: dict[str, Any] = {**self._fields, **known}
        if options:
            fields["options"] = options
        return make_conninfo(**fields)

    @property
    def named_schema(self) -> str | None:
        """The schema that statements must name on our own connections: no search path is set."""
        return self.schema if self.pooled else None

    @property
    def keywords(self) -> dict[str, Any]:
        """Keyword arguments of `psycopg.connect` for every connection."""
        prepare = None if self.pooled else 1
        return {"autocommit": True, "prepare_threshold": prepare}

    def open(self, purpose: str, *settings: str) -> psycopg.Connection[Any]:
        """Open one connection, or raise psycopg.OperationalError."""
        return psycopg.connect(self.conninfo(purpose, *settings), **self.keywords)

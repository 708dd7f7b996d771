# SPDX-License-Identifier: MIT
"""Where Django's database is, for connections of Byrote's own."""

from typing import Any

from django.db import connections
from psycopg.conninfo import make_conninfo

NOT_LIBPQ = frozenset(
    {"context", "cursor_factory", "prepare_threshold", "row_factory", "autocommit"}
)
"""What Django tells psycopg, and not the server."""


def conninfo_of(database: str) -> str:
    """The connection string of an entry in DATABASES; it may hold a password."""
    given: dict[str, Any] = connections[database].get_connection_params()
    known = {k: v for k, v in given.items() if k not in NOT_LIBPQ and v is not None}
    known.pop("client_encoding", None)
    role = connections[database].settings_dict["OPTIONS"].get("assume_role")
    if role:
        known["options"] = f"{known.get('options', '')} -c role={role}".strip()
    return make_conninfo(**known)


def flags_of(backend: Any) -> dict[str, Any]:
    """Settings of Byrote's own that reach the database of a backend as the backend does."""
    flags: dict[str, Any] = {"database_url": conninfo_of(backend.database)}
    return flags if backend.settings.listen else {**flags, "listen": False, "pooled": True}

# SPDX-License-Identifier: MIT
"""The address of Django's database, for Byrote's own connections."""

from typing import Any

from django.db import connections
from psycopg.conninfo import make_conninfo

NOT_LIBPQ = frozenset(
    {"context", "cursor_factory", "prepare_threshold", "row_factory", "autocommit"}
)
"""Connection parameters for psycopg that libpq does not accept."""


def conninfo_of(database: str) -> str:
    """The connection string of an entry in DATABASES; it may hold a password."""
    params: dict[str, Any] = connections[database].get_connection_params()
    libpq = {k: v for k, v in params.items() if k not in NOT_LIBPQ and v is not None}
    libpq.pop("client_encoding", None)
    role = connections[database].settings_dict["OPTIONS"].get("assume_role")
    if role:
        libpq["options"] = f"{libpq.get('options', '')} -c role={role}".strip()
    return make_conninfo(**libpq)


def flags_of(backend: Any) -> dict[str, Any]:
    """Byrote's settings to connect to a backend's database."""
    flags: dict[str, Any] = {"database_url": conninfo_of(backend.database)}
    if backend.settings.schema is not None:
        flags["schema"] = backend.settings.schema
    return flags if backend.settings.listen else {**flags, "listen": False, "pooled": True}

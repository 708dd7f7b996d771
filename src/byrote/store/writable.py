# SPDX-License-Identifier: MIT
"""Whether a database takes writes."""

from typing import Any

import psycopg

from byrote.core.errors import StoreRefused
from byrote.store.connect import Door
from byrote.store.queries import writable
from byrote.store.sync import fetch
from byrote.store.trouble import READ_ONLY


def check_writable(connection: psycopg.Connection[Any], door: Door) -> None:
    """Raise StoreRefused if the server is a standby or its transactions are read-only."""
    [takes_writes] = fetch(connection, writable())
    if not takes_writes:
        raise StoreRefused(f"PostgreSQL at {door.place} is read-only. {READ_ONLY}")

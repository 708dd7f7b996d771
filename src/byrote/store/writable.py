# SPDX-License-Identifier: MIT
"""Whether a database takes writes."""

from typing import Any

import psycopg

from byrote.core.errors import StoreRefused
from byrote.store.connect import DatabaseAddress
from byrote.store.queries.database import writable
from byrote.store.retries import READ_ONLY
from byrote.store.runners.sync import fetch


def check_writable(connection: psycopg.Connection[Any], address: DatabaseAddress) -> None:
    """Raise StoreRefused if the server is a standby or its transactions are read-only."""
    [takes_writes] = fetch(connection, writable())
    if not takes_writes:
        raise StoreRefused(f"PostgreSQL at {address.redacted} is read-only. {READ_ONLY}")

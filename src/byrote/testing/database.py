# SPDX-License-Identifier: MIT
"""Databases for tests: a server that is not durable, a migrated database, a rolled back test."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

from byrote.assembly.identity import jitter
from byrote.embedded.control import destroy
from byrote.embedded.databases import named_url
from byrote.embedded.errors import NoServer, ServerInUse
from byrote.embedded.server import open_server
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import migrate
from byrote.testing.clock import settable

_DROP: Final = sql.SQL("drop database if exists {} with (force)")


@contextlib.contextmanager
def scratch_server(home: Path) -> Iterator[str]:
    """The URL of an embedded server in a folder, which the last process to leave deletes."""
    with open_server(home, environ=os.environ, durable=False) as server:
        yield server.url
    with contextlib.suppress(ServerInUse, NoServer):
        destroy(home)


@contextlib.contextmanager
def scratch_database(server: str, name: str) -> Iterator[str]:
    """The URL of a new, migrated database whose time can be set; dropped afterwards."""
    url = named_url(server, name)
    try:
        migrate(DatabaseAddress(url), jitter=jitter)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(settable())
        yield url
    finally:
        drop = _DROP.format(sql.Identifier(name))
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute(drop)


@contextlib.contextmanager
def rolled_back(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection whose transaction is rolled back at the end."""
    connection = psycopg.connect(DatabaseAddress(url).conninfo("test"))
    try:
        yield connection
    finally:
        # Not `with connection`, which would commit.
        connection.rollback()
        connection.close()

# SPDX-License-Identifier: MIT
"""The one PostgreSQL server of a comparison, and a database of its own for each measurement."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from bench.peers import cpu

_SETTINGS = {"shared_buffers": "1GB"}
_TOLD = ("server_version", "fsync", "synchronous_commit", "shared_buffers", "full_page_writes")


@dataclass(frozen=True)
class Server:
    """A running server: where it is, what it says of itself, and its postmaster if it is here."""

    url: str
    settings: dict[str, str]
    postmaster: int | None

    def cpu_seconds(self) -> float | None:
        """CPU seconds of all its processes so far, or None when it runs on another machine."""
        return None if self.postmaster is None else cpu.seconds([self.postmaster])


@contextmanager
def running(url: str | None) -> Iterator[Server]:
    """The server at `url`, or one started for the comparison: fsync on, 1 GB of buffers."""
    if url is not None:
        yield _inspected(url)
        return
    # Imported here: a given URL needs no embedded server.
    from byrote.embedded.server import open_server  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="byrote-peers-") as home:
        # The server drops root's rights and must still reach its files.
        Path(home).chmod(0o755)
        with open_server(
            Path(home), environ=os.environ, settings=_SETTINGS, durable=True
        ) as server:
            yield _inspected(server.url)


@contextmanager
def database(server: Server, name: str) -> Iterator[str]:
    """A new, empty database, dropped afterwards together with who is still connected to it."""
    identifier = sql.Identifier(name)
    drop = sql.SQL("drop database if exists {} with (force)").format(identifier)
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(drop)
        connection.execute(sql.SQL("create database {}").format(identifier))
    try:
        yield urlunsplit(urlsplit(server.url)._replace(path=f"/{name}"))
    finally:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(drop)


def _inspected(url: str) -> Server:
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute(
            "select name, current_setting(name) from pg_settings where name = any(%s)",
            [list(_TOLD)],
        ).fetchall()
        return Server(url, dict(rows), _postmaster(connection))


def _postmaster(connection: psycopg.Connection) -> int | None:
    """The parent of our backend, if the process of that number here is a PostgreSQL backend."""
    pid = connection.info.backend_pid
    command = Path(f"/proc/{pid}/cmdline")
    if not command.exists() or not command.read_bytes().startswith(b"postgres:"):
        return None
    return cpu.parent(pid)

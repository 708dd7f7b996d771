# SPDX-License-Identifier: MIT
"""Restores a dump to a temporary server.

Not to the shared embedded server: a dump of a whole cluster creates roles and databases, and a
plain dump may contain any statement. All of it is removed with the server.
"""

import contextlib
import gzip
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from psycopg.conninfo import make_conninfo

from byrote.assembly.identity import jitter
from byrote.core.errors import BadOption, ByroteError, SchemaMismatch
from byrote.embedded.server import Server, open_server
from byrote.lab.bench.stage import own_folder
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import migrate
from byrote.store.runners.sync import fetch

SHOWN: Final = 5
SETTINGS: Final = {"max_wal_size": "2GB", "autovacuum": "off"}
_GZIP: Final = b"\x1f\x8b"
_CUSTOM: Final = b"PGDMP"
_TAR: Final = b"ustar"
_HARMLESS: Final = re.compile(
    r'role "[^"]*" (?:does not exist|already exists)|database "[^"]*" already exists'
    r'|schema "public" already exists|unrecognized configuration parameter'
)
"""Reading needs no roles, and settings of another version do not change stored data."""


class DumpUnreadable(ByroteError):
    """The file cannot be restored here, or Byrote is not in it."""

    code = "dump_unreadable"


class Restored(NamedTuple):
    """A restored dump: its address, and what could not be restored."""

    address: DatabaseAddress
    refused: list[str]
    """PostgreSQL's messages about the first few refused statements."""


@contextlib.contextmanager
def restored(dump: Path) -> Iterator[Restored]:
    """Yield the dump on a temporary server, migrated to our schema."""
    if not dump.exists():
        raise BadOption(f"{dump} does not exist.")
    with (
        own_folder() as folder,
        open_server(folder / "pg", environ=os.environ, settings=SETTINGS, durable=False) as server,
    ):
        refused = _restore(dump, server, folder / "restore.log")
        address = _home_of_ours(server.url, dump, refused)
        # An older schema is brought up to date in this copy; a newer one is what verify reports.
        with contextlib.suppress(SchemaMismatch):
            migrate(address, jitter=jitter)
        yield Restored(address, refused)


def _restore(dump: Path, server: Server, log: Path) -> list[str]:
    with open(log, "wb", opener=_private) as out:
        if dump.is_dir() or _is_archive(dump):
            words = ["--no-owner", "--no-privileges", "--dbname", server.url, str(dump)]
            program = [_program("pg_restore", server), *words]
            subprocess.run(program, stdout=subprocess.DEVNULL, stderr=out, check=False)  # noqa: S603 -- our own words.
        else:
            program = [_program("psql", server), "--no-psqlrc", "--quiet", server.url]
            with _opened(dump) as script:
                _feed(program, script, out)
    return _refused(log)


def _feed(program: list[str], script: BinaryIO, out: BinaryIO) -> None:
    psql = subprocess.Popen(  # noqa: S603 -- our own words.
        program, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=out
    )
    # If psql exits early, its messages are reported with the refused statements.
    with psql, contextlib.suppress(BrokenPipeError):
        if psql.stdin is not None:
            shutil.copyfileobj(script, psql.stdin, 1 << 20)


def _is_archive(dump: Path) -> bool:
    with dump.open("rb") as file:
        head = file.read(512)
    return head.startswith(_CUSTOM) or head[257:262] == _TAR


@contextlib.contextmanager
def _opened(dump: Path) -> Iterator[BinaryIO]:
    with dump.open("rb") as file:
        if file.read(2) == _GZIP:
            with gzip.open(dump) as text:
                yield text  # type: ignore[misc]  # It reads bytes, which is all we ask of it.
        else:
            file.seek(0)
            yield file


def _program(name: str, server: Server) -> str:
    beside = server.binaries.path
    found = shutil.which(name, path=str(beside)) or shutil.which(name)
    if found is None:
        raise DumpUnreadable(
            f"{name} was found neither in {beside} nor on PATH. Install PostgreSQL's client "
            "programs, or restore the dump yourself and use --url."
        )
    return found


def _refused(log: Path) -> list[str]:
    """The first error that matters."""
    found: list[str] = []
    with log.open(errors="replace") as lines:
        for line in lines:
            trouble = "error:" in line.lower() or "fatal:" in line.lower()
            if trouble and not _HARMLESS.search(line):
                found.append(line.strip()[:300])
                if len(found) == SHOWN:
                    break
    return found


def _home_of_ours(server: str, dump: Path, refused: list[str]) -> DatabaseAddress:
    """The one database and schema in which the dump has Byrote."""
    found = []
    for name in _names(server):
        url = make_conninfo(server, dbname=name)
        with DatabaseAddress(url).open("dump") as connection:
            found += [(name, url, schema) for schema in fetch(connection, queries.schemas())]
    if not found:
        why = f" PostgreSQL: {refused[0]}" if refused else ""
        raise DumpUnreadable(f"{dump} contains no schema of Byrote.{why}")
    if len(found) > 1:
        schemas = ", ".join(f"{name}.{schema}" for name, _, schema in found)
        raise DumpUnreadable(f"{dump} contains Byrote several times: {schemas}. Dump one of them.")
    [(_, url, schema)] = found
    return DatabaseAddress(url, schema=schema)


def _names(server: str) -> list[str]:
    with DatabaseAddress(server).open("dump") as connection:
        return fetch(connection, queries.databases())


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)  # Refused statements may show data.

# SPDX-License-Identifier: MIT
"""Applies `migrations/` in order, once, from any number of processes, without stopping traffic.

Each file runs in its own transaction with a short lock_timeout: a migration that would queue behind
a long transaction, with all later statements queued behind it, stops and tries again instead.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
import psycopg
from psycopg.pq import TransactionStatus

from byrote.core.errors import DatabaseUnreachable, SchemaMismatch
from byrote.core.text.schema_name import quoted
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.qualified import qualified
from byrote.store.retries import Remedy, pause_before, remedy
from byrote.store.runners.sync import fetch

TRIES_MAX = 20

# Held to the end of the transaction: a second process waits here, then finds nothing to do.
_LOCK = "select pg_advisory_xact_lock(hashtext('byrote.migrate'))"

_LEDGER = b"""
create table if not exists byrote_schema (
  version integer primary key,
  name text not null,
  checksum text not null,
  applied_at timestamptz not null default clock_timestamp()
)
"""


def _home(schema: str) -> tuple[str, str]:
    name = quoted(schema)
    return f"create schema if not exists {name}", f"set local search_path to {name}"


class Migration(msgspec.Struct, frozen=True):
    """One numbered file of `migrations/`."""

    version: int
    name: str
    text: bytes

    @property
    def checksum(self) -> str:
        """SHA-256 of the file, as recorded in byrote_schema. A released file is never edited."""
        return hashlib.sha256(self.text).hexdigest()

    def script(self, schema: str | None = None) -> str:
        """The file with its entry in byrote_schema, for psql. To be run in one transaction."""
        values = f"{self.version}, '{self.name}', '{self.checksum}'"
        home = "" if schema is None else "".join(f"{each};\n" for each in _home(schema))
        return (
            f"{home}{_LOCK};\n{_LEDGER.decode().strip()};\n\n{self.text.decode()}\n"
            f"insert into byrote_schema (version, name, checksum)\nvalues ({values});\n"
        )


@cache
def migrations() -> tuple[Migration, ...]:
    """Every migration of this version of Byrote, in order."""
    found = [
        Migration(int(file.name[:4]), file.name.removesuffix(".sql"), file.read_bytes())
        for file in files("byrote.store").joinpath("migrations").iterdir()
        if file.name[:4].isdigit()
    ]
    return tuple(sorted(found, key=lambda migration: migration.version))


def pending(connection: psycopg.Connection[Any], schema: str | None = None) -> list[Migration]:
    """The migrations that the database lacks, in this schema or on the search path.

    Raises SchemaMismatch if the database has migrations that this version does not have.
    """
    _check_encoding(connection)
    try:
        applied = {row.version: row for row in fetch(connection, queries.schema(), schema)}
    except psycopg.errors.UndefinedTable:
        return list(migrations())
    known = {migration.version: migration for migration in migrations()}
    for version, row in applied.items():
        if version in known and row.checksum != known[version].checksum:
            raise SchemaMismatch(_other_version(row.name, known[version].name))
    ahead = sorted(applied.keys() - known.keys())
    if ahead:
        raise SchemaMismatch(
            f"The database has migration {ahead[-1]}, newer than this Byrote knows. "
            "Upgrade Byrote on this machine."
        )
    return [migration for migration in migrations() if migration.version not in applied]


def _other_version(applied: str, ours: str) -> str:
    difference = (
        f"its migration {ours} differs from this version's"
        if applied == ours
        else f"it has the migration {applied} where this version has {ours}"
    )
    return (
        f"This database was made by a development version of Byrote: {difference}. There is no "
        "upgrade. Recreate it: create an empty database (the embedded server: `byrote pg destroy`) "
        "and run `byrote migrate`."
    )


def _check_encoding(connection: psycopg.Connection[Any]) -> None:
    # Other encodings refuse some text; SQL_ASCII accepts bytes that are not text.
    encoding = connection.info.parameter_status("server_encoding")
    if encoding not in {"UTF8", None}:
        raise SchemaMismatch(
            f"The database {connection.info.dbname} has the encoding {encoding}; Byrote needs "
            "UTF8. Make another: `create database … encoding 'UTF8' template template0`."
        )


def check(connection: psycopg.Connection[Any], schema: str | None = None) -> None:
    """Raise SchemaMismatch unless the schema is exactly the one this version needs."""
    missing = pending(connection, schema)
    if len(missing) == len(migrations()):
        raise _no_tables(connection, schema)
    if missing:
        names = ", ".join(migration.name for migration in missing)
        raise SchemaMismatch(f"The database lacks {names}. Run `byrote migrate`.")


def _no_tables(connection: psycopg.Connection[Any], schema: str | None) -> SchemaMismatch:
    """Return the error for a database without our tables, with the schemas that have some."""
    failed = connection.info.transaction_status is TransactionStatus.INERROR
    elsewhere = "" if failed else ", ".join(map(repr, fetch(connection, queries.schemas())))
    place = f"database {connection.info.dbname}"
    if schema is not None:
        place = f"schema {schema!r} of the {place}"
    advice = "Run `byrote migrate`."
    if elsewhere:
        advice = f"There are some in the schema {elsewhere}: set `schema`, or run `byrote migrate`."
    return SchemaMismatch(f"The {place} has no Byrote tables. {advice}")


def migrate(
    address: DatabaseAddress,
    *,
    jitter: Callable[[], float],
    report: Callable[[str], None] = lambda _line: None,
) -> Sequence[Migration]:
    """Bring the schema up to date. Returns the migrations that were applied, often none."""
    tries = 1
    while True:
        try:
            with address.open(
                "migrate", "lock_timeout=2s", "client_min_messages=warning"
            ) as connection:
                return _apply(connection, address.schema)
        except psycopg.Error as error:
            tries += 1
            if remedy(error) is Remedy.RAISE or tries > TRIES_MAX:
                raise
            if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
                raise DatabaseUnreachable(
                    f"{address.redacted} did not answer: {' '.join(str(error).split())}"
                ) from error
            report(f"busy, trying again ({error.sqlstate}): {' '.join(str(error).split())[:120]}")
            time.sleep(pause_before(tries, jitter))


def apply(connection: psycopg.Connection[Any], step: Migration, schema: str | None = None) -> bool:
    """Apply one migration in the open transaction. Returns False if it was applied before.

    With a schema, creates it if it is missing; the search path is afterwards as it was before.
    """
    connection.execute(_LOCK)
    if schema is None:
        return _apply_here(connection, step)
    before = connection.execute("select current_setting('search_path')").fetchone()
    make, enter = _home(schema)
    # Not only by `if not exists`: even then it needs the right to create schemas.
    if not connection.execute(_HAS_SCHEMA, (schema,)).fetchone():
        connection.execute(make.encode())
    connection.execute(enter.encode())
    done = _apply_here(connection, step)
    connection.execute("select set_config('search_path', %s, true)", before)
    return done


_HAS_SCHEMA = "select 1 from pg_namespace where nspname = %s"


def _apply_here(connection: psycopg.Connection[Any], step: Migration) -> bool:
    connection.execute(_LEDGER)
    if step not in pending(connection):
        return False
    connection.execute(step.text, prepare=False)
    connection.execute(
        "insert into byrote_schema (version, name, checksum) values (%s, %s, %s)",
        (step.version, step.name, step.checksum),
    )
    return True


def removal(schema: str | None = None) -> bytes:
    """The statements that drop everything the migrations have created, but not the schema."""
    text = files("byrote.store").joinpath("migrations", "remove.sql").read_bytes()
    return text if schema is None else qualified(text, quoted(schema).encode())


def _apply(connection: psycopg.Connection[Any], schema: str | None) -> list[Migration]:
    done: list[Migration] = []
    for step in migrations():
        with connection.transaction():
            if apply(connection, step, schema):
                done.append(step)
    return done

# SPDX-License-Identifier: MIT
"""Opens the database of a command: the configured one, or the embedded server if asked for."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import psycopg
from psycopg.conninfo import conninfo_to_dict

from byrote.assembly.app import App
from byrote.assembly.identity import jitter
from byrote.assembly.operations.address import address_of
from byrote.assembly.settings import merge, resolve
from byrote.core.errors import BadOption, RunNotFound
from byrote.core.text.ids import dashed
from byrote.core.text.printable import one_line
from byrote.core.text.redaction import HIDDEN, redacted
from byrote.embedded.choice import EMBEDDED, external, open_own
from byrote.store import migrate, queries
from byrote.store.connect import DatabaseAddress, described, without_driver
from byrote.store.outlines import ReadingStore
from byrote.store.runners.sync import Store, unreachable


@contextlib.contextmanager
def open_url(url: str | None, *, ready: bool = True, or_embedded: bool = False) -> Iterator[str]:
    """The database's URL; an embedded server runs meanwhile, migrated if it is to be `ready`.

    With `or_embedded`, the command itself asks for the embedded server if no database is set.
    """
    # `merge`: the root has checked the variables, and `doctor` reports them by itself.
    given = merge({"database_url": url}, environ=os.environ).settings.database_url
    if external(given) is not None:
        yield str(given)
        return
    chosen = EMBEDDED if or_embedded else given
    server, found = open_own(chosen, Path.cwd(), environ=os.environ)
    with server:
        if ready:
            migrate.migrate(address_at(found), jitter=jitter)
        yield found


def address_at(url: str, *, name: str = "byrote", pooled: bool | None = None) -> DatabaseAddress:
    """The address of a URL with the schema of this command: of --schema, else of the settings."""
    settings = merge(environ=os.environ).settings
    chosen = settings if pooled is None else msgspec.structs.replace(settings, pooled=pooled)
    return address_of(chosen, url, name=name)


@contextlib.contextmanager
def open_app(url: str | None, *, schema: str | None = None) -> Iterator[App]:
    """An app without tasks on a database that answers and has the right schema."""
    with open_url(url) as found, contextlib.closing(App(found, schema=schema)) as app:
        check(app.store)
        yield app


@contextlib.contextmanager
def open_store(url: str | None) -> Iterator[Store]:
    """A store on a database that answers and has the right schema.

    A login that may not see arguments and results gets the rows without them.
    """
    resolve({"database_url": url})
    with (
        open_url(url) as found,
        contextlib.closing(ReadingStore(address_at(found), jitter=jitter)) as store,
    ):
        check(store)
        yield store


def check(store: Store) -> None:
    """Check connection and schema once, without retries: a person waits for the reply."""
    try:
        with store.borrow() as connection:
            migrate.check(connection, store.address.schema)
    except psycopg.OperationalError as error:
        raise unreachable(store.address, error) from error


def name_database(store: Store) -> None:
    """Print which database a command writes to, if a person reads standard error."""
    if sys.stderr.isatty():
        with store.borrow() as connection:
            click.echo(f"byrote: database {one_line(described(connection))}", err=True)


def whole_id(store: Store, begun: str) -> str:
    """Return the id with this prefix; raises RunNotFound if none has it, BadOption if several."""
    digits = begun.replace("-", "")
    if len(digits) == 32:
        return dashed(digits)
    # The first id after those with the prefix; after `fff…` there is none.
    after = f"{int(digits, 16) + 1:0{len(digits)}x}"
    above = dashed(after.ljust(32, "0")) if len(after) == len(digits) else None
    found = [run.id for run in store.all(queries.runs(before=above, limit=2, shadow=True))]
    matching = [run_id for run_id in found if run_id.replace("-", "").startswith(digits)]
    if not matching:
        raise RunNotFound(begun)
    if len(matching) > 1:
        raise BadOption(f"Several runs begin with {begun}; write more characters of the id.")
    return matching[0]


def masked(url: str) -> str:
    """A database URL that may be shown: without its password."""
    try:
        conninfo_to_dict(without_driver(url))
    except psycopg.ProgrammingError:
        return HIDDEN
    return redacted(url)

# SPDX-License-Identifier: MIT
"""`byrote migrate`: brings the schema up to date, or reports what it lacks."""

import click
import psycopg

from byrote.assembly.identity import jitter
from byrote.assembly.settings import resolve
from byrote.cli.database import address_at, open_url
from byrote.cli.errors import CHECK_FAILED
from byrote.cli.options import database_options
from byrote.cli.output.tables import print_json
from byrote.store import migrate as schema
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import unreachable


@click.command(epilog="Example: byrote migrate --check || byrote migrate")
@database_options
@click.option("--check", "only_check", is_flag=True, help="Change nothing; exit with 3 if behind.")
@click.option("--sql", "only_print", is_flag=True, help="Print the SQL, for psql, and do nothing.")
def migrate(*, url: str | None, as_json: bool, only_check: bool, only_print: bool) -> None:
    """Bring the database's schema up to date.

    With --schema, or `schema` in the settings, creates that schema if it is missing, and all tables
    and functions in it; otherwise they are created in the first schema of the search path.

    Safe to run twice, from several machines at once, and while workers run: a migration that
    would have to wait behind a long transaction steps back and tries again.
    """
    if only_check and only_print:
        raise click.UsageError("--check and --sql exclude each other.")
    if only_print:
        _print_sql(resolve().settings.schema, as_json=as_json)
        return
    with open_url(url, ready=False) as found:
        address = address_at(found)
        if only_check:
            _check(address, as_json=as_json)
        else:
            _apply(address, as_json=as_json)


def _print_sql(home: str | None, *, as_json: bool) -> None:
    for step in schema.migrations():
        script = step.script(home)
        if as_json:
            print_json({"version": step.version, "name": step.name, "sql": script})
        else:
            click.echo(f"-- {step.name}.sql\nbegin;\n{script}commit;\n")


def _check(address: DatabaseAddress, *, as_json: bool) -> None:
    try:
        with address.open("migrate") as connection:
            missing = [step.name for step in schema.pending(connection, address.schema)]
    except psycopg.OperationalError as error:
        raise unreachable(address, error) from error
    if as_json:
        print_json({"up_to_date": not missing, "missing": missing})
    elif missing:
        click.echo(f"The database lacks {', '.join(missing)}. Run `byrote migrate`.")
    else:
        click.echo("The schema is up to date.")
    if missing:
        click.get_current_context().exit(CHECK_FAILED)


def _apply(address: DatabaseAddress, *, as_json: bool) -> None:
    done = schema.migrate(address, jitter=jitter, report=lambda line: click.echo(line, err=True))
    if as_json:
        print_json({"applied": [step.name for step in done]})
        return
    for step in done:
        click.echo(f"Applied {step.name}.")
    if not done:
        click.echo("Nothing to do: the schema is up to date.")

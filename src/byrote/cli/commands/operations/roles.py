# SPDX-License-Identifier: MIT
"""`byrote roles`: database roles with least privilege, as SQL for a person to read and run."""

from importlib.resources import files

import click

from byrote.assembly.settings import resolve
from byrote.cli.options import schema_option
from byrote.core.text.schema_name import quoted
from byrote.store.qualified import qualified


@click.command(epilog='Example: byrote roles | psql "$DATABASE_URL"')
@schema_option
@click.option("--sql", is_flag=True, help="Print the statements; the default.")
def roles(*, sql: bool) -> None:
    """Print SQL that creates database roles with least privilege.

    byrote_enqueue adds runs and reads none. byrote_worker is for `byrote worker` and `byrote
    replay --verify`: it claims, finishes and does maintenance. byrote_read sees everything but
    arguments, results, texts of errors and output. byrote_service is for `byrote serve`, and has
    the rights of a worker. byrote_owner makes tokens and may read the audit; only the owner of the
    tables can migrate. Run it as that owner, again after every `byrote migrate`; `byrote doctor`
    shows what a login lacks.
    """
    del sql
    text = files("byrote.store").joinpath("roles.sql").read_bytes()
    home = resolve().settings.schema
    click.echo(text if home is None else qualified(text, quoted(home).encode()), nl=False)

# SPDX-License-Identifier: MIT
"""`byrote roles`: database roles with least privilege, as SQL for a person to read and run."""

from importlib.resources import files

import click


@click.command(epilog='Example: byrote roles --sql | psql "$DATABASE_URL"')
@click.option("--sql", is_flag=True, required=True, help="Print the statements; none is run.")
def roles(*, sql: bool) -> None:
    """Print SQL that creates database roles with least privilege.

    byrote_enqueue adds runs and reads none, byrote_worker claims and finishes, byrote_read sees
    everything but arguments and results, byrote_service is for `byrote serve`, byrote_owner
    migrates. Run it as the owner of the tables, again after every `byrote migrate`.
    """
    del sql
    text = files("byrote.store").joinpath("roles.sql").read_text(encoding="utf-8")
    click.echo(text, nl=False)

# SPDX-License-Identifier: MIT
"""`byrote doctor`: checks everything a worker depends on."""

import os
from collections.abc import Iterator
from typing import Final

import click
import msgspec
import psycopg

from byrote.assembly.clock import now
from byrote.assembly.settings import Resolved, merge
from byrote.cli.database import address_at, open_url
from byrote.cli.errors import CHECK_FAILED
from byrote.cli.options import database_options
from byrote.cli.output.tables import coloured, paint, print_json
from byrote.cli.support import doctor_checks
from byrote.cli.support.doctor_checks import Check
from byrote.cli.support.server_probe import health
from byrote.core.errors import BadOption, ByroteError
from byrote.core.text.printable import one_line
from byrote.embedded import control
from byrote.embedded.choice import check_asked, external
from byrote.embedded.errors import NoDatabase
from byrote.embedded.server import default_home
from byrote.store.connect import DatabaseAddress, described
from byrote.store.runners.sync import unreachable

FAIL: Final = "fail"


@click.command(epilog="Example: byrote doctor --json")
@database_options
def doctor(*, url: str | None, as_json: bool) -> None:
    """Check the set-up, explain the findings, and advise on problems.

    Changes nothing. Exits with 3 if anything fails; warnings alone do not.
    """
    found = []
    for check in _examine(merge({"database_url": url}, environ=os.environ)):
        found.append(check)
        if not as_json:
            _print(check)
    healthy = all(check.state != FAIL for check in found)
    if as_json:
        checks = [msgspec.structs.asdict(check) for check in found]
        print_json({"healthy": healthy, "checks": checks})
    if not healthy:
        click.get_current_context().exit(CHECK_FAILED)


def _print(check: Check) -> None:
    state = paint(check.state, f"{check.state:<4}")
    click.echo(f"{state}  {check.name:<13}  {one_line(check.message)}", color=coloured())
    if check.advice:
        click.echo(f"{'':<21}{one_line(check.advice)}")


def _examine(resolved: Resolved) -> Iterator[Check]:
    yield from doctor_checks.of_machine(resolved)
    yield doctor_checks.of_variables(os.environ)
    given = resolved.settings.database_url
    url = external(given)
    provider = doctor_checks.of_provider(os.environ, needed=url is None)
    yield provider
    if url is None:
        try:
            check_asked(given, os.environ)
        except NoDatabase as error:
            yield Check("database", FAIL, "none is set", str(error))
            return
        home = default_home(os.environ)
        yield doctor_checks.of_disk(home)
        if provider.state == FAIL:
            return
        if control.status(home).state == "absent":
            # A check must not create a server.
            advice = "It is created on first use: by `byrote migrate`, a worker, or an app."
            yield Check("database", "warn", f"no embedded server in {home} yet", advice)
            return
    try:
        with open_url(given, ready=False) as found:
            yield from _database(address_at(found))
    except (BadOption, psycopg.Error) as error:
        yield Check("database", FAIL, " ".join(str(error).split()))
    except ByroteError as error:
        yield Check("database", FAIL, str(error), "Is the server up, and can it be reached?")


def _database(address: DatabaseAddress) -> Iterator[Check]:
    try:
        connection = address.open("doctor")
    except psycopg.OperationalError as error:
        raise unreachable(address, error) from error
    with connection:
        yield Check("database", "ok", f"answers at {described(connection)}")
        before = now()
        answer = health(connection)
        yield from doctor_checks.of_server(answer, before=before, after=now())
        schema = doctor_checks.of_schema(connection, address.schema)
        yield schema
        if not answer.standby:
            yield doctor_checks.of_listen(address)
        if schema.state != FAIL:
            yield from doctor_checks.of_rights(connection, address.named_schema)
            yield from doctor_checks.of_work(connection, address.named_schema)

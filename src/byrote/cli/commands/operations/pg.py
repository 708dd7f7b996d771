# SPDX-License-Identifier: MIT
"""`byrote pg`: the embedded PostgreSQL server from the command line."""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from byrote.core.text.printable import printable

NOT_FOUND = 4


@click.group()
def pg() -> None:
    """Manage the embedded PostgreSQL server.

    It is the server in BYROTE_PG_HOME, else this user's own. Commands that use it start it; the
    last one to use it stops it. Each project has its own database there: the project is the
    nearest folder with a byrote.toml, pyproject.toml, manage.py or .git, else the current one.
    BYROTE_PG_DATABASE names another database.

    Exit codes: 0 ok, 1 failed, 2 wrong usage, 4 no such server.
    """


@pg.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(*, as_json: bool) -> None:
    """Show whether the server runs, where it is, and whether it is in use.

    Exits with 4 if no server was ever created.

    Example: byrote pg status --json
    """
    from byrote.embedded import control  # noqa: PLC0415 - `byrote --help` stays fast

    with _reported():
        found = asdict(control.status(_home()))
    if as_json:
        click.echo(json.dumps(found, default=str))
    else:
        for name, value in found.items():
            if value is not None:
                click.echo(f"{name.replace('_', ' '):<9} {_words(value)}")
    if found["state"] == "absent":
        raise click.exceptions.Exit(NOT_FOUND)


@pg.command()
@click.option("--start", is_flag=True, help="Start it if it is not running, and keep it up.")
@click.option("--tcp", is_flag=True, help="For tools that need a TCP port; with a password.")
@click.option("--database", metavar="NAME", help="Another database than this project's.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def url(*, start: bool, tcp: bool, database: str | None, as_json: bool) -> None:
    """Print the URL of this project's database on the running server.

    Creates the database if it does not exist. Starts nothing without --start; with --start the
    server stays up after this command, until `byrote pg stop`. The URL uses a unix socket that
    only you and root can reach.

    With --tcp the server also listens on a free port of 127.0.0.1, with a random password,
    until it is stopped. That takes a restart: it is refused while other processes use the server.

    Example: psql "$(byrote pg url --start)"
    """
    with _reported():
        if tcp:
            found = _in_database(_tcp_url(start=start), database)
        elif start:
            found = _started_url(database)
        else:
            found = _in_database(_running_url(), database)
    click.echo(json.dumps({"url": found}) if as_json else found)


@pg.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def list_databases(*, as_json: bool) -> None:
    """List the databases of the running server, with the project of each.

    Example: byrote pg list --json
    """
    from byrote.cli.output.tables import print_table  # noqa: PLC0415 - `byrote --help` stays fast
    from byrote.embedded.databases import databases  # noqa: PLC0415 - the same

    with _reported():
        found = databases(_running_url())
    if as_json:
        for database in found:
            click.echo(json.dumps(asdict(database)))
        return
    rows = [(each.name, f"{each.size_bytes >> 20} MiB", each.project or "") for each in found]
    print_table(("database", "size", "project"), rows, empty="No databases.")


@pg.command(context_settings={"ignore_unknown_options": True})
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def psql(ctx: click.Context, args: tuple[str, ...]) -> None:
    """Open psql on this project's database; ARGS go to psql.

    Starts the server if it is not running; stops it afterwards if it is not in use.

    Example: byrote pg psql -c "select version()"
    """
    from byrote.embedded.server import open_server  # noqa: PLC0415 - `byrote --help` stays fast

    with _reported(), open_server(_home(), environ=os.environ) as server:
        code = _run_psql(server.binaries.path, _in_database(server.url, None), args)
    ctx.exit(code)


@pg.command()
@click.option("-n", "--lines", default=50, show_default=True, type=click.IntRange(min=1))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def logs(*, lines: int, as_json: bool) -> None:
    """Print the end of the server's log.

    Example: byrote pg logs -n 200
    """
    from collections import deque  # noqa: PLC0415 - `byrote --help` stays fast

    from byrote.embedded.errors import NoServer  # noqa: PLC0415 - the same
    from byrote.embedded.home import home_at  # noqa: PLC0415 - the same

    with _reported():
        home = home_at(_home())
        if not home.log.exists():
            raise NoServer(home.path, "not there yet")
        with home.log.open(errors="replace") as file:
            last = deque(file, maxlen=lines)
    for line in last:
        text = line.rstrip("\n")
        click.echo(json.dumps({"line": text}) if as_json else printable(text))


@pg.command()
@click.option("--force", is_flag=True, help="Also when other processes use it.")
def stop(*, force: bool) -> None:
    """Stop the server; its data stays.

    Refused while other processes use it, unless forced.

    Example: byrote pg stop
    """
    from byrote.embedded import control  # noqa: PLC0415 - `byrote --help` stays fast

    with _reported():
        ran = control.stop(_home(), force=force)
    click.echo("Stopped." if ran else "It was not running.")


@pg.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
def destroy(*, yes: bool) -> None:
    """Stop the server and remove all its data for good.

    Refused while other processes use it.

    Example: byrote pg destroy --yes
    """
    from byrote.embedded import control  # noqa: PLC0415 - `byrote --help` stays fast
    from byrote.embedded.errors import NoServer  # noqa: PLC0415 - the same

    with _reported():
        home = control.status(_home()).home
        if control.status(home).state == "absent":
            raise NoServer(home, "not there yet")
    if not yes:
        click.confirm(f"Remove the server in {home} and all its data?", abort=True)
    with _reported():
        control.destroy(home)
    click.echo("Removed.")


def _home() -> Path:
    from byrote.embedded.server import default_home  # noqa: PLC0415 - `byrote --help` stays fast

    return default_home(os.environ)


def _started_url(database: str | None) -> str:
    from byrote.embedded.server import open_server  # noqa: PLC0415 - `byrote --help` stays fast

    with open_server(_home(), environ=os.environ) as opened:
        opened.keep()
        return _in_database(opened.url, database)


def _running_url() -> str:
    from byrote.embedded import control, errors  # noqa: PLC0415 - `byrote --help` stays fast

    found = control.status(_home())
    if found.url is None:
        state = "not running" if found.state == "stopped" else found.state
        raise errors.NoServer(found.home, state)
    return found.url


def _in_database(server: str, name: str | None) -> str:
    """The URL of a database of a running server: the named one, else this project's."""
    from byrote.embedded.databases import named_url, own_url  # noqa: PLC0415 - the same

    return own_url(server, Path.cwd(), os.environ) if name is None else named_url(server, name)


def _tcp_url(*, start: bool) -> str:
    from byrote.assembly.identity import new_token  # noqa: PLC0415 - `byrote --help` stays fast
    from byrote.embedded import control  # noqa: PLC0415 - the same

    password = new_token()
    return control.tcp_url(_home(), environ=os.environ, password=password, start=start)


def _run_psql(beside: Path, database: str, args: tuple[str, ...]) -> int:
    import shutil  # noqa: PLC0415 - `byrote --help` stays fast
    import signal  # noqa: PLC0415 - the same
    import subprocess  # noqa: PLC0415 - the same

    program = shutil.which("psql", path=str(beside)) or shutil.which("psql")
    if program is None:
        raise click.ClickException(
            f"psql was found neither in {beside} nor on PATH. Install PostgreSQL's client "
            "programs, or use `byrote pg url` with a tool you have."
        )
    # Ctrl-C is psql's, to cancel a statement; we wait for its end to leave the server in order.
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        return subprocess.call([program, database, *args])  # noqa: S603 - the user's own words
    finally:
        signal.signal(signal.SIGINT, before)


def _words(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


class _NotFound(click.ClickException):
    exit_code = NOT_FOUND


@contextlib.contextmanager
def _reported() -> Iterator[None]:
    """Turn Byrote's errors into a message and an exit code."""
    from byrote.core.errors import ByroteError  # noqa: PLC0415 - `byrote --help` stays fast
    from byrote.embedded.errors import NoServer  # noqa: PLC0415 - the same

    try:
        yield
    except (ByroteError, PermissionError) as error:
        error_type = _NotFound if isinstance(error, NoServer) else click.ClickException
        raise error_type(str(error)) from error

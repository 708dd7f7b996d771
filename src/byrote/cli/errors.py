# SPDX-License-Identifier: MIT
"""Error messages and exit codes of failed commands.

The PostgreSQL driver is looked up in sys.modules: where it is not installed or was not imported,
none of its errors can have been raised.
"""

import signal
import sys
from typing import Any

import click
import msgspec

from byrote.core import errors
from byrote.core.artifact import UnknownArtifact
from byrote.core.text.printable import json_printable, printable
from byrote.core.text.redaction import redacted
from byrote.embedded.errors import NoServer

FAILED, USAGE, CHECK_FAILED, NOT_FOUND, RUNS_LEFT, UNREACHABLE = 1, 2, 3, 4, 5, 75
MIGRATE = "byrote migrate"
migrating = MIGRATE
"""The migration command shown in messages; Django sets its own."""
INTERRUPTED = 128 + signal.SIGINT

_CODES: tuple[tuple[type[Exception], int], ...] = (
    (errors.BadOption, USAGE),
    (errors.BadPayload, USAGE),
    (errors.BadArguments, USAGE),
    (errors.SchemaMismatch, CHECK_FAILED),
    (errors.RightMissing, CHECK_FAILED),
    (errors.AlteredSpec, CHECK_FAILED),
    (errors.RunNotFound, NOT_FOUND),
    (errors.UnknownQueue, NOT_FOUND),
    (errors.UnknownSchedule, NOT_FOUND),
    (UnknownArtifact, NOT_FOUND),
    (NoServer, NOT_FOUND),
    (errors.RunsLeft, RUNS_LEFT),
    (errors.DatabaseRefused, FAILED),
    (errors.DatabaseUnreachable, UNREACHABLE),
    (errors.ByroteError, FAILED),
)


def expected() -> tuple[type[Exception], ...]:
    """Exceptions that are reported as messages, not as tracebacks."""
    ours = (errors.ByroteError, click.ClickException, click.Abort)
    return (*ours, *(error_type for error_type, _ in _driver_codes()))


def _driver_codes() -> tuple[tuple[type[Exception], int], ...]:
    driver: Any = sys.modules.get("psycopg")
    if driver is None:
        return ()
    return (
        (driver.OperationalError, UNREACHABLE),
        (driver.errors.UndefinedTable, CHECK_FAILED),
        (driver.Error, FAILED),
    )


class Failure(msgspec.Struct, frozen=True):
    """An error as it is printed, as text or as JSON."""

    error: str
    message: str


def report_error(error: Exception, *, as_json: bool) -> int:
    """Print the error to standard error and return the exit code."""
    if isinstance(error, click.Abort):
        # Ctrl-C is a signal; any other Abort is a prompt answered with no.
        return INTERRUPTED if isinstance(error.__cause__, KeyboardInterrupt) else FAILED
    code = exit_code(error)
    failure = describe(error)
    if migrating != MIGRATE:
        message = failure.message.replace(f"`{MIGRATE}`", f"`{migrating}`")
        failure = msgspec.structs.replace(failure, message=message)
    if as_json:
        click.echo(json_printable(msgspec.json.encode(failure).decode()), err=True)
        return code
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show(sys.stderr)
        return code
    if isinstance(error, click.UsageError) and error.ctx is not None:
        click.echo(error.ctx.get_usage(), err=True)
        click.echo(f"Try '{error.ctx.command_path} --help' for help.\n", err=True)
    click.echo(f"byrote: {printable(failure.message)}", err=True)
    return code


def exit_code(error: Exception) -> int:
    """Return the exit code of an error."""
    if isinstance(error, click.ClickException):
        return error.exit_code
    known = (*_CODES, *_driver_codes())
    return next((code for error_type, code in known if isinstance(error, error_type)), FAILED)


def describe(error: Exception) -> Failure:
    """Return the stable code and the message of an error, with passwords in URLs removed."""
    found = _described(error)
    return Failure(found.error, redacted(found.message))


def _described(error: Exception) -> Failure:
    match error:
        case errors.ByroteError():
            return Failure(error.code, str(error))
        case click.ClickException():
            cause = error.__cause__
            known = cause.code if isinstance(cause, errors.ByroteError) else None
            plain = "usage" if isinstance(error, click.UsageError) else "failed"
            return Failure(known or plain, error.format_message())
        case _:
            return _of_database(error)


def _of_database(error: Exception) -> Failure:
    driver: Any = sys.modules.get("psycopg")
    if isinstance(error, driver.errors.UndefinedTable):
        message = "The database lacks tables of Byrote. Run `byrote migrate`."
        return Failure(errors.SchemaMismatch.code, message)
    if isinstance(error, driver.OperationalError):
        return Failure(errors.DatabaseUnreachable.code, f"PostgreSQL failed: {_primary(error)}")
    message = f"PostgreSQL refused: {_primary(error)}"
    from byrote.store.retries import advice  # noqa: PLC0415 -- it imports the driver.

    todo = advice(getattr(error, "sqlstate", None))
    return Failure("database_error", f"{message}. {todo}" if todo else message)


def _primary(error: Exception) -> str:
    # The primary message only: the detail may quote the row, and with it a payload.
    diag = getattr(error, "diag", None)
    primary = None if diag is None else diag.message_primary
    return " ".join((primary or str(error)).split())

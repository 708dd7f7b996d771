# SPDX-License-Identifier: MIT
"""Options that many commands share, and how their values are read."""

import os
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import click

from byrote.assembly.variables import variable_of
from byrote.core.duration import duration
from byrote.core.errors import BadOption
from byrote.core.text.schema_name import checked_schema

_NUMBERED = re.compile(r"[0-9a-f]{8}-?[0-9a-f-]{0,27}", re.IGNORECASE)
_HASH = re.compile(r"[0-9a-f]{64}", re.IGNORECASE)

type Decorated = Callable[..., Any]

SCHEMA = variable_of("schema")

FOREVER = timedelta.max
"""Value of `--wait` without a time."""


class DurationParam(click.ParamType[timedelta]):
    """A duration: `30s`, `1h30m`, or a number of seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Read it as the rest of Byrote does."""
        try:
            return value if isinstance(value, timedelta) else duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class MomentParam(click.ParamType[timedelta | datetime]):
    """A delay such as `10m`, or a moment such as `2030-01-31T09:00Z`."""

    name = "duration|time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta | datetime:
        """Read a delay, else a moment with its time zone."""
        try:
            return duration(value)
        except ValueError:
            pass
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(
                f"{value!r} is neither a delay like 10m nor a time like 2030-01-31T09:00Z.",
                param,
                ctx,
            )
        if moment.tzinfo is None:
            self.fail(
                f"{value!r} has no time zone; add Z for UTC, or an offset like +01:00.", param, ctx
            )
        return moment


class RunId(click.ParamType[str]):
    """The id of a run, or a unique prefix of it."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the format only; the run may not exist."""
        if not _NUMBERED.fullmatch(value) or len(value.replace("-", "")) > 32:
            self.fail(
                f"{value!r} is not a run id; copy one from `byrote runs list`, or at least "
                "its first eight characters.",
                param,
                ctx,
            )
        return str(value).lower()


class SpecHash(click.ParamType[str]):
    """The SHA-256 of a spec, in hexadecimal."""

    name = "hash"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check that it is one."""
        if not is_hash(value):
            self.fail(
                f"{value!r} is not a spec hash; a spec hash has 64 hexadecimal digits.", param, ctx
            )
        return str(value).lower()


def is_hash(value: str) -> bool:
    """Whether a text has the form of a spec hash."""
    return _HASH.fullmatch(value) is not None


class Label(click.ParamType[tuple[str, str]]):
    """A label as `key=value`."""

    name = "key=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Take it apart at the first equals sign."""
        key, equals, text = value.partition("=")
        if not key or not equals:
            self.fail(f"{value!r} is not a valid label; write key=value.", param, ctx)
        return key, text


class WaitParam(DurationParam):
    """How long to wait; an invalid value is often a misplaced argument of the command."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Read a duration; an empty value means no limit."""
        if value == "":
            return FOREVER
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(f"{error.message} To wait without a limit, put --wait last.", param, ctx)


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON: one object, or one per line for a list."
)


def _use_schema(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    """Set BYROTE_SCHEMA until the command ends, also for processes that it starts."""
    if value is None:
        return
    try:
        checked_schema(value)
    except BadOption as error:
        raise click.BadParameter(str(error)) from None
    before = os.environ.get(SCHEMA)
    os.environ[SCHEMA] = value
    ctx.call_on_close(lambda: _restore(before))


def _restore(before: str | None) -> None:
    if before is None:
        os.environ.pop(SCHEMA, None)
    else:
        os.environ[SCHEMA] = before


_url_option = click.option(
    "--url",
    metavar="URL",
    help="The database; default: from configuration files and the environment.",
)
schema_option = click.option(
    "--schema",
    metavar="NAME",
    expose_value=False,
    callback=_use_schema,
    help="The schema of Byrote's tables; default: the first of the search path.",
)
wait_option = click.option(
    "--wait",
    type=WaitParam(),
    is_flag=False,
    flag_value="",
    metavar="[=SECONDS]",
    help="Wait for the result and print it; exit with 1 if there is none.",
)


def url_option(command: Decorated) -> Decorated:
    """Add `--url` and `--schema` to a command."""
    return _url_option(schema_option(command))


def database_options(command: Decorated) -> Decorated:
    """Add `--url`, `--schema` and `--json` to a command."""
    return url_option(json_option(command))

# SPDX-License-Identifier: MIT
"""`byrote config`: the settings and their origins."""

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import click
import msgspec

from byrote.assembly.settings import DATABASE_ALIAS, SECRET, Resolved, check_variables, merge
from byrote.assembly.variables import variable_of
from byrote.cli.database import masked
from byrote.cli.options import json_option, url_option
from byrote.cli.output.tables import print_json, print_table
from byrote.core.duration import spoken


@click.group()
def config() -> None:
    """Show the settings and where each came from."""


@config.command(epilog="Example: byrote config show --origin")
@url_option
@json_option
@click.option("--origin", is_flag=True, help="Also show where each setting came from.")
def show(*, url: str | None, as_json: bool, origin: bool) -> None:
    """Show every setting; passwords are hidden.

    Later ones win: defaults, then byrote.toml or [tool.byrote] in pyproject.toml, then environment
    variables, then options of the command. Ends with 2 after the table if there is a variable
    BYROTE_... that nothing reads.
    """
    resolved = merge({"database_url": url}, environ=os.environ)
    shown, origins = shown_settings(resolved), shown_origins(resolved)
    if as_json:
        asked = {k: {"value": v, "origin": origins[k]} for k, v in shown.items()}
        print_json(asked if origin else shown)
    else:
        rows = [(k, _words(v), *([origins[k]] if origin else [])) for k, v in shown.items()]
        heads = ("setting", "value", "origin") if origin else ("setting", "value")
        print_table(heads, rows, empty="")
    # Last: the message refers to this table.
    check_variables(os.environ)


def shown_origins(resolved: Resolved) -> dict[str, str]:
    """The origin of every setting, with the variable that is set but does not count."""
    why = f"ignored: needs {DATABASE_ALIAS} and no {variable_of('database_url')}"
    notes = {name: f" ({alias} {why})" for name, alias in resolved.ignored.items()}
    return {name: f"{origin}{notes.get(name, '')}" for name, origin in resolved.origins.items()}


def shown_settings(resolved: Resolved) -> dict[str, Any]:
    """Every setting as it may be shown."""
    fields = msgspec.structs.asdict(resolved.settings)
    hidden = {name: masked(fields[name]) for name in SECRET if fields[name] is not None}
    return {**fields, **hidden}


def _words(value: object) -> object:
    match value:
        case None:
            return "(not set)"
        case timedelta():
            return spoken(value)
        case int() if not isinstance(value, bool):
            return str(value)
        case Mapping():
            return ",".join(k if v == 1 else f"{k}={v}" for k, v in value.items())
        case _:
            return value

# SPDX-License-Identifier: MIT
"""`byrote tasks`: the tasks of an app, without a database."""

from collections.abc import Sequence
from typing import Any

import click

from byrote.cli.lazy import import_for
from byrote.cli.options import json_option

HEADS = ("task", "version", "queue", "kind", "retry", "timeout", "schedules")


@click.command(epilog="Example: byrote tasks shop.tasks:app --json")
@click.argument("app", metavar="MODULE:APP")
@json_option
def tasks(app: str, *, as_json: bool) -> None:
    """List the tasks of the app at MODULE:APP, with those of the modules that it includes.

    It imports the app as a worker does, and needs no database.
    """
    listing = import_for("tasks", "byrote.cli.output.task_list")
    tables = import_for("tasks", "byrote.cli.output.tables")
    found: Sequence[dict[str, Any]] = listing.tasks_of(app)
    if as_json:
        for task in found:
            tables.print_json(task)
    else:
        rows = [listing.row_of(task) for task in found]
        empty = f"{app} has no tasks; import the modules that define them, or App(include=[…])."
        tables.print_table(HEADS, rows, empty=empty)

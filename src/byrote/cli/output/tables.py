# SPDX-License-Identifier: MIT
"""Prints aligned tables, JSON, and times in UTC."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import msgspec

from byrote.core.ports.replies import locked_text
from byrote.core.text.printable import json_printable, one_line, printable

COLOURS = {
    "SUCCESSFUL": "green",
    "FAILED": "red",
    "RUNNING": "cyan",
    "READY": "blue",
    "WAITING": "yellow",
    "CANCELLED": "magenta",
    "ok": "green",
    "warn": "yellow",
    "fail": "red",
    "gone": "red",
    "paused": "yellow",
}
LOCKED_ROW = "locked by another transaction"


def coloured() -> bool:
    """Whether to use colours: on a terminal, unless NO_COLOR is set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def moment(value: datetime | None) -> str:
    """A time as people read it, in UTC."""
    return "" if value is None else f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def plain(value: Any) -> Any:
    """A value as JSON is to show it: times in UTC, durations in seconds."""
    match value:
        case datetime():
            return value.astimezone(UTC)
        case timedelta():
            return value.total_seconds()
        case Mapping():
            return {name: plain(part) for name, part in value.items()}
        case list() | tuple():
            return [plain(part) for part in value]
        case _:
            return value


def print_json(fields: Mapping[str, Any]) -> None:
    """Print one JSON object on one line."""
    click.echo(json_printable(msgspec.json.encode(plain(fields)).decode()))


def show_locked(number: int, *, as_json: bool) -> None:
    """Print how many runs were left out because they are locked; JSON has that for each run."""
    if number and not as_json:
        click.echo(locked_text(number))


def print_table(heads: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Print aligned columns, numbers to the right; `empty` where there are no rows."""
    cells = [[_cell(value) for value in row] for row in rows]
    if not cells:
        click.echo(empty)
        return
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    right = [all(_is_number(row[i]) for row in cells) for i in range(len(heads))]
    click.echo(_line(heads, widths, right).upper())
    for row in cells:
        click.echo(_line(row, widths, right), color=coloured())


def print_fields(fields: Mapping[str, object]) -> None:
    """Print names and values below each other; empty values are left out."""
    cells = {
        name: _cell(value) for name, value in fields.items() if value not in (None, "", [], {})
    }
    width = max(map(len, cells), default=0)
    for name, value in cells.items():
        click.echo(f"{name.replace('_', ' '):<{width}}  {paint(value)}", color=coloured())


def paint(word: str, shown: str | None = None) -> str:
    """The word in its colour, if it has one and colours are used."""
    shown = word if shown is None else shown
    return click.style(shown, fg=COLOURS[word]) if word in COLOURS and coloured() else shown


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    parts = []
    for cell, width, to_right in zip(cells, widths, right, strict=True):
        parts.append(paint(cell, cell.rjust(width) if to_right else cell.ljust(width)))
    return "  ".join(parts).rstrip()


def _cell(value: object) -> str:  # noqa: PLR0911 -- one return per kind of value.
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime():
            return moment(value)
        case int():
            return f"{value:,}"
        case list() | tuple():
            return one_line(",".join(map(str, value)))
        case Mapping():
            return one_line(",".join(f"{name}={part}" for name, part in value.items()))
        case _:
            return printable(str(value)).replace("\n", " ").replace("\t", " ")


def _is_number(cell: str) -> bool:
    return cell == "" or cell.replace(",", "").isdigit()


def worker_command() -> str:
    """The words that start a worker where this command was given: plain, or of a Django project."""
    context = click.get_current_context(silent=True)
    program = "byrote" if context is None else context.find_root().info_name or "byrote"
    return f"{program} worker" if program.endswith(" byrote") else "byrote worker module:app"

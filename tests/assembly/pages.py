# SPDX-License-Identifier: MIT
"""Writes the table of docs/reference/settings.md: `python -m tests.assembly.pages`."""

import ast
import inspect
import typing
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import msgspec

from byrote.assembly import settings
from byrote.assembly.settings import OTHER_FLAGS, Settings
from byrote.assembly.variables import variable_of
from byrote.cli.root import root

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
BEGIN = "<!-- Made by `python -m tests.assembly.pages`; a test fails when it differs. -->\n"
END = "<!-- The end of the generated table. -->\n"
OPPOSITES = {"listen": "--no-listen"}
SIZES = ("max_rss", "artifact_max")


def page() -> str:
    """The page, with a new table between the two comments."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n" + table() + "\n" + END + rest.split(END)[1]


def table() -> str:
    """All settings: name, variable, flag, type, default and meaning."""
    meanings, flags = documented(), flags_of_commands()
    lines = [
        "| Setting, variable and flag | Type | Default | Meaning |",
        "|---|---|---|---|",
    ]
    for field in msgspec.structs.fields(Settings):
        names = [f"`{field.name}`", f"`{variable_of(field.name)}`"]
        if flag := flags.get(field.name):
            names.append(f"`{flag}`")
        parts = (", ".join(names), kind_of(field), default_of(field), meanings[field.name])
        lines.append(f"| {' | '.join(part.replace('|', '\\|') for part in parts)} |")
    return "\n".join(lines) + "\n"


def documented() -> dict[str, str]:
    """Return the docstring of each setting; a setting without one raises KeyError later."""
    tree = ast.parse(inspect.getsource(settings))
    [node] = [one for one in tree.body if getattr(one, "name", "") == "Settings"]
    assert isinstance(node, ast.ClassDef)
    found = {}
    for field, after in zip(node.body, node.body[1:], strict=False):
        match field, after:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = " ".join(text.split())
    return found


def flags_of_commands() -> dict[str, str]:
    """The long flag of each setting that a command takes."""

    def below(command: click.Command) -> Iterator[click.Option]:
        if isinstance(command, click.Group):
            ctx = click.Context(command)
            for name in command.list_commands(ctx):
                found = command.get_command(ctx, name)
                assert found is not None
                yield from below(found)
        yield from (one for one in command.params if isinstance(one, click.Option))

    known = {flag: option for option in below(root) for flag in option.opts}
    wanted = {
        name: OPPOSITES.get(name, "--" + OTHER_FLAGS.get(name, name).replace("_", "-"))
        for name in Settings.__struct_fields__
    }
    return {name: flag for name, flag in wanted.items() if flag in known}


def kind_of(field: msgspec.structs.FieldInfo) -> str:
    """The type in words."""
    if field.name in SIZES:
        return "size"
    kind = [one for one in typing.get_args(field.type) if one is not type(None)]
    of: Any = kind[0] if type(None) in typing.get_args(field.type) else field.type
    bounds = [one for one in typing.get_args(of) if isinstance(one, msgspec.Meta)]
    if bounds:
        return f"number, {bounds[0].ge:,} to {bounds[0].le:,}"
    if typing.get_origin(of) is typing.Literal:
        return ", ".join(f"`{one}`" for one in typing.get_args(of))
    if typing.get_origin(of) is Mapping or "Mapping" in str(of):
        return "names with numbers" if field.name == "queues" else "sizes by queue"
    return {str: "text", int: "number", bool: "yes or no", timedelta: "duration"}[of]


def default_of(field: msgspec.structs.FieldInfo) -> str:
    """The default as one would write it."""
    value = field.default
    if value is msgspec.NODEFAULT:
        return f"`{field.default_factory()['*'] >> 20}MB`"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "`yes`" if value else "`no`"
    if isinstance(value, timedelta):
        days = value // timedelta(days=1)
        return f"`{days}d`" if days else f"`{value.total_seconds():g}s`"
    if field.name in SIZES:
        return f"`{value >> 30}GB`"
    return f"`{value}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

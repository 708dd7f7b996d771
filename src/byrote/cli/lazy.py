# SPDX-License-Identifier: MIT
"""Groups of commands: one that imports commands on demand, one with a default."""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import click

HELP = frozenset({"-h", "--help"})


def import_for(command: str, module: str) -> ModuleType:
    """Import a module of a command; raises MissingExtra if the database driver is missing."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        from byrote.core.errors import missing_driver  # noqa: PLC0415 -- only when it fails.

        raise missing_driver(f"byrote {command}", error) from None


class LazyGroup(click.Group):
    """A group whose commands are imported one at a time: name -> (module, one line of help)."""

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order in which a newcomer needs them."""
        del ctx
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one command, and no other."""
        del ctx
        if cmd_name not in self._lazy:
            return None
        module = import_for(cmd_name, f"byrote.cli.commands.{self._lazy[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown one is refused with the nearest name."""
        if args and args[0] not in self._lazy and not args[0].startswith("-"):
            # An error path only: importing difflib takes longer than the check.
            from difflib import get_close_matches  # noqa: PLC0415

            near = get_close_matches(args[0], self._lazy, 1)
            advice = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{advice}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List every command with its one line, importing none of them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._lazy.items()])


class ListingGroup(click.Group):
    """A group that lists when no command is named: `byrote queues` is `byrote queues list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `list` where no command was given."""
        if not args or (args[0].startswith("-") and args[0] not in HELP):
            args = ["list", *args]
        return super().parse_args(ctx, args)

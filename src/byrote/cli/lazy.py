# SPDX-License-Identifier: MIT
"""Groups of commands: one that imports a command when it is asked for, one with a default."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

HELP = frozenset({"-h", "--help"})


class LazyGroup(click.Group):
    """A group whose commands are imported one at a time: name -> (module, one line of help)."""

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order a newcomer meets them."""
        del ctx
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one command, and no other."""
        del ctx
        if cmd_name not in self._lazy:
            return None
        try:
            module = import_module(f"byrote.cli.commands.{self._lazy[cmd_name][0]}")
        except ModuleNotFoundError as error:
            from byrote.core.errors import missing_driver  # noqa: PLC0415 -- only when it fails.

            raise missing_driver(f"byrote {cmd_name}", error) from None
        command: click.Command = getattr(module, cmd_name)
        return command

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

# SPDX-License-Identifier: MIT
"""Writes docs/reference/cli.md from `--help`: `python -m tests.cli.pages`."""

from collections.abc import Iterator
from pathlib import Path

import click
import click.testing

from byrote.cli.root import root

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
WIDTH = 88

OPENING = """# Command line

<!-- Made from `--help` by `python -m tests.cli.pages`; a test fails when it differs. -->
"""


def commands() -> Iterator[tuple[str, ...]]:
    """Every command by its words, groups before their commands."""

    def below(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield words
        if isinstance(command, click.Group):
            ctx = click.Context(command)
            for name in command.list_commands(ctx):
                found = command.get_command(ctx, name)
                assert found is not None
                yield from below(found, (*words, name))

    yield from below(root, ())


def help_of(words: tuple[str, ...]) -> str:
    """What `--help` prints, at a fixed width."""
    runner = click.testing.CliRunner()
    result = runner.invoke(root, [*words, "--help"], prog_name="byrote", terminal_width=WIDTH)
    assert result.exit_code == 0, result.output
    return result.output


def page() -> str:
    """The whole page."""
    parts = [OPENING]
    for words in commands():
        title = " ".join(("byrote", *words))
        parts.append(f"## `{title}`\n\n```text\n{help_of(words).rstrip()}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")

# SPDX-License-Identifier: MIT
"""Shell completion as a script that has all commands and options in it.

Click's own completion starts Python for every press of the tab key and imports the command, with
the database driver: half a second. These scripts start nothing.
"""

from collections.abc import Iterator
from shlex import quote
from typing import Final

import click
import msgspec

from byrote.cli.lazy import ListingGroup
from byrote.core.errors import MissingExtra

HELP: Final = ("--help", "-h")


class Place(msgspec.Struct, frozen=True):
    """A command by its words, such as `byrote runs list`, and what may follow it."""

    path: str
    words: list[str]
    choices: dict[str, list[str]]
    """The values of options that have a fixed set of them."""


def places(command: click.Command, path: str = "byrote") -> Iterator[Place]:
    """Walk a command and those below it; one whose packages are missing has only its name."""
    context = click.Context(command, info_name=path)
    if not isinstance(command, click.Group):
        yield _place(path, command)
        return
    known = {name: _command(command, context, name) for name in command.list_commands(context)}
    own = _place(path, command)
    # A group that lists by default takes the options of its list.
    default = known.get("list") if isinstance(command, ListingGroup) else None
    more = Place(path, [], {}) if default is None else _place(path, default)
    words = list(dict.fromkeys([*known, *own.words, *more.words]))
    yield Place(path, words, own.choices | more.choices)
    for name, below in known.items():
        if below is not None:
            yield from places(below, f"{path} {name}")


def _command(group: click.Group, context: click.Context, name: str) -> click.Command | None:
    try:
        return group.get_command(context, name)
    except MissingExtra:
        return None


def _place(path: str, command: click.Command) -> Place:
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    words = [word for one in options for word in (*one.opts, *one.secondary_opts)]
    choices = {
        word: [str(choice).lower() for choice in one.type.choices]
        for one in options
        if isinstance(one.type, click.Choice)
        for word in one.opts
    }
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    values = [
        str(choice)
        for one in arguments
        if isinstance(one.type, click.Choice)
        for choice in one.type.choices
    ]
    return Place(path, [*values, *words, *HELP], choices)


def script(shell: str, root: click.Command) -> str:
    """Return the script for bash, zsh or fish."""
    found = list(places(root))
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](found)


def _cases(found: list[Place], assign: str) -> str:
    """The branches of a shell's `case` that sets the words that may follow."""
    return "\n".join(
        f"    {quote(place.path)}) {assign.format(quote(' '.join(place.words)))} ;;"
        for place in found
    )


def _values(found: list[Place], assign: str) -> str:
    return "\n".join(
        f"    {quote(f'{place.path} {option}')}) {assign.format(quote(' '.join(values)))} ;;"
        for place in found
        for option, values in place.choices.items()
    )


def _paths(found: list[Place], between: str) -> str:
    return between.join(quote(place.path) for place in found)


def _bash(found: list[Place]) -> str:
    return f"""# bash completion of byrote; in ~/.bashrc: eval "$(byrote completion bash)"
_byrote() {{
  local path=byrote words= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path ${{COMP_WORDS[i]}}" in
    {_paths(found, "|")}) path="$path ${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$path" in
{_cases(found, "words={}")}
  esac
  case "$path ${{COMP_WORDS[COMP_CWORD-1]}}" in
{_values(found, "words={}")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o bashdefault -o default -F _byrote byrote
"""


def _zsh(found: list[Place]) -> str:
    return f"""#compdef byrote
# zsh completion of byrote; in ~/.zshrc, after compinit: eval "$(byrote completion zsh)"
_byrote() {{
  local at=byrote found= i
  for ((i = 2; i < CURRENT; i++)); do
    case "$at ${{words[i]}}" in
    {_paths(found, "|")}) at="$at ${{words[i]}}" ;;
    esac
  done
  case "$at" in
{_cases(found, "found={}")}
  esac
  case "$at ${{words[CURRENT-1]}}" in
{_values(found, "found={}")}
  esac
  compadd -- ${{=found}} || _files
}}
compdef _byrote byrote
"""


def _fish(found: list[Place]) -> str:
    lines = [
        "# fish completion of byrote; in config.fish: byrote completion fish | source",
        "function __byrote_path",
        "  set -l at byrote",
        "  for word in (commandline -opc)[2..]",
        f'    if contains -- "$at $word" {_paths(found, " ")}',
        '      set at "$at $word"',
        "    end",
        "  end",
        "  echo $at",
        "end",
        "function __byrote_at",
        '  test (__byrote_path) = "$argv[1]"',
        "end",
        "function __byrote_value",
        '  test (__byrote_path)" "(commandline -opc)[-1] = "$argv[1]"',
        "end",
    ]
    for place in found:
        at = quote(f"__byrote_at '{place.path}'")
        lines.append(f"complete -c byrote -n {at} -a {quote(' '.join(place.words))}")
        for option, values in place.choices.items():
            at = quote(f"__byrote_value '{place.path} {option}'")
            lines.append(f"complete -c byrote -f -n {at} -a {quote(' '.join(values))}")
    return "\n".join(lines) + "\n"

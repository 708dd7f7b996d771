# SPDX-License-Identifier: MIT
"""Paths to parts of a result that a comparison ignores: `$.order.at`, `$.items[*].id`.

`$` is the whole result, `.name` or `["any name"]` a member, `[0]` an item, `.*` and `[*]` every one
of them. A JSON Pointer, as differences are printed, is accepted as well: `/items/0/id`. A failure
has the parts `$error.message` and `$error.type`; paths into results leave failures alone.
"""

import json
import re
import sys
from collections.abc import Sequence
from typing import Any, Final

from byrote.core.errors import BadOption

PATHS_MAX: Final = 100

_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]"]+) | \[(?P<index>\d+|\*)\] | \[(?P<quoted>"(?:[^"\\]|\\.)*")\]""",
    re.VERBOSE,
)

ERROR: Final = sys.intern("\x00error")
"""The first step of a path into a failure; not a possible member name."""

type Path = tuple[str | int | None, ...]
"""Steps into a value: a member's name, an item's index, None for all of them."""


def read_path(text: str) -> Path:
    """Returns the steps of a path. Raises BadOption if the text is not a path."""
    if text.startswith("/"):
        return tuple(_pointed(step) for step in text[1:].split("/"))
    if not text.startswith("$"):
        raise _bad(text)
    steps: list[str | int | None] = []
    position = 1
    if text.startswith(("$error.", "$error[")):
        steps.append(ERROR)
        position = len("$error")
    while position < len(text):
        found = _STEP.match(text, position)
        if found is None:
            raise _bad(text)
        steps.append(_step(found, text))
        position = found.end()
    if not steps:
        raise BadOption("'$' is the whole result; name a part of it, such as $.at.")
    return tuple(steps)


def read_paths(texts: Sequence[str]) -> tuple[Path, ...]:
    """Returns every path of a list. Raises BadOption for a plain string or a list too long."""
    if isinstance(texts, str) or len(texts) > PATHS_MAX:
        raise BadOption(f"Pass up to {PATHS_MAX} paths to ignore, in a list such as ['$.at'].")
    return tuple(map(read_path, texts))


def without(value: Any, paths: Sequence[Path]) -> Any:
    """Returns a copy of a JSON value without these paths; ignored items of lists become null."""
    for path in paths:
        value = _left(value, path)
    return value


def _left(value: Any, path: Path) -> Any:
    step, rest = path[0], path[1:]
    if type(value) is dict:
        return {
            name: _left(part, rest) if _meant(step, name) else part
            for name, part in value.items()
            if rest or not _meant(step, name)
        }
    if type(value) is list:
        # Removing an item would shift the following ones, which would be compared with others.
        return [
            (_left(part, rest) if rest else None) if _meant(step, str(index)) else part
            for index, part in enumerate(value)
        ]
    return value


def _meant(step: str | int | None, name: str) -> bool:
    return step is None or str(step) == name


def _step(found: re.Match[str], text: str) -> str | int | None:
    name, index, quoted = found.group("name", "index", "quoted")
    if "*" in (name, index):
        return None
    if index is not None:
        return int(index)
    if quoted is None:
        return str(name)
    try:
        return str(json.loads(quoted))
    except ValueError:
        raise _bad(text) from None


def _pointed(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def _bad(text: str) -> BadOption:
    return BadOption(
        f"{text!r} is not a path to ignore; write $.name, $.list[0].name, $.list[*].name or "
        '$["any name"].'
    )

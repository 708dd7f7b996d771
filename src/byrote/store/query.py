# SPDX-License-Identifier: MIT
"""A query is a value: a statement's name, its parameters, and how to read a row of its answer."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec


class Query[Row](msgspec.Struct, frozen=True):
    """One statement to be run by whichever runner is at hand."""

    name: str
    args: Mapping[str, Any]
    read: Callable[[tuple[Any, ...]], Row]

    @property
    def sql(self) -> bytes:
        """The statement's text, as it lies in `sql/`."""
        return statement(self.name)


@cache
def statement(name: str) -> bytes:
    """The text of `sql/<name>.sql`, read once."""
    return files("byrote.store").joinpath("sql", f"{name}.sql").read_bytes()


@cache
def numbered(name: str) -> tuple[bytes, list[str]]:
    """The statement with its parameters as $1, $2, … and their names in that order."""
    names: list[str] = []

    def place(match: re.Match[bytes]) -> bytes:
        parameter = match[1].decode()
        if parameter not in names:
            names.append(parameter)
        return b"$%d" % (names.index(parameter) + 1)

    return re.sub(rb"%\((\w+)\)s", place, statement(name)).replace(b"%%", b"%"), names

# SPDX-License-Identifier: MIT
"""A query is a value: a statement's name, its parameters, and how to read a row of its answer."""

import re
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import msgspec

from byrote.core.errors import WithheldInReplay
from byrote.core.replay.withholding import withholding

_COMMENT = re.compile(rb"--[^\n]*")
_WRITING = re.compile(rb"\b(insert into|update|delete from|pg_notify|truncate)\b")


class Resend(Enum):
    """How to find out what became of a query whose answer was lost, before it is sent again."""

    FREELY = "freely"
    """No need: it reads, or its effect and its answer are the same however often it is sent."""
    BY_ID = "by_id"
    """It adds runs under ids that its sender chose: the first of them, `first`, shows whether."""
    AGAIN = "again"
    """Its parameter `again` makes it report what an earlier copy of it did."""
    ONCE = "once"
    """It is sent in a transaction together with a mark, which shows whether that was committed."""


class Query[Row](msgspec.Struct, frozen=True):
    """One statement to be run by whichever runner is at hand."""

    name: str
    args: Mapping[str, Any]
    read: Callable[[tuple[Any, ...]], Row]
    resend: Resend = Resend.FREELY
    yields: bool = False
    """Whether it gives up with RowLocked where a row stays locked, instead of waiting for it."""

    def __post_init__(self) -> None:
        if withholding() is not None and _writes(self.name):
            raise WithheldInReplay(
                f"This is a replay: it must not change what others see, so the statement "
                f"{self.name!r} was not sent. Do it inside a step, whose result is recorded."
            )

    @property
    def sql(self) -> bytes:
        """The statement's text, as it lies in `sql/`."""
        return statement(self.name)


@cache
def _writes(name: str) -> bool:
    """Whether a statement changes anything."""
    return _WRITING.search(_COMMENT.sub(b"", statement(name))) is not None


@cache
def statement(name: str) -> bytes:
    """The text of `sql/<noun>/<name>.sql`, read once."""
    return _files()[name].read_bytes()


@cache
def _files() -> Mapping[str, Traversable]:
    """Every file of `sql/` by its name, whichever folder it is in."""
    folders = (each for each in files("byrote.store").joinpath("sql").iterdir() if each.is_dir())
    return {
        file.name.removesuffix(".sql"): file
        for folder in folders
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    }


def explanation(name: str) -> bytes:
    """The statement of that name, to be planned and not executed."""
    return b"explain (costs off) " + statement(name)


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

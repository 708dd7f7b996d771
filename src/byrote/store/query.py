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
from byrote.core.text.schema_name import quoted
from byrote.store.qualified import qualified

_COMMENT = re.compile(rb"--[^\n]*")
_WRITING = re.compile(rb"\b(insert into|update|delete from|pg_notify|truncate)\b")


class Resend(Enum):
    """How to find the outcome of a query whose answer was lost, before it is sent again."""

    FREELY = "freely"
    """Not needed: it reads, or its effect and answer are the same however often it is sent."""
    BY_ID = "by_id"
    """It adds runs under ids its sender chose: the first of them, `first`, exists or not."""
    AGAIN = "again"
    """Its parameter `again` makes it report the effect of an earlier copy."""
    ONCE = "once"
    """It is sent in one transaction with a mark, which shows whether that was committed."""


class Query[Row](msgspec.Struct, frozen=True):
    """One statement, to be run by any runner."""

    name: str
    args: Mapping[str, Any]
    read: Callable[[tuple[Any, ...]], Row]
    resend: Resend = Resend.FREELY
    yields: bool = False
    """Whether it updates many runs, and raises RowLocked for a row that stays locked."""

    def __post_init__(self) -> None:
        if withholding() is not None and _writes(self.name):
            raise WithheldInReplay(
                f"This is a replay: it must not change what others see, so the statement "
                f"{self.name!r} was not sent. Do it inside a step, whose result is recorded."
            )

    @property
    def sql(self) -> bytes:
        """The statement's text, as in `sql/`."""
        return statement(self.name)

    def sql_in(self, schema: str | None) -> bytes:
        """The statement's text with its names in this schema; None: as in `sql/`."""
        return statement(self.name, schema)


@cache
def _writes(name: str) -> bool:
    """Whether a statement changes anything."""
    return _WRITING.search(_COMMENT.sub(b"", statement(name))) is not None


@cache
def statement(name: str, schema: str | None = None) -> bytes:
    """Return the text of `sql/<noun>/<name>.sql`, read once, with its names in this schema."""
    if schema is None:
        return _files()[name].read_bytes()
    # The text is one with parameters like %(name)s, so a percent sign is written twice.
    return qualified(statement(name), quoted(schema).replace("%", "%%").encode())


@cache
def _files() -> Mapping[str, Traversable]:
    """Every file of `sql/` by its name, in all folders."""
    folders = (each for each in files("byrote.store").joinpath("sql").iterdir() if each.is_dir())
    return {
        file.name.removesuffix(".sql"): file
        for folder in folders
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    }


def explanation(name: str, schema: str | None = None) -> bytes:
    """Return the statement of that name, to be planned and not executed."""
    return b"explain (costs off) " + statement(name, schema)


_PLACE = re.compile(rb"%%|%\((\w+)\)s")
"""A percent sign or a parameter, in one pattern: the name of a schema may contain any text."""


@cache
def numbered(name: str, schema: str | None = None, cast: bytes = b"") -> tuple[bytes, list[str]]:
    """Return the statement with its parameters as $1, $2, … and their names in that order."""
    names: list[str] = []

    def number(match: re.Match[bytes]) -> bytes:
        if match[1] is None:
            return b"%"
        parameter = match[1].decode()
        if parameter not in names:
            names.append(parameter)
        return b"$%d%b" % (names.index(parameter) + 1, cast)

    return _PLACE.sub(number, statement(name, schema)), names


@cache
def numbered_as_text(name: str, schema: str | None = None) -> tuple[str, list[str]]:
    """Return the same as `numbered`, with parameters that are declared as text: `$1::text`.

    For drivers that encode a parameter by its type, such as asyncpg; the statement's casts follow.
    """
    sql, names = numbered(name, schema, b"::text")
    return sql.decode(), names

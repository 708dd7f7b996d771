# SPDX-License-Identifier: MIT
"""Converts a query into the text and parameters that another driver takes.

Every parameter is sent as text in PostgreSQL's own input format, and the statement casts it. So
neither the driver's conversions nor codecs that the caller has registered (asyncpg's set_type_codec
for jsonb, for example) can change a value.
"""

from typing import Any

from byrote.core.errors import BadOption
from byrote.store.query import Query, numbered, numbered_as_text
from byrote.store.runners.prepared import as_text

type ByName = tuple[str, dict[str, str | None]]
type ByNumber = tuple[str, tuple[str | None, ...]]

_BY_NAME = frozenset({"psycopg", "psycopg_async", "psycopg2", "psycopg2cffi"})
_BY_NUMBER = frozenset({"asyncpg"})


def by_name(query: Query[Any], schema: str | None) -> ByName:
    """Return the statement with parameters like `%(name)s`, and their values."""
    _, names = numbered(query.name)
    return query.sql_in(schema).decode(), {name: _text(query.args[name]) for name in names}


def by_number(query: Query[Any], schema: str | None) -> ByNumber:
    """Return the statement with parameters like `$1`, and their values."""
    sql, names = numbered_as_text(query.name, schema)
    return sql, tuple(_text(query.args[name]) for name in names)


def for_alchemy(dialect: Any, query: Query[Any], schema: str | None) -> ByName | ByNumber:
    """Return the statement and parameters for the driver of a dialect of SQLAlchemy."""
    if dialect.name == "postgresql" and dialect.driver in _BY_NAME:
        return by_name(query, schema)
    if dialect.name == "postgresql" and dialect.driver in _BY_NUMBER:
        return by_number(query, schema)
    raise BadOption(
        f"SQLAlchemy uses {dialect.name}+{dialect.driver} here, on which Byrote cannot enqueue. "
        "Use postgresql+psycopg, postgresql+psycopg2 or postgresql+asyncpg."
    )


def _text(value: object) -> str | None:
    text = as_text(value)
    return None if text is None else text.decode()

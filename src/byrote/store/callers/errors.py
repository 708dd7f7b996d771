# SPDX-License-Identifier: MIT
"""Errors of a statement on the caller's connection that have a known remedy, whatever the driver.

All other errors are raised as the caller's library raises them: nothing is sent again in a
transaction that belongs to the caller.
"""

from typing import Any

from byrote.core.errors import BadOption, SchemaMismatch

UNMIGRATED = frozenset({"42P01", "42883", "42703", "42704", "3F000"})
"""A table, function, column, type or schema is missing."""
NO_TRANSACTION = "25P01"


def lacks_tables(missing: str, schema: str | None = None) -> SchemaMismatch:
    """Return the error for a database in which a part of Byrote's schema is missing."""
    if schema is not None:
        return SchemaMismatch(
            f"The schema {schema!r} lacks tables of Byrote ({missing}). Run `byrote migrate` with "
            "the same `schema`, or correct the setting."
        )
    return SchemaMismatch(
        f"The database lacks tables of Byrote ({missing}). Run `byrote migrate`; if the tables "
        'are in a schema of their own, name it: App(schema="…") or BYROTE_SCHEMA.'
    )


class CallerErrors:
    """Context manager that replaces errors with a known remedy; imports no driver's classes."""

    def __init__(self, schema: str | None = None) -> None:
        self._schema = schema

    def __enter__(self) -> None:
        pass

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        # SQLAlchemy keeps the driver's error in `orig`.
        origin: Any = getattr(error, "orig", None) or error
        state = getattr(origin, "sqlstate", None) or getattr(origin, "pgcode", None)
        if state in UNMIGRATED:
            raise lacks_tables(str(origin).partition("\n")[0], self._schema) from error
        if state == NO_TRANSACTION:
            raise BadOption(
                "The connection is in autocommit mode and not in a transaction, so more than "
                "1,000 specs cannot be enqueued all or none. Begin a transaction first."
            ) from error

# SPDX-License-Identifier: MIT
"""Executes queries on Django's own connection, inside its current transaction."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from django.core.signals import setting_changed
from django.db import connections
from django.dispatch import receiver
from psycopg.pq import TransactionStatus

from byrote.django import compat
from byrote.store.query import Query, statement


def fetch[Row](database: str, query: Query[Row]) -> list[Row]:
    """Return all rows; uses Django's cursor, so hooks, logs and test counters see the query."""
    with connections[database].cursor() as cursor:
        cursor.execute(_text(query.name, schema_of(database)), query.args)
        return [query.read(row) for row in cursor.fetchall()]


def fetch_often[Row](database: str, query: Query[Row]) -> list[Row]:
    """As `fetch`, for a frequent statement: prepared where that is safe.

    Django prepares no statements, because a pooler may use another session per transaction.
    The server needs three times as long to plan one of our statements as to execute it; so it is
    prepared after a few uses of a connection, if no pooler is between the client and the server.
    """
    wrapper = connections[database]
    wrapper.ensure_connection()
    raw = wrapper.connection
    if not _is_direct(raw):
        return fetch(database, query)
    before = raw.cursor_factory, raw.prepare_threshold
    raw.cursor_factory, raw.prepare_threshold = psycopg.Cursor, 0
    try:
        return fetch(database, query)
    finally:
        raw.cursor_factory, raw.prepare_threshold = before


def _is_direct(raw: psycopg.Connection[Any]) -> bool:
    """Whether the connection was used a few times and leads to the server without a pooler."""
    uses = _uses.get(raw, 0)
    if uses < PREPARE_AFTER:
        _uses[raw] = uses + 1
        return False
    if uses == PREPARE_AFTER:
        if raw.info.transaction_status not in _USABLE:
            return False
        # A pooler reports to its clients another pid than that of the server process.
        row = psycopg.Cursor(raw).execute("select pg_backend_pid()").fetchone()
        _uses[raw] = DIRECT if row == (raw.info.backend_pid,) else POOLED
    return _uses[raw] == DIRECT


PREPARE_AFTER, DIRECT, POOLED = 3, 4, 5
_USABLE = (TransactionStatus.IDLE, TransactionStatus.INTRANS)
_uses: WeakKeyDictionary[psycopg.Connection[Any], int] = WeakKeyDictionary()
"""Number of enqueues per connection up to PREPARE_AFTER, then DIRECT or POOLED."""


@cache
def _text(name: str, schema: str | None) -> str:
    return statement(name, schema).decode()


def schema_of(database: str) -> str | None:
    """The SCHEMA of the backends with this database; None: its search path finds the tables."""
    if database not in _schemas:
        from byrote.django.backend.backend import Backend  # noqa: PLC0415 -- it imports this.

        ours = [one for one in compat.task_backends.all() if isinstance(one, Backend)]
        named = [one.settings.schema for one in ours if one.database == database]
        _schemas[database] = next((name for name in named if name is not None), None)
    return _schemas[database]


_schemas: dict[str, str | None] = {}


@receiver(setting_changed)
def _forget_schemas(*, setting: str, **_more: Any) -> None:
    """Read SCHEMA again after a test has changed the settings."""
    if setting == "TASKS":
        _schemas.clear()


@contextmanager
def raw_connection(connection: Any) -> Iterator[psycopg.Connection[Any]]:
    """Yield Django's psycopg connection in its current transaction, with plain cursors."""
    connection.ensure_connection()
    raw = connection.connection
    # Django's cursors interpolate parameters into the text and do not support binary results.
    factory, raw.cursor_factory = raw.cursor_factory, psycopg.Cursor
    try:
        yield raw
    finally:
        raw.cursor_factory = factory

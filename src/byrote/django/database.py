# SPDX-License-Identifier: MIT
"""Runs queries on Django's own connection, inside whatever transaction that is in."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import psycopg
from django.db import connections

from byrote.store.query import Query, statement


def fetch[Row](database: str, query: Query[Row]) -> list[Row]:
    """Every row of the answer, through Django's cursor: hooks, logs and test counters see it."""
    with connections[database].cursor() as cursor:
        cursor.execute(_text(query.name), query.args)
        return [query.read(row) for row in cursor.fetchall()]


@cache
def _text(name: str) -> str:
    return statement(name).decode()


@contextmanager
def raw_connection(connection: Any) -> Iterator[psycopg.Connection[Any]]:
    """Django's psycopg connection itself, in whatever transaction it is, with plain cursors."""
    connection.ensure_connection()
    raw = connection.connection
    # Django's own cursors put parameters into the text and know no binary results.
    factory, raw.cursor_factory = raw.cursor_factory, psycopg.Cursor
    try:
        yield raw
    finally:
        raw.cursor_factory = factory

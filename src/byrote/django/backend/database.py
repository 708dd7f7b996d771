# SPDX-License-Identifier: MIT
"""Runs queries on Django's own connection, inside whatever transaction that is in."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from django.db import connections
from psycopg.pq import TransactionStatus

from byrote.store.query import Query, statement


def fetch[Row](database: str, query: Query[Row]) -> list[Row]:
    """Every row of the answer, through Django's cursor: hooks, logs and test counters see it."""
    with connections[database].cursor() as cursor:
        cursor.execute(_text(query.name), query.args)
        return [query.read(row) for row in cursor.fetchall()]


def fetch_often[Row](database: str, query: Query[Row]) -> list[Row]:
    """As `fetch`, for a statement that comes again and again: prepared where that is safe.

    Django prepares nothing, for the sake of poolers that give every transaction another session.
    A statement of ours takes the server three times as long to understand as to execute; so it is
    prepared after a few times on one connection, if nobody stands between it and the server.
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
    """Whether this is a well-used connection whose other end is the server itself."""
    uses = _uses.get(raw, 0)
    if uses < PREPARE_AFTER:
        _uses[raw] = uses + 1
        return False
    if uses == PREPARE_AFTER:
        if raw.info.transaction_status not in _USABLE:
            return False
        # A pooler tells its clients another process than the one that will answer.
        row = psycopg.Cursor(raw).execute("select pg_backend_pid()").fetchone()
        _uses[raw] = DIRECT if row == (raw.info.backend_pid,) else POOLED
    return _uses[raw] == DIRECT


PREPARE_AFTER, DIRECT, POOLED = 3, 4, 5
_USABLE = (TransactionStatus.IDLE, TransactionStatus.INTRANS)
_uses: WeakKeyDictionary[psycopg.Connection[Any], int] = WeakKeyDictionary()
"""How often a connection has enqueued, and then what is known of it."""


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

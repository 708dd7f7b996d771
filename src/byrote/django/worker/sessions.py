# SPDX-License-Identifier: MIT
"""Database sessions between two attempts: what one task leaves in a session never reaches the next.

A task may change settings, the search path or its role, make temporary tables, take advisory
locks, listen, or leave a transaction open. Where Django closes the connection after the attempt
(`CONN_MAX_AGE = 0`) all of that ends with it. A connection that is kept, by its age or in a pool,
has its settings reset: to what the server, Django and the project's own `connection_created`
receivers make them, so those receivers are called again. Then it is compared with what it was like
when it was opened, and closed if anything differs. Together that takes 0.4 ms where connecting
takes 2 ms, and only after an attempt in whose thread a connection is open.

Settings are reset and not compared alone, because the server lists none with a name of the
project's own (`set shop.tenant = …`).

Behind a pooler in transaction mode there is no session to look at, and nothing is done.
"""

import contextlib
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from django.db import Error, connections, reset_queries
from django.db.backends.signals import connection_created
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from byrote.store.queries.database import Session, session

_opened: WeakKeyDictionary[psycopg.Connection[Any], Session] = WeakKeyDictionary()
"""Each kept connection, and its session as it was when it was opened."""


def watch_sessions() -> None:
    """Remember the state of every connection that this process opens from now on."""
    connection_created.connect(_remember, dispatch_uid="byrote.django.worker.sessions")


def _remember(connection: Any, **_more: Any) -> None:
    raw = connection.connection
    # A pool hands out the same connection again and again: the first time counts.
    if is_kept(connection) and connection.get_autocommit() and raw not in _opened:
        _opened[raw] = _session_of(raw)


def is_kept(connection: Any) -> bool:
    """Whether a connection's session outlives the attempt that used it."""
    if connection.vendor != "postgresql":
        return False
    return bool(connection.settings_dict["CONN_MAX_AGE"] != 0 or connection.pool)


def _session_of(raw: psycopg.Connection[Any]) -> Session:
    query = session()
    # Prepared: most of its time goes into planning. Behind a pooler the first answer tells.
    threshold, raw.prepare_threshold = raw.prepare_threshold, 0 if raw in _opened else None
    try:
        row = psycopg.Cursor(raw, row_factory=tuple_row).execute(query.sql).fetchone()
    finally:
        raw.prepare_threshold = threshold
    return query.read(row)  # type: ignore[arg-type]


def is_clean(connection: Any) -> bool:
    """Reset a connection's settings; whether its session is then as it was at the beginning."""
    raw = connection.connection
    opened = _opened.get(raw)
    if opened is None or raw.info.transaction_status != TransactionStatus.IDLE:
        return False
    if opened.pid != raw.info.backend_pid:
        return True  # A pooler's: another session answers each transaction.
    try:
        raw.execute("reset all")
        connection.init_connection_state()
        created = connection_created.send_robust(sender=type(connection), connection=connection)
        if any(isinstance(answer, Exception) for _, answer in created):
            return False
        return _session_of(raw) == opened
    except (psycopg.Error, Error):
        return False


def tidy() -> None:
    """Leave this thread's connections as the next attempt may want them: clean, or closed."""
    reset_queries()
    for connection in connections.all(initialized_only=True):
        pooled = is_kept(connection) and connection.settings_dict["CONN_MAX_AGE"] == 0
        if not (pooled or connection.in_atomic_block):
            connection.close_if_unusable_or_obsolete()
        if connection.connection is None and not connection.in_atomic_block:
            continue
        if connection.in_atomic_block or (is_kept(connection) and not is_clean(connection)):
            drop(connection)
        elif pooled:
            connection.close_if_unusable_or_obsolete()


def drop(connection: Any) -> None:
    """Close a connection for good; its alias gets a new wrapper, the only one without any state."""
    raw = connection.connection
    if raw is not None:
        raw.close()
    with contextlib.suppress(Error):
        connection.close()  # A pool takes it back, sees that it is closed, and opens another.
    del connections[connection.alias]

# SPDX-License-Identifier: MIT
"""Sends a statement past psycopg's cursor, for callers who send one small statement after another.

A cursor costs some 60 µs: as much as the server needs for the whole of `enqueue_one`. What it
does for us there, adapting fourteen simple values and reading a row that nobody wants, is little.
"""

import select
import weakref
from datetime import datetime
from typing import Any

import psycopg
from psycopg import pq

from byrote.store.query import Query, numbered


class Poster:
    """Runs statements whose rows nobody reads, on autocommit connections it may prepare them on."""

    def __init__(self) -> None:
        self._prepared: weakref.WeakKeyDictionary[psycopg.Connection[Any], set[str]] = (
            weakref.WeakKeyDictionary()
        )

    def post(self, connection: psycopg.Connection[Any], query: Query[Any]) -> None:
        """Run the statement; returns when it has been committed."""
        wire, (sql, names) = connection.pgconn, numbered(query.name)
        prepared = self._prepared.setdefault(connection, set())
        called = query.name.encode()
        if query.name not in prepared:
            wire.send_prepare(called, sql)
            _finish(wire)
            prepared.add(query.name)
        wire.send_query_prepared(called, [as_text(query.args[name]) for name in names])
        _finish(wire)


def as_text(value: object) -> bytes | None:
    """A parameter in the form any server reads."""
    match value:
        case None:
            return None
        case str():
            return value.encode()
        case bytes():
            return b"\\x" + value.hex().encode()
        case datetime():
            return value.isoformat().encode()
        case list():  # Of ids; nothing else is sent this way that would need quoting.
            return ("{" + ",".join(value) + "}").encode()
        case _:
            return str(value).encode()


def _finish(wire: pq.abc.PGconn) -> None:
    """Send what is to be sent and read answers until there are no more; signals get through."""
    poll = select.poll()
    poll.register(wire.socket, select.POLLIN | select.POLLOUT)
    while wire.flush():
        poll.poll()
        wire.consume_input()  # A server that waits for us to read would never read itself.
    poll.modify(wire.socket, select.POLLIN)
    while True:
        while wire.is_busy():
            poll.poll()
            wire.consume_input()
        answer = wire.get_result()
        if answer is None:
            return
        if answer.status == pq.ExecStatus.FATAL_ERROR:
            while wire.get_result() is not None:
                pass
            raise psycopg.errors.error_from_result(answer)

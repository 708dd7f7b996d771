# SPDX-License-Identifier: MIT
"""Sends a statement past psycopg's cursor, for those who send one small statement after another.

A cursor costs some 60 µs, and three times that after a pause: as much as the server needs for a
claim. What it does for us, adapting a few simple values, is little. Rows are read by psycopg.
"""

import select
import weakref
from datetime import datetime, timedelta
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer

from byrote.store.query import Query, numbered


class PreparedRunner:
    """Runs statements on autocommit connections that it may prepare them on."""

    def __init__(self) -> None:
        self._desks: weakref.WeakKeyDictionary[psycopg.Connection[Any], _PreparedConnection] = (
            weakref.WeakKeyDictionary()
        )

    def post(self, connection: psycopg.Connection[Any], query: Query[Any]) -> None:
        """Run a statement whose rows nobody reads; returns when it has been committed."""
        self._desk(connection).send(connection.pgconn, query)

    def fetch[Row](self, connection: psycopg.Connection[Any], query: Query[Row]) -> list[Row]:
        """Run a statement and read its rows, as `sync.fetch` would."""
        desk = self._desk(connection)
        answer = desk.send(connection.pgconn, query)
        read, count = query.read, answer.ntuples
        if not count:
            return []
        desk.reader.set_pgresult(answer)
        return [read(row) for row in desk.reader.load_rows(0, count, tuple)]

    def _desk(self, connection: psycopg.Connection[Any]) -> "_PreparedConnection":
        desk = self._desks.get(connection)
        if desk is None:
            desk = self._desks[connection] = _PreparedConnection(connection)
        return desk


class _PreparedConnection:
    """What is known of one connection: what it has prepared, and how its rows are read."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        # By its adapters: a reader that knew the connection would keep it from being forgotten.
        self.reader = Transformer(connection.adapters)
        self._prepared: set[str] = set()

    def send(self, wire: pq.abc.PGconn, query: Query[Any]) -> pq.abc.PGresult:
        called, (sql, names) = query.name.encode(), numbered(query.name)
        if query.name not in self._prepared:
            wire.send_prepare(called, sql)
            _answer(wire)
            self._prepared.add(query.name)
        args = query.args
        values = [as_text(args[name]) for name in names]
        wire.send_query_prepared(called, values, result_format=pq.Format.BINARY)
        return _answer(wire)


def as_text(value: object) -> bytes | None:  # noqa: PLR0911 -- one return per type.
    """A parameter in the form any server reads."""
    match value:
        case None:
            return None
        case str():
            return value.encode()
        case int() | float():
            return str(value).encode()
        case bytes():
            return b"\\x" + value.hex().encode()
        case datetime():
            return value.isoformat().encode()
        case timedelta(days=days, seconds=seconds, microseconds=micros):
            return b"%d day %d second %d microsecond" % (days, seconds, micros)
        case list():
            return b"{" + b",".join([_element(as_text(item)) for item in value]) + b"}"
        case _:
            raise TypeError(f"No statement takes a parameter like {value!r}.")


def _element(text: bytes | None) -> bytes:
    if text is None:
        return b"NULL"
    return b'"' + text.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def _answer(wire: pq.abc.PGconn) -> pq.abc.PGresult:
    """Send the buffered request and read its answer to the end; signals get through.

    A statement that commits by itself answers twice when its commit fails: with its rows, and then
    with the error. So no rows are returned before the last result is read, and any error is raised.
    """
    poll = select.poll()
    while wire.flush():
        poll.register(wire.socket, select.POLLIN | select.POLLOUT)
        poll.poll()
        wire.consume_input()  # A server that waits for us to read would never read itself.
    poll.register(wire.socket, select.POLLIN)
    answer = None
    refused: psycopg.Error | None = None
    try:
        while (part := _part(wire, poll)) is not None:
            if part.status not in _DONE and refused is None:
                # The first error is the reason; a later one may only report the lost connection.
                refused = refusal(wire, part)
            if answer is None:
                answer = part
    except psycopg.OperationalError as cut:
        raise refused or cut from None
    while (heard := wire.notifies()) is not None:
        # What was notified meanwhile has been read with the answer; nobody else would see it.
        if wire.notify_handler is not None:
            wire.notify_handler(heard)
    if refused is not None:
        raise refused
    if answer is None:
        raise psycopg.OperationalError("The server gave no answer.")
    return answer


def refusal(wire: pq.abc.PGconn, part: pq.abc.PGresult) -> psycopg.Error | None:
    """The error that one result of an answer reports, or None for rows and for "done"."""
    if part.status in _DONE:
        return None
    if part.status in _STREAMS:
        # The server would wait for data for ever, and libpq repeat this result.
        wire.finish()
    if part.error_field(pq.DiagnosticField.SQLSTATE) is None:
        # libpq itself reports a lost or garbled connection: the effect is unknown.
        status = pq.ExecStatus(part.status).name
        return psycopg.OperationalError(part.get_error_message() or f"The answer is {status}.")
    return psycopg.errors.error_from_result(part)


_DONE = (int(pq.ExecStatus.TUPLES_OK), int(pq.ExecStatus.COMMAND_OK))
_STREAMS = frozenset({pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH})


def _part(wire: pq.abc.PGconn, poll: select.poll) -> pq.abc.PGresult | None:
    while wire.is_busy():
        poll.poll()
        wire.consume_input()
    return wire.get_result()

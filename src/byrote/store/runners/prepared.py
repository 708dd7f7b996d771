# SPDX-License-Identifier: MIT
"""Runs prepared statements without psycopg's cursor, for callers with many small statements.

The inner half of the runners of `sync.py` and `link.py`. A cursor costs some 60 µs, and three times
that after a pause: as much as the server needs for a claim. All it does for us is to adapt a few
simple values. psycopg reads the rows. What it saves, and when it is not used:
`docs/explanation/decisions/003-prepared-statements-without-a-cursor.md`.
"""

import select
import weakref
from datetime import datetime, timedelta
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer

from byrote.store.query import Query, numbered

CAN_POLL = hasattr(select, "poll")
"""Whether this system can run statements here; native Windows cannot, and uses cursors."""


class PreparedRunner:
    """Runs statements on autocommit connections where they may be prepared."""

    def __init__(self) -> None:
        self._connections: weakref.WeakKeyDictionary[
            psycopg.Connection[Any], _PreparedConnection
        ] = weakref.WeakKeyDictionary()

    def fetch[Row](self, connection: psycopg.Connection[Any], query: Query[Row]) -> list[Row]:
        """Run a statement and read its rows, as `sync.fetch` would."""
        state = self._state_of(connection)
        answer = state.send(connection.pgconn, query)
        read, count = query.read, answer.ntuples
        if not count:
            return []
        state.reader.set_pgresult(answer)
        return [read(row) for row in state.reader.load_rows(0, count, tuple)]

    def _state_of(self, connection: psycopg.Connection[Any]) -> "_PreparedConnection":
        state = self._connections.get(connection)
        if state is None:
            state = self._connections[connection] = _PreparedConnection(connection)
        return state


class _PreparedConnection:
    """State of one connection: its prepared statements, and the reader of its rows."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        # Made from the adapters: a reader with a reference to the connection would keep it alive.
        self.reader = Transformer(connection.adapters)
        self._prepared: dict[str, tuple[bytes, list[str]]] = {}
        """The name on the server of each statement, and the names of its parameters in order."""
        self._poll = select.poll()

    def send(self, wire: pq.abc.PGconn, query: Query[Any]) -> pq.abc.PGresult:
        known = self._prepared.get(query.name)
        if known is None:
            sql, names = numbered(query.name)
            known = query.name.encode(), names
            wire.send_prepare(known[0], sql)
            _answer(wire, self._poll)
            self._prepared[query.name] = known
        name, names = known
        args = query.args
        values = [as_text(args[each]) for each in names]
        wire.send_query_prepared(name, values, result_format=pq.Format.BINARY)
        return _answer(wire, self._poll)


def as_text(value: object) -> bytes | None:  # noqa: PLR0911 -- one return per type.
    """Return a parameter in text format."""
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


def _answer(wire: pq.abc.PGconn, poll: "select.poll") -> pq.abc.PGresult:
    """Send the buffered request and read its answer to the end; signals are handled meanwhile.

    An autocommit statement has two results when its commit fails: its rows, and then the error. So
    no rows are returned before the last result is read, and any error is raised.
    """
    while wire.flush():
        poll.register(wire.socket, select.POLLIN | select.POLLOUT)
        poll.poll()
        wire.consume_input()  # A server that waits for us to read does not read itself.
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
    while (notification := wire.notifies()) is not None:
        # Notifications that were read with the answer must be passed on here.
        if wire.notify_handler is not None:
            wire.notify_handler(notification)
    if refused is not None:
        raise refused
    if answer is None:
        raise psycopg.OperationalError("The server sent no answer.")
    return answer


def refusal(wire: pq.abc.PGconn, part: pq.abc.PGresult) -> psycopg.Error | None:
    """Return the error that one result of an answer reports, or None for rows and for "done"."""
    if part.status in _DONE:
        return None
    if part.status in _STREAMS:
        # The server would wait for data for ever, and libpq would repeat this result.
        wire.finish()
    if part.error_field(pq.DiagnosticField.SQLSTATE) is None:
        # libpq itself reports a lost or garbled connection: the effect is unknown.
        status = pq.ExecStatus(part.status).name
        return psycopg.OperationalError(part.get_error_message() or f"The answer is {status}.")
    return psycopg.errors.error_from_result(part)


_DONE = (int(pq.ExecStatus.TUPLES_OK), int(pq.ExecStatus.COMMAND_OK))
_STREAMS = frozenset({pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH})


def _part(wire: pq.abc.PGconn, poll: "select.poll") -> pq.abc.PGresult | None:
    while wire.is_busy():
        poll.poll()
        wire.consume_input()
    return wire.get_result()

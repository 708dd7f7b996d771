# SPDX-License-Identifier: MIT
"""Runs prepared statements without psycopg's cursor on an event loop, several in one transaction.

The inner half of `aio.py`, as `prepared.py` is that of `sync.py`. A service that accepts one run
and writes an audit entry would otherwise spend more time on its side than the server on both. What
it saves: `docs/explanation/decisions/003-prepared-statements-without-a-cursor.md`.
"""

import asyncio
import contextlib
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer

from byrote.store.query import Query, numbered
from byrote.store.runners.prepared import as_text, refusal


class AsyncPreparedRunner:
    """Runs statements on autocommit connections where they may be prepared."""

    def __init__(self) -> None:
        self._prepared: weakref.WeakKeyDictionary[psycopg.AsyncConnection[Any], set[str]] = (
            weakref.WeakKeyDictionary()
        )

    async def fetch[Row](
        self,
        connection: psycopg.AsyncConnection[Any],
        query: Query[Row],
        also: Sequence[Query[Any]] = (),
        behind: Callable[[list[Row]], Sequence[Query[Any]]] | None = None,
    ) -> list[Row]:
        """Run a query and read its rows, as `aio.afetch` would: one round trip, two with `behind`.

        After an error the connection is in the middle of a pipeline: the caller has to close it.
        """
        known = self._prepared.setdefault(connection, set())
        try:
            if behind is None:
                return await _in_one_trip(connection, [*also, query], known)
            return await _in_two_trips(connection, [*also, query], behind, known)
        except asyncio.CancelledError:
            # Otherwise the server continues with a statement whose caller was cancelled.
            with contextlib.suppress(psycopg.Error):
                await connection.cancel_safe(timeout=CANCEL_S)
            raise


async def _in_one_trip(
    connection: psycopg.AsyncConnection[Any], statements: Sequence[Query[Any]], known: set[str]
) -> list[Any]:
    """Run statements, and return the rows of the last; the sync at their end commits them."""
    wire = connection.pgconn
    wire.enter_pipeline_mode()
    named = _send_all(wire, statements, known)
    wire.pipeline_sync()
    found = _rows(connection, statements[-1], await _answers(wire, until=_SYNC))
    wire.exit_pipeline_mode()
    known.update(named)
    return found


async def _in_two_trips(
    connection: psycopg.AsyncConnection[Any],
    statements: Sequence[Query[Any]],
    behind: Callable[[list[Any]], Sequence[Query[Any]]],
    known: set[str],
) -> list[Any]:
    """As above, but run the statements for the rows of the last before the commit."""
    wire = connection.pgconn
    wire.enter_pipeline_mode()
    wire.send_query_params(b"BEGIN", None)
    named = _send_all(wire, statements, known)
    wire.send_flush_request()
    answer = await _answers(wire, count=1 + len(named) + len(statements))
    found = _rows(connection, statements[-1], answer)
    named += _send_all(wire, behind(found), known.union(named))
    wire.send_query_params(b"COMMIT", None)
    wire.pipeline_sync()
    await _answers(wire, until=_SYNC)
    wire.exit_pipeline_mode()
    known.update(named)
    return found


CANCEL_S = 2.0
_SYNC = pq.ExecStatus.PIPELINE_SYNC


def _rows[Row](
    connection: psycopg.AsyncConnection[Any], query: Query[Row], answer: pq.abc.PGresult
) -> list[Row]:
    if not answer.ntuples:
        return []
    reader = Transformer(connection.adapters)
    reader.set_pgresult(answer)
    return [query.read(row) for row in reader.load_rows(0, answer.ntuples, tuple)]


def _send_all(
    wire: pq.abc.PGconn, statements: Sequence[Query[Any]], known: Collection[str]
) -> list[str]:
    """Send statements of a pipeline; returns the names of those that are prepared in it."""
    named: list[str] = []
    for query in statements:
        if query.name not in known and query.name not in named:
            wire.send_prepare(query.name.encode(), numbered(query.name)[0])
            named.append(query.name)
        _send(wire, query)
    return named


def _send(wire: pq.abc.PGconn, query: Query[Any]) -> None:
    values = [as_text(query.args[name]) for name in numbered(query.name)[1]]
    wire.send_query_prepared(query.name.encode(), values, result_format=pq.Format.BINARY)


async def _answers(
    wire: pq.abc.PGconn, *, until: pq.ExecStatus | None = None, count: int = 0
) -> pq.abc.PGresult:
    """Send the buffered requests of a pipeline and read their results; returns the last.

    Ends before the result with the status `until`, or with number `count`. A commit that fails is
    an error after the rows, so nothing is returned before the end; raises the first error.
    """
    if wire.flush():
        await _flushed(wire)
    failed: psycopg.Error | None = None
    last: pq.abc.PGresult | None = None
    seen = 0
    try:
        while not count or seen < count:
            if wire.is_busy():
                await _received(wire)
            answer = wire.get_result()
            if answer is None:
                _check(wire)
                continue  # In a pipeline None separates two answers.
            if answer.status == until:
                break
            last, seen = answer, seen + 1
            failed = failed or refusal(wire, answer)
    except psycopg.OperationalError as cut:
        raise failed or cut from None
    if failed is not None or last is None:
        raise failed or psycopg.OperationalError("The server sent no answer.")
    return last


async def _flushed(wire: pq.abc.PGconn) -> None:
    while wire.flush():
        await _ready(wire.socket, write=True)
        wire.consume_input()  # A server that waits for us to read does not read itself.


async def _received(wire: pq.abc.PGconn) -> None:
    while wire.is_busy():
        await _ready(wire.socket, write=False)
        wire.consume_input()


def _check(wire: pq.abc.PGconn) -> None:
    if wire.status != pq.ConnStatus.OK:
        raise psycopg.OperationalError("The connection was lost before the last answer.")


async def _ready(socket: int, *, write: bool) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    add = loop.add_writer if write else loop.add_reader
    remove = loop.remove_writer if write else loop.remove_reader
    add(socket, _set, ready)
    try:
        await ready
    finally:
        remove(socket)


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)

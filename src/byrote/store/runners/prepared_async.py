# SPDX-License-Identifier: MIT
"""Runs several prepared statements at once without psycopg's cursor, on an event loop: all or none.

The counterpart of `prepared.py` for an event loop: a service that accepts one run and writes an
audit entry would otherwise spend more on its side of the pipeline than the server on both.
"""

import asyncio
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer

from byrote.store.query import Query, numbered
from byrote.store.runners.prepared import as_text, refusal

_prepared: weakref.WeakKeyDictionary[psycopg.AsyncConnection[Any], set[str]] = (
    weakref.WeakKeyDictionary()
)


async def apost(connection: psycopg.AsyncConnection[Any], statements: Sequence[Query[Any]]) -> None:
    """Run statements in one transaction and discard their rows; returns when it is committed."""
    wire = connection.pgconn
    known = _prepared.setdefault(connection, set())
    for query in statements:
        if query.name not in known:
            wire.send_prepare(query.name.encode(), numbered(query.name)[0])
            await _answers(wire, until=None)
            known.add(query.name)
    wire.enter_pipeline_mode()
    for query in statements:
        _send(wire, query)
    wire.pipeline_sync()
    try:
        await _answers(wire, until=pq.ExecStatus.PIPELINE_SYNC)
    finally:
        if wire.status == pq.ConnStatus.OK:
            wire.exit_pipeline_mode()


async def apost_behind[Row](
    connection: psycopg.AsyncConnection[Any],
    query: Query[Row],
    behind: Callable[[list[Row]], Sequence[Query[Any]]],
) -> list[Row]:
    """Run a query, then the statements for its rows: one transaction, two round trips.

    After an error the connection is in the middle of a pipeline: the caller has to close it.
    """
    wire = connection.pgconn
    known = _prepared.setdefault(connection, set())
    wire.enter_pipeline_mode()
    wire.send_query_params(b"BEGIN", None)
    named = _send_all(wire, [query], known)
    wire.send_flush_request()
    rows = await _answers(wire, count=len(named) + 2)
    reader = Transformer(connection.adapters)
    reader.set_pgresult(rows)
    found = [query.read(row) for row in reader.load_rows(0, rows.ntuples, tuple)]
    named += _send_all(wire, behind(found), known.union(named))
    wire.send_query_params(b"COMMIT", None)
    wire.pipeline_sync()
    await _answers(wire, until=pq.ExecStatus.PIPELINE_SYNC)
    wire.exit_pipeline_mode()
    known.update(named)
    return found


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
    """Send the buffered requests and read results to the last, which is returned.

    The last is the one with the status `until`, or number `count`, or the one after which the
    connection has no more. Raises the first error.
    """
    if wire.flush():
        await _flushed(wire)
    failed: psycopg.Error | None = None
    last: pq.abc.PGresult | None = None
    seen = 0
    try:
        while True:
            if wire.is_busy():
                await _received(wire)
            answer = wire.get_result()
            if answer is None:
                if until is None and not count:
                    break
                _check(wire)
                continue  # In a pipeline None separates two answers.
            last, seen = answer, seen + 1
            if answer.status == until:
                break
            failed = failed or refusal(wire, answer)
            if seen == count:
                break
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

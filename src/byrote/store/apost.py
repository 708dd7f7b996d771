# SPDX-License-Identifier: MIT
"""Sends several statements in one go past psycopg's cursor, on an event loop: all or none.

`post.py` for those who have a loop: a service that accepts one run and notes it in the audit would
otherwise spend more on its side of the pipeline than the server on both statements.
"""

import asyncio
import weakref
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import pq

from byrote.store.post import as_text, refusal
from byrote.store.query import Query, numbered

_prepared: weakref.WeakKeyDictionary[psycopg.AsyncConnection[Any], set[str]] = (
    weakref.WeakKeyDictionary()
)


async def apost(connection: psycopg.AsyncConnection[Any], statements: Sequence[Query[Any]]) -> None:
    """Run statements whose rows nobody reads, in one transaction; returns when it is committed."""
    wire = connection.pgconn
    known = _prepared.setdefault(connection, set())
    for query in statements:
        if query.name not in known:
            wire.send_prepare(query.name.encode(), numbered(query.name)[0])
            await _answers(wire, until=None)
            known.add(query.name)
    wire.enter_pipeline_mode()
    for query in statements:
        values = [as_text(query.args[name]) for name in numbered(query.name)[1]]
        wire.send_query_prepared(query.name.encode(), values)
    wire.pipeline_sync()
    try:
        await _answers(wire, until=pq.ExecStatus.PIPELINE_SYNC)
    finally:
        if wire.status == pq.ConnStatus.OK:
            wire.exit_pipeline_mode()


async def _answers(wire: pq.abc.PGconn, *, until: pq.ExecStatus | None) -> None:
    """Send the buffered requests and read answers to the last; raises the first error."""
    while wire.flush():
        await _ready(wire.socket, write=True)
        wire.consume_input()  # A server that waits for us to read would never read itself.
    failed: psycopg.Error | None = None
    try:
        while (answer := await _next(wire, until)) is not None:
            failed = failed or refusal(wire, answer)
    except psycopg.OperationalError as cut:
        raise failed or cut from None
    if failed is not None:
        raise failed


async def _next(wire: pq.abc.PGconn, until: pq.ExecStatus | None) -> pq.abc.PGresult | None:
    """The next result, or None after the last one: the one with the status `until`, if given."""
    while True:
        while wire.is_busy():
            await _ready(wire.socket, write=False)
            wire.consume_input()
        answer = wire.get_result()
        if answer is None and until is not None:
            if wire.status != pq.ConnStatus.OK:
                raise psycopg.OperationalError("The connection was lost before the last answer.")
            continue  # In a pipeline there is nothing between two answers.
        return None if answer is None or answer.status == until else answer


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

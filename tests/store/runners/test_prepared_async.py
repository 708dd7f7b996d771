# SPDX-License-Identifier: MIT
"""What the rows of a statement call for is written with it, or neither is."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import psycopg
import pytest

from byrote.assembly.identity import jitter, new_id
from byrote.core.spec import Delivery, describe
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.queries.enqueue import enqueue_unique
from byrote.store.queries.tokens import audit
from byrote.store.query import Query
from byrote.store.runners.aio import AsyncStore
from byrote.store.runners.sync import fetch
from tests.support import Db, count, enqueue, until

WAITING = "pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


def on_a_loop[Done](url: str, act: Callable[[AsyncStore], Awaitable[Done]]) -> Done:
    async def run() -> Done:
        store = AsyncStore(DatabaseAddress(url), jitter=jitter, size=1)
        try:
            return await act(store)
        finally:
            await store.close()

    return asyncio.run(run())


def noted(rows: Sequence[Any], token_id: str | None = None) -> list[Query[Any]]:
    return [audit(token_id=token_id, action="enqueue", request_id="r", address=None) for _ in rows]


def specs(size: int) -> list[tuple[str, Any]]:
    return [(new_id(), describe("t", 1, [n], {}, delivery=Delivery())) for n in range(size)]


def test_statements_follow_from_rows_time_after_time(db: Db, url: str) -> None:
    """The second time everything has been prepared; both times the rows are all there."""

    async def act(store: AsyncStore) -> list[int]:
        asked = [enqueue_unique(specs(size)) for size in (3, 2)]
        return [len(await store.ask(query, behind=noted)) for query in asked]

    assert on_a_loop(url, act) == [3, 2]
    assert count(db, "byrote_runs") == count(db, "byrote_audit") == 5


def test_a_statement_without_rows_calls_for_nothing(db: Db, url: str) -> None:
    found = on_a_loop(url, lambda store: store.ask(queries.cancel([new_id()]), behind=noted))

    assert found == []
    assert count(db, "byrote_audit") == 0


def test_what_follows_from_rows_takes_them_back_if_it_fails(db: Db, url: str) -> None:
    """The next request gets a connection that works."""

    async def act(store: AsyncStore) -> int:
        with pytest.raises(psycopg.DataError):
            await store.ask(enqueue_unique(specs(2)), behind=lambda rows: noted(rows, "no uuid"))
        return len(await store.ask(enqueue_unique(specs(1)), behind=noted))

    assert on_a_loop(url, act) == 1
    assert count(db, "byrote_runs") == count(db, "byrote_audit") == 1


def test_a_statement_that_fails_raises_its_own_error(db: Db, url: str) -> None:
    with pytest.raises(psycopg.DataError, match="uuid"):
        on_a_loop(url, lambda store: store.ask(queries.cancel(["no uuid"]), behind=noted))

    assert count(db, "byrote_audit") == 0


def test_a_connection_that_is_returned_after_the_store_was_closed_is_closed(url: str) -> None:
    async def act(store: AsyncStore) -> bool:
        async with store.borrow() as borrowed:
            await store.close()
        return borrowed.closed

    assert on_a_loop(url, act)


def test_a_query_whose_caller_leaves_ends_on_the_server(db: Db, url: str) -> None:
    """It waits for another transaction, and would hold its own locks for as long."""
    keyed = describe("t", 1, [], {}, delivery=Delivery(unique_key="k"))

    async def act(store: AsyncStore) -> None:
        waiting = asyncio.create_task(store.all(enqueue_unique([(new_id(), keyed)])))
        await asyncio.to_thread(until, lambda: count(db, WAITING) == 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.to_thread(until, lambda: count(db, WAITING) == 0)

    with psycopg.connect(url) as other:
        fetch(other, enqueue_unique([(new_id(), keyed)]))
        on_a_loop(url, act)


def test_rows_are_read_as_through_a_cursor(db: Db, url: str) -> None:
    enqueue(db, 3, labels={"a": "ö"})

    async def act(store: AsyncStore) -> list[Any]:
        return [await store.all(queries.runs(), also=noted(also)) for also in ([], [], [1])]

    assert on_a_loop(url, act) == [fetch(db, queries.runs())] * 3
    assert count(db, "byrote_audit") == 1

# SPDX-License-Identifier: MIT
"""Many specs in one transaction, encoded here while the server inserts the batch before."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import batched
from typing import Any

import psycopg

from byrote.core.spec import Spec
from byrote.store import queries
from byrote.store.aio import afetch
from byrote.store.query import Query
from byrote.store.sync import fetch

BATCH = 1_000

type Numbered = tuple[str, Spec]


def batches(specs: Iterable[Numbered]) -> Iterator[Query[int]]:
    """The statements that accept these specs, one batch at a time."""
    for batch in batched(specs, BATCH):
        yield queries.enqueue(batch)


def enqueue_all(connection: psycopg.Connection[Any], statements: Iterable[Query[int]]) -> None:
    """Accept all of it or nothing. On a connection in a transaction, joins it with a savepoint."""
    with connection.transaction(), ThreadPoolExecutor(1, "byrote-enqueue") as sender:
        under_way: Future[list[int]] | None = None
        for statement in statements:
            if under_way is not None:
                under_way.result()
            # The connection is this call's alone; the thread only lets us encode while it waits.
            under_way = sender.submit(fetch, connection, statement)
        if under_way is not None:
            under_way.result()


async def aenqueue_all(
    connection: psycopg.AsyncConnection[Any], statements: Sequence[Query[int]]
) -> None:
    """Accept all of it or nothing. On a connection in a transaction, joins it with a savepoint."""
    async with connection.transaction():
        for statement in statements:
            await afetch(connection, statement)

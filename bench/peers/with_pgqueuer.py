# SPDX-License-Identifier: MIT
"""PgQueuer, as its documentation runs it fastest: asyncpg, one connection, large batches."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg  # type: ignore[import-untyped]
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

UVLOOP = True
_ENTRYPOINT = "noop"
_BATCH = 500


class Producer:
    """Enqueues over one asyncpg connection."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    async def one(self, number: int) -> None:
        await self._queries.enqueue(_ENTRYPOINT, str(number).encode())

    async def many(self, numbers: range) -> None:
        count = len(numbers)
        payloads: list[bytes | None] = [str(number).encode() for number in numbers]
        await self._queries.enqueue([_ENTRYPOINT] * count, payloads, [0] * count)


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[AsyncpgDriver]:
    connection = await asyncpg.connect(url)
    try:
        yield AsyncpgDriver(connection)
    finally:
        await connection.close()


async def install(url: str) -> None:
    async with _connected(url) as driver:
        await Queries(driver).install()


@asynccontextmanager
async def producer(url: str) -> AsyncIterator[Producer]:
    async with _connected(url) as driver:
        yield Producer(Queries(driver))


async def work(
    url: str, started: Callable[[Any], object], released: Callable[[], Awaitable[None]]
) -> None:
    async with _connected(url) as driver:
        queuer = PgQueuer(driver)

        @queuer.entrypoint(_ENTRYPOINT)
        async def noop(job: Job) -> None:
            started(job.payload)

        await released()
        await queuer.run(batch_size=_BATCH)

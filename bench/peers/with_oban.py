# SPDX-License-Identifier: MIT
"""Oban as `oban start --queues default:200` runs it: its own pool, its own daemons, uvloop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from oban import Oban, worker
from oban.schema import install as install_schema

UVLOOP = True
_QUEUE = "default"
_LIMIT = 200


class Noop:
    started: Callable[[Any], object] = int

    async def process(self, job: Any) -> None:
        Noop.started(job.args["number"])


_NOOP: Any = worker(queue=_QUEUE)(Noop)


class Producer:
    """Enqueues through a client-only Oban over a pool of one connection."""

    def __init__(self, oban: Oban) -> None:
        self._oban = oban

    async def one(self, number: int) -> None:
        await self._oban.enqueue(_NOOP.new({"number": number}))

    async def many(self, numbers: range) -> None:
        await self._oban.enqueue_many(_NOOP.new({"number": number}) for number in numbers)


@asynccontextmanager
async def _pool(url: str, size: int | None) -> AsyncIterator[Any]:
    pool = await Oban.create_pool(url, min_size=size, max_size=size)
    try:
        yield pool
    finally:
        await pool.close()


async def install(url: str) -> None:
    async with _pool(url, 1) as pool:
        await install_schema(pool)


@asynccontextmanager
async def producer(url: str) -> AsyncIterator[Producer]:
    # Not started: a client that only enqueues needs no daemons.
    async with _pool(url, 1) as pool:
        yield Producer(Oban(pool=pool))


async def work(
    url: str, started: Callable[[Any], object], released: Callable[[], Awaitable[None]]
) -> None:
    Noop.started = started
    async with _pool(url, None) as pool:
        await released()
        async with Oban(pool=pool, queues={_QUEUE: _LIMIT}):
            await asyncio.Event().wait()

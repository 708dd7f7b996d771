# SPDX-License-Identifier: MIT
"""Procrastinate with its psycopg connector: a pool of ten and twenty jobs at a time per worker."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import procrastinate

UVLOOP = False
_CONCURRENCY = 20
_POOL = 10


class Producer:
    """Defers jobs over a pool of one connection."""

    def __init__(self, task: Any) -> None:
        self._task = task

    async def one(self, number: int) -> None:
        await self._task.defer_async(number=number)

    async def many(self, numbers: range) -> None:
        await self._task.batch_defer_async(*({"number": number} for number in numbers))


def _app(url: str, pool: int, started: Callable[[Any], object]) -> tuple[procrastinate.App, Any]:
    connector = procrastinate.PsycopgConnector(conninfo=url, min_size=pool, max_size=pool)
    app = procrastinate.App(connector=connector)

    @app.task(name="noop")
    async def noop(number: int) -> None:
        started(number)

    return app, noop


async def install(url: str) -> None:
    app, _ = _app(url, 1, int)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


@asynccontextmanager
async def producer(url: str) -> AsyncIterator[Producer]:
    app, task = _app(url, 1, int)
    async with app.open_async():
        yield Producer(task)


async def work(
    url: str, started: Callable[[Any], object], released: Callable[[], Awaitable[None]]
) -> None:
    app, _ = _app(url, _POOL, started)
    async with app.open_async():
        await released()
        await app.run_worker_async(concurrency=_CONCURRENCY, delete_jobs="never")

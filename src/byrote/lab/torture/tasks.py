# SPDX-License-Identifier: MIT
"""The tasks of tortured workers; every attempt records its start and its end in a diary."""

import asyncio
import os
import time
from datetime import timedelta
from typing import Any

from byrote.assembly.app import App
from byrote.core.policy import Retry
from byrote.executors.runtime.context import Context
from byrote.lab.torture.diary import note

SOON = Retry(attempts=4, backoff="fixed", delay_first=timedelta(milliseconds=200), jitter=False)

app = App()


def _begin(ctx: Context, folder: str) -> None:
    note(folder, "hand", "start", run=ctx.run_id, attempt=ctx.attempt)


def _end(ctx: Context, folder: str) -> dict[str, Any]:
    note(folder, "hand", "end", run=ctx.run_id, attempt=ctx.attempt)
    # The result contains the attempt, so that the judgement can see which attempt wrote it.
    return {"attempt": ctx.attempt}


@app.task(name="torture.quick")
async def quick(ctx: Context, folder: str, n: int) -> dict[str, Any]:
    """Return at once."""
    del n
    _begin(ctx, folder)
    return _end(ctx, folder)


@app.task(name="torture.work")
async def work(ctx: Context, folder: str, seconds: float) -> dict[str, Any]:
    """Wait for a while, asynchronously."""
    _begin(ctx, folder)
    await asyncio.sleep(seconds)
    return _end(ctx, folder)


@app.task(name="torture.block")
def block(ctx: Context, folder: str, seconds: float) -> dict[str, Any]:
    """Block its hand for a while; prints a line, for the outputs."""
    _begin(ctx, folder)
    print("blocking for", seconds)  # noqa: T201 -- its output is needed.
    time.sleep(seconds)
    return _end(ctx, folder)


@app.task(name="torture.flaky", retry=SOON)
async def flaky(ctx: Context, folder: str, n: int) -> dict[str, Any]:
    """Fail every third time, by its number."""
    _begin(ctx, folder)
    if (n + ctx.attempt) % 3 == 0:
        raise ConnectionError("the other side hung up")
    return _end(ctx, folder)


@app.task(name="torture.steps", retry=SOON)
async def steps(ctx: Context, folder: str, n: int) -> dict[str, Any]:
    """Do three durable steps with a pause between them."""
    _begin(ctx, folder)
    for number in range(3):
        await ctx.astep(f"step {number}", _doubled, n + number)
        await asyncio.sleep(0.05)
    return _end(ctx, folder)


async def _doubled(n: int) -> int:
    return 2 * n


@app.task(name="torture.poison", retry=SOON)
def poison(ctx: Context, folder: str) -> None:
    """Crash the process each time."""
    _begin(ctx, folder)
    os._exit(9)


@app.task(name="torture.gil")
def gil(ctx: Context, folder: str, seconds: float) -> dict[str, Any]:
    """Hold the GIL in one long call into C after another."""
    _begin(ctx, folder)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(3_000_000))
    return _end(ctx, folder)


if os.environ.get("TORTURE_GENERATION", "new") == "new":

    @app.task(name="torture.newcomer")
    async def newcomer(ctx: Context, folder: str, n: int) -> dict[str, Any]:
        """Known to new workers only: it must wait for one and never be lost to an old one."""
        del n
        _begin(ctx, folder)
        return _end(ctx, folder)

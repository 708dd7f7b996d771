# SPDX-License-Identifier: MIT
"""Tasks that report progress; `a_name` is the async twin."""

import asyncio
import time
from pathlib import Path

from byrote import App, Context, Fatal, Retry

app = App()
NOW = Retry(attempts=2, backoff="fixed", delay_first="0s")


def told(ctx: Context, times: int) -> int:
    for done in range(times + 1):
        ctx.progress(done, times, "counting", last=done == times)
    return times


@app.task
def tight(ctx: Context, times: int) -> int:
    """Reports in a tight loop, and ends at once."""
    return told(ctx, times)


@app.task
async def a_tight(ctx: Context, times: int) -> int:
    return told(ctx, times)


@app.task
def stays(ctx: Context, path: str) -> None:
    """Reports twice at once, then nothing more until a file exists."""
    ctx.progress(1, 3, "first")
    ctx.progress(2, 3, "second")
    while not Path(path).exists():
        time.sleep(0.01)


@app.task
async def a_stays(ctx: Context, path: str) -> None:
    ctx.progress(1, 3, "first")
    ctx.progress(2, 3, "second")
    while not Path(path).exists():  # noqa: ASYNC110, ASYNC240 -- awaits a fact, as its twin does.
        await asyncio.sleep(0.01)


@app.task(retry=NOW)
def fails(ctx: Context, done: int) -> None:
    ctx.progress(done, 10, "failing")
    raise Fatal("no")


@app.task
def wrong(ctx: Context) -> None:
    ctx.progress(6, 5)

# SPDX-License-Identifier: MIT
"""Tasks that depend on everything a machine may decide for them."""

import asyncio
import locale
import os
import random
import time
from datetime import datetime
from random import choice, gauss
from typing import Any

from byrote import App, Context
from byrote.core.errors import RetryLater

app = App()


def decided(ctx: Context) -> dict[str, Any]:
    return {
        # Made here: a literal's order may depend on whether the module was compiled just now.
        "set": [*{f"word {number}" for number in range(12)}],
        "hash": hash("text"),
        "zone": time.localtime(0).tm_hour,
        "name": time.tzname[0],
        "local": datetime.fromtimestamp(0).isoformat(),  # noqa: DTZ006 -- the machine's zone is the point.
        "locale": locale.setlocale(locale.LC_ALL, ""),
        "random": [random.random(), choice("abcdefgh"), gauss(), random.sample(range(99), 5)],
        "own": [ctx.random.random(), ctx.random.randrange(10**9)],
        "uuids": [str(ctx.uuid()), str(ctx.uuid())],
        "now": ctx.now().isoformat(),
        "seed": ctx.seed,
    }


@app.task
def decide(ctx: Context, _salt: int = 0) -> dict[str, Any]:
    return decided(ctx)


@app.task(name="command_decide", executor="command")
def elsewhere(ctx: Context, _salt: int = 0) -> dict[str, Any]:
    return decided(ctx)


@app.task
async def draw(rounds: int) -> list[float]:
    """Others draw in between."""
    drawn = []
    for _ in range(rounds):
        drawn.append(random.random())
        await asyncio.sleep(0)
    return drawn


@app.task(deterministic=False)
def draw_freely(_salt: int = 0) -> float:
    return random.random()


@app.task
def second_try(ctx: Context) -> list[Any]:
    drawn = [random.random(), str(ctx.uuid()), ctx.now().isoformat(), ctx.random.random()]
    if ctx.attempt == 1:
        raise RetryLater(repr(drawn), after=0)
    return drawn


@app.task
def burn() -> None:
    until = time.thread_time() + 0.02
    while time.thread_time() < until:
        pass


@app.task
async def idle(fail: bool) -> None:
    until = time.thread_time() + 0.01
    while time.thread_time() < until:
        pass
    await asyncio.sleep(0.05)
    if fail:
        raise ValueError("measured all the same")


@app.task
def fork() -> list[float]:
    """What two forked processes draw."""
    drawn = []
    for _ in range(2):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(write, repr(random.random()).encode())
            os._exit(0)
        os.waitpid(pid, 0)
        drawn.append(float(os.read(read, 100)))
        os.close(read)
        os.close(write)
    return drawn


@app.task(seed="spec")
def decide_by_spec(ctx: Context, _salt: int = 0) -> dict[str, Any]:
    return decided(ctx)


@app.task(name="command_by_spec", executor="command", seed="spec")
def by_spec_elsewhere(ctx: Context, _salt: int = 0) -> dict[str, Any]:
    return decided(ctx)

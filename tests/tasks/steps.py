# SPDX-License-Identifier: MIT
"""Tasks with durable steps; marks record the real calls. `a_name` is the async twin."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import psycopg

from byrote import App, Context, NonDeterminism, Retry, WaitTimeout
from tests.tasks.fates import leave_mark

app = App()
NOW = Retry(attempts=3, backoff="fixed", delay_first="0s")


def marked(path: str, word: str, value: Any = None) -> Any:
    leave_mark(path, word)
    return value


async def amarked(path: str, word: str, value: Any = None) -> Any:
    await asyncio.sleep(0)
    return marked(path, word, value)


@app.task(retry=NOW)
def three(ctx: Context, path: str) -> list[Any]:
    """Three steps; fails after the second in its first attempt."""
    done = [ctx.step("one", marked, path, "one", {"n": 1.0}), ctx.step("two", marked, path, "two")]
    if ctx.attempt == 1:
        raise ConnectionError("after two")
    return [*done, ctx.step("three", marked, path, word="three", value=[3])]


@app.task(retry=NOW)
async def a_three(ctx: Context, path: str) -> list[Any]:
    done = [
        await ctx.astep("one", amarked, path, "one", {"n": 1.0}),
        await ctx.astep("two", marked, path, "two"),
    ]
    if ctx.attempt == 1:
        raise ConnectionError("after two")
    return [*done, await ctx.astep("three", amarked, path, word="three", value=[3])]


@app.task(retry=NOW)
def killed(ctx: Context, path: str) -> int:
    """Takes its hand down between two steps, once."""
    ctx.step("one", marked, path, "one")
    if ctx.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    ctx.step("two", marked, path, "two")
    return ctx.attempt


@app.task(retry=NOW)
def changed(ctx: Context, path: str) -> None:
    """Names its first step otherwise in every attempt."""
    ctx.step(f"step{ctx.attempt}", marked, path, f"step{ctx.attempt}")
    raise ConnectionError("again")


@app.task(retry=NOW)
def changed_quietly(ctx: Context) -> str:
    """Catches the named error, and tries to continue."""
    if ctx.attempt == 1:
        ctx.step("one", int)
        raise ConnectionError("again")
    try:
        ctx.sleep("1h")
    except NonDeterminism:
        ctx.step("other", int)
    return "went on"


@app.task(retry=NOW)
def changed_silently(ctx: Context, how: str) -> str:
    """Catches the named error, and ends with its own error, or returns."""
    if ctx.attempt == 1:
        ctx.step("one", int)
        raise ConnectionError("again")
    try:
        ctx.sleep("1h")
    except NonDeterminism:
        if how == "raise":
            raise ValueError("something else") from None
    return "went on"


@app.task(retry=NOW)
def fewer(ctx: Context, path: str, count: int) -> str:
    """Two steps in the first attempt, the given number in the next."""
    for number in range(2 if ctx.attempt == 1 else count):
        ctx.step(f"step{number}", marked, path, f"step{number}")
    if ctx.attempt == 1:
        raise ConnectionError("again")
    return "went on"


@app.task(retry=NOW)
async def a_fewer(ctx: Context, path: str, count: int) -> str:
    for number in range(2 if ctx.attempt == 1 else count):
        await ctx.astep(f"step{number}", marked, path, f"step{number}")
    if ctx.attempt == 1:
        raise ConnectionError("again")
    return "went on"


@app.task(retry=NOW)
def unstorable(ctx: Context) -> None:
    ctx.step("odd", object)


@app.task
def forgotten_await(ctx: Context, path: str) -> None:
    ctx.step("odd", amarked, path, "never")


@app.task
def nested(ctx: Context) -> None:
    ctx.step("outer", lambda: ctx.step("inner", int))


@app.task
async def a_blocks(ctx: Context) -> None:
    ctx.step("sync", int)


@app.task
def nameless(ctx: Context, name: str) -> None:
    ctx.step(name, int)


@app.task(retry=NOW)
def held(ctx: Context, path: str, gate: str) -> str:
    """Marks its attempt, waits for the gate, then stores a step."""
    leave_mark(path, f"attempt{ctx.attempt}")
    while ctx.attempt == 1 and not Path(gate).exists():
        time.sleep(0.01)
    return ctx.step("late", marked, path, f"called{ctx.attempt}", f"by {ctx.attempt}")  # type: ignore[no-any-return]


@app.task
def sleeper(ctx: Context, path: str, length: float) -> int:
    ctx.step("before", marked, path, "before")
    ctx.sleep(length)
    ctx.step("after", marked, path, "after")
    return ctx.attempt


@app.task
async def a_sleeper(ctx: Context, path: str, length: float) -> int:
    await ctx.astep("before", amarked, path, "before")
    try:
        await ctx.asleep(length)
    except Exception:  # noqa: BLE001 -- it must not get in here.
        leave_mark(path, "caught")
    await ctx.astep("after", amarked, path, "after")
    return ctx.attempt


@app.task
def waiter(ctx: Context, count: int) -> list[Any]:
    return [ctx.wait_for("paid") for _ in range(count)]


@app.task
async def a_waiter(ctx: Context, count: int) -> list[Any]:
    return [await ctx.await_for("paid") for _ in range(count)]


@app.task
def impatient(ctx: Context, path: str) -> str:
    try:
        ctx.wait_for("paid", timeout=0.1)
    except WaitTimeout as error:
        leave_mark(path, "timeout")
        return str(error)
    return "heard"


@app.task
async def a_content(ctx: Context) -> Any:
    return await ctx.await_for("paid", timeout="100ms", default="nothing")


@app.task
async def a_grouped(ctx: Context) -> Any:
    """Waits inside a task group, which wraps what its tasks raise."""
    async with asyncio.TaskGroup() as group:
        one = group.create_task(ctx.await_for("paid"))
    return one.result()


@app.task
async def a_gathered(ctx: Context, path: str, count: int) -> list[Any]:
    """Steps side by side in one run."""
    return await asyncio.gather(
        *(ctx.astep(f"s{n}", amarked, path, f"s{n}", n) for n in range(count))
    )


@app.task(retry=NOW)
async def a_chain(ctx: Context, path: str, me: int, count: int) -> list[Any]:
    found = [await ctx.astep(f"s{n}", amarked, path, f"{me}-{n}", [me, n]) for n in range(count)]
    if ctx.attempt == 1:
        raise ConnectionError("once more")
    return found


@app.task(retry=NOW)
def payer(ctx: Context, url: str, crash: bool) -> bool:
    """Writes a payment once; fails before or after the commit."""
    with psycopg.connect(url) as connection, ctx.once("charge", connection) as first:
        if first:
            connection.execute("insert into payments values (%s)", (ctx.run_id,))
        if crash and ctx.attempt == 1:
            raise ConnectionError("before the commit")
    if ctx.attempt == 1:
        raise ConnectionError("after the commit")
    return first


@app.task(retry=NOW)
async def a_payer(ctx: Context, url: str, crash: bool) -> bool:
    async with (
        await psycopg.AsyncConnection.connect(url, autocommit=True) as connection,
        ctx.aonce("charge", connection) as first,
    ):
        if first:
            await connection.execute("insert into payments values (%s)", (ctx.run_id,))
        if crash and ctx.attempt == 1:
            raise ConnectionError("before the commit")
    if ctx.attempt == 1:
        raise ConnectionError("after the commit")
    return first


@app.task
def echo(value: Any) -> Any:
    return value


async def chain(ctx: Context, path: str, branch: int, delays: list[float]) -> list[Any]:
    """Steps of the same names in every branch, after a wait of each branch."""
    found = []
    for delay in delays:
        await asyncio.sleep(delay)

        async def work(number: int, delay: float = delay) -> list[float]:
            await asyncio.sleep(delay)
            return marked(path, f"{branch}:{number}", [branch, number, ctx.random.random()])

        found.append(await ctx.astep("work", work, len(found)))
    return found


@app.task(retry=NOW)
async def branches(ctx: Context, path: str, first: list[Any], later: list[Any]) -> list[Any]:
    """Branches whose steps overtake each other in another way in later attempts."""
    before = await ctx.astep("before", amarked, path, "before", 0)
    delays = first if ctx.attempt == 1 else later
    found = await asyncio.gather(*(chain(ctx, path, n, own) for n, own in enumerate(delays)))
    after = await ctx.astep("after", amarked, path, "after", 1)
    if ctx.attempt == 1:
        raise ConnectionError("after the last step")
    return [before, found, after]


@app.task(retry=NOW)
async def broken_branches(ctx: Context, path: str) -> list[Any]:
    """The branch that was started first has finished nothing when the attempt fails."""
    others = asyncio.Barrier(3)

    async def one(number: int) -> Any:
        if ctx.attempt == 1 and number == 0:
            await others.wait()
            raise ConnectionError("before its first step")
        got = await ctx.astep("one", amarked, path, f"one:{number}", number)
        two = await ctx.astep("two", lambda: marked(path, f"two:{number}", number * 10 + got))
        if ctx.attempt == 1:
            await others.wait()
        return two

    return await asyncio.gather(*(one(number) for number in range(3)))


@app.task(retry=NOW)
async def grouped(ctx: Context, path: str) -> list[Any]:
    """A task group in a branch, sleeps in branches, and library tasks on the way."""

    async def leaf(number: int) -> Any:
        await asyncio.sleep(0.001 * (3 - number) * ctx.attempt)
        await asyncio.wait([asyncio.ensure_future(asyncio.sleep(0)) for _ in range(ctx.attempt)])
        return await ctx.astep("leaf", amarked, path, f"leaf:{number}", number)

    async def stem() -> list[Any]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(leaf(number)) for number in range(3)]
        return [task.result() for task in tasks]

    async def napping() -> str:
        await ctx.asleep("1ms")
        return await ctx.astep("awake", amarked, path, "awake", "awake")

    return list(await asyncio.gather(stem(), napping()))


@app.task(retry=NOW)
async def swapped(ctx: Context, path: str) -> None:
    """Which branch takes which item depends on the attempt."""

    async def worker(number: int) -> None:
        item = number if ctx.attempt == 1 else 1 - number
        await ctx.astep("item", amarked, path, f"item:{item}", item)

    await asyncio.gather(worker(0), worker(1))
    raise ConnectionError("again")


@app.task(retry=NOW)
def other_arguments(ctx: Context, path: str) -> Any:
    """Passes a step its attempt."""
    got = ctx.step("one", marked, path, "one", ctx.attempt)
    if ctx.attempt == 1:
        raise ConnectionError("again")
    return got


@app.task
async def behind_gate(ctx: Context, path: str, gate: str) -> str:
    """One step, made as soon as the gate file is there."""
    leave_mark(path, "here")
    while not Path(gate).exists():  # noqa: ASYNC110, ASYNC240 -- the test opens it from outside.
        await asyncio.sleep(0.01)
    await ctx.astep("one", amarked, path, "asking")
    return "through"

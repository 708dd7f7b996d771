# SPDX-License-Identifier: MIT
"""Tasks as they were when they ran; `replayed_changed.py` has them as they are tomorrow.

Marks record the real calls.
"""

import asyncio
import os
import random
import threading
from datetime import UTC, datetime
from typing import Any

import psycopg

from byrote import App, Context, Fatal, Retry, Snooze
from byrote.store import queries
from tests.tasks.fates import leave_mark

app = App()
NOW = Retry(attempts=3, backoff="fixed", delay_first="0s")


def marked(path: str, word: str, value: Any = None) -> Any:
    leave_mark(path, word)
    return value


@app.task
def price(net: int) -> dict[str, int]:
    print("computing", net)  # noqa: T201 -- must not get in the way of verdicts.
    return {"net": net, "tax": net * 19 // 100}


@app.task
async def a_price(net: int) -> dict[str, int]:
    return {"net": net, "tax": net * 19 // 100}


@app.task(memo="1h")
def kept(net: int) -> int:
    return net


@app.task(version=2)
def versioned(net: int) -> int:
    return net


@app.task
def retired(net: int) -> int:
    return net


@app.task(retry=NOW)
def identity(ctx: Context) -> list[Any]:
    """Everything that a context returns; fails before the third attempt."""
    if ctx.attempt < 3:
        raise ConnectionError(f"attempt {ctx.attempt}")
    drawn = [ctx.random.random(), random.random(), str(ctx.uuid())]
    return [ctx.run_id, ctx.queue, ctx.attempt, ctx.labels, ctx.now().isoformat(), ctx.seed, drawn]


@app.task
def wall_clock(n: int) -> dict[str, Any]:
    return {"n": n, "at": datetime.now(UTC).isoformat()}


@app.task(replay_ignore=["$.at"])
def wall_clock_ignored(n: int) -> dict[str, Any]:
    return {"n": n, "at": datetime.now(UTC).isoformat()}


@app.task
def hopeless(n: int) -> None:
    raise Fatal(f"There is no customer {n}.")


@app.task
def crash(n: int) -> None:
    os._exit(n)


@app.task
def polite(ctx: Context) -> int:
    if ctx.attempt < 2:
        raise Snooze("1ms")
    return ctx.attempt


@app.task(retry=NOW)
def steps(ctx: Context, path: str) -> list[Any]:
    """Two steps, a sleep and a wait, over several attempts."""
    found = [ctx.step("charge", marked, path, "charge", {"id": 7})]
    ctx.sleep("10ms")
    found.append(ctx.wait_for("paid"))
    if ctx.attempt < 4:
        raise ConnectionError("just before the end")
    found.append(ctx.step("ship", marked, path, "ship", "shipped"))
    return found


@app.task
async def a_steps(ctx: Context, path: str) -> list[Any]:
    found = [await ctx.astep("charge", marked, path, "charge", {"id": 7})]
    await ctx.asleep("10ms")
    found.append(await ctx.await_for("paid", timeout="10ms", default="nothing"))
    return found


def draw(ctx: Context) -> list[Any]:
    return [random.random(), ctx.random.random(), str(ctx.uuid())]


@app.task(retry=NOW)
def drawn(ctx: Context) -> list[Any]:
    """Draws before, inside and after steps."""
    found = [draw(ctx), ctx.step("one", draw, ctx), draw(ctx), ctx.step("two", draw, ctx)]
    return [*found, draw(ctx)]


@app.task
async def a_drawn(ctx: Context) -> list[Any]:
    steps = await asyncio.gather(ctx.astep("one", draw, ctx), ctx.astep("two", draw, ctx))
    return [*steps, draw(ctx)]


@app.task
def failing_step(ctx: Context, path: str) -> None:
    ctx.step("charge", marked, path, "charge")
    ctx.step("refused", _refuse, path)


def _refuse(path: str) -> None:
    leave_mark(path, "refused")
    raise ConnectionError("no")


@app.task
def more_steps(ctx: Context, path: str) -> int:
    return ctx.step("one", marked, path, "one", 1)  # type: ignore[no-any-return]


@app.task
def fewer_steps(ctx: Context, path: str) -> int:
    ctx.step("one", marked, path, "one", 1)
    ctx.step("two", marked, path, "two", 2)
    return 1


@app.task
def other_steps(ctx: Context, path: str) -> int:
    return ctx.step("one", marked, path, "one", 1)  # type: ignore[no-any-return]


@app.task
def effect(ctx: Context, url: str) -> int:
    with psycopg.connect(url) as connection, ctx.once("pay", connection) as first:
        if first:
            connection.execute("insert into payments values (%s)", (ctx.run_id,))
    return 1


@app.task
def stored_twice(ctx: Context) -> None:
    ctx.artifact("a", b"1")
    ctx.artifact("a", b"2")


@app.task
async def a_report(ctx: Context) -> None:
    await ctx.aartifact("a", b"1")


@app.task
def report(ctx: Context, size: int) -> str:
    small = ctx.artifact("small.txt", b"some text", "text/plain")
    large = ctx.artifact("large.bin", b"x" * size)
    return f"{small.hash} {large.hash} {small.at}"


def two_steps(ctx: Context, path: str) -> int:
    ctx.step("one", marked, path, "one", 1)
    ctx.step("two", marked, path, "two", 2)
    return 1


@app.task
def breaks(ctx: Context, path: str) -> int:
    return two_steps(ctx, path)


@app.task
async def a_breaks(ctx: Context, path: str) -> int:
    await ctx.astep("one", marked, path, "one", 1)
    await ctx.astep("two", marked, path, "two", 2)
    return 1


@app.task
def refuses(ctx: Context, path: str) -> None:
    two_steps(ctx, path)
    raise Fatal("There is no customer.")


@app.task(retry=NOW)
def uneven(ctx: Context, path: str) -> None:
    """Its first attempt comes further than its last."""
    ctx.step("one", marked, path, "one")
    if ctx.attempt == 1:
        ctx.step("two", marked, path, "two")
        raise ConnectionError("again")
    raise Fatal("There is no customer.")


@app.task
def covers(ctx: Context, path: str) -> int:
    return ctx.step("one", marked, path, "one", 1)  # type: ignore[no-any-return]


@app.task
def swallows(ctx: Context, path: str) -> int:
    return ctx.step("one", marked, path, "one", 1)  # type: ignore[no-any-return]


@app.task
def plain(ctx: Context, path: str) -> int:
    return ctx.step("one", marked, path, "one", 1)  # type: ignore[no-any-return]


@app.task(executor="command")
def commanded(ctx: Context, path: str) -> list[Any]:
    """In a separate process, which asks its worker for steps and artifacts."""
    ctx.artifact("note.txt", b"once")
    return [ctx.step("charge", marked, path, "charge", {"id": 7}), ctx.random.random()]


@app.task
def ported(ctx: Context, path: str) -> int:
    return ctx.step("one", marked, path, "one", 1)  # type: ignore[no-any-return]


@app.task
def amount(ctx: Context, path: str, cents: int) -> str:
    ctx.step("charge", marked, path, "charge", cents)
    ctx.step("odd", lambda _odd: None, object())
    return "charged"


@app.task
def rate(ctx: Context, path: str, percent: int) -> str:
    ctx.step("set", marked, path, "set", percent)
    return "set"


class Refused(Exception):
    """An error with its own arguments."""

    def __init__(self, reason: str, code: int) -> None:
        super().__init__(reason, code)
        self.code = code

    def __str__(self) -> str:
        return f"refused: {self.args[0]}"


def _refused(path: str) -> None:
    leave_mark(path, "refused")
    raise Refused("no", 7)


@app.task
def caught(ctx: Context, path: str) -> list[Any]:
    """Goes on after a step that raised, and raises in the end."""
    try:
        ctx.step("pay", _refused, path)
    except Refused as error:
        code = error.code
    return [code, ctx.step("note", marked, path, "note", 1)]


@app.task
def uncaught(ctx: Context, path: str) -> None:
    ctx.step("pay", _refused, path)


@app.task
def child(number: int) -> int:
    return number


@app.task
def parent(path: str, url: str) -> dict[str, Any]:
    """Enqueues by every door, signals and cancels."""
    one = child.enqueue(1)
    with psycopg.connect(url) as connection:
        two = child.using(connection=connection).enqueue(2)
    many = app.enqueue_many([child.spec(3), price.spec(4)])
    heard = app.signal(one.id, "go", {"n": 1})
    leave_mark(path, "parent")
    return {
        "ids": [one.id, two.id, *(run.id for run in many)],
        "said": f"first {one.id}, then {two.id}",
        "told": [heard, one.created, many[1].cancel()],
    }


def _enqueue_in_a_thread(url: str) -> int:
    sent: list[str] = []

    def send() -> None:
        with psycopg.connect(url) as connection:
            sent.append(child.using(connection=connection).enqueue(1).id)

    thread = threading.Thread(target=send)
    thread.start()
    thread.join()
    return len(sent)


@app.task
def threaded_parent(url: str) -> int:
    return _enqueue_in_a_thread(url)


@app.task(executor="command")
def commanded_parent(url: str) -> int:
    return _enqueue_in_a_thread(url)


@app.task
async def a_parent(path: str) -> list[str]:
    leave_mark(path, "parent")
    one = await child.aenqueue(1)
    many = await app.aenqueue_many([child.spec(3)])
    await app.asignal(one.id, "go")
    await app.astore.close()
    return [one.id, many[0].id, await asyncio.to_thread(lambda: child.enqueue(5).id)]


@app.task
def impatient(path: str) -> Any:
    """Waits for a run that it has enqueued."""
    leave_mark(path, "impatient")
    run = child.enqueue(1)
    return run.result(timeout="5s") if app.run(run.id) else None


@app.task
def meddles() -> str:
    """Writes by a statement that no replay may send."""
    app.store.all(queries.pause("other"))
    return "paused"


@app.task
def steps_with_ids(ctx: Context, path: str) -> str:
    run = child.enqueue(1)
    ctx.step("note", marked, path, run.id)
    return ctx.step("enqueue", lambda: child.enqueue(2).id)

# SPDX-License-Identifier: MIT
"""The tasks of `replayed.py` after a change of the code."""

from contextlib import suppress
from typing import Any

import psycopg

from byrote import App, Context, Fatal, Snooze
from byrote.core.errors import ByroteError
from tests.tasks.replayed import marked

app = App()


@app.task
def price(net: int) -> dict[str, int]:
    return {"net": net, "tax": round(net * 0.19)}


@app.task(version=3)
def versioned(net: int) -> int:
    return net


@app.task
def hopeless(n: int) -> None:
    raise Fatal(f"There is no customer number {n}.")


@app.task
def polite(ctx: Context) -> int:
    raise Snooze("1h")


@app.task
def more_steps(ctx: Context, path: str) -> int:
    ctx.step("one", marked, path, "one", 1)
    return ctx.step("audit", marked, path, "audit", 1)  # type: ignore[no-any-return]


@app.task
def fewer_steps(ctx: Context, path: str) -> int:
    ctx.step("one", marked, path, "one", 1)
    return 1


@app.task
def other_steps(ctx: Context, path: str) -> int:
    return ctx.step("uno", marked, path, "uno", 1)  # type: ignore[no-any-return]


@app.task
def steps(ctx: Context, path: str) -> list[Any]:
    """The same steps, called in another order."""
    heard = ctx.wait_for("paid")
    shipped = ctx.step("ship", marked, path, "ship", "shipped")
    return [ctx.step("charge", marked, path, "charge", {"id": 7}), heard, shipped]


@app.task
def effect(ctx: Context, url: str) -> int:
    with psycopg.connect(url) as connection, ctx.once("pay twice", connection) as first:
        if first:
            connection.execute("insert into payments values (%s)", (ctx.run_id,))
    return 1


@app.task
def report(ctx: Context, size: int) -> str:
    small = ctx.artifact("small.txt", b"other text", "text/plain")
    return f"{small.hash}"


@app.task
def breaks(ctx: Context, path: str) -> int:
    ctx.step("one", marked, path, "one", 1)
    raise ValueError("broken")


@app.task
async def a_breaks(ctx: Context, path: str) -> int:
    await ctx.astep("one", marked, path, "one", 1)
    raise ValueError("broken")


@app.task
def refuses(ctx: Context, path: str) -> None:
    ctx.step("one", marked, path, "one", 1)
    raise Fatal("There is no customer.")


@app.task
def covers(ctx: Context, path: str) -> int:
    try:
        return ctx.step("audit", marked, path, "audit", 1)  # type: ignore[no-any-return]
    except ByroteError:
        raise ValueError("something else") from None


@app.task
def swallows(ctx: Context, path: str) -> int:
    with suppress(ByroteError):
        ctx.step("audit", marked, path, "audit", 1)
    return 1


@app.task
def plain(path: str) -> int:
    return len(path) // len(path)


@app.task(executor="command")
def commanded(ctx: Context, path: str) -> list[Any]:
    return [ctx.step("pay", marked, path, "pay", {"id": 7}), ctx.random.random()]


app.command("ported", ["sh", "-c", """echo '{"ok": true, "result": 1}'"""])


@app.task
def amount(ctx: Context, path: str, cents: int) -> str:
    ctx.step("charge", marked, path, "charge", cents * 100)
    ctx.step("odd", lambda _odd: None, object())
    return "charged"


@app.task
def rate(ctx: Context, path: str, percent: int) -> str:
    """Calls its step with a float, which has the same canonical form."""
    ctx.step("set", marked, path, "set", float(percent))
    return "set"


@app.task
def caught(ctx: Context, path: str) -> list[Any]:
    """Does not catch what the step raised any more."""
    return [ctx.step("pay", marked, path, "pay"), ctx.step("note", marked, path, "note", 1)]

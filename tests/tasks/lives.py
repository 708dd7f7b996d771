# SPDX-License-Identifier: MIT
"""One task for everything that a worker writes, for logins with few rights."""

import os
import time

import psycopg

from byrote import App, Context, Fatal, Retry

app = App()
TWICE = Retry(attempts=3, backoff="fixed", delay_first="0s")


@app.task(retry=TWICE)
def everything(ctx: Context, n: int) -> dict[str, object]:
    """Output, steps, progress, a failure, a sleep, a signal, an artifact, a mark and a child."""
    print("begun", n)  # noqa: T201 -- what attempts print is stored.
    first = ctx.step("first", lambda: n + 1)
    ctx.progress(1, 2, "half of it")
    if ctx.attempt == 1:
        raise ConnectionError("once more")
    ctx.sleep("0.1s")
    told = ctx.wait_for("go", timeout="60s")
    ctx.artifact("note.txt", b"small", "text/plain")
    with (
        psycopg.connect(os.environ["BYROTE_DATABASE_URL"]) as connection,
        ctx.once("mark", connection) as fresh,
    ):
        assert fresh
    child = ctx.step("child", lambda: small.enqueue(n).id)
    return {"first": first, "told": told, "child": child}


@app.task
def small(n: int) -> int:
    return n


@app.task(memo="1h")
def kept(n: int) -> int:
    return n * 2


@app.task
def hopeless() -> None:
    raise Fatal("no")


@app.task
def slow() -> None:
    """Prints until it is cancelled."""
    while True:
        print("still here", flush=True)  # noqa: T201
        time.sleep(0.05)


app.schedule("pulse", small.spec(0), every="1s")

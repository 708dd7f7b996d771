# SPDX-License-Identifier: MIT
"""Tasks that store artifacts."""

import asyncio
import resource
import threading
from pathlib import Path
from typing import Any

from byrote import App, ByroteError, Context

app = App()
LARGE = 1 << 21


@app.task(name="small")
def small(ctx: Context, name: str, text: str) -> str:
    return ctx.artifact(name, text.encode(), "text/plain").hash


@app.task(name="asmall")
async def asmall(ctx: Context, name: str, text: str) -> str:
    stored = await ctx.aartifact(name, text.encode(), media_type="text/plain")
    return stored.read().decode()


@app.task(name="large")
def large(ctx: Context, letter: str) -> dict[str, Any]:
    stored = ctx.artifact("large.bin", letter.encode() * LARGE)
    return {"hash": stored.hash, "size": stored.size, "same": stored.read()[:1].decode()}


@app.task(name="alarge")
async def alarge(ctx: Context, letter: str) -> int:
    return (await ctx.aartifact("large.bin", letter.encode() * LARGE)).size


@app.task(name="file")
def file(ctx: Context, path: str) -> int:
    """Store a file; returns by how many bytes the process grew at most meanwhile."""
    ctx.artifact("warm", b"up")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ctx.artifact("big", Path(path))
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


@app.task(name="many")
async def many(ctx: Context, count: int) -> list[str]:
    stored = [ctx.aartifact(f"part-{n}", b"%d" % n) for n in range(count)]
    return [artifact.name for artifact in await asyncio.gather(*stored)]


@app.task(name="blocking")
async def blocking(ctx: Context) -> None:
    ctx.artifact("x", b"x")


@app.task(name="twice")
def twice(ctx: Context, first: str, second: str) -> None:
    ctx.artifact("x", first.encode())
    ctx.artifact("x", second.encode())


@app.task(name="wait_then_store")
def wait_then_store(ctx: Context, marks: str, gate: str) -> str:
    with Path(marks).open("a") as file:
        file.write(f"{ctx.attempt}\n")
    while not Path(gate).exists():
        threading.Event().wait(0.01)
    try:
        ctx.artifact("late", b"late")
    except ByroteError as error:
        with Path(marks).open("a") as file:
            file.write(f"{type(error).__name__}\n")
        raise
    return "stored"


@app.task(name="leak")
def leak(ctx: Context, marks: str, gate: str) -> None:
    """A thread that outlives its attempt tries to store something."""

    def late() -> None:
        while not Path(gate).exists():
            threading.Event().wait(0.01)
        try:
            ctx.artifact("leak", b"leak")
        except ByroteError as error:
            with Path(marks).open("a") as file:
                file.write(f"{type(error).__name__}\n")

    threading.Thread(target=late, daemon=True).start()

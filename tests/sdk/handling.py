# SPDX-License-Identifier: MIT
"""Handlers that tests of the SDK let workers execute."""

import asyncio
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from byrote.sdk import Context, Fatal, Handlers, RetryLater

handlers = Handlers()


@handlers.handle("echo")
def echo(_ctx: Context, payload: Any) -> Any:
    return payload


@handlers.handle("a_echo")
async def a_echo(_ctx: Context, payload: Any) -> Any:
    return payload


class Counting:
    """A handler that is an object."""

    def handle(self, ctx: Context, payload: Any) -> dict[str, Any]:
        return {"attempt": ctx.attempt, "payload": payload}


handlers.handle("object")(Counting())


@handlers.task(version=2)
def add(a: int, b: int = 1) -> int:
    return a + b


@handlers.handle("mark")
def mark(_ctx: Context, payload: Any) -> None:
    """Append a word to a file, and take so long afterwards."""
    path, word, seconds = payload
    with Path(path).open("a") as out:
        out.write(f"{word}\n")
    time.sleep(seconds)


@handlers.handle("moody")
def moody(ctx: Context, payload: Any) -> str:
    if payload == "later" and ctx.attempt == 1:
        raise RetryLater("not now", after=0)
    if payload == "never":
        raise Fatal("no")
    if payload == "oops":
        raise ValueError("oops")
    return f"attempt {ctx.attempt}"


@handlers.handle("stepping")
def stepping(ctx: Context, payload: Any) -> list[str]:
    """Two steps; the first attempt fails between them."""
    first = ctx.step("first", lambda: f"by attempt {ctx.attempt}")
    if ctx.attempt == 1:
        raise RetryLater("between the steps", after=0)
    return [first, ctx.step("second", lambda: f"by attempt {ctx.attempt}"), payload]


@handlers.handle("sleeper")
def sleeper(ctx: Context, payload: Any) -> int:
    ctx.sleep(payload)
    return ctx.attempt


@handlers.handle("whoami")
def whoami(ctx: Context, _payload: Any) -> dict[str, Any]:
    return {"pid": os.getpid(), "trace": ctx.traceparent, "labels": dict(ctx.labels)}


@handlers.handle("bulky")
async def bulky(_ctx: Context, payload: Any) -> str:
    """Return much, at the same time as others that were begun with it."""
    await asyncio.sleep(0.5)
    return "x" * payload


@handlers.handle("many")
def many(_ctx: Context, payload: Any) -> list[int]:
    """A result of so many values."""
    return [0] * payload


@handlers.handle("filing")
def filing(ctx: Context, payload: Any) -> str:
    """Store this many bytes; for a negative number, from its own file."""
    data: bytes | Path = b"x" * abs(payload)
    if payload < 0:
        own = Path(tempfile.gettempdir()) / f"own-{ctx.run_id}"
        own.write_bytes(b"x" * -payload)
        data = own
    return ctx.artifact("report/a.txt", data, "text/plain").hash


@handlers.handle("telling")
def telling(ctx: Context, payload: Any) -> int:
    """Reports progress; the first attempt of a retried run fails halfway."""
    for done in range(1, payload + 1):
        ctx.progress(done, payload, "telling")
        if ctx.attempt == 1 and ctx.labels and done * 2 > payload:
            raise RetryLater("halfway", after=0)
    return payload

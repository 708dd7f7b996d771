# SPDX-License-Identifier: MIT
"""The demo's tasks: one for each way a run can go."""

import asyncio
import hashlib
import os
import time
from datetime import timedelta
from pathlib import Path

from byrote.assembly.app import App
from byrote.core.errors import Fatal, Snooze
from byrote.core.policy import Retry
from byrote.executors.runtime.context import Context

SOON = Retry(attempts=3, backoff="fixed", delay_first=timedelta(milliseconds=100), jitter=False)

app = App()


@app.task(name="demo.quick")
async def quick(n: int) -> dict[str, str]:
    """Return at once, always the same for the same number."""
    return {"digest": hashlib.sha256(str(n).encode()).hexdigest()}


@app.task(name="demo.quick_sync")
def quick_sync(n: int) -> dict[str, str]:
    """Do the same without async."""
    return {"digest": hashlib.sha256(str(n).encode()).hexdigest()}


def ask_rate() -> int:
    """Return the rate of a tax; a real shop would request it from an outside service."""
    return 19


@app.task(name="demo.invoice")
def invoice(ctx: Context, n: int) -> dict[str, int]:
    """Ask for the rate of a tax, once, and add the tax."""
    rate = ctx.step("ask for the rate", ask_rate)
    net = 100 * n + 99
    tax = net * rate // 100
    return {"net": net, "tax": tax, "total": net + tax}


@app.task(name="demo.slow")
async def slow(n: int) -> int:
    """Take half a second."""
    await asyncio.sleep(0.5)
    return n


@app.task(name="demo.flaky", retry=SOON)
async def flaky(ctx: Context, n: int) -> int:
    """Fail twice, then succeed."""
    if ctx.attempt < 3:
        raise ConnectionError(f"try {ctx.attempt}: the other side hung up")
    return n


@app.task(name="demo.poison", retry=SOON)
def poison(n: int) -> int:
    """Take the whole process down, each time."""
    os._exit(n % 100 + 1)


@app.task(name="demo.struck", retry=SOON)
def struck(n: int, note: str) -> int:
    """Write its pid to `note` and wait to be killed; on the next attempt, succeed."""
    path = Path(note)
    if not path.exists():
        new = path.with_suffix(".new")
        new.write_text(str(os.getpid()))
        new.rename(path)  # Atomic, because the demo waits for this file.
        time.sleep(60)
    return n


@app.task(name="demo.endless", timeout="300ms")
def endless(n: int) -> int:
    """Run far beyond its timeout without reacting to it."""
    time.sleep(60)
    return n


@app.task(name="demo.sleeper")
async def sleeper(n: int) -> int:
    """Sleep until it is cancelled."""
    await asyncio.sleep(60)
    return n


@app.task(name="demo.hopeless", retry=Retry(attempts=5))
async def hopeless(n: int) -> int:
    """Raise Fatal, so that it is not retried."""
    raise Fatal(f"Customer {n} does not exist.")


@app.task(name="demo.polite")
async def polite(ctx: Context, n: int) -> int:
    """Step aside twice, then do its work."""
    if ctx.attempt < 3:
        raise Snooze("300ms")
    return n

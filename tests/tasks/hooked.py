# SPDX-License-Identifier: MIT
"""An app with every kind of hook; each appends a line of JSON to the file in HOOK_MARKS."""

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from byrote import App, Context, EndedRun, FailedAttempt, Fatal, Retry, Spec

app = App()
tenant: ContextVar[str] = ContextVar("tenant", default="none")
fails = set(os.environ.get("HOOK_FAILS", "").split(","))
"""Hooks that raise."""
pools: list[asyncio.Semaphore] = []


def mark(hook: str, **fields: Any) -> None:
    line = json.dumps({"hook": hook, "pid": os.getpid(), **fields}) + "\n"
    fd = os.open(os.environ["HOOK_MARKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, line.encode())
    os.close(fd)
    if hook in fails:
        raise RuntimeError(f"{hook} is broken")


@app.around
@contextmanager
def outer(ctx: Context) -> Iterator[None]:
    tenant.set(ctx.labels.get("tenant", "none"))
    mark("around", task=ctx.task, attempt=ctx.attempt, replaying=ctx.replaying)
    yield


@app.on_enqueue
def label(spec: Spec) -> Spec | None:
    if spec.task == "refused":
        raise PermissionError("not today")
    return spec.using(labels={**(spec.delivery.labels or {}), "tenant": "acme"})


@app.on_failure
def failed(attempt: FailedAttempt) -> None:
    mark(
        "failure",
        task=attempt.ctx.task,
        attempt=attempt.ctx.attempt,
        error=None if attempt.error is None else str(attempt.error),
        raised=attempt.error is not None and attempt.error.__traceback__ is not None,
        fault=attempt.fault.type,
        will_retry=attempt.will_retry,
        tenant=tenant.get(),
    )


@app.on_failure
async def afailed(attempt: FailedAttempt) -> None:
    async with pools[0]:
        mark("afailure", task=attempt.ctx.task, attempt=attempt.ctx.attempt)


@app.on_end
def ended(run: EndedRun) -> None:
    mark(
        "end",
        run=run.run_id,
        task=run.task,
        status=run.status,
        attempts=run.attempts,
        fault=None if run.fault is None else run.fault.type,
        labels=dict(run.labels),
    )


@app.on_end
async def aended(run: EndedRun) -> None:
    async with pools[0]:
        mark("aend", task=run.task)


@app.on_hand_start
def started() -> None:
    mark("hand_start")


@app.on_hand_start
async def opened() -> None:
    await asyncio.sleep(0)
    pools.append(asyncio.Semaphore(1))


@app.on_hand_stop
def stopped() -> None:
    mark("hand_stop")


@app.on_hand_stop
async def closed() -> None:
    await asyncio.sleep(0)
    mark("hand_close")


@app.on_worker_start
async def worker_started() -> None:
    await asyncio.sleep(0)
    if "die" in fails:
        os._exit(9)
    mark("worker_start")


@app.on_worker_stop
def worker_stopped() -> None:
    mark("worker_stop")


@app.task(name="ok")
def ok() -> str:
    return tenant.get()


@app.task(name="aok")
async def aok() -> str:
    async with pools[0]:
        return tenant.get()


@app.task(name="flaky", retry=Retry(attempts=3, delay_first="1ms", delay_max="1ms"))
def flaky(ctx: Context) -> int:
    if ctx.attempt < 3:
        raise ValueError(f"attempt {ctx.attempt}")
    return ctx.attempt


@app.task(name="aflaky", retry=Retry(attempts=2, delay_first="1ms", delay_max="1ms"))
async def aflaky() -> None:
    raise ValueError("always")


@app.task(name="fatal", retry=Retry(attempts=5))
def fatal() -> None:
    raise Fatal("never again")


@app.task(name="dies")
def dies() -> None:
    os._exit(7)


@app.task(name="slow")
def slow() -> None:
    threading.Event().wait()


@app.task(name="waits")
async def waits() -> None:
    await asyncio.Event().wait()


@app.task(name="refused")
def refused() -> None:
    """Its enqueue is refused by a hook."""

# SPDX-License-Identifier: MIT
"""Tasks of every fate short of taking their process down; `a_name` is the async twin of `name`."""

import asyncio
import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from byrote import App, Context, Fatal, RetryLater, Snooze

app = App()

EVIL = "a\x00b\ud800c"


def both(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function as a sync task, and its twin as an async one."""

    @functools.wraps(function)
    async def twin(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    app.task(name=function.__name__)(function)
    app.task(name=f"a_{function.__name__}")(twin)
    return function


def leave_mark(path: str, word: str) -> None:
    """Append a word to a file in one write, so that no two processes mix theirs."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(fd, f"{word}\n".encode())
    os.close(fd)


@both
def echo(value: Any = None) -> Any:
    return value


@both
def boom(message: str = "boom") -> None:
    raise ValueError(message)


@both
def evil_text() -> None:
    raise ValueError(EVIL)


@both
def evil_type() -> None:
    class Evil(Exception):
        pass

    Evil.__module__ = EVIL
    raise Evil


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Unstoppable(Exception):
    def __str__(self) -> str:
        raise SystemExit(7)


@both
def unspeakable() -> None:
    raise Unspeakable


@both
def unstoppable() -> None:
    raise Unstoppable


class Odd(BaseException):
    pass


RAISES: dict[str, BaseException] = {
    "exit": SystemExit(3),
    "interrupt": KeyboardInterrupt(),
    "base": Odd("odd"),
    "cancelled": asyncio.CancelledError(),
    "generator_exit": GeneratorExit(),
    "stop": StopAsyncIteration("stop"),
    "memory": MemoryError(),
}


@both
def raises(which: str) -> None:
    if which == "exit":
        sys.exit(3)
    raise RAISES[which]


@both
def later(after: float | None = None) -> None:
    raise RetryLater("not now", after=after)


@both
def fatal() -> None:
    raise Fatal("never")


@both
def snooze(after: float) -> None:
    raise Snooze(after)


UNSTORABLE: dict[str, Callable[[], Any]] = {
    "object": object,
    "set": lambda: {1},
    "bytes": lambda: b"x",
    "nan": lambda: float("nan"),
    "surrogate": lambda: "\ud800",
    "key": lambda: {1: 2},
    "generator": lambda: (n for n in range(3)),
    "deep": lambda: functools.reduce(lambda inner, _: [inner], range(600), None),
    "large": lambda: "x" * (5 * 1024 * 1024),
}


@both
def unstorable(which: str) -> Any:
    return UNSTORABLE[which]()


@both
def about(ctx: Context) -> dict[str, Any]:
    return {
        "run": ctx.run_id,
        "attempt": ctx.attempt,
        "task": ctx.task,
        "queue": ctx.queue,
        "labels": dict(ctx.labels),
        "hurried": ctx.seconds_left is not None,
    }


@app.task
def mark(path: str, word: str, seconds: float = 0.0) -> str:
    """Leave a mark, then take a while."""
    leave_mark(path, word)
    time.sleep(seconds)
    return word


@app.task
async def a_mark(path: str, word: str, seconds: float = 0.0) -> str:
    leave_mark(path, word)
    await asyncio.sleep(seconds)
    return word


@app.task
def hold(path: str, gate: str) -> str:
    """Leave a mark, then wait until the gate file is there."""
    leave_mark(path, str(os.getpid()))
    while not Path(gate).exists():
        time.sleep(0.01)
    return "through"


@app.task
async def a_hold(path: str, gate: str) -> str:
    leave_mark(path, str(os.getpid()))
    while not Path(gate).exists():  # noqa: ASYNC110, ASYNC240 -- the test opens it from outside.
        await asyncio.sleep(0.01)
    return "through"


@app.task
async def a_deaf(path: str, seconds: float) -> None:
    """An async task that swallows every cancellation."""
    leave_mark(path, str(os.getpid()))
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            leave_mark(path, "ignored")


@app.task
async def a_blocking(path: str, seconds: float) -> int:
    """Blocks the loop of its hand."""
    leave_mark(path, str(os.getpid()))
    time.sleep(seconds)  # noqa: ASYNC251 -- the fault under test.
    return os.getpid()


@app.task
def flaky(ctx: Context, path: str, fails: int) -> int:
    """Fails so many times, then returns its attempt."""
    leave_mark(path, f"{time.time():.3f}")
    if ctx.attempt <= fails:
        raise ConnectionError("flaky")
    return ctx.attempt


@app.task
def restless(ctx: Context, times: int) -> int:
    """Asks to be tried again at once, so many times."""
    if ctx.attempt <= times:
        raise RetryLater(after=0)
    return ctx.attempt


@app.task
def moment() -> float:
    """When it ran, by the wall clock."""
    return time.time()


@app.task
def shout(megabytes: int) -> int:
    """Floods standard output."""
    for _ in range(megabytes):
        sys.stdout.write("x" * 1023 * 1024 + "\n")
    sys.stdout.flush()
    return megabytes


@app.task
def whoami() -> int:
    return os.getpid()


@app.task
def threads() -> int:
    return threading.active_count()


_visits: ContextVar[int] = ContextVar("visits", default=0)


async def _seen() -> int:
    return _visits.get()


@app.task
async def a_alone(waits: bool) -> list[int]:
    """Leave traces wherever an attempt can; returns those it found."""
    me = asyncio.current_task()
    assert me is not None
    found = [_visits.get(), int(me.get_name() == "used")]
    me.set_name("used")
    _visits.set(_visits.get() + 1)
    if waits:
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            child = group.create_task(_seen())
        found.append(child.result())
    return found

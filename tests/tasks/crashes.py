# SPDX-License-Identifier: MIT
"""Tasks that harm the process they run in, and an import that can be made to fail."""

import asyncio
import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from byrote import App, Context
from tests.tasks.fates import leave_mark

# A test that wants the app to become impossible to import puts a file here.
_broken = os.environ.get("BYROTE_TEST_BROKEN")
if _broken and Path(_broken).exists():
    raise ImportError("broken on purpose")

app = App()


@app.task
def die(how: str, path: str | None = None) -> None:
    """Take the process down in one of many ways."""
    if path is not None:
        leave_mark(path, how)
    match how:
        case "exit":
            os._exit(9)
        case "abort":
            os.abort()
        case "segfault":
            ctypes.string_at(0)
        case name:
            os.kill(os.getpid(), signal.Signals[name])
            time.sleep(10)


@app.task
async def a_die(how: str, path: str | None = None) -> None:
    await asyncio.sleep(0)
    die.function(how, path)


@app.task
def die_once(ctx: Context) -> int:
    """Take the process down at the first attempt."""
    if ctx.attempt == 1:
        os._exit(1)
    return ctx.attempt


@app.task
def quick(path: str, word: str) -> str:
    leave_mark(path, word)
    return word


@app.task
async def a_quick(path: str, word: str, seconds: float = 0.0) -> str:
    leave_mark(path, word)
    await asyncio.sleep(seconds)
    return word


@app.task
async def a_block(path: str, seconds: float, times: int) -> None:
    """Blocks the event loop of its hand again and again, with one turn of the loop in between."""
    leave_mark(path, str(os.getpid()))
    for _ in range(times):
        time.sleep(seconds)  # noqa: ASYNC251 -- blocking the loop is the point.
        await asyncio.sleep(0)


@app.task
def slow(path: str, seconds: float) -> int:
    leave_mark(path, str(os.getpid()))
    time.sleep(seconds)
    return os.getpid()


@app.task
def fork_and_wait(path: str, seconds: float) -> None:
    """Has a child that ends as forked children do, and stays."""
    child = os.fork()
    if child == 0:
        os._exit(3)
    os.waitpid(child, 0)
    leave_mark(path, str(os.getpid()))
    time.sleep(seconds)


@app.task
def stuck_in_c(path: str) -> None:
    """Holds the GIL in C code that never comes back in a human's life."""
    leave_mark(path, str(os.getpid()))
    re.match(r"(a+)+$", "a" * 64 + "b")


@app.task
def holds_the_gil(path: str, seconds: float) -> str:
    """Sleeps in C without letting go of the GIL."""
    leave_mark(path, str(os.getpid()))
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
    return "done"


@app.task
def orphan(path: str, new_session: bool) -> None:
    """Double-forks a sleeper and returns."""
    script = (
        "import os, sys, time\n"
        "if os.fork(): os._exit(0)\n"
        f"open({path!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        "time.sleep(60)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, start_new_session=new_session)


@app.task
def waits_with_child(path: str) -> None:
    """Starts a sleeper and waits for it."""
    child = subprocess.Popen(["sleep", "60"])
    leave_mark(path, str(child.pid))
    child.wait()


@app.task
def close_everything(path: str) -> str:
    """Closes every descriptor of its process, the hand's own included."""
    leave_mark(path, str(os.getpid()))
    os.closerange(3, 4096)
    time.sleep(10)  # One that returns at once has its result recorded.
    return "closed"


@app.task
def close_stdout() -> str:
    os.close(1)
    os.close(2)
    return "closed"


_kept: list[bytearray] = []


@app.task
def eat(megabytes: int) -> int:
    """Grows the process for good; returns its pid."""
    _kept.append(bytearray(os.urandom(1)) * (megabytes * 1024 * 1024))
    return os.getpid()


@app.task
def whoami() -> int:
    return os.getpid()

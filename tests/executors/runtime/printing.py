# SPDX-License-Identifier: MIT
# ruff: noqa: T201 -- printing is what these tasks do.
"""Tasks that print."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from pathlib import Path

from byrote import App
from byrote.executors.runtime import output

app = App()


@app.task
def say(word: str) -> None:
    print(word)
    print("error", word, file=sys.stderr)


@app.task
async def a_say(word: str) -> None:
    print(word)
    await asyncio.sleep(0.001)
    print("error", word, file=sys.stderr)


@app.task
def fail() -> None:
    print("so far")
    raise ValueError("no further")


@app.task
async def speak_otherwise() -> None:
    sys.stdout.buffer.write(b"bytes\n")
    await asyncio.to_thread(print, "thread")
    logging.getLogger("somebody").warning("logged")


@app.task
def flood(size: int) -> None:
    for _ in range(size // 4096):
        sys.stdout.write("x" * 4096)


@app.task
def silent() -> None:
    pass


@app.task(executor="command")
def elsewhere(word: str) -> str:
    print(word)
    print("error", word, file=sys.stderr)
    return word


app.command("shell", ["/bin/sh", "-c", """echo out; echo err >&2; echo '{"ok":true,"result":3}'"""])

LINGER = r"""
path=$(printf '%s' "$4" | sed 's/.*"args":\["\([^"]*\)".*/\1/')
echo $$ >> "$path"
(setsid sh -c 'echo $$ >> "$0"; exec sleep 60' "$path" &)
sleep 60
"""
app.command("linger", ["/bin/sh", "-c", LINGER, "sh"], payload="argv")


@app.task
def last_words(how: str, size: int = 0) -> None:
    print("so far")
    print("trouble", file=sys.stderr)
    if size:
        sys.stdout.write("x" * size)
        sys.stdout.write("the end")
    match how:
        case "exit":
            os._exit(7)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            threading.Event().wait()
        case "scribble":
            output._spools[0]._memory[64:4096] = os.urandom(4032)
            os._exit(7)
        case "rewind":
            output._spools[0]._memory[:16] = b"\xff" * 16
            os._exit(7)


@app.task
async def a_last_words(word: str, *, fatal: bool) -> None:
    print(word)
    await asyncio.sleep(0 if fatal else 3600)
    # Not before the others have spoken.
    await asyncio.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task
def a_child_speaks() -> str:
    print("parent")
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            for _ in range(1000):
                print("child")
        os._exit(0)
    os.waitpid(pid, 0)
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@app.task
def chatter(path: str) -> None:
    """Print, wait until the test has read it, and print again."""
    print("first ü", flush=True)
    while not Path(path).exists():
        threading.Event().wait(0.01)
    print("second")
    print("third", file=sys.stderr)


CHATTER = r"""
path=$(printf '%s' "$4" | sed 's/.*"args":\["\([^"]*\)".*/\1/')
echo first ü
while [ ! -e "$path" ]; do sleep 0.01; done
echo second
echo third >&2
echo '{"ok":true,"result":3}'
"""
app.command("shell_chatter", ["/bin/sh", "-c", CHATTER, "sh"], payload="argv")

# SPDX-License-Identifier: MIT
# ruff: noqa: T201 -- printing is what these tasks do.
"""Tasks that print."""

import asyncio
import logging
import sys

from byrote import App

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

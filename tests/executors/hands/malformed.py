# SPDX-License-Identifier: MIT
"""Tasks that write malformed messages to the socket of their hand."""

import asyncio
import json
import os
import sys
import threading
from typing import Any

from byrote import App, Context
from byrote.executors.framing import frame
from byrote.executors.runtime.output import current_scope

app = App()


def link() -> int:
    return int(json.loads(sys.argv[1])["link"])


def slot() -> int:
    scope = current_scope()
    assert scope is not None
    assert scope.job is not None
    return scope.job.slot


@app.task
def say(message: Any) -> None:
    """Send a message, in which "slot" is this attempt's, and stay."""
    text = json.dumps(message).replace('"slot"', str(slot()))
    os.write(link(), frame(json.loads(text)))
    threading.Event().wait()


@app.task
async def a_say(message: Any) -> None:
    """The same on the event loop, in the hand of other async tasks."""
    text = json.dumps(message).replace('"slot"', str(slot()))
    os.write(link(), frame(json.loads(text)))
    await asyncio.Event().wait()


@app.task
def say_bytes(text: str) -> None:
    os.write(link(), bytes.fromhex(text))
    threading.Event().wait()


@app.task
def ask(ctx: Context, verb: str, payload: dict[str, Any]) -> str:
    """Send an ask that has no answer, and succeed."""
    who = {"run": ctx.run_id, "attempt": ctx.attempt}
    os.write(link(), frame(["ask", [slot(), 12345, verb, who | payload]]))
    return str(ctx.step("after", lambda: "well"))


@app.task
def ask_often(ctx: Context, count: int) -> None:
    """Send that many asks and wait for none of the answers."""
    who = {"run": ctx.run_id, "attempt": ctx.attempt}
    for number in range(count):
        os.write(link(), frame(["ask", [slot(), 20_000 + number, "load", who]]))


@app.task(executor="command")
def shout(ctx: Context, text: str) -> str:
    """Spoil the line of a command, which has the descriptor after those of its pipes."""
    ctx.step("before", lambda: None)
    os.write(4, bytes.fromhex(text))
    return str(ctx.step("after", lambda: "well"))


@app.task(executor="command")
def hang_up(ctx: Context) -> str:
    os.close(4)
    return str(ctx.step("after", lambda: "well"))


@app.task
async def wait(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "waited"


@app.task
def echo(value: Any) -> Any:
    return value

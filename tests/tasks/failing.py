# SPDX-License-Identifier: MIT
"""Tasks that fail, in an app that filters what is logged of one of them."""

import asyncio
import logging
import os

from byrote import App, Context, Fatal, RetryLater, Snooze

app = App()
log = logging.getLogger(__name__)


def redact(record: logging.LogRecord) -> bool:
    """Keep the number of a card out of the log."""
    if "4111" in record.getMessage():
        record.msg, record.args, record.exc_info = "a payment failed", (), None
    if "broken filter" in record.getMessage():
        raise OSError("the filter itself fails")
    return True


logging.getLogger("byrote.task").addFilter(redact)


@app.task
def divide(by: int) -> float:
    return 1 / by


@app.task(name="a_divide")
async def divide_later(by: int) -> float:
    await asyncio.sleep(0)
    return 1 / by


@app.task
def pay(message: str) -> None:
    raise ValueError(message)


@app.task
def give_up() -> None:
    raise Fatal("the account is closed")


@app.task
def ask_again() -> None:
    raise RetryLater("the server is busy", after=0)


@app.task
def put_off() -> None:
    raise Snooze(3600)


@app.task
def unstorable() -> object:
    return {1, 2}


@app.task(timeout="100ms")
async def too_long() -> None:
    await asyncio.sleep(3600)


@app.task
def die() -> None:
    os.abort()


@app.task
def speak(ctx: Context) -> None:
    ctx.logger.warning("from the context", extra={"order": 42, "task": "mine", "odd": {1}})
    log.warning("from another logger")

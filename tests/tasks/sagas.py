# SPDX-License-Identifier: MIT
"""Tasks whose steps fail; marks record what was really called. `a_name` is the async twin."""

import asyncio
from pathlib import Path
from typing import Any

import psycopg

from byrote import App, Context, Retry
from tests.tasks.fates import leave_mark
from tests.tasks.steps import amarked, marked

app = App()
NOW = Retry(attempts=3, backoff="fixed", delay_first="0s")  # type: ignore[arg-type]
SOON = Retry(attempts=3, backoff="fixed", delay_first="1ms")  # type: ignore[arg-type]
LATER = Retry(attempts=2, backoff="fixed", delay_first="1h", jitter=False)  # type: ignore[arg-type]


class HotelFull(Exception):
    """Raised by `book_hotel`."""

    def __init__(self, city: str, rooms: int) -> None:
        super().__init__(f"no {rooms} rooms in {city}")
        self.city = city


def calls(path: str, word: str) -> int:
    """Leave a mark; returns how often, over all attempts."""
    leave_mark(path, word)
    return Path(path).read_text(encoding="utf-8").split().count(word)


def book_hotel(path: str) -> str:
    if calls(path, "hotel") == 1:
        raise HotelFull("Rome", 2)
    return "hotel booked"


def notify(path: str) -> str:
    if calls(path, "notify") == 1:
        raise ConnectionError("the mail server is down")
    return "notified"


@app.task(retry=NOW)
def saga(ctx: Context, path: str) -> list[Any]:
    """The hotel has rooms again in the second attempt, after the flight was cancelled."""
    undo: list[Any] = []
    try:
        flight = ctx.step("flight", marked, path, "flight", 7)
        undo.append(("cancel flight", marked, path, f"cancel-flight-{flight}"))
        ctx.step("hotel", book_hotel, path)
        ctx.step("car", marked, path, "car")
    except Exception as error:  # noqa: BLE001 -- what a user's saga does.
        for name, *call in reversed(undo):
            ctx.step(name, *call)
        return [type(error).__name__, str(error), ctx.step("notify", notify, path)]
    return ["booked"]


@app.task(retry=NOW)
async def a_saga(ctx: Context, path: str) -> list[Any]:
    """As `saga`; the compensations are branches."""
    undo: list[Any] = []
    try:
        flight = await ctx.astep("flight", amarked, path, "flight", 7)
        undo.append(("cancel flight", amarked, path, f"cancel-flight-{flight}"))
        await ctx.astep("hotel", book_hotel, path)
        await ctx.astep("car", amarked, path, "car")
    except Exception as error:  # noqa: BLE001 -- what a user's saga does.
        await asyncio.gather(*(ctx.astep(name, *call) for name, *call in reversed(undo)))
        said = await ctx.astep("notify", notify, path)
        return [type(error).__name__, str(error), said]
    return ["booked"]


@app.task(retry=NOW)
async def a_gathered_saga(ctx: Context, path: str) -> list[Any]:
    """The steps are branches, and one of them fails."""
    booked = await asyncio.gather(
        ctx.astep("flight", amarked, path, "flight", 7),
        ctx.astep("hotel", book_hotel, path),
        return_exceptions=True,
    )
    kinds = [type(found).__name__ for found in booked]
    if "HotelFull" in kinds:
        await ctx.astep("cancel", amarked, path, "cancel-flight-7")
    return [*kinds, await ctx.astep("notify", notify, path)]


def fail_once(path: str, word: str) -> str:
    if calls(path, word) == 1:
        raise ConnectionError(f"{word} failed")
    return word


@app.task(retry=NOW)
def uncaught(ctx: Context, path: str) -> Any:
    ctx.step("one", marked, path, "one")
    return ctx.step("two", fail_once, path, "two")


@app.task(retry=NOW)
def renamed(ctx: Context, path: str) -> Any:
    """Catches the error of a step, and raises another one before its next step."""
    try:
        return ctx.step("two", fail_once, path, "two")
    except ConnectionError:
        raise ValueError("give me another attempt") from None


@app.task(retry=NOW)
async def a_uncaught_beside_others(ctx: Context, path: str) -> Any:
    """One branch fails while another makes its steps; the task does not catch it."""
    failed = asyncio.Event()

    async def first() -> Any:
        try:
            return await ctx.astep("first", fail_once, path, "first")
        finally:
            failed.set()

    async def second() -> Any:
        await failed.wait()
        return await ctx.astep("second", amarked, path, "second", "second")

    done = await asyncio.gather(first(), second(), return_exceptions=True)
    for found in done:
        if isinstance(found, Exception):
            raise found
    return done


@app.task(retry=NOW)
def once_after(ctx: Context, path: str, url: str) -> str:
    """An effect in the database is what follows the error of a step."""
    try:
        ctx.step("pay", fail_once, path, "pay")
        found = "paid"
    except ConnectionError:
        with psycopg.connect(url) as connection, ctx.once("refund", connection):
            found = "refunded"
    if ctx.attempt == 1:
        raise ConnectionError("just after the effect")
    return found


def refuse(path: str, word: str, times: int) -> int:
    """Raises as often as `times`, over all attempts."""
    count = calls(path, word)
    if count <= times:
        raise ConnectionError(f"{word} {count}")
    return count


@app.task
def tries(ctx: Context, path: str, times: int) -> Any:
    try:
        return ctx.step("call", refuse, path, "call", times, retry=SOON)
    except ConnectionError as error:
        return ctx.step("after", str, str(error))


@app.task
async def a_tries(ctx: Context, path: str, times: int) -> Any:
    try:
        return await ctx.astep("call", refuse, path, "call", times, retry=SOON)
    except ConnectionError as error:
        return await ctx.astep("after", str, str(error))


@app.task
def tries_later(ctx: Context, path: str, times: int) -> Any:
    """A try an hour after the first, then another step."""
    try:
        ctx.step("call", refuse, path, "call", times, retry=LATER)
    except ConnectionError as error:
        return ctx.step("after", str, str(error))
    return ctx.step("after", str, "called")


@app.task
def wrong_retry(ctx: Context) -> None:
    ctx.step("call", print, retry=3)  # type: ignore[arg-type]


@app.task(retry=NOW)
def lost_class(ctx: Context, path: str, base: bool) -> list[Any]:
    """The second attempt does not have the class of the error."""
    try:
        ctx.step("odd", raise_local, path, base)
    except Exception as error:  # noqa: BLE001 -- any class.
        ctx.step("two", marked, path, "two")
        if ctx.attempt == 1:
            raise ConnectionError("again") from None
        return [type(error).__name__, str(error), getattr(error, "type", None)]
    return []


def raise_local(path: str, base: bool) -> None:
    leave_mark(path, "odd")
    parent = LookupError if base else Exception
    raise type("Local", (parent,), {"__module__": "gone.module"})("odd")

# SPDX-License-Identifier: MIT
"""Small tasks for the tests of the Python API."""

from typing import Any

from byrote import App, Context, Fatal, Retry, RetryLater, Snooze

app = App()


@app.task
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@app.task
async def echo(value: Any) -> Any:
    return value


@app.task(queue="mail", version=2, timeout="30s", retry=Retry(attempts=3, delay_first="0s"))
def about(ctx: Context, word: str) -> dict[str, Any]:
    return {
        "word": word,
        "run": ctx.run_id,
        "attempt": ctx.attempt,
        "queue": ctx.queue,
        "labels": dict(ctx.labels),
        "in_time": ctx.seconds_left is not None and 0 < ctx.seconds_left <= 30,
    }


@app.task(retry=Retry(attempts=5))
def third_time(ctx: Context) -> int:
    if ctx.attempt < 3:
        raise RetryLater("not yet", after=0)
    return ctx.attempt


@app.task(retry=Retry(attempts=5))
def doomed(reason: str) -> None:
    raise Fatal(reason)


@app.task
async def drowsy(ctx: Context) -> int:
    if ctx.attempt == 1:
        raise Snooze(0)
    return ctx.attempt


@app.task(memo="1h")
async def remembered(value: Any) -> Any:
    return value


@app.task(unique_key=lambda month: f"report:{month}", retry=Retry(attempts=5))
def report(ctx: Context, month: str, region: str = "eu") -> str:
    return f"{month} in {region}"


@app.task(unique_key="one", memo="1h")
async def unique_and_remembered(value: Any) -> Any:
    return value

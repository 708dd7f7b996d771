# SPDX-License-Identifier: MIT
"""Public signatures, pinned: `mypy --strict` fails here when one changes."""

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, assert_type
from uuid import UUID

import psycopg

from byrote import (
    App,
    Artifact,
    Context,
    Differs,
    EndedRun,
    FailedAttempt,
    NotReplayable,
    Retry,
    Run,
    RunHandle,
    Same,
    Spec,
    Status,
    TaskGroup,
    TaskHandle,
)
from byrote.core.progress import Progress
from byrote.core.schedule.schedule import Schedule

app = App("postgresql://host/db", queues=["mail"])


@app.task
def add(a: int, b: int = 1) -> int:
    return a + b


@app.task
async def fetch(url: str) -> bytes:
    return url.encode()


@app.task
def knows(ctx: Context, word: str) -> str:
    return f"{word} {ctx.attempt}"


@app.task
async def knows_later(ctx: Context, *, word: str) -> list[str]:
    return [word] * ctx.attempt


@app.task(queue="mail", version=2, timeout="30s", retry=Retry(attempts=5), labels={"a": "b"})
def mail(ctx: Context, to: str) -> dict[str, int]:
    return {to: ctx.attempt}


@app.task(name="shop.count", priority=5, memo="7d", replay_ignore=["$.at"])
async def count(things: list[str]) -> int:
    return len(things)


@app.task(unique_key=lambda month: f"report:{month}")
def report(month: str) -> str:
    return month


@dataclass
class Order:
    id: UUID


@app.task
def ship(order: Order, due: date | None = None) -> tuple[Order, date]:
    return order, due or date.min


@app.task(unique_key="nightly")
async def nightly() -> None: ...


@app.task
def stepped(ctx: Context) -> int:
    assert_type(ctx.step("add", lambda: 1), int)
    assert_type(ctx.step("len", len, "word"), int)
    ctx.progress(1, 10, "adding", file="a.csv")
    ctx.progress("1")  # type: ignore[arg-type]  # Progress is a finite number.
    ctx.sleep("1h")
    assert_type(ctx.wait_for("paid", timeout="1d", default=None), Any)
    with psycopg.connect() as connection, ctx.once("charge", connection) as first:
        assert_type(first, bool)
    return 1


async def double(n: int) -> int:
    return 2 * n


@app.task
async def stepped_later(ctx: Context) -> int:
    assert_type(await ctx.astep("double", double, 2), int)
    await ctx.asleep(timedelta(hours=1))
    assert_type(await ctx.await_for("paid"), Any)
    connection = await psycopg.AsyncConnection.connect()
    async with ctx.aonce("charge", connection) as first:
        assert_type(first, bool)
    return 1


assert_type(app.replay("id", ignore=["$.at"], live_steps=True), Same | Differs | NotReplayable)
assert_type(app.replay(task="add", last=5, jobs=2), list[Same | Differs | NotReplayable])
assert_type(app.signal("id", "paid", {"cents": 5}), bool)
assert_type(add.enqueue(1), RunHandle[int])
assert_type(add.enqueue(1, b=2).result(timeout=10), int)
assert_type(fetch.enqueue("x").result(), bytes)
assert_type(knows.enqueue("x").result("10s"), str)
assert_type(knows_later.enqueue(word="x").result(timedelta(seconds=1)), list[str])
assert_type(mail.enqueue("me"), RunHandle[dict[str, int]])
assert_type(count.enqueue(["a"]).result(), int)
assert_type(add.using(priority=10, run_after="10m", labels={"a": "b"}).enqueue(2), RunHandle[int])
assert_type(report.enqueue("11"), RunHandle[str])
assert_type(report.using(unique_key=None).enqueue("11").created, bool)
assert_type(nightly.enqueue().result(), None)
assert_type(add.using(timeout=1.5, retry=Retry(delay_first="1s"), queue="mail").spec(1), Spec)
assert_type(Retry(delay_first="1s", delay_max=60, age_max=timedelta(days=1)).delay_first, timedelta)
assert_type(ship.enqueue(Order(UUID(int=1))).result(), tuple[Order, date])
assert_type(add.spec(1, 2), Spec)
assert_type(add.name, str)
assert_type(add.version, int)
assert_type(app.enqueue_many([add.spec(1), fetch.spec("x")]), list[RunHandle[Any]])
assert_type(app.enqueue(add.spec(1)), RunHandle[Any])
assert_type(app.schedule("s", add.spec(1), cron="0 3 * * *", zone="Europe/Berlin"), Schedule)
assert_type(app.run("id").refresh(), Run)
assert_type(app.run("id").refresh().progress, Progress | None)
assert_type(app.run("id").status, Status)
assert_type(app.run("id").cancel(), bool)
assert_type(app.run("id").artifacts(), list[Artifact])
assert_type(app.run("id").artifact("a").read(), bytes)
assert_type(app.run("id").retry(), bool)

# What does not fit is refused by the type checker, long before the queue refuses it.
add.enqueue("1")  # type: ignore[arg-type]
add.enqueue()  # type: ignore[call-arg]
fetch.enqueue(1)  # type: ignore[arg-type]
knows.enqueue()  # type: ignore[call-arg]
mail.enqueue(3)  # type: ignore[arg-type]
count.enqueue(things="a", more=1)  # type: ignore[call-arg, arg-type]
add.using(queu="mail")  # type: ignore[call-arg]
add.using(priority="high")  # type: ignore[arg-type]
add.using(retry=5)  # type: ignore[arg-type]
app.task(retry=5)  # type: ignore[call-overload]
Retry(delay_first=[1])  # type: ignore[arg-type]
ship.enqueue({"id": 1})  # type: ignore[arg-type]
app.replay("id", task="add")  # type: ignore[call-overload]
app.replay("id", jobs=2)  # type: ignore[call-overload]


async def later(connection: psycopg.AsyncConnection[Any]) -> None:
    """The async half."""
    handle = await add.using(connection=connection).aenqueue(1)
    assert_type(handle, RunHandle[int])
    assert_type(await handle.aresult(timeout=1.5), int)
    assert_type(await handle.arefresh(), Run)
    assert_type(await app.aenqueue(add.spec(1), connection=connection), RunHandle[Any])
    assert_type(await app.aenqueue_many([add.spec(1)]), list[RunHandle[Any]])


def takes_a_task(task: TaskHandle[[int], str]) -> str:
    """A task can be passed around with its types."""
    return task.enqueue(1).result()


group = TaskGroup(prefix="shop.", queue="mail", retry=Retry(attempts=2))


@group.task(timeout="5s")
async def grouped(a: int) -> str:
    return str(a)


@app.on_enqueue
def labelled(spec: Spec) -> Spec:
    return spec.using(labels={"a": "b"}, priority=3)


@app.on_failure
async def failed(attempt: FailedAttempt) -> None:
    assert_type(attempt.error, BaseException | None)


@app.on_end
def ended(run: EndedRun) -> None:
    assert_type(run.status, Status)


@app.on_hand_start
async def opened() -> None: ...


@app.on_worker_stop
def closed() -> None: ...


def of_groups() -> None:
    app.add(group)
    assert_type(grouped.enqueue(1).result(), str)
    App(include=["shop.mail"])

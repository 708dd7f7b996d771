# SPDX-License-Identifier: MIT
"""Tasks of the test project."""

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection, transaction

from byrote import Command
from byrote.django import current, enqueue_many, enqueue_on_commit, progress, schedule, task
from tests.django.shop.models import Note


@task
def echo(*args: Any, **kwargs: Any) -> Any:
    return [list(args), kwargs]


@task
def add(a: int, b: int) -> int:
    return a + b


@task(queue_name="mail", priority=7)
def note(text: str) -> str:
    Note.objects.create(text=text)
    return text


@task
async def wait(value: Any) -> Any:
    return value


@task
async def anote(text: str) -> int:
    await Note.objects.acreate(text=text)
    return await Note.objects.filter(text=text).acount()


@task(takes_context=True)
def where(context: Any) -> Any:
    result = context.task_result
    return [result.id, context.attempt, result.worker_ids, str(result.status)]


@task(takes_context=True)
async def awhere(context: Any, **kwargs: Any) -> Any:
    return [context.task_result.id, context.attempt, kwargs]


def at_once(_error: BaseException, _result: Any) -> float:
    return 0


def only_values(error: BaseException, result: Any) -> float | None:
    """Retries while the error is a ValueError and the result contains it."""
    told = result.errors[-1].exception_class_path == "builtins.ValueError"
    return 0 if told and isinstance(error, ValueError) else None


@task(max_attempts=3, backoff=at_once)
def fail(message: str) -> None:
    raise ValueError(message)


@task
async def afail() -> None:
    raise ValueError("in a coroutine")


@task(max_attempts=9, backoff=only_values, takes_context=True)
def fail_otherwise(context: Any) -> None:
    if context.attempt < 3:
        raise ValueError("again")
    raise KeyError("enough")


@task(takes_context=True, max_attempts=2, backoff=at_once)
def fail_first(context: Any) -> int:
    if context.attempt == 1:
        raise RuntimeError("the first attempt")
    return int(context.attempt)


@task(timeout="200ms")
def dawdle() -> None:
    time.sleep(30)


@task(timeout="200ms")
async def adawdle() -> None:
    await asyncio.sleep(30)


@task(timeout="50ms")
async def ablock() -> None:
    time.sleep(0.1)  # noqa: ASYNC251 -- it is to be in the way of everything.


@task(timeout="200ms", max_attempts=2, backoff=at_once)
def query_long() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        Note.objects.create(text="rolled back")
        cursor.execute("select pg_sleep(30)")


@task
def tariff() -> str:
    """What changes when the code of a project does."""
    return os.environ.get("SHOP_TARIFF", "old")


@task
def leave() -> None:
    sys.exit(3)


@task
def base_exception() -> None:
    raise BaseException("no Exception at all")  # noqa: TRY002 -- the very point.


@task
def crash() -> None:
    os._exit(7)


@task
def generate() -> Iterator[int]:
    return (n for n in range(3))


@task
def shout(size: int) -> str:
    return "x" * size


@task
def odd_value(kind: str) -> Any:
    """A value that Django's Tasks take and no JSON document can hold."""
    return {"nan": float("nan"), "surrogate": "\ud800"}[kind]


def priority_of(_error: BaseException, result: Any) -> float | None:
    """A back-off that reads the stored result, which has more than the attempt alone."""
    return 0 if result.task.priority == 7 and len(result.errors) == 1 else None


@task(max_attempts=3, backoff=priority_of)
def fail_by_priority() -> None:
    raise ValueError("as often as the back-off allows")


@task
def soil(*statements: str) -> int:
    """Leave something behind in the session of the default database."""
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
    return os.getpid()


@task
async def asoil(*statements: str) -> int:
    return await sync_to_async(soil.func)(*statements)


@task
def soil_directly(statement: str) -> None:
    """As `soil`, past everything that Django could notice."""
    connection.ensure_connection()
    connection.connection.execute(statement)


SESSION = """
select current_setting('statement_timeout'), current_setting('search_path'),
  nullif(current_setting('shop.tenant', true), ''), current_user, current_setting('timezone'),
  to_regclass('pg_temp.scratch') is not null, (select count(*) from pg_listening_channels()),
  (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()),
  (select count(*) from pg_prepared_statements where from_sql)
"""


@task(takes_context=True)
def session(context: Any) -> Any:
    """What the session of the default database is like, and which process this is."""
    with connection.cursor() as cursor:
        cursor.execute(SESSION)
        return [os.getpid(), context.attempt, *cursor.fetchone()]


@task
def server_process() -> int:
    """The process of the server behind this thread's connection."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        return int(cursor.fetchone()[0])


@task(takes_context=True)
async def asession(context: Any) -> Any:
    return await sync_to_async(session.func)(context)


@task(takes_context=True)
def caught(context: Any, n: int) -> int:
    """Its first attempt is in the middle of a statement until the server goes away."""
    if context.attempt == 1:
        Path(os.environ["SHOP_MARKS"], f"{n}.begun").touch()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("select pg_sleep(60)")
    return int(context.attempt)


@task(takes_context=True)
async def acaught(context: Any, n: int) -> int:
    return await sync_to_async(caught.func)(context, n)  # type: ignore[no-any-return]


@task(takes_context=True)
def caught_idle(context: Any, n: int) -> int:
    """As `caught`, between two statements."""
    Note.objects.count()
    if context.attempt == 1:
        Path(os.environ["SHOP_MARKS"], f"{n}.begun").touch()
        while not Path(os.environ["SHOP_MARKS"], "go").exists():
            time.sleep(0.01)
    Note.objects.count()
    return int(context.attempt)


@task(takes_context=True, max_attempts=3)
def durable(context: Any) -> Any:
    """Takes a step, does something once, waits for a signal, and goes on."""
    calls = context.step("calls", lambda: 1)
    with context.once("note") as first:
        if first:
            Note.objects.using(context.task_result.task.get_backend().database).create(text="once")
    context.artifact("a.txt", b"kept")
    said = context.wait_for("go")
    return {**said, "labels": dict(current().labels), "calls": calls}


@task
def tuples() -> Any:
    return (1, (2.5, b"three"), {4: None})


@task
def close_connection() -> int:
    Note.objects.count()
    connection.close()
    return 1


@task
def kill_connection() -> int:
    with connection.cursor() as cursor:
        cursor.execute("select pg_terminate_backend(pg_backend_pid())")
    return 1


@task
def leave_open() -> bool:
    transaction.atomic().__enter__()
    Note.objects.create(text="never committed")
    return connection.in_atomic_block


@task
def is_clean() -> bool:
    """Whether this thread's connection works and is in no transaction."""
    Note.objects.count()
    return not connection.in_atomic_block and len(connection.queries) == 0


@task(executor=Command(env=["SHOP_DATABASE", "SHOP_OTHER_DATABASE", "SHOP_RECEIVERS"]))
def apart(text: str) -> int:
    Note.objects.create(text=text)
    return os.getpid()


@task
def hold(folder: str, name: str) -> str:
    """Signals that it has begun, and ends when the test allows it."""
    Path(folder, f"{name}.begun").touch()
    while not Path(folder, f"{name}.go").exists():
        time.sleep(0.01)
    return name


@task
async def linger(folder: str, name: str) -> str:
    """Uses the ORM, then waits until the test allows it to end."""
    await Note.objects.acreate(text=name)
    return await arrive.func(folder, name)  # type: ignore[no-any-return]


@task
async def arrive(folder: str, name: str) -> str:
    """Signals that it has begun, and ends when the test allows it; no ORM."""
    await asyncio.to_thread(Path(folder, f"{name}.begun").touch)
    while not await asyncio.to_thread(Path(folder, "go").exists):  # noqa: ASYNC110 -- a file.
        await asyncio.sleep(0.02)
    return name


@task(timeout="500ms")
async def hurry(text: str) -> None:
    await Note.objects.acreate(text=text)


@task
async def soil_elsewhere() -> bool:
    """Leave something in a session of the loop's own threads; whether something was there."""
    found = await asyncio.to_thread(_tenant)
    await asyncio.to_thread(soil.func, "select set_config('shop.tenant', 'acme', false)")
    return bool(found)


def _tenant() -> str | None:
    with connection.cursor() as cursor:
        cursor.execute("select nullif(current_setting('shop.tenant', true), '')")
        return cursor.fetchone()[0]  # type: ignore[no-any-return]


@task
async def meet(folder: str, name: str, others: int) -> str:
    """Ends when that many are running at once, each in its own thread."""
    await Note.objects.acreate(text=name)
    await asyncio.to_thread(Path(folder, f"{name}.here").touch)
    while len(await asyncio.to_thread(os.listdir, folder)) < others:  # noqa: ASYNC110 -- files.
        await asyncio.sleep(0.01)
    return name


@task(memo="1h")
def remembered(number: int) -> float:
    return number * time.time()


@task(memo="1h")
async def aremembered(number: int) -> float:
    return number * time.time()


@task
def collide() -> None:
    Note.objects.create(pk=1, text="the same key again")


@task(unique_key=lambda month: f"report:{month}", takes_context=True)
def report(context: Any, month: str, region: str = "eu") -> str:
    return f"{month} in {region}, attempt {context.attempt}"


@task(unique_key="nightly", memo="1h")
def nightly() -> float:
    return time.time()


@task
def tell(times: int) -> int:
    for done in range(1, times + 1):
        progress(done, times, "telling", file="a")
    return times


@task
async def atell(times: int) -> int:
    progress(times / 2, times)
    await sync_to_async(progress)(times, times, "from a thread")
    return times


EVERY = os.environ.get("SHOP_EVERY")
if EVERY is not None:  # Else no test would be alone with its runs.
    schedule("beat", add, args=(1, 2), every=EVERY)
    schedule("beat", add.using(backend="reports"), args=(3,), kwargs={"b": 4}, every=EVERY)
    schedule("told", where, cron="@yearly", jitter=os.environ.get("SHOP_JITTER", "0s"))


@task
def enqueues() -> list[str]:
    """By every door, in transactions and outside."""
    with transaction.atomic():
        one = add.enqueue(1, 1)
        enqueue_on_commit(add, 2, 2)
        transaction.on_commit(lambda: add.enqueue(3, 3))
    many = enqueue_many([(add, [4, 4], {})])
    later = async_to_sync(add.aenqueue)(5, 5)
    return [str(one.id), str(many[0].id), str(later.id)]

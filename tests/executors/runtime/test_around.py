# SPDX-License-Identifier: MIT
"""Context managers around the calls of a task."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from byrote import App, Context
from byrote.core.errors import BadOption
from byrote.executors.runtime.provenance.environment import function_digest


def context() -> Context:
    return Context(run_id="1", task="t", queue="default", attempt=1, labels={})


def test_the_first_hook_is_outermost_and_sees_the_error() -> None:
    app, seen = App("postgresql://"), list[str]()

    @app.task
    def fail() -> None:
        seen.append("task")
        raise ValueError

    @app.around
    @contextmanager
    def outer(ctx: Context) -> Iterator[None]:
        seen.append(f"outer {ctx.attempt}")
        try:
            yield
        except ValueError:
            seen.append("error")
            raise

    @app.around
    @contextmanager
    def inner(_ctx: Context) -> Iterator[None]:
        seen.append("inner")
        yield

    [task] = app.registry
    with pytest.raises(ValueError, match=r"^$"):
        task.function(context())

    assert seen == ["outer 1", "inner", "task", "error"]


def test_async_tasks_accept_async_hooks_and_sync_tasks_refuse_them() -> None:
    app, seen = App("postgresql://"), list[str]()

    @app.around
    @asynccontextmanager
    async def hook(_ctx: Context) -> AsyncIterator[None]:
        seen.append("entered")
        yield
        seen.append("left")

    @app.task
    async def later() -> int:
        return 1

    @app.task
    def now() -> int:
        return 1

    tasks = {task.is_async: task.function for task in app.registry}

    assert asyncio.run(tasks[True](context())) == 1
    assert seen == ["entered", "left"]
    with pytest.raises(BadOption, match="sync task"):
        tasks[False](context())


def test_hooks_do_not_change_the_hash_of_a_task() -> None:
    app = App("postgresql://")

    @app.task
    def work() -> int:
        return 1

    before = [function_digest(task.function) for task in app.registry]

    @app.around
    @contextmanager
    def hook(_ctx: Context) -> Iterator[None]:
        yield

    assert [function_digest(task.function) for task in app.registry] == before

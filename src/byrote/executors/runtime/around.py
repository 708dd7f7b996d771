# SPDX-License-Identifier: MIT
"""Context managers around the attempts of a task; `App.around` and `Handlers` register them."""

from collections.abc import Callable, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
)
from functools import wraps
from typing import Any

import msgspec

from byrote.core.errors import BadOption
from byrote.core.task import Task
from byrote.executors.runtime.context import Context

type Entered = AbstractContextManager[Any] | AbstractAsyncContextManager[Any]
type Around = Callable[[Context], Entered]
"""Returns what is entered before the task is called and left when the call has ended."""


def surrounded(task: Task, around: Sequence[Around]) -> Task:
    """Return the task inside these context managers; the sequence is read at every call."""
    function = task.function

    def sync(ctx: Context, /, *args: Any, **kwargs: Any) -> Any:
        with ExitStack() as stack:
            for hook in around:
                stack.enter_context(_sync(hook(ctx), ctx))
            return function(*((ctx,) if task.takes_context else ()), *args, **kwargs)

    async def later(ctx: Context, /, *args: Any, **kwargs: Any) -> Any:
        async with AsyncExitStack() as stack:
            for hook in around:
                entered = hook(ctx)
                if isinstance(entered, AbstractAsyncContextManager):
                    await stack.enter_async_context(entered)
                else:
                    stack.enter_context(entered)
            return await function(*((ctx,) if task.takes_context else ()), *args, **kwargs)

    made = wraps(function)(later if task.is_async else sync)
    return msgspec.structs.replace(task, function=made, takes_context=True)


def _sync(entered: Entered, ctx: Context) -> AbstractContextManager[Any]:
    if isinstance(entered, AbstractContextManager):
        return entered
    raise BadOption(
        f"{ctx.task} is a sync task, but an `around` hook returned {type(entered).__name__}, which "
        "only async tasks can enter; return a context manager with `__enter__`."
    )

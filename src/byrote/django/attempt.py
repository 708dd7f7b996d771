# SPDX-License-Identifier: MIT
"""One attempt at a Django task: fresh connections, its context, its signals, its value made plain.

A task may close, break or leave open its connections as it likes: Byrote's own belong to the
supervisor, and the next attempt in this thread gets new ones.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Never

import msgspec
from asgiref.sync import SyncToAsync, ThreadSensitiveContext, async_to_sync, sync_to_async
from django.db import close_old_connections, connections, reset_queries

from byrote.core.command import Command, command_of
from byrote.core.duration import duration
from byrote.core.errors import Fatal, RetryLater, Snooze
from byrote.core.memo import memo_keep
from byrote.core.task import Task
from byrote.django import compat
from byrote.django.backend import VERSION, Backend
from byrote.django.herald import Herald
from byrote.django.policy import delivery_of, wait_of
from byrote.django.result import TaskResult
from byrote.django.telling import attempt_under_way
from byrote.django.timeup import TimeUp, cancelled_in_time
from byrote.django.values import plain
from byrote.executors.call import Decided
from byrote.executors.context import Context
from byrote.executors.ledger import Suspended

ENVIRONMENT = ("DJANGO_SETTINGS_MODULE", "PYTHONPATH")
"""What a fresh process needs to find the project."""
OURS = (Snooze, RetryLater, Fatal, Suspended, TimeUp)
"""Exceptions that say what is to follow, mostly the task's own."""


class Attempts:
    """Makes tasks of a backend's definitions that hands can execute.

    With `borrowed`, attempts use the caller's thread and connections, and leave both alone.
    """

    def __init__(self, backend: Backend, *, borrowed: bool = False) -> None:
        self.backend = backend
        self.herald = Herald(backend)
        self._borrowed = borrowed

    def task_of(self, definition: Any, *, threaded: bool = False) -> Task:
        """A definition as hands know it; `threaded` gives an async one a loop of its own."""
        is_async = inspect.iscoroutinefunction(definition.func)
        function = self._async(definition) if is_async else self._sync(definition)
        if is_async and (threaded or self._borrowed):
            function = _threaded(cancelled_in_time(function) if self._borrowed else function)
        keep = getattr(definition, "memo", None)
        return Task(
            name=self.backend.name_of(definition.module_path),
            version=VERSION,
            function=function,
            delivery=delivery_of(definition, self.backend.settings),
            is_async=is_async and not (threaded or self._borrowed),
            takes_context=True,
            signature=inspect.signature(definition.func),
            names=frozenset(),
            required=frozenset(),
            open_ended=True,
            command=_command(definition),
            memo=None if keep is None else memo_keep(keep),
        )

    def _sync(self, definition: Any) -> Callable[..., Any]:
        @wraps(definition.func)
        def attempt(ctx: Context, *args: Any, **kwargs: Any) -> Any:
            if not self._borrowed:
                close_old_connections()
            mark = attempt_under_way.set(ctx)
            try:
                result = self.herald.begin(definition, ctx, args, kwargs)
                if not ctx.replaying:
                    self.herald.started(result)
                try:
                    value = storable(definition.func(*_with_context(result, args), **kwargs))
                except BaseException as error:  # noqa: BLE001 -- sys.exit is an outcome, too.
                    raise_as(error, self.decide(error, result, ctx.labels))
                self.herald.returned(result)
                return value
            finally:
                attempt_under_way.reset(mark)
                if not self._borrowed:
                    tidy()

        return attempt

    def _async(self, definition: Any) -> Callable[..., Any]:
        @wraps(definition.func)
        async def attempt(ctx: Context, *args: Any, **kwargs: Any) -> Any:
            mark = attempt_under_way.set(ctx)
            try:
                result = await self.herald.abegin(definition, ctx, args, kwargs)
                if not ctx.replaying:
                    await self.herald.astarted(result)
                try:
                    value = storable(await definition.func(*_with_context(result, args), **kwargs))
                except Exception as error:  # noqa: BLE001 -- raised again, or as Decided.
                    raise_as(error, self.decide(error, result, ctx.labels))
                self.herald.returned(result)
                return value
            finally:
                attempt_under_way.reset(mark)

        return attempt if self._borrowed else self._apart(attempt)

    def _apart(self, attempt: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(attempt)
        async def apart(*args: Any, **kwargs: Any) -> Any:
            async with ThreadSensitiveContext() as context:
                try:
                    return await attempt(*args, **kwargs)
                finally:
                    if context in SyncToAsync.context_to_thread_executor:
                        # Only then has this attempt a thread, and perhaps connections in it.
                        await sync_to_async(tidy)()

        return apart

    def decide(
        self, error: BaseException, result: TaskResult, labels: Mapping[str, str]
    ) -> BaseException:
        """The exception to end the attempt with: the task's own, or one that knows what follows."""
        if isinstance(error, OURS):
            return error
        self.herald.raised(result, error)
        return next_of(error, result, wait_of(result.task, self.backend.settings, labels))


def _threaded(function: Callable[..., Any]) -> Callable[..., Any]:
    """An async function as a sync one, on a loop of its own."""

    @wraps(function)
    def threaded(*args: Any, **kwargs: Any) -> Any:
        return async_to_sync(function)(*args, **kwargs)

    return threaded


def next_of(error: BaseException, result: TaskResult, wait: Any) -> BaseException:
    """What follows from an error by a back-off function: a delay, the end, or the usual."""
    if wait is None:
        return error
    try:
        after = wait(error, result)
        delay = None if after is None else duration(after)
    except Exception as broken:  # noqa: BLE001 -- a back-off that fails is the task's failure.
        broken.__cause__ = error
        return Decided(broken, None, final=True)
    return Decided(error, delay, final=delay is None)


def storable(value: Any) -> Any:
    """A task's value as it will be read; TypeError or ValueError says what it should return."""
    try:
        return plain(value)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"The task returned a value that cannot be stored. {error}") from None


def raise_as(error: BaseException, decided: BaseException) -> Never:
    """End the attempt; the task's own error keeps its causes and its traceback."""
    if decided is error:
        raise error
    raise decided


def _with_context(result: TaskResult, args: tuple[Any, ...]) -> tuple[Any, ...]:
    return (compat.TaskContext(task_result=result), *args) if result.task.takes_context else args


def tidy() -> None:
    """Leave this thread's connections as the next attempt may want them: usable, or closed."""
    reset_queries()
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block:
            # Left open by the task. A new wrapper is the only way out that keeps no state.
            raw = connection.connection
            if raw is not None:
                raw.close()
            del connections[connection.alias]
    close_old_connections()


def _command(definition: Any) -> Command | None:
    command = command_of(getattr(definition, "executor", None))
    if command is None or command.argv:
        return command
    return msgspec.structs.replace(command, env=(*command.env, *ENVIRONMENT))

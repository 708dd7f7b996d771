# SPDX-License-Identifier: MIT
"""One attempt at a Django task: fresh connections, context, signals, and a JSON result.

A task may close, break or leave open its connections: Byrote's own connections belong to the
supervisor, and the next attempt in this thread gets clean ones.
"""

import inspect
import logging
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import Any, Never

import msgspec
from asgiref.sync import async_to_sync, sync_to_async
from django.db import close_old_connections

from byrote.assembly.clock import monotonic
from byrote.core.command import Command, command_of
from byrote.core.duration import duration
from byrote.core.errors import Fatal, RetryLater, Snooze
from byrote.core.json.seed import check_seed
from byrote.core.memo import memo_keep
from byrote.core.task import Task, check_files
from byrote.django.backend.backend import VERSION, Backend
from byrote.django.backend.policy import delivery_of, wait_of
from byrote.django.backend.progress import attempt_under_way
from byrote.django.backend.result import TaskResult
from byrote.django.backend.values import plain
from byrote.django.worker.async_threads import AsyncThreads, share_of
from byrote.django.worker.context import AttemptContext, TaskContext
from byrote.django.worker.outages import Outage, delay_of, may_be_outage, outage_of
from byrote.django.worker.sessions import tidy
from byrote.django.worker.signals import TaskSignals
from byrote.executors.runtime.call import Decided, Disruption
from byrote.executors.runtime.context import Context
from byrote.executors.runtime.steps.ledger import Suspended
from byrote.testing.timeouts import TimeUp, cancelled_in_time

ENVIRONMENT = ("DJANGO_SETTINGS_MODULE", "PYTHONPATH")
"""Environment variables that a fresh process needs to find the project."""
OURS = (Snooze, RetryLater, Fatal, Suspended, TimeUp)
"""Exceptions that already decide what follows the attempt."""

_log = logging.getLogger("byrote.django")


class Attempts:
    """Converts a backend's task definitions to tasks that hands can execute.

    With `borrowed`, attempts use the caller's thread and connections, and close or reset neither.
    """

    def __init__(self, backend: Backend, *, borrowed: bool = False) -> None:
        self.backend = backend
        self.signals = TaskSignals(backend, borrowed=borrowed)
        self._borrowed = borrowed
        self._threads = AsyncThreads(lambda: share_of(backend.settings.async_connections))

    def task_of(self, definition: Any, *, threaded: bool = False) -> Task:
        """Return the task for hands; with `threaded`, an async one runs its own event loop."""
        is_async = inspect.iscoroutinefunction(definition.func)
        function = self._async(definition) if is_async else self._sync(definition)
        if is_async and (threaded or self._borrowed):
            timed = cancelled_in_time(function) if self._borrowed else function
            function = _threaded(timed, tidies=not self._borrowed)
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
            seed=check_seed(getattr(definition, "seed", "run")),
            files=check_files(getattr(definition, "files", ())),
        )

    def _sync(self, definition: Any) -> Callable[..., Any]:
        @wraps(definition.func)
        def attempt(ctx: Context, *args: Any, **kwargs: Any) -> Any:
            begun = monotonic()
            if not self._borrowed:
                close_old_connections()
            mark = attempt_under_way.set(ctx)
            try:
                result = self.signals.begin(definition, ctx, args, kwargs)
                if not ctx.replaying:
                    self.signals.started(result)
                try:
                    value = storable(definition.func(*self._with(ctx, result, args), **kwargs))
                except BaseException as error:  # noqa: BLE001 -- sys.exit is an outcome, too.
                    outage = None if self._borrowed else outage_of(error, begun)
                    raise_as(error, self.decide(error, result, ctx, outage))
                self.signals.returned(result)
                return value
            finally:
                attempt_under_way.reset(mark)
                if not self._borrowed:
                    tidy()

        return attempt

    def _async(self, definition: Any) -> Callable[..., Any]:
        @wraps(definition.func)
        async def attempt(ctx: Context, *args: Any, **kwargs: Any) -> Any:
            begun = monotonic()
            mark = attempt_under_way.set(ctx)
            try:
                result = await self.signals.abegin(definition, ctx, args, kwargs)
                async with nullcontext() if self._borrowed else self._threads.seat():
                    try:
                        called = definition.func(*self._with(ctx, result, args), **kwargs)
                        value = storable(await called)
                    except Exception as error:  # noqa: BLE001 -- raised again, or as Decided.
                        outage = await self._aoutage_of(error, begun)
                        raise_as(error, self.decide(error, result, ctx, outage))
                self.signals.returned(result)
                return value
            finally:
                attempt_under_way.reset(mark)

        return attempt

    def _with(self, ctx: Context, result: TaskResult, args: tuple[Any, ...]) -> tuple[Any, ...]:
        if not result.task.takes_context:
            return args
        return TaskContext(result, AttemptContext(ctx, self.backend.database)), *args

    async def _aoutage_of(self, error: Exception, begun: float) -> Outage | None:
        if self._borrowed or not may_be_outage(error):
            return None
        return await sync_to_async(outage_of)(error, begun)

    def decide(
        self, error: BaseException, result: TaskResult, ctx: Context, outage: Outage | None = None
    ) -> BaseException:
        """Return the exception that ends the attempt: the task's, or one that decides."""
        if isinstance(error, OURS):
            return error
        if outage is not None:
            return _uncharged(error, ctx, outage)
        self.signals.raised(result, error)
        return next_of(error, result, wait_of(result.task, self.backend.settings, ctx.labels))


def _uncharged(error: BaseException, ctx: Context, outage: Outage) -> BaseException:
    """Return the exception that ends an attempt without charge because of a database outage."""
    values = (ctx.run_id, ctx.task, str(error).strip())
    if outage == "cut":
        _log.warning("Run %s of %s is returned, uncharged: its session was cut off: %s", *values)
        return Disruption(error)
    delay = delay_of(ctx.attempt)
    _log.warning("Run %s of %s waits, uncharged: no database session available: %s", *values)
    return Snooze(delay)


def _threaded(function: Callable[..., Any], *, tidies: bool) -> Callable[..., Any]:
    """Wrap an async function as a sync one with its own event loop; ORM calls use this thread."""

    @wraps(function)
    def threaded(*args: Any, **kwargs: Any) -> Any:
        try:
            return async_to_sync(function)(*args, **kwargs)
        finally:
            if tidies:
                tidy()

    return threaded


def next_of(error: BaseException, result: TaskResult, wait: Any) -> BaseException:
    """Apply a back-off function to an error: a delay, the end, or the error without one."""
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
    """Return a task's value as JSON will store it; raises TypeError or ValueError with advice."""
    try:
        return plain(value)
    except (TypeError, ValueError) as error:
        error_type = TypeError if isinstance(error, TypeError) else ValueError
        raise error_type(f"The task returned a value that cannot be stored. {error}") from None


def raise_as(error: BaseException, decided: BaseException) -> Never:
    """Raise `decided`; the task's own error keeps its causes and its traceback."""
    if decided is error:
        raise error
    raise decided


def _command(definition: Any) -> Command | None:
    command = command_of(getattr(definition, "executor", None))
    if command is None or command.argv:
        return command
    return msgspec.structs.replace(command, env=(*command.env, *ENVIRONMENT))

# SPDX-License-Identifier: MIT
"""The attempt that a Django task is in: Django's context with Byrote's verbs, and a way to it.

The words are those of a plain task's `ctx`: `step`, `sleep`, `wait_for`, `artifact`, `once`,
`progress`, and what an attempt knows of itself.
"""

from contextlib import AbstractContextManager
from typing import Any

from django.db import connections, transaction

from byrote.core.errors import BadOption
from byrote.django import compat
from byrote.django.backend.database import raw_connection
from byrote.django.backend.progress import attempt_under_way
from byrote.executors.runtime.context import Context


class AttemptContext:
    """What a task may ask of the attempt it is in; see `byrote.Context` for each word."""

    __slots__ = ("_ctx", "_database")

    def __init__(self, ctx: Context, database: str) -> None:
        self._ctx = ctx
        self._database = database

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._ctx, name)

    def once(self, key: str) -> AbstractContextManager[bool]:
        """Do something in the queue's database once, however often the run is attempted.

        `with context.once("charge") as first:` is a transaction (`atomic`) of Django's connection;
        `first` is False when it was committed before.
        """
        return self._ctx.once(key, _Connection(self._database))


class TaskContext(compat.TaskContext):
    """Django's context of a task, with the verbs of `Attempt` beside its own."""

    __slots__ = ("_attempt",)

    def __init__(self, task_result: Any, attempt: AttemptContext) -> None:
        super().__init__(task_result=task_result)
        object.__setattr__(self, "_attempt", attempt)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._attempt, name)


class _Connection:
    """Django's connection in the form in which marks of `once` are written."""

    def __init__(self, database: str) -> None:
        self._database = database

    def transaction(self) -> Any:
        return transaction.atomic(using=self._database)

    def execute(self, text: bytes, args: Any) -> Any:
        with raw_connection(connections[self._database]) as raw:
            return raw.execute(text, args)


def current() -> AttemptContext:
    """The attempt whose code is running, also for functions that a task calls.

    Raises BadOption where no worker executes a task: in a view, a shell, or Django's Immediate.
    """
    ctx = attempt_under_way.get()
    if ctx is None:
        raise BadOption(
            "No task is being executed here. Call it in a task that `manage.py byrote worker` "
            "executes, or in a function that such a task calls."
        )
    return AttemptContext(ctx, _database_of(ctx))


def _database_of(ctx: Context) -> str:
    from byrote.django.backend.backend import Backend  # noqa: PLC0415 -- it needs tasks, which need this.

    alias = ctx.task.rpartition(":")[0] or compat.DEFAULT_TASK_BACKEND_ALIAS
    backend = compat.task_backends[alias]
    if not isinstance(backend, Backend):
        raise BadOption(f"TASKS[{alias!r}] is not a backend of Byrote.")
    return backend.database

# SPDX-License-Identifier: MIT
"""The context of a Django task's attempt: Django's TaskContext with Byrote's methods.

They are those of a plain task's `ctx`: `step`, `sleep`, `wait_for`, `artifact`, `once`,
`progress`, and the attributes of the attempt.
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
    """The methods of the current attempt; `byrote.Context` documents them."""

    __slots__ = ("_ctx", "_database")

    def __init__(self, ctx: Context, database: str) -> None:
        self._ctx = ctx
        self._database = database

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._ctx, name)

    def once(self, key: str) -> AbstractContextManager[bool]:
        """Make a change in the queue's database once, even if the run is attempted repeatedly.

        `with context.once("charge") as first:` is a transaction (`atomic`) of Django's connection;
        `first` is False if an earlier attempt committed it.
        """
        return self._ctx.once(key, _Connection(self._database))


class TaskContext(compat.TaskContext):
    """Django's TaskContext with the methods of `AttemptContext`."""

    __slots__ = ("_attempt",)

    def __init__(self, task_result: Any, attempt: AttemptContext) -> None:
        super().__init__(task_result=task_result)
        object.__setattr__(self, "_attempt", attempt)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._attempt, name)


class _Connection:
    """Django's connection with the interface that `once` needs."""

    def __init__(self, database: str) -> None:
        self._database = database

    def transaction(self) -> Any:
        return transaction.atomic(using=self._database)

    def execute(self, text: bytes, args: Any) -> Any:
        with raw_connection(connections[self._database]) as raw:
            return raw.execute(text, args)


def current() -> AttemptContext:
    """Return the context of the current attempt, also in functions that a task calls.

    Raises BadOption outside of a worker's task: in a view, a shell, or Django's Immediate.
    """
    ctx = attempt_under_way.get()
    if ctx is None:
        raise BadOption(
            "No task is being executed here. Call this in a task that `manage.py byrote worker` "
            "executes, or in a function that such a task calls."
        )
    return AttemptContext(ctx, _database_of(ctx))


def _database_of(ctx: Context) -> str:
    from byrote.django.backend.backend import Backend  # noqa: PLC0415 -- it needs tasks, which need this.

    alias = ctx.task.rpartition(":")[0] or compat.DEFAULT_TASK_BACKEND_ALIAS
    backend = compat.task_backends[alias]
    if not isinstance(backend, Backend):
        raise BadOption(f"TASKS[{alias!r}] is not a Byrote backend.")
    return backend.database

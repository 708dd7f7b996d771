# SPDX-License-Identifier: MIT
"""Django's Task with Byrote's options, and a decorator that is the same on every Django."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any

from byrote.core.command import Command
from byrote.core.json.seed import SeedFrom
from byrote.core.unique import UniqueKey
from byrote.django import compat
from byrote.django.backend.policy import BackoffOption


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(compat.Task):
    """A Django task with options for retries, timeout, executor, memo and unique keys."""

    max_attempts: int | None = None
    """Maximum number of attempts, including the first; absent: MAX_ATTEMPTS of the backend."""
    backoff: BackoffOption | None = None
    """Delay between attempts; absent: BACKOFF of the backend."""
    timeout: timedelta | str | float | None = None
    """Time limit of one attempt; absent: TIMEOUT of the backend."""
    executor: str | Command | None = None
    """Where the task runs: 'hand', 'command' (a fresh process), 'container' or a Command."""
    memo: timedelta | str | float | None = None
    """How long a result is reused for calls with the same arguments; absent: never."""
    seed: SeedFrom = "run"
    """Seed of `random`: 'run', or 'spec' for equal numbers with equal arguments."""
    files: Sequence[str] = field(default=(), hash=False)
    """Data files it reads, relative to the folder of its module; their hashes are recorded."""
    unique_key: UniqueKey | None = None
    """At most one unfinished run has this key; a string or a function that returns one."""

    labels: Mapping[str, str] | None = field(default=None, hash=False)
    """Labels to find the run by, such as `{"tenant": "acme"}`."""

    def using(
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: datetime | None = None,
        backend: str | None = None,
        max_attempts: int | None = None,
        backoff: BackoffOption | None = None,
        timeout: timedelta | str | float | None = None,
        unique_key: UniqueKey | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> "Task":
        """Return a copy of the task with other options; those that are None do not change."""
        options: dict[str, Any] = {
            "priority": priority,
            "queue_name": queue_name,
            "run_after": run_after,
            "backend": backend,
            "max_attempts": max_attempts,
            "backoff": backoff,
            "timeout": timeout,
            "unique_key": unique_key,
            "labels": labels,
        }
        changes = {name: value for name, value in options.items() if value is not None}
        return replace(self, **changes)


def task(
    function: Callable[..., Any] | None = None,
    *,
    priority: int = 0,
    queue_name: str = "default",
    backend: str = compat.DEFAULT_TASK_BACKEND_ALIAS,
    takes_context: bool = False,
    **policy: Any,
) -> Any:
    """Make a function a task, as `django.tasks.task` does; accepts Byrote's options."""
    if "run_after" in policy:
        raise TypeError("@task does not accept run_after; use .using(run_after=…) per call.")

    def make(decorated: Callable[..., Any]) -> Any:
        made = compat.task_backends[backend].task_class
        if policy and not issubclass(made, Task):
            raise TypeError(_foreign(backend, sorted(policy)))
        return made(
            func=decorated,
            priority=priority,
            queue_name=queue_name,
            backend=backend,
            takes_context=takes_context,
            run_after=None,
            **policy,
        )

    return make if function is None else make(function)


def _foreign(alias: str, options: list[str]) -> str:
    cls = type(compat.task_backends[alias])
    return (
        f"The backend {cls.__module__}.{cls.__qualname__} of TASKS[{alias!r}] does not support "
        f"{', '.join(options)}. Use byrote.django.Backend, or for development and tests "
        "byrote.django.Immediate or byrote.django.Dummy."
    )


def restored(definition: Any, **changes: Any) -> Any:
    """Return a copy of a task as it was enqueued, even if current settings would reject it."""
    made = object.__new__(type(definition))
    for part in fields(definition):
        value = changes.get(part.name, getattr(definition, part.name))
        object.__setattr__(made, part.name, value)
    return made


def own_task(function: Callable[..., Any]) -> Any:
    """Make a function that takes a context one of Byrote's own tasks.

    It is not validated: the project may have neither the alias nor the queue that Django requires,
    and the code that enqueues it chooses both.
    """
    made = object.__new__(Task)
    options = {
        "func": function,
        "priority": 0,
        "backend": compat.DEFAULT_TASK_BACKEND_ALIAS,
        "queue_name": "default",
        "takes_context": True,
        "seed": "run",
        "files": (),
    }
    for part in fields(Task):
        object.__setattr__(made, part.name, options.get(part.name))
    return made

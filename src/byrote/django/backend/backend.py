# SPDX-License-Identifier: MIT
"""The backend of Django's Tasks: one INSERT on Django's own connection, results from Byrote's view.

Django creates one backend per thread, also while apps are still loading: this module imports no
models, and the backend connects to nothing before the first enqueue.

A run of alias `default` is named by the path of its function; a run of any other alias, by alias
and path. So results and workers of different aliases stay separate, even in one database.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any
from uuid import UUID

from django.db import router
from django.utils.module_loading import import_string
from msgspec.structs import replace

from byrote.assembly.identity import new_id
from byrote.core.command import command_of
from byrote.core.errors import BadOption, BadPayload, PayloadTooLarge
from byrote.core.json.codec import unpack
from byrote.core.json.seed import check_seed
from byrote.core.memo import memo_keep
from byrote.core.ports.script import run_script
from byrote.core.replay.withholding import withholding
from byrote.core.run import Run
from byrote.core.spec import Spec, check_name, describe
from byrote.django import compat
from byrote.django.backend.database import fetch, fetch_often
from byrote.django.backend.policy import (
    BackendOptions,
    delivery_of,
    key_of,
    labels_of,
    moment_of,
    read_attempts,
    read_backoff,
    read_options,
)
from byrote.django.backend.result import TaskResult, new_result, result_of
from byrote.django.backend.task import Task
from byrote.django.backend.values import plain
from byrote.django.backport import both, send
from byrote.store import queries
from byrote.store.queries.enqueue import until_accepted

VERSION = 1
KNOWN: set[str] = set()
"""Paths of the functions that are tasks in this process."""

_PLAIN = BackendOptions()


class Backend(compat.BaseTaskBackend):
    """Stores runs of Django's tasks in PostgreSQL; `manage.py byrote worker` executes them."""

    task_class = Task
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    @cached_property
    def settings(self) -> BackendOptions:
        """The parsed OPTIONS; raises InvalidTaskBackend if they are invalid."""
        try:
            return read_options(self.options)
        except BadOption as error:
            message = f"TASKS[{self.alias!r}]: OPTIONS: {error}"
            raise both(compat.InvalidTaskBackend)(message) from None

    @property
    def database(self) -> str:
        """The alias of the runs' database."""
        if self.settings.database is not None:
            return self.settings.database
        from byrote.django.models import TaskRun  # noqa: PLC0415 -- apps may still be loading.

        return str(router.db_for_write(TaskRun))

    def validate_task(self, task: Any) -> None:
        """Raise InvalidTask for a task that no worker could execute as specified."""
        try:
            _check_kinds(task)
            super().validate_task(task)
            _check_policy(task)
            check_name("task", self.name_of(task.module_path))
        except (ValueError, TypeError, compat.InvalidTask) as error:
            raise both(compat.InvalidTask)(str(error)) from error
        KNOWN.add(task.module_path)

    def check(self, **_more: Any) -> list[Any]:
        """Return the errors of the settings; does not connect to a database."""
        from byrote.django.schema.checks import faults_of  # noqa: PLC0415 -- only commands check.

        return list(faults_of(self))

    # -- Names -----------------------------------------------------------------------------------

    def name_of(self, path: str) -> str:
        """The name of runs of the function at this path."""
        if self.alias == compat.DEFAULT_TASK_BACKEND_ALIAS:
            return path
        return f"{self.alias}:{path}"

    def path_of(self, name: str) -> str | None:
        """The path of the function that a run's name contains; None for runs of other aliases."""
        alias, named, path = name.rpartition(":")
        if not named:
            alias = compat.DEFAULT_TASK_BACKEND_ALIAS
        return path if alias == self.alias else None

    # -- Enqueue ---------------------------------------------------------------------------------

    def enqueue(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TaskResult:
        """Enqueue one task: a single INSERT, in the caller's transaction if there is one."""
        # The task's own options were checked at definition; queues and time zones may have changed.
        self._check_again(task)
        spec = self.describe(task, args, kwargs)
        if (held := withholding()) is not None:
            [run_id] = held.enqueue(task.module_path)
            return new_result(task, self.alias, run_id, unpack(spec.text))
        result = new_result(task, self.alias, new_id(), unpack(spec.text))
        query = queries.accept([(result.id, spec)], self.codes_of([task]))
        enqueued = run_script(until_accepted(query), partial(fetch_often, self.database))
        return self.accepted(result, enqueued.instead.get(result.id), enqueued.at)

    def _check_again(self, task: Any) -> None:
        try:
            super().validate_task(task)
        except compat.InvalidTask as error:
            raise both(compat.InvalidTask)(str(error)) from error

    def accepted(self, new: TaskResult, holder: str | None, moment: Any) -> TaskResult:
        """Announce a new run and return its result, or return that of the holder of its key."""
        if holder is not None:
            return self.get_result(holder)
        if getattr(new.task, "memo", None) is not None:
            new.refresh()  # A stored result may have answered it.
        self.announce(new, moment)
        return new

    def codes_of(self, tasks: Iterable[Any]) -> dict[tuple[str, int], str]:
        """Code hashes of the tasks that have a memo, by name and version."""
        paths = {task.module_path for task in tasks if getattr(task, "memo", None) is not None}
        if not paths:
            return {}
        from byrote.django.worker.memo import code_for  # noqa: PLC0415 -- few projects need it.

        codes = {self.name_of(path): code_for(self.alias, path) for path in paths}
        return {(name, VERSION): code for name, code in codes.items() if code is not None}

    def describe(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Spec:
        """Return the spec of a call; raises TypeError or ValueError before anything is sent."""
        name = self.name_of(task.module_path)
        try:
            how = delivery_of(task, self.settings, labels_of(task))
            key = key_of(task)
            if key is not None:
                how = replace(how, unique_key=key(tuple(args), dict(kwargs)))
        except (ValueError, TypeError) as error:
            raise both(compat.InvalidTask)(str(error)) from error
        try:
            return describe(name, VERSION, list(args), dict(kwargs), delivery=how)
        except PayloadTooLarge:
            raise
        except BadPayload:
            # Convert and try again: Django accepts tuples, bytes, enums and keys that are numbers.
            return describe(name, VERSION, plain(args), plain(kwargs), delivery=how)

    def announce(self, result: TaskResult, moment: Any) -> None:
        """Send `task_enqueued`; a receiver that raises does not undo the enqueue."""
        object.__setattr__(result, "enqueued_at", moment)
        send(compat.task_enqueued, type(self), result)

    # -- Results ---------------------------------------------------------------------------------

    def get_result(self, result_id: str) -> TaskResult:
        """Return a result of this alias; raises TaskResultDoesNotExist for all others."""
        run = self.stored(result_id)
        path = None if run is None else self.path_of(run.task)
        if run is None or path is None:
            raise both(compat.TaskResultDoesNotExist)(result_id)
        try:
            definition = definition_at(path)
        except ImportError as error:
            raise both(compat.TaskResultDoesNotExist)(
                f"{result_id} is a result of {path}, which cannot be imported: {error}"
            ) from error
        return result_of(run, definition, self.alias)

    def stored(self, result_id: str) -> Run | None:
        """Return the run with this id, of any alias; None if there is none."""
        try:
            run_id = str(UUID(result_id))
        except (ValueError, AttributeError, TypeError):
            return None
        found = fetch(self.database, queries.run(run_id))
        return found[0] if found else None


def _check_kinds(task: Any) -> None:
    # Before Django's own checks, which accept True as a priority and fail oddly on other types.
    if isinstance(task.priority, bool) or not isinstance(task.priority, int | float):
        raise TypeError(f"priority is a whole number from -100 to 100, not {task.priority!r}.")
    if not isinstance(task.queue_name, str):
        raise TypeError(f"queue_name is a text, not {task.queue_name!r}.")
    moment_of(task.run_after)


def _check_policy(task: Any) -> None:
    if "." in task.func.__qualname__ or not task.func.__name__.isidentifier():
        raise ValueError(
            f"A worker cannot import {task.module_path}; define the task as a function of a module."
        )
    for name, read in (("backoff", read_backoff), ("max_attempts", read_attempts)):
        if getattr(task, name, None) is not None:
            read(getattr(task, name))
    check_seed(getattr(task, "seed", "run"))
    command = command_of(getattr(task, "executor", None))
    if getattr(task, "memo", None) is not None:
        memo_keep(task.memo)
        if command is not None:
            raise ValueError("A task that is a command cannot have a memo; its program may change.")
    delivery_of(task, _PLAIN)
    key_of(task)


def definition_at(path: str) -> Any:
    """Return the task defined at this path; raises ImportError if there is none."""
    found = import_string(path)
    if isinstance(found, compat.Task):
        return found
    raise ImportError(f"{path} is not a task but a {type(found).__name__}")

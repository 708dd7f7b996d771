# SPDX-License-Identifier: MIT
"""Periodic tasks of a Django project, defined beside its tasks.

A worker stores those of its alias in the database when it starts; any worker enqueues their runs.
As with runs, a schedule of alias `default` has its plain name, and one of any other alias is
prefixed with the alias, so that aliases in one database stay separate.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from django.conf import settings

from byrote.core.errors import BadOption
from byrote.core.schedule.schedule import Schedule, Timing, make_schedule
from byrote.core.spec import Delivery, Spec, check_name, describe
from byrote.django import compat
from byrote.django.backend.backend import VERSION, Backend
from byrote.django.backend.values import plain

DEFINED: dict[tuple[str, str], Schedule] = {}
"""Schedules defined in this process, by alias and name."""


def schedule(
    name: str,
    task: Any,
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    **timing: Unpack[Timing],
) -> None:
    """Run a task periodically; call this where an app defines its tasks.

    Give `cron` (five fields, in the time `zone`; absent: TIME_ZONE), `every` with an interval, or
    `at` for one moment. No run starts while an earlier one is unfinished, unless `overlap` is True.
    Of ticks missed while no worker was running, `catch_up` runs "one", "all" or "none"; `jitter`
    delays each run by a random time up to this duration. Other backends only check the arguments.
    """
    if not isinstance(task, compat.Task):
        raise TypeError(f"schedule() takes a task; make {task!r} one with @task.")
    check_name("schedule", name)
    timing["zone"] = timing.get("zone") or settings.TIME_ZONE
    backend = task.get_backend()
    full_name = backend.name_of(name) if isinstance(backend, Backend) else name
    made = make_schedule(full_name, _spec(backend, task, args, kwargs or {}), **timing)
    if DEFINED.setdefault((backend.alias, name), made) != made:
        raise BadOption(f"The schedule {name!r} is defined twice; rename one of them.")


def schedules_of(alias: str) -> list[Schedule]:
    """The schedules that a project defines for one alias."""
    return [made for (of, _), made in DEFINED.items() if of == alias]


def _spec(backend: Any, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Spec:
    if isinstance(backend, Backend):
        return backend.describe(task, args, kwargs)
    how = Delivery(queue=task.queue_name, priority=int(task.priority))
    return describe(task.module_path, VERSION, plain(args), plain(kwargs), delivery=how)

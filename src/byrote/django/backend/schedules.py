# SPDX-License-Identifier: MIT
"""Periodic tasks of a Django project, defined beside its tasks.

A worker keeps those of its alias in the database when it starts; any worker lets them tick. Like a
run, a schedule of alias `default` has its plain name, and one of any other alias has the alias
before it: two aliases in one database keep apart.
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
"""What this process has defined, by alias and name."""


def schedule(
    name: str,
    task: Any,
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    **timing: Unpack[Timing],
) -> None:
    """Have a task run periodically; call it where an app defines its tasks.

    By `cron` (five fields, in the time `zone`; absent: TIME_ZONE), `every` so long, or once `at` a
    moment. No run begins while an earlier one is unfinished, unless they may `overlap`. Of ticks
    that were missed while no worker was there, `catch_up` runs "one", "all" or "none"; `jitter`
    spreads them over so long. Backends that are not Byrote's only check it.
    """
    if not isinstance(task, compat.Task):
        raise TypeError(f"schedule() takes a task; make {task!r} one with @task.")
    check_name("schedule", name)
    timing["zone"] = timing.get("zone") or settings.TIME_ZONE
    backend = task.get_backend()
    called = backend.name_of(name) if isinstance(backend, Backend) else name
    made = make_schedule(called, _spec(backend, task, args, kwargs or {}), **timing)
    if DEFINED.setdefault((backend.alias, name), made) != made:
        raise BadOption(f"The schedule {name!r} is defined twice; give one another name.")


def schedules_of(alias: str) -> list[Schedule]:
    """What a project would have run periodically by the backend of one alias."""
    return [made for (of, _), made in DEFINED.items() if of == alias]


def _spec(backend: Any, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Spec:
    if isinstance(backend, Backend):
        return backend.describe(task, args, kwargs)
    how = Delivery(queue=task.queue_name, priority=int(task.priority))
    return describe(task.module_path, VERSION, plain(args), plain(kwargs), delivery=how)

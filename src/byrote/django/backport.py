# SPDX-License-Identifier: MIT
"""The backport `django_tasks` beside `django.tasks`, for libraries that still use its names.

On Django 6 a library may catch `django_tasks.exceptions` and connect to `django_tasks.signals`
while its tasks run with Byrote. If any code has imported the backport, errors are instances of
both classes, and signals are sent to the receivers of both.
"""

import sys
from functools import cache
from typing import Any

from django.dispatch import Signal

from byrote.django import compat

RENAMED = {"InvalidTask": "InvalidTaskError", "InvalidTaskBackend": "InvalidTaskBackendError"}
NAMES = {id(getattr(compat, n)): n for n in ("task_enqueued", "task_started", "task_finished")}
LOGS = ("log_task_enqueued", "log_task_started", "log_task_finished")


def both[E: Exception](cls: type[E]) -> type[E]:
    """Return Django's exception class; if the backport is in use, a subclass of both."""
    theirs = sys.modules.get("django_tasks.exceptions")
    return cls if theirs is None else _both(cls, theirs)  # type: ignore[arg-type]


@cache
def _both[E: Exception](cls: type[E], module: Any) -> type[E]:
    theirs = getattr(module, RENAMED.get(cls.__name__, cls.__name__))
    if issubclass(cls, theirs):
        return cls  # Django 5.2: the backport is the only one.
    return type(cls.__name__, (cls, theirs), {"__module__": cls.__module__})


def twin_of(signal: Signal) -> Signal | None:
    """The backport's signal of the same name, if it has receivers besides its own loggers."""
    module: Any = sys.modules.get("django_tasks.signals")
    found: Signal | None = getattr(module, NAMES[id(signal)], None)
    if found is None or found is signal:
        return None
    own = {id(getattr(module, name, None)) for name in LOGS}
    return found if any(entry[0][0] not in own for entry in found.receivers) else None


def send(signal: Signal, sender: Any, task_result: Any) -> None:
    """Send a signal, also to receivers of the backport; their exceptions are logged."""
    signal.send_robust(sender, task_result=task_result)
    twin = twin_of(signal)
    if twin is not None:
        twin.send_robust(sender, task_result=task_result)

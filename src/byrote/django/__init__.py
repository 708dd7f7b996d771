# SPDX-License-Identifier: MIT
"""Byrote as the backend of Django's Tasks: `byrote.django.Backend`."""

from typing import TYPE_CHECKING

from byrote.exports import lazy_exports

if TYPE_CHECKING:
    from byrote.django.backend.backend import Backend as Backend
    from byrote.django.backend.bulk import (
        enqueue_many as enqueue_many,
        enqueue_on_commit as enqueue_on_commit,
    )
    from byrote.django.backend.control import (
        acancel as acancel,
        asignal as asignal,
        cancel as cancel,
        signal as signal,
    )
    from byrote.django.backend.local import Dummy as Dummy, Immediate as Immediate
    from byrote.django.backend.progress import progress as progress
    from byrote.django.backend.result import TaskResult as TaskResult
    from byrote.django.backend.schedules import schedule as schedule
    from byrote.django.backend.task import Task as Task, task as task
    from byrote.django.schema.router import Router as Router
    from byrote.django.worker.context import TaskContext as TaskContext, current as current
else:
    # Fetched when first used: Django imports this package for its app configuration, long before
    # the first enqueue.
    __all__, __getattr__ = lazy_exports(
        __name__,
        {
            "byrote.django.backend.backend": "Backend",
            "byrote.django.backend.bulk": "enqueue_many enqueue_on_commit",
            "byrote.django.backend.control": "acancel asignal cancel signal",
            "byrote.django.backend.local": "Dummy Immediate",
            "byrote.django.backend.progress": "progress",
            "byrote.django.backend.result": "TaskResult",
            "byrote.django.backend.schedules": "schedule",
            "byrote.django.backend.task": "Task task",
            "byrote.django.schema.router": "Router",
            "byrote.django.worker.context": "TaskContext current",
        },
    )

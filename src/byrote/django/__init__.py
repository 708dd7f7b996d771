# SPDX-License-Identifier: MIT
"""Byrote as the backend of Django's Tasks: `byrote.django.Backend`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from byrote.django.backend.backend import Backend
    from byrote.django.backend.bulk import enqueue_many, enqueue_on_commit
    from byrote.django.backend.control import acancel, asignal, cancel, signal
    from byrote.django.backend.local import Dummy, Immediate
    from byrote.django.backend.progress import progress
    from byrote.django.backend.result import TaskResult
    from byrote.django.backend.schedules import schedule
    from byrote.django.backend.task import Task, task
    from byrote.django.schema.router import Router
    from byrote.django.worker.context import TaskContext, current

__all__ = [
    "Backend",
    "Dummy",
    "Immediate",
    "Router",
    "Task",
    "TaskContext",
    "TaskResult",
    "acancel",
    "asignal",
    "cancel",
    "current",
    "enqueue_many",
    "enqueue_on_commit",
    "progress",
    "schedule",
    "signal",
    "task",
]

_HOME = {
    "Backend": "backend.backend",
    "Dummy": "backend.local",
    "Immediate": "backend.local",
    "Router": "schema.router",
    "Task": "backend.task",
    "TaskContext": "worker.context",
    "TaskResult": "backend.result",
    "acancel": "backend.control",
    "asignal": "backend.control",
    "cancel": "backend.control",
    "current": "worker.context",
    "enqueue_many": "backend.bulk",
    "enqueue_on_commit": "backend.bulk",
    "progress": "backend.progress",
    "schedule": "backend.schedules",
    "signal": "backend.control",
    "task": "backend.task",
}


def __getattr__(name: str) -> Any:
    # Lazy: Django imports this package for its app configuration, long before the first enqueue.
    if name not in _HOME:
        raise AttributeError(f"module 'byrote.django' has no attribute {name!r}")
    return getattr(import_module(f"byrote.django.{_HOME[name]}"), name)

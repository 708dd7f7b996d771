# SPDX-License-Identifier: MIT
"""Byrote as the backend of Django's Tasks: `byrote.django.Backend`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from byrote.django.backend import Backend
    from byrote.django.bulk import enqueue_many, enqueue_on_commit
    from byrote.django.context import TaskContext, current
    from byrote.django.control import acancel, asignal, cancel, signal
    from byrote.django.definition import Task, task
    from byrote.django.instant import Dummy, Immediate
    from byrote.django.periodic import schedule
    from byrote.django.result import TaskResult
    from byrote.django.router import Router
    from byrote.django.telling import progress

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
    "Backend": "backend",
    "Dummy": "instant",
    "Immediate": "instant",
    "Router": "router",
    "Task": "definition",
    "TaskContext": "context",
    "TaskResult": "result",
    "acancel": "control",
    "asignal": "control",
    "cancel": "control",
    "current": "context",
    "enqueue_many": "bulk",
    "enqueue_on_commit": "bulk",
    "progress": "telling",
    "schedule": "periodic",
    "signal": "control",
    "task": "definition",
}


def __getattr__(name: str) -> Any:
    # Django imports this package for its app configuration, long before anything is enqueued.
    if name not in _HOME:
        raise AttributeError(f"module 'byrote.django' has no attribute {name!r}")
    return getattr(import_module(f"byrote.django.{_HOME[name]}"), name)

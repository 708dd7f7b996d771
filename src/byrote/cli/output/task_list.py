# SPDX-License-Identifier: MIT
"""The tasks of an app as `byrote tasks` lists them."""

from typing import Any

from byrote.core.policy import Retry
from byrote.core.task import Task
from byrote.executors.runtime.loading import load_app, schedules_of


def tasks_of(path: str) -> list[dict[str, Any]]:
    """The tasks of the app at `module:name`, sorted by name and version."""
    app = load_app(path)
    schedules: dict[tuple[str, int], list[str]] = {}
    for schedule in schedules_of(app):
        schedules.setdefault((schedule.task, schedule.version), []).append(schedule.name)
    tasks = sorted(app.registry, key=lambda task: (task.name, task.version))
    return [_fields(task, schedules.get((task.name, task.version), [])) for task in tasks]


def _fields(task: Task, schedules: list[str]) -> dict[str, Any]:
    delivery = task.delivery
    return {
        "task": task.name,
        "version": task.version,
        "queue": delivery.queue,
        "kind": _kind(task),
        "max_attempts": delivery.retry.attempts,
        "retry": _retry(delivery.retry),
        "timeout": delivery.timeout,
        "priority": delivery.priority,
        "schedules": sorted(schedules),
    }


def row_of(task: dict[str, Any]) -> tuple[object, ...]:
    """One task as a row of the table."""
    timeout = task["timeout"]
    return (
        task["task"],
        task["version"],
        task["queue"],
        task["kind"],
        task["retry"],
        None if timeout is None else f"{timeout.total_seconds():g}s",
        task["schedules"],
    )


def _kind(task: Task) -> str:
    if task.command is not None:
        return "command"
    return "async" if task.is_async else "sync"


def _retry(retry: Retry) -> str:
    """How often and how fast a task is retried; empty if it is not."""
    if retry.attempts == 1:
        return ""
    first = f"{retry.delay_first.total_seconds():g}s"
    return f"{retry.attempts} attempts, {retry.backoff} from {first}"

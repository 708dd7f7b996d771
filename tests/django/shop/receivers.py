# SPDX-License-Identifier: MIT
"""Receivers of Django's task signals; they record their arguments and the stored result."""

import json
from typing import Any

from byrote.django import Backend, compat
from tests.django.shop.models import Note


def connect(how: str) -> None:
    """Connect receivers; with `alone`, one for the end, and none of Django's own."""
    if how == "alone":
        compat.task_started.disconnect(compat.log_task_started)
        compat.task_finished.disconnect(compat.log_task_finished)
        compat.task_finished.connect(on_finished)
        return
    compat.task_started.connect(on_started)
    compat.task_finished.connect(on_finished)
    compat.task_finished.connect(on_finished_badly)


def on_started(sender: Any, task_result: Any, **_more: Any) -> None:
    write("started", sender, task_result)


def on_finished(sender: Any, task_result: Any, **_more: Any) -> None:
    write("finished", sender, task_result)


def on_finished_badly(task_result: Any, **_more: Any) -> None:
    raise RuntimeError(f"a receiver that fails, for {task_result.id}")


def write(what: str, sender: Any, result: Any) -> None:
    stored = result.task.get_backend().get_result(result.id)
    told = {
        "what": what,
        "sender": sender is Backend,
        "task": result.task.name,
        "status": str(result.status),
        "stored": str(stored.status),
        "attempts": result.attempts,
        "priority": result.task.priority,
        "value": result.return_value if result.status == "SUCCESSFUL" else None,
        "errors": [error.exception_class_path for error in result.errors],
        "same": stored == result,
    }
    Note.objects.create(text=json.dumps(told))

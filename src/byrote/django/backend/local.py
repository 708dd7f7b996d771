# SPDX-License-Identifier: MIT
"""Django's backends for development and tests, for tasks that have Byrote's options."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from byrote.django import compat
from byrote.django.backend.task import Task


class Immediate(compat.ImmediateBackend):
    """Runs a task where it is enqueued, once; `OPTIONS={"RAISE": True}` lets its errors out."""

    task_class = Task

    def enqueue(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run the task now; with RAISE, whatever it raises is raised here."""
        if not self.options.get("RAISE"):
            return super().enqueue(task, args, kwargs)
        errors: dict[str, BaseException | None] = {}

        def keep(task_result: Any, **_more: Any) -> None:
            # Sent from within the handler of the task's exception, which is the only way to it.
            errors[task_result.id] = sys.exc_info()[1]

        compat.task_finished.connect(keep, sender=type(self), weak=False)
        try:
            result = super().enqueue(task, args, kwargs)
        finally:
            compat.task_finished.disconnect(keep, sender=type(self))
        error = errors.get(result.id)
        if error is not None:
            raise error
        return result


class Dummy(compat.DummyBackend):
    """Remembers what was enqueued, in `results`, and runs nothing."""

    task_class = Task

# SPDX-License-Identifier: MIT
"""Django's backends for development and tests, extended to accept Byrote's task options."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from byrote.django import compat
from byrote.django.backend.task import Task


class Immediate(compat.ImmediateBackend):
    """Runs a task once, at enqueue; with `OPTIONS={"RAISE": True}` its errors are raised."""

    task_class = Task

    def enqueue(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run the task now; with RAISE, the task's exception is raised here."""
        if not self.options.get("RAISE"):
            return super().enqueue(task, args, kwargs)
        errors: dict[str, BaseException | None] = {}

        def keep(task_result: Any, **_more: Any) -> None:
            # Django sends this signal while it handles the task's exception: the only access to it.
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
    """Stores enqueued tasks in `results` and runs nothing."""

    task_class = Task

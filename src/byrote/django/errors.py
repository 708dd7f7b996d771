# SPDX-License-Identifier: MIT
"""What a task's errors are, where they are not an exception that the task raised."""

from typing import Any

from byrote.core.errors import BadPayload
from byrote.django.compat import TaskError


class TaskCancelled(Exception):
    """Somebody cancelled the task before it had finished."""


class TaskTimedOut(Exception):
    """An attempt ran longer than its timeout and was stopped."""


class TaskCrashed(Exception):
    """An attempt took its process down, or was in a process that went down."""


class TaskLost(Exception):
    """The worker vanished with the attempt, more often than a run survives."""


_HERE = "byrote.django.errors"
_PATHS = {
    "timeout": f"{_HERE}.TaskTimedOut",
    "crashed": f"{_HERE}.TaskCrashed",
    "oom": f"{_HERE}.TaskCrashed",
    "lost": f"{_HERE}.TaskLost",
    "bad_result": "byrote.core.errors.BadPayload",
    "nondeterminism": "byrote.core.errors.NonDeterminism",
    "unknown_task": "byrote.core.errors.UnknownTask",
}

CANCELLED = TaskError(
    exception_class_path=f"{_HERE}.TaskCancelled",
    traceback=f"{_HERE}.TaskCancelled: The task was cancelled.\n",
)


def error_of(fault: dict[str, Any]) -> TaskError:
    """A stored fault as Django shows it: a class that can be imported, and a traceback."""
    path = _PATHS.get(fault["kind"])
    if path is None:
        # Faults name builtin exceptions without their module.
        path = fault["type"] if "." in fault["type"] else f"builtins.{fault['type']}"
    said = fault.get("traceback") or f"{path}: {fault.get('message', '')}\n"
    return TaskError(exception_class_path=path, traceback=said)


def exception_of(fault: dict[str, Any]) -> BaseException | None:
    """The exception for a stored fault that the task did not raise itself; None for all others."""
    message = fault.get("message", "")
    match fault["kind"]:
        case "timeout":
            return TaskTimedOut(message)
        case "crashed" | "oom":
            return TaskCrashed(message)
        case "lost":
            return TaskLost(message)
        case "bad_result":
            return BadPayload("$", message)
        case _:
            return None

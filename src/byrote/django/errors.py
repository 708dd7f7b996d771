# SPDX-License-Identifier: MIT
"""Exceptions for faults that the task did not raise, and stored faults as Django's TaskError."""

from typing import Any

from byrote.core.errors import BadPayload
from byrote.django.compat import TaskError


class TaskCancelled(Exception):
    """The task was cancelled before it finished."""


class TaskTimedOut(Exception):
    """An attempt ran longer than its timeout and was stopped."""


class TaskCrashed(Exception):
    """The process of an attempt crashed."""


class TaskLost(Exception):
    """Workers disappeared with attempts of the run more often than allowed."""


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
    """Convert a stored fault to Django's TaskError: an importable class path and a traceback."""
    path = _PATHS.get(fault["kind"])
    if path is None:
        # Faults name builtin exceptions without their module.
        path = fault["type"] if "." in fault["type"] else f"builtins.{fault['type']}"
    traceback = fault.get("traceback") or f"{path}: {fault.get('message', '')}\n"
    return TaskError(exception_class_path=path, traceback=traceback)


def exception_of(fault: dict[str, Any]) -> BaseException | None:
    """Return the exception for a stored fault that the task did not raise; None for others."""
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

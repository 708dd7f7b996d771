# SPDX-License-Identifier: MIT
"""Report the progress of a Django task from anywhere in its code."""

from contextvars import ContextVar
from typing import Any

from byrote.core.progress import report_of
from byrote.executors.runtime.context import Context

attempt_under_way: ContextVar[Context | None] = ContextVar("byrote_attempt", default=None)
"""The attempt whose code is running; follows coroutines and `sync_to_async`."""


def progress(done: float, total: float | None = None, message: str = "", **data: Any) -> None:
    """Report the task's progress: `done` of `total`, or per cent without a total.

    It never waits, so call it as often as you like: the latest report is written about three times
    a second. Read it as `result.run.progress`. Outside of a worker it only checks its arguments.
    """
    ctx = attempt_under_way.get()
    if ctx is None:
        report_of(done, total, message, data)
    else:
        ctx.progress(done, total, message, **data)

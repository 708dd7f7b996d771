# SPDX-License-Identifier: MIT
"""How a Django task tells how far it has come, wherever in its code that is known."""

from contextvars import ContextVar
from typing import Any

from byrote.core.progress import report_of
from byrote.executors.runtime.context import Context

attempt_under_way: ContextVar[Context | None] = ContextVar("byrote_attempt", default=None)
"""The attempt whose code is running; follows coroutines and `sync_to_async`."""


def progress(done: float, total: float | None = None, message: str = "", **data: Any) -> None:
    """Say how far the task has come: so many of a total, or per cent where there is none.

    Call it as often as you like: it never waits, and the latest is written about three times a
    second. `result.run.progress` has it. Outside of a worker it is only checked.
    """
    ctx = attempt_under_way.get()
    if ctx is None:
        report_of(done, total, message, data)
    else:
        ctx.progress(done, total, message, **data)

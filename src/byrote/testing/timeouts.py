# SPDX-License-Identifier: MIT
"""Timeouts of tasks that run in a test: without a hand to kill, the task is interrupted.

A sync task is interrupted by SIGALRM, which reaches only the main thread; an async task is
cancelled. A task that cannot be interrupted counts as timed out when it returns.
"""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import wraps
from types import FrameType
from typing import Any, Never

from byrote.assembly.clock import monotonic

LIMIT: ContextVar[float | None] = ContextVar("byrote_limit", default=None)
"""Timeout of the current attempt in seconds."""
LEAST_S = 0.000_001
"""Minimum of the timer: a timer set to zero never fires."""


class TimeUp(KeyboardInterrupt):
    """An attempt ran past its timeout. Psycopg interrupts a query only for a KeyboardInterrupt."""


@contextlib.contextmanager
def limited(limit_s: float | None, *, is_async: bool) -> Iterator[None]:
    """Interrupt the block after `limit_s` seconds; never if it is None."""
    token = LIMIT.set(limit_s)
    try:
        # No alarm for async tasks: their loop runs in another thread and would not be stopped.
        with _alarm(None if is_async else limit_s):
            yield
    finally:
        LIMIT.reset(token)


@contextlib.contextmanager
def _alarm(limit_s: float | None) -> Iterator[None]:
    if limit_s is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    began, armed = monotonic(), True

    def ring(_number: int, _frame: FrameType | None) -> None:
        if armed:
            _end()

    handler = signal.signal(signal.SIGALRM, ring)
    # An existing alarm, such as a test runner's, is postponed and restored below.
    left, every = signal.setitimer(signal.ITIMER_REAL, max(limit_s, LEAST_S))
    try:
        try:
            yield
        finally:
            armed = False
    finally:
        # In a separate block, so that it runs even if the alarm fires in the one before.
        rest = max(left - (monotonic() - began), LEAST_S) if left else 0.0
        signal.signal(signal.SIGALRM, handler or signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, rest, every)


def _end() -> Never:
    raise TimeUp("The attempt ran longer than its timeout.")


def cancelled_in_time(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an async function to be cancelled at the attempt's timeout."""

    @wraps(function)
    async def timed(*args: Any, **kwargs: Any) -> Any:
        try:
            async with asyncio.timeout(LIMIT.get()) as scope:
                return await function(*args, **kwargs)
        except TimeoutError:
            if scope.expired():
                _end()
            raise

    return timed

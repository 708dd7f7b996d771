# SPDX-License-Identifier: MIT
"""Timeouts of tasks that run in a test: there is no hand to take down, so the task is interrupted.

A sync task by an alarm, which reaches only the main thread; an async one by cancelling it. What can
be interrupted in neither way is noticed when it comes back: it has timed out all the same.
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
"""Seconds that the attempt under way may take."""
LEAST_S = 0.000_001
"""A timer set to nothing at all would never ring."""


class TimeUp(KeyboardInterrupt):
    """An attempt ran past its timeout. Psycopg lets a query go for this kind of exception only."""


@contextlib.contextmanager
def limited(limit_s: float | None, *, is_async: bool) -> Iterator[None]:
    """Interrupt the attempt that is made here when it takes longer; without a limit, never."""
    token = LIMIT.set(limit_s)
    try:
        # An alarm here would leave a loop, which runs in another thread, without its end.
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
    # Somebody else's alarm, such as a test runner's, is put off and not forgotten.
    left, every = signal.setitimer(signal.ITIMER_REAL, max(limit_s, LEAST_S))
    try:
        try:
            yield
        finally:
            armed = False
    finally:
        # In a block of its own: it must happen even if the alarm rings in the one before.
        rest = max(left - (monotonic() - began), LEAST_S) if left else 0.0
        signal.signal(signal.SIGALRM, handler or signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, rest, every)


def _end() -> Never:
    raise TimeUp("The attempt ran longer than its timeout.")


def cancelled_in_time(function: Callable[..., Any]) -> Callable[..., Any]:
    """An async function that is cancelled when the attempt's time is up."""

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

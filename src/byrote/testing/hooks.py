# SPDX-License-Identifier: MIT
"""Calls the hooks of an app in the test's process, as a hand does."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from byrote.assembly.app import App
from byrote.core.outcome import Failed
from byrote.core.policy import RetryIn
from byrote.core.ports.hooks import stored_attempt
from byrote.core.verdict import LETTERS, Judged
from byrote.executors.hooks.registered import FailedAttempt
from byrote.executors.runtime.context import Context
from byrote.executors.runtime.job import job_of


@contextmanager
def started(app: App) -> Iterator[None]:
    """Call the hooks of the start and stop of a hand; errors are raised."""
    for hook in app.hooks.hand_start:
        _call(hook)
    try:
        yield
    finally:
        for hook in reversed(app.hooks.hand_stop):
            _call(hook)


def report(app: App, judged: Judged, error: BaseException | None) -> None:
    """Call the hooks of a failed attempt and of the end of a run; errors are raised."""
    run, outcome, verdict = judged
    if isinstance(outcome, Failed) and app.hooks.failure:
        retried = isinstance(verdict, RetryIn)
        ctx = Context.of(job_of(0, run))
        failed = FailedAttempt(ctx, error, outcome.fault, will_retry=retried)
        for hook in app.hooks.failure:
            _call(hook, failed)
    stored = stored_attempt(run, outcome, LETTERS[type(verdict)], app.hooks.wants)
    ended = None if stored is None else stored.ended
    for on_end in app.hooks.end if ended is not None else ():
        _call(on_end, ended)


def _call(hook: Callable[..., Any], *args: Any) -> None:
    found = hook(*args)
    if asyncio.iscoroutine(found):
        _finish(found)


def _finish(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end; in another thread if this one runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(coroutine)
        return
    errors: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(coroutine)
        except BaseException as error:  # noqa: BLE001 -- raised in the caller's thread.
            errors.append(error)

    thread = threading.Thread(target=run, name="byrote-test-hook")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]

# SPDX-License-Identifier: MIT
"""One attempt of a task in the test's process, within its timeout, and the exception it raised."""

import asyncio
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import wraps
from typing import Any, cast

import msgspec

from byrote.assembly.clock import monotonic
from byrote.core.run import Leased
from byrote.core.task import Registry, Task
from byrote.executors.runtime import call
from byrote.executors.runtime.asks import AskClient
from byrote.executors.runtime.job import Job, Result, job_of
from byrote.testing.asks import AnswerAsk, DirectAsks
from byrote.testing.timeouts import TimeUp, cancelled_in_time, limited

type AttemptEnd = tuple[BaseException | None, Result]
"""The exception of an attempt, if any, and its result."""


def execute(task: Task, run: Leased, answer: AnswerAsk) -> AttemptEnd:
    """Make one attempt in this thread; in another one if this thread runs an event loop."""
    job = job_of(0, run)
    began = monotonic()
    raised: list[BaseException] = []
    registry = _recording(task, raised)
    asks = cast("AskClient", DirectAsks(answer, strict=True))
    result = _off_loop(lambda: _called(registry, task, job, asks))
    error = raised[-1] if raised else None
    if job.timeout_ms is None:
        return error, result
    if isinstance(error, TimeUp) or monotonic() - began >= job.timeout_ms / 1000:
        late = call.timed_out(job.slot, job.timeout_ms)
        return TimeoutError(late.fault.message), late
    return error, result


def _called(registry: Registry, task: Task, job: Job, asks: AskClient) -> Result:
    limit_s = None if job.timeout_ms is None else job.timeout_ms / 1000
    try:
        with limited(limit_s, is_async=task.is_async):
            if task.is_async:
                return asyncio.run(call.call_async(registry, job, asks))
            return call.call_sync(registry, job, asks)
    except TimeUp as late:
        # The alarm rang just after the function had returned.
        return call.raised(job.slot, late)


def _recording(task: Task, into: list[BaseException]) -> Registry:
    """A registry with the task alone, whose function records the exception that it raises."""
    registry = Registry()
    function = _arecorded(task.function, into) if task.is_async else _recorded(task.function, into)
    registry.add(msgspec.structs.replace(task, function=function))
    return registry


def _recorded(function: Callable[..., Any], into: list[BaseException]) -> Callable[..., Any]:
    @wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            into.append(error)
            raise

    return recorded


def _arecorded(function: Callable[..., Any], into: list[BaseException]) -> Callable[..., Any]:
    timed = cancelled_in_time(function)

    @wraps(function)
    async def recorded(*args: Any, **kwargs: Any) -> Any:
        try:
            return await timed(*args, **kwargs)
        except BaseException as error:
            into.append(error)
            raise

    return recorded


def _off_loop(attempt: Callable[[], Result]) -> Result:
    """Call in this thread, or in another one if this one runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return copy_context().run(attempt)
    results: list[Result] = []
    thread = threading.Thread(
        target=copy_context().run, args=(lambda: results.append(attempt()),), name="byrote-test"
    )
    thread.start()
    thread.join()
    return results[0]

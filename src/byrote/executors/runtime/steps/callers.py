# SPDX-License-Identifier: MIT
"""How a task's calls of steps and waits reach its ledger: from a thread, or on the loop."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from hashlib import sha256
from inspect import isawaitable
from typing import Any

from byrote.core.duration import DurationLike, duration
from byrote.core.errors import BadOption, BadPayload, Fatal, NotRecorded, RetryLater
from byrote.core.json.codec import unpack
from byrote.core.policy import ONCE, Retry
from byrote.core.ports.script import arun_script, run_script
from byrote.executors.runtime.steps.call import (
    FAILED,
    RAISED,
    STEP,
    LedgerEntry,
    StepCall,
    within,
)
from byrote.executors.runtime.steps.error import failed_error, is_ours, recorded_error
from byrote.executors.runtime.steps.ledger import StepScript, StepSource

IN_PLACE_MAX = timedelta(seconds=5)
"""The longest wait between two tries of a step during which the slot stays occupied."""


class SyncSteps:
    """Asks and waits in the task's thread."""

    def __init__(self, ledger: StepSource) -> None:
        self._ledger = ledger

    def step(
        self, name: str, function: Callable[[], Any], args: str | None, retry: Retry | None
    ) -> Any:
        """Return or raise the function's result or error, recorded by an earlier attempt or new."""
        policy = _policy(retry)
        call = self._ledger.call(STEP, name, args)
        entry = self._run(self._ledger.find(call))
        if entry is not None:
            return _answer(self._ledger, entry)
        try:
            value = self._try(call, function, policy)
            self._run(self._ledger.keep(call, value))
        except Exception as error:
            self._run(self._ledger.fail(call, error))
            raise
        return value

    def _try(self, call: StepCall, function: Callable[[], Any], policy: Retry) -> Any:
        tried = self._run(self._ledger.tried(call))
        while True:
            tried += 1
            try:
                with within(call.place):
                    return function()
            except Exception as error:
                delay = _delay(policy, tried, error, f"{self._ledger.run_id}/{call.place}")
                if delay is None:
                    raise
            if delay > IN_PLACE_MAX:
                self._run(self._ledger.pause(call, tried, delay))
            else:
                time.sleep(delay.total_seconds())

    def wait(self, kind: str, name: str, length: DurationLike | None) -> str | None:
        """Return the result of a wait; raises Suspended until it is over."""
        return self._run(self._ledger.wait(kind, name, _length(length)))

    def record_caught(self) -> None:
        """Write the errors that the task has caught, before it continues."""
        self._run(self._ledger.record_caught())

    def close(self) -> None:
        """Called when the task returns; raises NonDeterminism if an entry was not reached."""
        self._run(self._ledger.close())

    def _run[T](self, script: StepScript[T]) -> T:
        ask, slot = self._ledger.ask_client.ask, self._ledger.slot
        return run_script(script, lambda request: ask(slot, *request))


class AsyncSteps:
    """Asks and awaits the answers, so that other tasks of the loop continue."""

    def __init__(self, ledger: StepSource) -> None:
        self._ledger = ledger

    async def step(
        self, name: str, function: Callable[[], Any], args: str | None, retry: Retry | None
    ) -> Any:
        """Await the function and return or raise its result; or that of an earlier attempt."""
        policy = _policy(retry)
        call = self._ledger.call(STEP, name, args)
        entry = await self._run(self._ledger.find(call))
        if entry is not None:
            return _answer(self._ledger, entry)
        try:
            value = await self._try(call, function, policy)
            await self._run(self._ledger.keep(call, value))
        except Exception as error:
            await self._run(self._ledger.fail(call, error))
            raise
        return value

    async def _try(self, call: StepCall, function: Callable[[], Any], policy: Retry) -> Any:
        tried = await self._run(self._ledger.tried(call))
        while True:
            tried += 1
            try:
                with within(call.place):
                    value = function()
                    return await value if isawaitable(value) else value
            except Exception as error:
                delay = _delay(policy, tried, error, f"{self._ledger.run_id}/{call.place}")
                if delay is None:
                    raise
            if delay > IN_PLACE_MAX:
                await self._run(self._ledger.pause(call, tried, delay))
            else:
                await asyncio.sleep(delay.total_seconds())

    def wait(self, kind: str, name: str, length: DurationLike | None) -> Awaitable[str | None]:
        """Return the result of a wait; raises Suspended until it is over."""
        return self._run(self._ledger.wait(kind, name, _length(length)))

    async def record_caught(self) -> None:
        """Write the errors that the task has caught, before it continues."""
        await self._run(self._ledger.record_caught())

    async def close(self) -> None:
        """Called when the task returns; raises NonDeterminism if an entry was not reached."""
        await self._run(self._ledger.close())

    def _run[T](self, script: StepScript[T]) -> Awaitable[T]:
        ask, slot = self._ledger.ask_client.aask, self._ledger.slot
        return arun_script(script, lambda request: ask(slot, *request))


def _answer(steps: StepSource, entry: LedgerEntry) -> Any:
    """Return a recorded result, or raise the recorded error of the step's function."""
    if entry.kind not in (RAISED, FAILED):
        return unpack(entry.text or "null")
    if steps.ask_client.replay is None:
        raise failed_error(entry.text or "null")
    error = recorded_error(entry.text or "null")
    raise error if not isinstance(error, NotRecorded) else steps.end(error)


def _policy(retry: Retry | None) -> Retry:
    if retry is None:
        return ONCE
    if not isinstance(retry, Retry) or retry.age_max is not None:
        raise BadOption(
            f"The retry of a step is a byrote.Retry without age_max, not {retry!r:.200}. To pass "
            "an argument named retry to the step's function, wrap it in a lambda."
        )
    return retry


def _delay(policy: Retry, tried: int, error: Exception, step: str) -> timedelta | None:
    """How long to wait before the next try of a step; None if there is none."""
    if tried >= policy.attempts or isinstance(error, Fatal | BadPayload) or is_ours(error):
        return None
    if isinstance(error, RetryLater) and error.after is not None:
        return error.after
    return policy.delay_before(tried + 1, sha256(step.encode()).digest())


def _length(value: DurationLike | None) -> timedelta | None:
    return None if value is None else duration(value)

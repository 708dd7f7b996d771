# SPDX-License-Identifier: MIT
"""The asks of a task that runs in a test: answered at once, in the thread that asks."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from byrote.assembly.once import once
from byrote.core.errors import BadOption
from byrote.executors.runtime.asks import AskResult

type AnswerAsk = Callable[[str, Mapping[str, Any]], AskResult]
"""Receives a verb and its payload."""


class DirectAsks:
    """Stands in for an `AskClient`: it has no queue and no thread.

    With `strict`, `ask` refuses to block an event loop, as in a worker.
    """

    replay = None

    def __init__(self, answer: AnswerAsk, *, strict: bool) -> None:
        self._answer = answer
        self._strict = strict
        self.once = once

    def ask(self, _slot: int, verb: str, payload: Mapping[str, Any]) -> AskResult:
        """Return the answer."""
        if self._strict and _in_a_loop():
            raise BadOption(
                "An async task must not block: await ctx.astep, asleep and await_for, not "
                "ctx.step, sleep and wait_for."
            )
        return self._answer(verb, payload)

    async def aask(self, _slot: int, verb: str, payload: Mapping[str, Any]) -> AskResult:
        """Return the answer."""
        return self._answer(verb, payload)

    def put(self, _slot: int, verb: str, payload: Mapping[str, Any]) -> Future[AskResult]:
        """Return a future that has the answer."""
        future: Future[AskResult] = Future()
        future.set_result(self._answer(verb, payload))
        return future


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True

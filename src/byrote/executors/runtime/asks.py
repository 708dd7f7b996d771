# SPDX-License-Identifier: MIT
"""The client with which attempts send asks to their worker and wait for the answers.

Hands have no database connection: `send` sends an ask to the supervisor or to a thread of this
process, and `answer` receives its answer, on any thread. A sync task waits in its own thread, an
async one on its loop.
"""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Literal, NamedTuple

from byrote.core.errors import BadOption
from byrote.core.ports.executor import Ask, Asks, OnceStatement
from byrote.core.run import Leased

ASKS_MAX = 32 * 1024
"""Open asks of one hand or command; more are refused. A run has at most 10,000 steps."""
TOO_MANY = f"the tasks of this process have {ASKS_MAX:,} open requests; await some of them first"
"""Why an ask is refused that exceeds `ASKS_MAX`."""


class AskResult(NamedTuple):
    """The answer to an ask."""

    ok: bool
    payload: Any


type ReplayMode = Literal["recorded", "live"]
"""Whether a replay's steps are answered from the record or executed again."""

type SendAsk = Callable[[int, int, str, Mapping[str, Any]], None]
"""Receives a slot, a number for the answer, a verb and its payload; from any thread."""


type TakeResult = Callable[[bool, Any], None]
"""Receives an answer; from any thread."""


class AskClient:
    """The asks of one process that have no answer yet."""

    def __init__(
        self, send: SendAsk, once: OnceStatement, replay: ReplayMode | None = None
    ) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count()
        self._open: dict[int, Future[AskResult]] = {}
        self._closed = False
        self.once = once
        """How an effect is marked as done."""
        self.replay = replay
        """How steps are answered where every attempt is a replay; None outside of replays."""

    def ask(self, slot: int, verb: str, payload: Mapping[str, Any]) -> AskResult:
        """Send an ask and wait in this thread, which must not be the one that receives answers."""
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self._loop:
            raise BadOption(
                "An async task must not block: await ctx.astep, asleep and await_for, not "
                "ctx.step, sleep and wait_for."
            )
        return self.put(slot, verb, payload).result()

    async def aask(self, slot: int, verb: str, payload: Mapping[str, Any]) -> AskResult:
        """Send an ask and await its answer."""
        return await asyncio.wrap_future(self.put(slot, verb, payload))

    def put(self, slot: int, verb: str, payload: Mapping[str, Any]) -> Future[AskResult]:
        """Send an ask without waiting; from any thread."""
        number = next(self._numbers)
        future: Future[AskResult] = Future()
        self._open[number] = future
        try:
            self._send(slot, number, verb, payload)
        except OSError:
            self._closed = True
        if self._closed:
            self.answer(number, False, None)
        return future

    def close(self) -> None:
        """Answer all open and later asks as for a lost lease: no more answers will arrive."""
        self._closed = True
        for number in list(self._open):
            self.answer(number, False, None)

    def answer(self, number: int, ok: bool, payload: Any) -> None:
        """Resolve an ask; does nothing if no caller waits for it any longer."""
        future = self._open.pop(number, None)
        if future is not None and future.set_running_or_notify_cancel():
            future.set_result(AskResult(ok, payload))


def pass_on(
    asks: Asks | None, run: Leased | None, ask: tuple[str, Mapping[str, Any]], answer: TakeResult
) -> None:
    """Queue an ask; one of another attempt is answered as for a lost lease."""
    verb, payload = ask
    if asks is None:
        answer(False, "this executor has no database")
    elif run is None or not _same_attempt(run, payload):
        answer(False, None)
    else:
        asks.put(Ask(run, verb, payload, answer))


def _same_attempt(run: Leased, payload: Mapping[str, Any]) -> bool:
    shown = run.shown
    return (shown.id, shown.attempt) == (payload.get("run"), payload.get("attempt"))

# SPDX-License-Identifier: MIT
"""Where attempts ask for their run's ledger and wait for the answer.

Hands have no database: an ask goes out through `send`, to the supervisor or to a thread of this
process, and its answer comes back through `answer`, on whatever thread. A sync task waits in its
own thread, an async one on its loop.
"""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Literal, NamedTuple

from byrote.core.errors import BadOption
from byrote.core.ports.executor import Ask, Asks, OnceStatement
from byrote.core.run import Leased


class AskResult(NamedTuple):
    """What became of an ask."""

    ok: bool
    payload: Any


type ReplayMode = Literal["recorded", "live"]
"""Whether a replay's steps are answered from the record or executed again."""

type SendAsk = Callable[[int, int, str, Mapping[str, Any]], None]
"""Takes a slot, a number for the answer, a verb and its payload; from any thread."""


type TakeResult = Callable[[bool, Any], None]
"""Takes an answer; from any thread."""


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
        """How steps are answered where every attempt is a replay; None: these are no replays."""

    def ask(self, slot: int, verb: str, payload: Mapping[str, Any]) -> AskResult:
        """Ask and wait in this thread, which must not be the one that hears the answers."""
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
        """Ask and let others work until the answer is there."""
        return await asyncio.wrap_future(self.put(slot, verb, payload))

    def put(self, slot: int, verb: str, payload: Mapping[str, Any]) -> Future[AskResult]:
        """Ask without waiting; from any thread."""
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
        """No answer will come any more; who waits for one has lost its lease."""
        self._closed = True
        for number in list(self._open):
            self.answer(number, False, None)

    def answer(self, number: int, ok: bool, payload: Any) -> None:
        """The answer has come; nobody may be waiting for it any more."""
        future = self._open.pop(number, None)
        if future is not None and future.set_running_or_notify_cancel():
            future.set_result(AskResult(ok, payload))


def pass_on(
    asks: Asks | None, run: Leased | None, ask: tuple[str, Mapping[str, Any]], answer: TakeResult
) -> None:
    """Put an ask where it is served; one that is not of this very attempt has lost its lease."""
    verb, payload = ask
    if asks is None:
        answer(False, "this executor has no database")
    elif run is None or (run.id, run.attempt) != (payload.get("run"), payload.get("attempt")):
        answer(False, None)
    else:
        asks.put(Ask(run, verb, payload, answer))

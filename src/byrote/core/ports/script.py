# SPDX-License-Identifier: MIT
"""Runs scripts: generators that yield requests, receive the answers, and return a result.

A script decides what to ask and does no I/O, so one script serves threads and event loops. The
store's scripts yield queries, those of the SDK requests, and those of a ledger its operations. An
error of the answer is raised inside the script, at its `yield`; the script may handle it.
"""

from collections.abc import Awaitable, Callable, Generator
from typing import NamedTuple


class RetryPause(NamedTuple):
    """A request to wait before the next try."""

    seconds: float


def run_script[Request, Answer, Done](
    script: Generator[Request, Answer, Done], answer: Callable[[Request], Answer]
) -> Done:
    """Run a script with an `answer` that waits; returns the script's result."""
    try:
        request = next(script)
        while True:
            try:
                answered = answer(request)
            except BaseException as error:  # noqa: BLE001 -- the script handles or raises it.
                request = script.throw(error)
            else:
                request = script.send(answered)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


async def arun_script[Request, Answer, Done](
    script: Generator[Request, Answer, Done], answer: Callable[[Request], Awaitable[Answer]]
) -> Done:
    """Run a script with an `answer` that is awaited; returns the script's result."""
    try:
        request = next(script)
        while True:
            try:
                answered = await answer(request)
            except BaseException as error:  # noqa: BLE001 -- the script handles or raises it.
                request = script.throw(error)
            else:
                request = script.send(answered)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]

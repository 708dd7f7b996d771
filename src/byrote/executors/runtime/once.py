# SPDX-License-Identifier: MIT
"""Effects inside the same database, done once: the mark is part of the transaction that does them.

The connection is the task's own; any object with the interface of psycopg's is accepted.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from byrote.core.errors import NotRecorded
from byrote.core.ports.executor import OnceStatement
from byrote.executors.runtime.asks import AskResult
from byrote.executors.runtime.steps.callers import AsyncSteps, SyncSteps
from byrote.executors.runtime.steps.ledger import StepSource

MARKED = "replay.marked"
"""Asks whether the repeated run has marked an effect as done."""


@contextlib.contextmanager
def do_once(
    statement: OnceStatement, mark: tuple[str, str], connection: Any, steps: StepSource | None
) -> Iterator[bool]:
    """A transaction, or a savepoint in the caller's; yields whether the effect is to be done."""
    if steps is not None:
        SyncSteps(steps).record_caught()
    text, args = statement(*mark)
    with connection.transaction():
        yield bool(connection.execute(text, args).rowcount)


@contextlib.asynccontextmanager
async def ado_once(
    statement: OnceStatement, mark: tuple[str, str], connection: Any, steps: StepSource | None
) -> AsyncIterator[bool]:
    """A transaction, or a savepoint in the caller's; yields whether the effect is to be done."""
    if steps is not None:
        await AsyncSteps(steps).record_caught()
    text, args = statement(*mark)
    async with connection.transaction():
        yield bool((await connection.execute(text, args)).rowcount)


@contextlib.contextmanager
def recite_once(
    ask: Callable[[], AskResult], steps: StepSource, key: str, connection: Any
) -> Iterator[bool]:
    """In a replay, the original has done the effect; one that it did not do is not done now."""
    _check(ask(), steps, key)
    with connection.transaction():
        yield False


@contextlib.asynccontextmanager
async def arecite_once(
    ask: Callable[[], Awaitable[AskResult]], steps: StepSource, key: str, connection: Any
) -> AsyncIterator[bool]:
    """In a replay, the original has done the effect; one that it did not do is not done now."""
    _check(await ask(), steps, key)
    async with connection.transaction():
        yield False


def _check(answer: AskResult, steps: StepSource, key: str) -> None:
    if not (answer.ok and answer.payload):
        reason = f"The effect {key!r} has no mark in the original, and a replay does not do it."
        raise steps.end(NotRecorded(reason))

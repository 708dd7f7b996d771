# SPDX-License-Identifier: MIT
"""Enqueues many specs in one transaction; encodes a batch while the server inserts the last one."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from itertools import batched
from typing import Any

import psycopg

from byrote.core.ports.script import arun_script, run_script
from byrote.store.callers.aio import acaller_of
from byrote.store.callers.errors import CallerErrors
from byrote.store.callers.sync import caller_of
from byrote.store.queries.enqueue import (
    NO_CODES,
    Codes,
    EnqueueResult,
    Numbered,
    QueryScript,
    accept,
    again,
    until_accepted,
)
from byrote.store.query import Query, Resend
from byrote.store.runners.aio import AsyncStore, afetch, afetch_on
from byrote.store.runners.resend import ByFirst
from byrote.store.runners.sync import Store, fetch, fetch_on, schema_errors

BATCH = 1_000


def batches(specs: Iterable[Numbered], codes: Codes = NO_CODES) -> Iterator[Query[Any]]:
    """Yield the statements that accept these specs, one for each batch."""
    for batch in batched(specs, BATCH):
        yield accept(batch, codes)


def accept_on(
    connection: Any, specs: Sequence[Numbered], codes: Codes, schema: str | None
) -> EnqueueResult:
    """Do the same as `Store.accept` on a caller's connection; needs no database of its own."""
    script = until_accepted(accept(specs, codes))
    return run_script(script, lambda query: fetch_on(connection, query, schema))


async def aaccept_on(
    connection: Any, specs: Sequence[Numbered], codes: Codes, schema: str | None
) -> EnqueueResult:
    """Do the same as `accept_on` on an event loop."""
    script = until_accepted(accept(specs, codes))
    return await arun_script(script, lambda query: afetch_on(connection, query, schema))


def send_all(store: Store, statements: Iterable[Query[Any]]) -> dict[str, str]:
    """Accept all specs or none on a connection of the store; returns the same as `enqueue_all`."""
    sent: list[Query[Any]] = []
    lost: list[int] = []
    try:
        with schema_errors(store.address.schema), store.borrow(lost) as borrowed:
            return enqueue_all(borrowed, _recorded(statements, sent), store.named_schema)
    except psycopg.OperationalError as error:
        # Whether it was committed is unknown; sending the same ids again finds out.
        again = ResentAll([*sent, *statements])
        return store.within(again, lost, after=error, passes=again.passes)


async def asend_all(store: AsyncStore, statements: Sequence[Query[Any]]) -> dict[str, str]:
    """Do the same as `send_all` on an event loop."""
    lost: list[int] = []
    try:
        with schema_errors(store.address.schema):
            async with store.borrow(lost) as borrowed:
                return await aenqueue_all(borrowed, statements, store.named_schema)
    except psycopg.OperationalError as error:
        again = ResentAll(statements)
        return await store.within(again, lost, after=error, passes=again.passes)


def _recorded(statements: Iterable[Query[Any]], into: list[Query[Any]]) -> Iterable[Query[Any]]:
    for statement in statements:
        into.append(statement)
        yield statement


def enqueue_all(
    connection: psycopg.Connection[Any],
    statements: Iterable[Query[Any]],
    schema: str | None = None,
) -> dict[str, str]:
    """Accept all specs or none. On a connection in a transaction, joins it with a savepoint.

    Returns, for each id under which no run was made, the run that holds its unique key.
    """
    instead: dict[str, str] = {}
    with connection.transaction(), ThreadPoolExecutor(1, "byrote-enqueue") as sender:
        under_way: Future[EnqueueResult] | None = None
        for statement in statements:
            if under_way is not None:
                instead |= under_way.result().instead
            # No other call uses the connection; the thread lets this one encode while it waits.
            ask = partial(fetch, connection, schema=schema)
            under_way = sender.submit(run_script, until_accepted(statement), ask)
        if under_way is not None:
            instead |= under_way.result().instead
    return instead


async def aenqueue_all(
    connection: psycopg.AsyncConnection[Any],
    statements: Sequence[Query[Any]],
    schema: str | None = None,
) -> dict[str, str]:
    """Accept all specs or none. On a connection in a transaction, joins it with a savepoint.

    Returns, for each id under which no run was made, the run that holds its unique key.
    """
    instead: dict[str, str] = {}
    async with connection.transaction():
        for statement in statements:
            ask = partial(afetch, connection, schema=schema)
            enqueued = await arun_script(until_accepted(statement), ask)
            instead |= enqueued.instead
    return instead


def enqueue_all_on(
    connection: Any, statements: Iterable[Query[Any]], schema: str | None
) -> dict[str, str]:
    """Do the same as `enqueue_all` on a caller's connection, of psycopg or another library.

    One statement needs no savepoint, which a connection in autocommit mode would refuse.
    """
    caller = caller_of(connection)
    with CallerErrors(schema):
        if isinstance(caller, psycopg.Connection):
            return enqueue_all(caller, statements, schema)
        instead: dict[str, str] = {}
        sent = list(statements)
        with caller.savepoint() if len(sent) > 1 else nullcontext():
            ask = partial(caller.fetch, schema=schema)
            for statement in sent:
                instead |= run_script(until_accepted(statement), ask).instead
        return instead


async def aenqueue_all_on(
    connection: Any, statements: Sequence[Query[Any]], schema: str | None
) -> dict[str, str]:
    """Do the same as `enqueue_all_on` on an event loop."""
    caller = await acaller_of(connection)
    with CallerErrors(schema):
        if isinstance(caller, psycopg.AsyncConnection):
            return await aenqueue_all(caller, statements, schema)
        instead: dict[str, str] = {}
        async with caller.savepoint() if len(statements) > 1 else nullcontext():
            ask = partial(caller.fetch, schema=schema)
            for statement in statements:
                instead |= (await arun_script(until_accepted(statement), ask)).instead
        return instead


class ResentAll(ByFirst):
    """Statements of one transaction whose answer was lost; sent again if they had no effect."""

    def __init__(self, statements: Sequence[Query[Any]]) -> None:
        plain = plain_of(statements)
        super().__init__(None if plain is None else plain.args["first"])
        self._statements = statements

    def __call__(self, _again: bool) -> QueryScript[dict[str, str]]:
        """The transaction as a script; returns the same as `enqueue_all`."""
        accepted = yield from self.is_known()
        instead: dict[str, str] = {}
        for statement in to_send_again(self._statements, accepted=accepted):
            instead |= (yield from until_accepted(statement)).instead
        yield from self.check_alone()
        return instead


def plain_of(statements: Iterable[Query[Any]]) -> Query[Any] | None:
    """Return the first statement whose ids show whether the whole transaction was accepted."""
    return next((each for each in statements if each.resend is not Resend.AGAIN), None)


def to_send_again(statements: Iterable[Query[Any]], *, accepted: bool) -> list[Query[Any]]:
    """Return the statements to send again after a lost answer."""
    resent = [again(each) if each.resend is Resend.AGAIN else each for each in statements]
    return [each for each in resent if each.resend is Resend.AGAIN or not accepted]

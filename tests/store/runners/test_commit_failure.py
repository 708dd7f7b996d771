# SPDX-License-Identifier: MIT
"""A statement whose commit fails has answered with its rows before: it raises all the same."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from byrote.assembly.identity import jitter, new_id
from byrote.core.errors import DatabaseUnreachable
from byrote.core.ports.script import run_script
from byrote.core.spec import Delivery, describe
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.bulk import enqueue_all
from byrote.store.connect import DatabaseAddress
from byrote.store.queries.enqueue import enqueue_unique, until_accepted
from byrote.store.queries.tokens import audit
from byrote.store.query import Query
from byrote.store.runners.aio import AsyncStore
from byrote.store.runners.prepared import PreparedRunner
from byrote.store.runners.sync import Interrupted, Store
from tests.support import (
    Db,
    at_commit,
    commits_held,
    count,
    history,
    register,
    run_of,
    until,
    waiting_commits,
)

RAISES = "raise exception 'no commit today' using errcode = '23514'"
ENDS = "perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(10)"
CANCELS = "perform pg_cancel_backend(pg_backend_pid()); perform pg_sleep(10)"
PATIENCE_S = 0.1

type Sent = list[tuple[str, Any]]
type Send = Callable[[DatabaseAddress, Sent], object]


def by_itself(address: DatabaseAddress, sent: Sent) -> object:
    return Store(address, jitter=jitter, patience_s=PATIENCE_S).accept(sent[:1])


def in_a_batch(address: DatabaseAddress, sent: Sent) -> object:
    return Store(address, jitter=jitter, patience_s=PATIENCE_S).all(queries.enqueue(sent))


def with_a_key(address: DatabaseAddress, sent: Sent) -> object:
    return run_script(
        until_accepted(enqueue_unique(sent)),
        Store(address, jitter=jitter, patience_s=PATIENCE_S).all,
    )


def in_bulk(address: DatabaseAddress, sent: Sent) -> object:
    with address.open("bulk") as connection:
        return enqueue_all(connection, [queries.enqueue(sent)])


def past_the_cursor(address: DatabaseAddress, sent: Sent) -> object:
    with address.open("poster") as connection:
        return PreparedRunner().fetch(connection, queries.enqueue(sent))


def asynchronously(address: DatabaseAddress, sent: Sent) -> object:
    return on_a_loop(address, lambda store: store.all(queries.enqueue(sent)))


def beside_the_audit(address: DatabaseAddress, sent: Sent) -> object:
    return on_a_loop(address, lambda store: store.all(queries.enqueue(sent), also=[noted()]))


def beside_the_audit_with_rows(address: DatabaseAddress, sent: Sent) -> object:
    return on_a_loop(address, lambda store: store.all(enqueue_unique(sent), also=[noted()]))


def before_the_audit(address: DatabaseAddress, sent: Sent) -> object:
    return on_a_loop(
        address, lambda store: store.ask(queries.enqueue(sent), behind=lambda _rows: [noted()])
    )


def in_a_script(address: DatabaseAddress, sent: Sent) -> object:
    def script(_again: bool) -> Any:
        yield queries.enqueue(sent)

    return on_a_loop(address, lambda store: store.within(script))


def on_a_loop(address: DatabaseAddress, act: Callable[[AsyncStore], Awaitable[object]]) -> object:
    async def run() -> object:
        store = AsyncStore(address, jitter=jitter, patience_s=PATIENCE_S)
        try:
            return await act(store)
        finally:
            await store.close()

    return asyncio.run(run())


def noted() -> Query[Any]:
    return audit(token_id=None, action="enqueue", request_id="r", address=None)


WAYS: list[Send] = [
    by_itself, in_a_batch, with_a_key, in_bulk, past_the_cursor, asynchronously,
    beside_the_audit, beside_the_audit_with_rows, before_the_audit, in_a_script,
]  # fmt: skip


@pytest.fixture(params=[RAISES, ENDS, CANCELS], ids=["raises", "ends", "cancels"])
def failing(db: Db, request: pytest.FixtureRequest) -> Iterator[Db]:
    """A database in which no insert into the runs can be committed."""
    with at_commit(db, request.param):
        yield db


@pytest.mark.parametrize("pooled", [False, True], ids=["session", "pooled"])
@pytest.mark.parametrize("send", WAYS, ids=lambda way: way.__name__)
def test_nothing_is_acknowledged_that_was_not_committed(
    failing: Db, url: str, *, send: Send, pooled: bool
) -> None:
    sent = [(new_id(), describe("t", 1, [n], {}, delivery=Delivery())) for n in range(2)]
    with pytest.raises((psycopg.Error, DatabaseUnreachable, Interrupted)):
        send(DatabaseAddress(url, pooled=pooled), sent)

    assert count(failing, "byrote_runs") == count(failing, "byrote_audit") == 0


def test_a_serialisation_failure_at_commit_is_retried(db: Db, url: str) -> None:
    """Where the database's isolation is SERIALIZABLE, the commit itself may be refused."""
    address = DatabaseAddress(
        make_conninfo(url, options="-c default_transaction_isolation=serializable")
    )
    register(db, "w", "default")
    store = Store(address, jitter=jitter)
    spec = describe("t", 1, [], {}, delivery=Delivery())
    with (
        commits_held(db) as let_go,
        ThreadPoolExecutor(1) as pool,
        address.open("rival") as rival,
    ):
        rival.execute("begin")
        rival.execute("select count(*) from byrote_task_runs")
        sent = pool.submit(store.accept, [(run_id := new_id(), spec)])
        until(lambda: waiting_commits(db))
        rival.execute("update byrote_workers set seen_at = now()")
        rival.execute("commit")
        let_go()
        sent.result()
    store.close()

    assert run_of(db, run_id).status is Status.READY
    assert history(db, run_id) == ["Enqueued"]

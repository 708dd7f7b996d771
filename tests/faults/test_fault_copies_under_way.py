# SPDX-License-Identifier: MIT
"""The connection breaks while the server is still at the statement, or has not received it yet."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from byrote import App
from byrote.assembly.handles import RunHandle
from byrote.assembly.identity import jitter, new_id
from byrote.assembly.reenqueue import enqueue_again
from byrote.core.ports.replies import LOCKED
from byrote.core.ports.store import PartContext
from byrote.core.schedule.schedule import make_schedule
from byrote.core.spec import Delivery, describe
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.queries.enqueue import QueryScript
from byrote.store.queries.runs import delete_dead
from byrote.store.query import Query
from byrote.store.runners.resend import Resent
from byrote.store.runners.sync import Store, fetch
from byrote.store.worker import PostgresStore
from tests.contracts.store.parts import judged, returned
from tests.faults.proxy import Moment, Proxy, proxied
from tests.support import (
    Db,
    claim,
    commits_held,
    count,
    enqueue,
    finish,
    history,
    run_of,
    sessions,
    until,
    verdict,
    waiting_commits,
    waits_for_a_copy,
)

ENQUEUE = "insert into byrote_task_runs"


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with proxied(url) as made:
        yield made


@pytest.fixture(params=[False, True], ids=["session", "pooled"])
def app(
    proxy: Proxy, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[App]:
    monkeypatch.setenv("BYROTE_POOLED", str(request.param).lower())
    app = App(proxy.url)
    assert app.store.address.pooled is request.param
    yield app
    app.close()


@pytest.mark.parametrize("how", ["one", "many", "keyed"])
def test_an_enqueue_that_is_still_being_written_is_accepted_once(
    app: App, db: Db, proxy: Proxy, *, how: str
) -> None:
    task = app.task(name="echo")(lambda value: value)
    sends: dict[str, Callable[[int], Sequence[RunHandle[Any]]]] = {
        "one": lambda n: [task.enqueue(n)],
        "many": lambda n: app.enqueue_many(task.spec(n + more) for more in range(3)),
        "keyed": lambda n: [task.using(unique_key=f"k{n}").enqueue(n)],
    }
    before = len(sends[how](0))  # Prepares the statement: what is hit is not that.
    with ThreadPoolExecutor(1) as pool, commits_held(db) as let_go:
        known = sessions(db)
        fault = proxy.plan("COMMIT" if how == "many" else ENQUEUE, "during")
        sent = pool.submit(sends[how], 1)
        until(fault.happened.is_set)
        # The second copy waits for the first, or has ended it and is at its own commit.
        until(lambda: waits_for_a_copy(db) or waiting_commits(db) - known)
        let_go()
        runs = sent.result()

    assert all(run.created for run in runs)
    assert count(db, "byrote_runs") == before + len(runs)
    assert [history(db, run.id) for run in runs] == [["Enqueued"]] * len(runs)


def test_a_request_that_arrives_after_its_run_has_ended_changes_nothing(
    db: Db, proxy: Proxy
) -> None:
    """The first copy is held up on its way; the second is accepted, fails, and is a dead letter."""
    app = App(proxy.url)
    task = app.task(name="t")(lambda value: value)
    task.enqueue(0)
    fault = proxy.plan(ENQUEUE, "late")
    run = task.enqueue(1)
    finish(db, [verdict(lease, "F") for lease in claim(db, 2)])
    fault.let_go.set()
    task.enqueue(2)
    app.close()

    assert fault.happened.is_set()
    assert (count(db, "byrote_task_runs"), count(db, "byrote_dead")) == (1, 2)
    assert run_of(db, run.id).status is Status.FAILED


def test_an_enqueue_is_not_sent_again_when_its_run_has_ended_meanwhile(db: Db, url: str) -> None:
    """Between the question and the second copy, the first one was accepted, failed and moved."""
    store = Store(DatabaseAddress(url, pooled=True), jitter=jitter)
    run_id = new_id()
    query = queries.enqueue_one(run_id, describe("t", 1, [], {}, delivery=Delivery()))
    again = Resent(query)

    def meddled(resent: bool) -> QueryScript[Any]:
        inner, asked = again(resent), None
        try:
            asked = next(inner)
            while True:
                rows: list[Any] = yield asked
                if asked.name == "is_accepted" and rows == [False]:
                    land_and_fail(db, query)
                asked = inner.send(rows)
        except StopIteration as done:
            return done.value

    lost = psycopg.OperationalError("lost")
    assert store.within(meddled, after=lost, passes=again.passes) == []
    store.close()
    assert run_of(db, run_id).status is Status.FAILED
    assert history(db, run_id) == ["Enqueued", "Claimed", "Failed"]


def land_and_fail(db: Db, query: Query[Any]) -> None:
    fetch(db, query)
    finish(db, [verdict(lease, "F") for lease in claim(db)])


def test_a_finish_behind_a_pooler_is_not_lost_to_its_own_first_copy(db: Db, proxy: Proxy) -> None:
    """That session cannot be ended: while it writes, the run is locked; then it has settled it."""
    line = PartContext("finish", threading.Event().wait, lambda *_: None, jitter)
    verdicts = PostgresStore(DatabaseAddress(proxy.url, pooled=True)).verdicts(line)
    enqueue(db)
    [lease] = claim(db)
    ended = [judged(lease, returned(1))]
    with ThreadPoolExecutor(1) as pool, commits_held(db) as let_go:
        fault = proxy.plan("'Succeeded'", "during")
        heard = pool.submit(verdicts.finish, ended).result()
        let_go()
    until(lambda: run_of(db, lease.id).status is Status.SUCCESSFUL)
    again = verdicts.finish(ended)
    verdicts.close()

    assert fault.happened.is_set()
    assert (heard, again) == ({lease.id: LOCKED}, {lease.id: "S"})


def cancel(app: App, run: str, dead: str) -> bool:
    return app.run(run).cancel()


def retry(app: App, run: str, dead: str) -> bool:
    return app.run(dead).retry()


def replay(app: App, run: str, dead: str) -> bool:
    return bool(enqueue_again(app.store, run))


def signal(app: App, run: str, dead: str) -> bool:
    app.signal(run, "e")
    return True


def delete(app: App, run: str, dead: str) -> bool:
    return app.store.all(delete_dead([dead])) == [dead]


def schedule(app: App, run: str, dead: str) -> bool:
    moment = datetime(2100, 1, 1, tzinfo=UTC)
    made = make_schedule("s", describe("t", 1, [], {}, delivery=Delivery()), every="1h")
    added = app.store.all(queries.save_schedule(made, next_at=moment, replace=False))
    return added == ["s"] and app.store.all(queries.delete_schedule("s")) == [False]


VERBS = {
    cancel: ("'CancelRequested'", 1),
    retry: ("'Revived'", 1),
    replay: ("replay_of, queue_name", 0),
    signal: ("insert into byrote_signals", 1),
    delete: ("'Deleted'", 1),
    schedule: ("insert into byrote_periodic_tasks", 0),
}


@pytest.mark.parametrize("at", ["statement", "COMMIT"])
@pytest.mark.parametrize("moment", ["before", "during", "after", "torn"])
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_a_verb_whose_answer_is_lost_is_done_once_and_reported_as_done(
    app: App, db: Db, proxy: Proxy, *, verb: Callable[..., bool], moment: Moment, at: str
) -> None:
    task = app.task(name="t")(lambda: None)
    earlier, dead, former, run = (task.enqueue() for _ in range(4))
    finish(db, [verdict(lease, "F") for lease in claim(db, 2)])
    verb(app, former.id, earlier.id)  # Prepares the statements: what is hit is not that.
    words, moves = VERBS[verb]
    before = len(history(db, dead.id)) + len(history(db, run.id))
    fault = proxy.plan(words if at == "statement" else at, moment)
    told = verb(app, run.id, dead.id)

    assert fault.happened.is_set()
    assert told is True
    assert len(history(db, dead.id)) + len(history(db, run.id)) == before + moves
    assert count(db, "byrote_once") == 0

# SPDX-License-Identifier: MIT
"""The connection breaks while the server is still at the statement, or has not received it yet."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from byrote import App
from byrote.assembly.again import enqueue_again
from byrote.assembly.identity import chance, new_id
from byrote.core.schedule import make_schedule
from byrote.core.spec import Delivery, describe
from byrote.core.state import Status
from byrote.store import queries, schedules
from byrote.store.connect import Door
from byrote.store.looking import delete_dead
from byrote.store.query import Query
from byrote.store.resend import Resent
from byrote.store.sync import Store, fetch
from byrote.store.unique import Script
from tests.faults.proxy import Moment, Proxy, proxied
from tests.support import (
    Db,
    claim,
    commits_held,
    count,
    finish,
    held_commits,
    history,
    run_of,
    until,
    verdict,
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
    assert app.store.door.pooled is request.param
    yield app
    app.close()


@pytest.mark.parametrize("how", ["one", "many", "keyed"])
def test_an_enqueue_that_is_still_being_written_is_accepted_once(
    app: App, db: Db, proxy: Proxy, *, how: str
) -> None:
    task = app.task(name="echo")(lambda value: value)
    task.enqueue(0)
    send = {
        "one": lambda: [task.enqueue(1)],
        "many": lambda: app.enqueue_many(task.spec(n) for n in range(3)),
        "keyed": lambda: [task.using(unique_key="k").enqueue(1)],
    }[how]
    with commits_held(db) as let_go, ThreadPoolExecutor(1) as pool:
        fault = proxy.plan(ENQUEUE, "during")
        sent = pool.submit(send)
        until(fault.happened.is_set)
        until(lambda: held_commits(db) or waits_for_a_copy(db))
        let_go()
        runs = sent.result()

    assert all(run.created for run in runs)
    assert count(db, "byrote_runs") == 1 + len(runs)
    assert [history(db, run.id) for run in runs] == [["Enqueued"]] * len(runs)


def waits_for_a_copy(db: Db) -> bool:
    text = "select exists (select 1 from pg_locks where locktype = 'transactionid' and not granted)"
    return db.execute(text).fetchone() == (True,)


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
    store = Store(Door(url, pooled=True), chance=chance)
    run_id = new_id()
    query = queries.enqueue_one(run_id, describe("t", 1, [], {}, delivery=Delivery()))
    again = Resent(query)

    def meddled(resent: bool) -> Script[Any]:
        inner, asked = again(resent), None
        try:
            asked = next(inner)
            while True:
                rows: list[Any] = yield asked
                if asked.name == "known" and rows == [False]:
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
    added = app.store.all(schedules.schedule(made, next_at=moment, replace=False))
    return added == ["s"] and app.store.all(schedules.unschedule("s")) == [False]


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

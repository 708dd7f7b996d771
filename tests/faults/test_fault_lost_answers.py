# SPDX-License-Identifier: MIT
"""Fault 12: a request or its answer is lost; the exchange still has exactly one effect."""

from collections.abc import Iterator

import pytest

from byrote import App
from byrote.core.state import Status
from tests.faults.proxy import Moment, Proxy, proxied
from tests.support import run_of
from tests.worker.harness import (
    Database,
    Marks,
    StartWorker,
    await_calm,
    await_end,
    history,
    send_one,
    spec,
)

LOST = pytest.mark.parametrize("moment", ["before", "after"])
WORDS = {
    "enqueue": "insert into byrote_task_runs",
    "claim": "set status = 'RUNNING'",
    "renew": "'Renewed'",
    "finish": "'Succeeded'",
}


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with proxied(url) as made:
        yield made


@LOST
def test_an_enqueue_whose_answer_is_lost_has_one_effect(
    db: Database, proxy: Proxy, moment: Moment
) -> None:
    app = App(proxy.url)
    task = app.task(name="echo")(lambda value: value)
    task.enqueue(0)
    fault = proxy.plan(WORDS["enqueue"], moment)
    run = task.enqueue(1)
    app.close()

    assert fault.happened.is_set()
    assert run_of(db, run.id).status is Status.READY
    assert db.execute("select count(*) from byrote_runs").fetchone() == (2,)
    assert [kind for kind, _, _ in history(db, run.id)] == ["Enqueued"]


@LOST
def test_a_bulk_enqueue_whose_answer_is_lost_has_one_effect(
    db: Database, proxy: Proxy, moment: Moment
) -> None:
    app = App(proxy.url)
    task = app.task(name="echo")(lambda value: value)
    task.enqueue(0)
    fault = proxy.plan(WORDS["enqueue"], moment)
    runs = app.enqueue_many(task.spec(n) for n in range(500))
    app.close()

    assert fault.happened.is_set()
    assert len({run.id for run in runs}) == 500
    assert db.execute("select count(*) from byrote_runs").fetchone() == (501,)


@LOST
@pytest.mark.parametrize("verb", ["claim", "renew", "finish"])
def test_a_worker_whose_exchange_is_lost_runs_each_run_once(
    db: Database,
    proxy: Proxy,
    *,
    start_worker: StartWorker,
    marks: Marks,
    verb: str,
    moment: Moment,
) -> None:
    worker = start_worker(url=proxy.url, lease="2s", poll_interval="60s")
    await_end(db, send_one(db, spec("mark", marks.path, "warm")))
    await_calm(db, worker)
    fault = proxy.plan(WORDS[verb], moment)
    run_id = send_one(db, spec("mark", marks.path, "once", 1.2 if verb == "renew" else 0.0))
    [run] = await_end(db, run_id)
    # When the answer was lost, the worker learns of it only by asking again.
    worker.await_log("Succeeded", run=run_id)

    assert fault.happened.is_set()
    assert marks.words == ["warm", "once"]
    assert (run.status, run.attempts, run.charged, run.losses) == (Status.SUCCESSFUL, 1, 1, 0)
    assert not worker.logged("LeaseRefused")


@LOST
def test_an_enqueue_with_a_unique_key_whose_answer_is_lost_has_one_effect(
    db: Database, proxy: Proxy, moment: Moment
) -> None:
    app = App(proxy.url)
    task = app.task(name="echo", unique_key="k")(lambda value: value)
    other = task.using(unique_key="other")
    holder = other.enqueue(0)
    fault = proxy.plan(WORDS["enqueue"], moment)
    made, fault_again = task.enqueue(1), proxy.plan(WORDS["enqueue"], moment)
    found = other.enqueue(2)
    app.close()

    assert fault.happened.is_set()
    assert fault_again.happened.is_set()
    assert (made.created, found.created, found.id) == (True, False, holder.id)
    assert db.execute("select count(*) from byrote_runs").fetchone() == (2,)
    assert [kind for kind, _, _ in history(db, made.id)] == ["Enqueued"]


@LOST
@pytest.mark.parametrize("plain", [0, 1_500])
def test_a_bulk_enqueue_with_unique_keys_whose_answer_is_lost_has_one_effect(
    db: Database, proxy: Proxy, *, moment: Moment, plain: int
) -> None:
    """With statements of both kinds in one transaction: those with keys come last."""
    app = App(proxy.url)
    task = app.task(name="echo")(lambda value: value)
    holder = task.using(unique_key="k0").enqueue(0)
    fault = proxy.plan("COMMIT", moment)
    keyed = [task.using(unique_key=f"k{n % 50}").spec(n) for n in range(1_000)]
    runs = app.enqueue_many([*(task.spec(n) for n in range(plain)), *keyed])
    app.close()

    assert fault.happened.is_set()
    assert sum(run.created for run in runs) == plain + 49
    assert runs[plain].id == holder.id
    assert len({run.id for run in runs}) == plain + 50
    assert db.execute("select count(*) from byrote_runs").fetchone() == (plain + 50,)

# SPDX-License-Identifier: MIT
"""A worker killed -9 at every point of claim, renew, finish and release; another one takes over.

Whatever the moment: nothing is lost, there is exactly one terminal state, attempts rise one by one,
and the loss costs nothing of the budget.
"""

import signal
from collections.abc import Iterator

import pytest

from byrote.core.state import FINAL, Status
from tests.faults.proxy import Moment, Proxy, proxied
from tests.faults.test_fault_lost_answers import WORDS
from tests.worker.harness import (
    Database,
    Marks,
    StartWorker,
    WorkerProcess,
    await_calm,
    await_end,
    history,
    send,
    send_one,
    spec,
)

TERMINAL = {"Succeeded", "Failed", "Cancelled"}


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with proxied(url) as made:
        yield made


def strike(proxy: Proxy, worker: WorkerProcess, words: str, moment: Moment) -> None:
    """Plan the worker's end for the next such exchange."""
    proxy.plan(words, moment, lambda: worker.signal(signal.SIGKILL))


def check_story(db: Database, run_id: str) -> None:
    """Attempts rise one by one, and there is one terminal event, the last."""
    told = history(db, run_id)
    claims = [attempt for kind, attempt, _ in told if kind == "Claimed"]
    assert claims == list(range(1, len(claims) + 1))
    assert [kind for kind, _, _ in told if kind in TERMINAL] == [told[-1][0]]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("verb", ["claim", "renew", "finish"])
def test_p1_a_run_survives_its_worker_killed_at_any_point(
    db: Database,
    proxy: Proxy,
    *,
    start_worker: StartWorker,
    marks: Marks,
    verb: str,
    moment: Moment,
) -> None:
    """P1: an accepted run is never lost, and P4: it ends exactly once."""
    first = start_worker(url=proxy.url, lease="1s", poll_interval="60s")
    await_end(db, send_one(db, spec("echo")))
    await_calm(db, first)
    strike(proxy, first, WORDS[verb], moment)
    seconds = 0.8 if verb == "renew" else 0.0
    ids = send(db, *(spec("a_mark", marks.path, str(n), seconds) for n in range(5)))
    assert first.wait(5.0) == -signal.SIGKILL
    start_worker(lease="1s")
    runs = await_end(db, *ids, within=10.0)

    assert {run.status for run in runs} == {Status.SUCCESSFUL}
    assert {run.charged for run in runs} == {1}
    assert set(marks.words) == {"0", "1", "2", "3", "4"}
    for run_id in ids:
        check_story(db, run_id)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_run_survives_its_worker_killed_while_it_releases(
    db: Database, proxy: Proxy, *, start_worker: StartWorker, marks: Marks, moment: Moment
) -> None:
    first = start_worker(url=proxy.url, lease="1s", grace="100ms")
    await_end(db, send_one(db, spec("echo")))
    run_id = send_one(db, spec("a_mark", marks.path, "x", 1.0))
    marks.await_words(1)
    strike(proxy, first, WORDS["finish"], moment)
    first.signal(signal.SIGTERM)
    assert first.wait(5.0) == -signal.SIGKILL
    start_worker(lease="2s")
    [run] = await_end(db, run_id)

    assert (run.status, run.attempts, run.charged) == (Status.SUCCESSFUL, 2, 1)
    check_story(db, run_id)


def test_p4_every_run_ends_exactly_once_while_workers_are_killed(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    """P4 and P5: three workers are killed in turn under 200 runs; one terminal event each."""
    ids = send(db, *(spec("a_mark", marks.path, str(n), 0.05) for n in range(200)))
    for victims in range(3):
        worker = start_worker(lease="1s", concurrency=20)
        marks.await_words(15 * (victims + 1))
        worker.signal(signal.SIGKILL)
        worker.wait()
    start_worker(lease="1s", concurrency=50)
    runs = await_end(db, *ids, within=20.0)

    assert all(run.status in FINAL and run.charged == 1 for run in runs)
    assert set(marks.words) == {str(n) for n in range(200)}
    for run_id in ids:
        check_story(db, run_id)

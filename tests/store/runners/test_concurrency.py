# SPDX-License-Identifier: MIT
"""P2 under real contention: threads and processes with connections of their own."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from byrote.assembly.identity import new_id
from byrote.core.ports.replies import Locked
from byrote.core.spec import Delivery, describe
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.connect import PLAN_GUARDS, DatabaseAddress
from byrote.store.locks import move
from byrote.store.query import Query
from byrote.store.runners.sync import fetch
from tests.support import (
    LEASE,
    Db,
    claim,
    count,
    enqueue,
    finish,
    history,
    run_of,
    success,
    until,
    verdict,
    waits_for_a_lock,
)

ROOT = Path(__file__).parents[3]


@pytest.fixture
def several(address: DatabaseAddress) -> Iterator[list[Db]]:
    """Eight workers' connections."""
    with ExitStack() as stack:
        yield [stack.enter_context(address.open(f"w{n}", *PLAN_GUARDS)) for n in range(8)]


def at_once[T](connections: list[Db], work: Callable[[Db], T]) -> list[T]:
    """The same work on every connection, begun together."""
    gate = threading.Barrier(len(connections))

    def begin(connection: Db) -> T:
        gate.wait()
        return work(connection)

    with ThreadPoolExecutor(len(connections)) as pool:
        return list(pool.map(begin, connections))


def test_threads_that_claim_at_once_never_get_the_same_run(db: Db, several: list[Db]) -> None:
    ids = enqueue(db, 400)

    def drain(connection: Db) -> list[str]:
        return [lease.id for _ in range(20) for lease in claim(connection, 5)]

    claimed = [run_id for part in at_once(several, drain) for run_id in part]
    assert len(claimed) == len(set(claimed))
    assert set(claimed) <= set(ids)
    claimed += [lease.id for lease in claim(db, 400)]
    assert sorted(claimed) == sorted(ids)


def test_processes_that_claim_at_once_share_two_thousand_runs_without_overlap(
    db: Db, url: str
) -> None:
    ids = enqueue(db, 1_000, queue="a") + enqueue(db, 1_000, queue="b")
    command = [sys.executable, "-m", "tests.store.leases.claiming", url]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with ExitStack() as stack:
        workers = [
            stack.enter_context(subprocess.Popen([*command, f"w{n}"], cwd=ROOT, **pipes))
            for n in range(4)
        ]
        assert [worker.stdout.readline() for worker in workers] == ["ready\n"] * 4
        for worker in workers:
            worker.stdin.write("go\n")
            worker.stdin.flush()
        claimed = [word for worker in workers for word in worker.stdout.read().split()]

    assert sorted(claimed) == sorted(f"{run_id}:1" for run_id in ids)
    text = "select count(*) from byrote_event_log where kind = 'Claimed'"
    assert db.execute(text).fetchall() == [(2_000,)]


def test_of_many_that_finish_one_lease_at_once_one_is_accepted(db: Db, several: list[Db]) -> None:
    """P4: one terminal state, whatever the callers do."""
    for letter in "SFCS":
        [run_id] = enqueue(db)
        [lease] = claim(db)
        sent = verdict(lease, letter)
        heard = at_once(several, lambda connection, sent=sent: finish(connection, [sent]))

        assert sorted(heard) == [[]] * 7 + [[run_id]]
        assert len(history(db, run_id)) == 3


def test_a_finish_that_waits_for_a_sweep_is_refused(db: Db, address: DatabaseAddress) -> None:
    """The lease was good when the finish was sent; when its turn came, it was gone."""
    [run_id] = enqueue(db)
    [lease] = claim(db, lease_for=LEASE)
    with (
        address.open("sweeper") as sweeper,
        address.open("finisher") as finisher,
        ThreadPoolExecutor(1) as pool,
    ):
        with sweeper.transaction():
            text = "select set_config('byrote.now', (now() + interval '1 hour')::text, true)"
            sweeper.execute(text)
            assert len(fetch(sweeper, queries.sweep())) == 1
            heard = pool.submit(finish, finisher, [success(lease)])
            until(lambda: waits_for_a_lock(db, finisher))
        assert heard.result() == []

    assert run_of(db, run_id).status is Status.READY


def test_a_cancel_that_meets_a_claim_asks_the_worker(db: Db, address: DatabaseAddress) -> None:
    [run_id] = enqueue(db)
    answers: list[Any] = []

    def ask(query: Query[Any]) -> list[Any]:
        answers.append(fetch(canceller, query))
        return list(answers[-1])

    with (
        address.open("claimer") as claimer,
        address.open("canceller") as canceller,
        ThreadPoolExecutor(1) as pool,
    ):
        with claimer.transaction():
            claim(claimer)
            told = pool.submit(move, queries.cancel, [run_id], ask)
            until(lambda: answers)
        assert [row.status for row in told.result().done] == ["RUNNING"]
    assert answers[0] == [Locked(run_id)]

    assert run_of(db, run_id).cancel_requested_at is not None
    assert history(db, run_id) == ["Enqueued", "Claimed", "CancelRequested"]


def test_an_id_sent_twice_at_once_is_accepted_once(db: Db, several: list[Db]) -> None:
    query = queries.enqueue([(new_id(), describe("t", 1, [], {}, delivery=Delivery()))])

    def send(connection: Db) -> bool:
        try:
            fetch(connection, query)
        except psycopg.errors.UniqueViolation:
            return False
        return True

    assert at_once(several, send).count(True) == 1
    assert count(db, "byrote_runs") == count(db, "byrote_events") == 1


def test_everything_at_once_ends_every_run_exactly_once(db: Db, several: list[Db]) -> None:
    """P4: claims, finishes, sweeps, cancels and promotions side by side, without a deadlock."""
    ids = enqueue(db, 150) + enqueue(db, 50, run_after=timedelta(milliseconds=50))

    def work(connection: Db) -> None:
        for turn in range(25):
            fetch(connection, queries.promote(limit=10))
            finish(connection, [success(lease) for lease in claim(connection, 3)])
            fetch(connection, queries.cancel([ids[(turn * 37) % len(ids)]]))
            fetch(connection, queries.sweep())

    at_once(several, work)
    fetch(db, queries.promote())
    finish(db, [success(lease) for lease in claim(db, 200)])
    text = "select count(*) from byrote_runs where status in ('SUCCESSFUL', 'CANCELLED')"
    assert db.execute(text).fetchall() == [(200,)]
    ends = "select result_id from byrote_event_log where kind in ('Succeeded', 'Cancelled')"
    assert len(db.execute(ends).fetchall()) == 200

# SPDX-License-Identifier: MIT
"""The registry of workers: name, abilities and last heartbeat."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import pytest

from byrote.assembly.identity import worker_id
from byrote.assembly.settings import Settings
from byrote.assembly.worker import build_worker
from byrote.core.errors import BadOption
from byrote.core.events import Event, Recovered, Troubled
from byrote.core.ports.replies import NAME_SILENT_FOR
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.worker import lease_keeper
from byrote.worker.worker import Worker
from tests.support import until
from tests.worker.harness import (
    Database,
    StartWorker,
    await_end,
    await_row,
    send_one,
    spec,
)


@contextmanager
def working(url: str, **settings: object) -> Iterator[Worker]:
    """A worker in this process, on the inline executor."""
    chosen = Settings(database_url=url, executor="inline", **settings)
    worker = build_worker("tests.tasks.fates:app", chosen, emit=lambda _events: None)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        until(lambda: worker.ready)
        yield worker
    finally:
        worker.stop("end of the test")
        thread.join(15)
        assert not thread.is_alive()


def test_a_worker_is_on_the_list_while_it_lives(db: Database, start_worker: StartWorker) -> None:
    worker = start_worker(hands=2, concurrency=7, queues="mail=3,default")
    [row] = until(lambda: fetch(db, queries.workers()))

    assert (row.worker, row.pid, row.hands, row.concurrency) == (worker.name, worker.pid, 2, 7)
    assert (sorted(row.queues), row.alive) == (["default", "mail"], True)
    assert {"echo@1", "a_echo@1"} <= set(row.tasks)
    assert worker.stop() == 0
    assert fetch(db, queries.workers()) == []


def test_a_worker_that_finds_nothing_asks_to_be_woken(
    db: Database, start_worker: StartWorker
) -> None:
    worker = start_worker()
    idle = "select 1 from byrote_workers where worker_id = %s and idle"
    await_row(db, idle, worker.name)
    await_end(db, send_one(db, spec("a_echo", 1)))
    await_row(db, idle, worker.name)


def test_worker_ids_are_unique_for_every_start() -> None:
    assert len({worker_id() for _ in range(1_000)}) == 1_000


def test_two_workers_have_two_ids(db: Database, start_worker: StartWorker) -> None:
    assert start_worker().name != start_worker().name
    assert len(fetch(db, queries.workers())) == 2


@pytest.fixture
def quick_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_keeper, "HEARTBEAT_S", 0.1)


def test_the_heartbeat_has_load_and_time(db: Database, url: str, quick_heartbeat: None) -> None:
    with working(url, lease=timedelta(seconds=1)):
        await_end(db, send_one(db, spec("a_echo", 1)))
        await_row(db, "select 1 from byrote_workers where finished = 1 and running = 0")
        [seen] = await_row(db, "select seen_at from byrote_workers")
        await_row(db, "select 1 from byrote_workers where seen_at > %s", seen)


def test_a_worker_that_was_forgotten_introduces_itself_again(
    db: Database, url: str, quick_heartbeat: None
) -> None:
    with working(url, lease=timedelta(seconds=1)):
        [name] = await_row(db, "select worker_id from byrote_workers")
        db.execute("delete from byrote_workers")
        await_row(db, "select 1 from byrote_workers where worker_id = %s", name)
        await_end(db, send_one(db, spec("a_echo", 1)))


def test_a_worker_id_that_is_not_a_name_is_refused(start_worker: StartWorker) -> None:
    worker = start_worker(worker_id="not a name", ready=False)

    assert (worker.wait(), "is not a worker name" in worker.text) == (2, True)


OTHER = """
insert into byrote_workers (
  worker_id, started_at, seen_at, pid, hands, concurrency, host, version, python, queues, tasks,
  holder
)
select 'twin', at, at, 77, 1, 1, 'elsewhere', '0', '3', '{}', '{}', gen_random_uuid()
from (select clock_timestamp() - %s::interval as at) as moment
"""


def test_a_live_worker_keeps_its_id(db: Database, url: str, quick_heartbeat: None) -> None:
    """A second process with the id is refused, and the first stays on the list."""
    with working(url, worker_id="twin"):
        settings = Settings(database_url=url, executor="inline", worker_id="twin")
        second = build_worker("tests.tasks.fates:app", settings, emit=lambda _events: None)
        with pytest.raises(BadOption, match=r"'twin' belongs to a live worker on .*--worker-id"):
            second.run()

        assert [row.worker for row in fetch(db, queries.workers())] == ["twin"]


def test_the_id_of_a_killed_worker_is_free_after_a_bounded_wait(db: Database, url: str) -> None:
    """A container that is restarted after `kill -9` reuses its id."""
    told: list[Event] = []
    db.execute(OTHER, (NAME_SILENT_FOR - timedelta(seconds=2),))
    settings = Settings(database_url=url, executor="inline", worker_id="twin")
    worker = build_worker("tests.tasks.fates:app", settings, emit=told.extend)
    thread = threading.Thread(target=worker.run)
    thread.start()
    until(lambda: worker.ready)
    [row] = fetch(db, queries.workers())
    worker.stop("end of the test")
    thread.join(15)

    assert (row.worker, row.pid) == ("twin", os.getpid())
    assert "process 77" in "".join(one.error for one in told if isinstance(one, Troubled))
    assert any(isinstance(one, Recovered) and one.what == "worker id" for one in told)
    assert fetch(db, queries.workers()) == []


def test_a_worker_can_be_stopped_while_it_waits_for_its_id(db: Database, url: str) -> None:
    db.execute(OTHER, (timedelta(0),))
    settings = Settings(database_url=url, executor="inline", worker_id="twin")
    waiting = threading.Event()
    worker = build_worker("tests.tasks.fates:app", settings, emit=lambda told: _note(told, waiting))
    thread = threading.Thread(target=worker.run)
    thread.start()
    assert waiting.wait(30)
    worker.stop("end of the test")
    thread.join(15)

    assert not thread.is_alive()
    assert [row.pid for row in fetch(db, queries.workers())] == [77]


def _note(told: Sequence[Event], waiting: threading.Event) -> None:
    if any(isinstance(one, Troubled) for one in told):
        waiting.set()

# SPDX-License-Identifier: MIT
"""Workers count the events of the log, without a service: each event exactly once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest

from byrote.assembly.clock import monotonic
from byrote.assembly.identity import jitter, new_token
from byrote.core.errors import StoreRefused
from byrote.core.log.cursor import BEGINNING, Cursor
from byrote.core.ports.store import PartContext
from byrote.store.connect import DatabaseAddress
from byrote.store.worker import PostgresStore
from byrote.worker.context import WorkerContext
from byrote.worker.upkeep.event_counter import (
    BATCH_S,
    BUSY_EVERY_S,
    COUNT_MAX,
    COUNT_MIN,
    REFUSED_S,
    EventCounter,
)
from byrote.worker.upkeep.maintenance import EVERY, Maintenance
from tests.cli.console import byrote
from tests.store.queues.test_depths import count as count_all
from tests.store.queues.test_depths import kept
from tests.support import Db, claim, enqueue, finish, success, until
from tests.worker.harness import StartWorker, await_end, await_row, send, spec

BEGUN = "select 1 from byrote_duties where duty = 'depths' and cursor is not null"
COUNTED = "select coalesce(sum(n), 0) from byrote_stats where measure = %s"


def counted(db: Db, measure: str) -> int:
    row = db.execute(COUNTED, (measure,)).fetchone()
    return 0 if row is None else int(row[0])


def count_for_a_while(address: DatabaseAddress, stopped: threading.Event, name: str) -> None:
    """Do the duty `stats` again and again, as one worker of many."""
    part = PartContext("duties", stopped.wait, lambda _part, _error: None, jitter)
    with closing(PostgresStore(address, listen=False).duties(part)) as duties:
        context = WorkerContext(name, monotonic, jitter, new_token, lambda _events: None)
        every = {"stats": timedelta(0), "depths": timedelta(0)}
        maintenance = Maintenance(duties, context, idle=lambda: True, every=every)
        while not stopped.is_set():
            maintenance.turn()


def test_many_workers_count_each_event_once(db: Db, address: DatabaseAddress) -> None:
    stopped = threading.Event()
    with ThreadPoolExecutor(4) as pool:
        for name in "abcd":
            pool.submit(count_for_a_while, address, stopped, name)
        try:
            await_row(db, BEGUN)
            for _ in range(300):
                enqueue(db)
            finish(db, [success(leased) for leased in claim(db, limit=100)])
            until(lambda: counted(db, "Succeeded") >= 100)
        finally:
            stopped.set()
    count_all(db)

    assert (counted(db, "Enqueued"), counted(db, "Succeeded")) == (300, 100)
    assert kept(db) == [("default", "t", 200, 0)]


def test_top_shows_the_rates_of_a_site_without_a_service(
    db: Db, url: str, start_worker: StartWorker
) -> None:
    """A worker alone counts: `byrote top` reads it from the database."""
    start_worker()
    await_row(db, BEGUN)
    await_end(db, *send(db, *[spec("echo") for _ in range(20)]))
    until(lambda: counted(db, "Succeeded") >= 20)
    shown = byrote("top", "--once", "--json", url=url).object

    [task] = shown["stats"]["tasks"]
    assert shown["stats"]["as_of"]
    assert (task["succeeded"], task["depth"], task["running"]) == (20, 0, 0)
    assert task["run_s"]["p50"] is not None


class Log:
    """A log of so many events, each of which takes a while to count."""

    def __init__(self, events: int, took_s: float) -> None:
        self.events, self.took_s, self.now = events, took_s, 100.0
        self.limits: list[int] = []
        self.refusing = False

    def clock(self) -> float:
        return self.now

    def count(self, cursor: Cursor, *, limit: int) -> tuple[int, Cursor | None]:
        if self.refusing:
            self.limits.append(0)
            raise StoreRefused("locked")
        self.limits.append(limit)
        read = min(limit, self.events)
        self.events -= read
        self.now += read * self.took_s
        return read, Cursor(1, cursor.seq + read)


def counter(log: Log) -> EventCounter:
    return EventCounter(log, log.clock, keep_up=lambda: None)  # type: ignore[arg-type]


@pytest.mark.parametrize(("took_s", "last"), [(0.0, COUNT_MAX), (0.01, COUNT_MIN)])
def test_a_batch_is_small_where_events_are_slow_to_count(took_s: float, last: int) -> None:
    """A long statement would delay what runs wait for."""
    log = Log(10_000, took_s)
    counter(log).turn(str(BEGINNING))

    assert log.limits[-1] == last
    assert max(log.limits) * took_s <= 2 * BATCH_S


def test_counting_pauses_after_a_refusal_and_goes_on() -> None:
    log = Log(10, 0.0)
    counting = counter(log)
    log.refusing = True
    with pytest.raises(StoreRefused):
        counting.turn(str(BEGINNING))
    counting.turn(str(BEGINNING))
    assert log.limits == [0]

    log.refusing = False
    log.now += REFUSED_S
    counting.turn(str(BEGINNING))
    assert log.events < 10


def test_a_busy_worker_counts_seldom_and_an_idle_one_at_once() -> None:
    """Counting every second would slow down the runs of a busy server."""
    log, idle = Log(10, 0.0), [False]
    counting = EventCounter(log, log.clock, keep_up=lambda: None, idle=lambda: idle[0])  # type: ignore[arg-type]
    counting.turn(str(BEGINNING))
    assert log.limits == []

    log.now += BUSY_EVERY_S
    counting.turn(str(BEGINNING))
    counted_busy = len(log.limits)
    counting.turn(str(BEGINNING))
    assert len(log.limits) == counted_busy > 0

    idle[0] = True
    counting.turn(str(BEGINNING))
    assert len(log.limits) > counted_busy


def test_counting_is_a_duty_of_every_worker() -> None:
    assert {"stats", "depths"} <= EVERY.keys()

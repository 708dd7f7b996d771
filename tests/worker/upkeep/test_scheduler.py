# SPDX-License-Identifier: MIT
"""Workers beat: what their app would have run periodically runs, once for each tick."""

import pytest

from byrote.core.schedule.schedule import make_schedule
from byrote.core.spec import Delivery, describe
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.store.verify import verify
from tests.support import until
from tests.worker.harness import EXECUTORS, Database, StartWorker, await_row

APP = "tests.tasks.periodic:app"
ENDED = """select return_json, labels ->> 'tick' from byrote_runs
           where labels ->> 'schedule' = 'pulse' and status = 'SUCCESSFUL'"""


def ended(db: Database, least: int) -> list[tuple[str, str]]:
    """The ends of the pulse, as soon as there are so many."""
    return until(lambda: found if len(found := db.execute(ENDED).fetchall()) >= least else [])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_what_an_app_schedules_runs(
    db: Database, address: DatabaseAddress, start_worker: StartWorker, executor: str
) -> None:
    worker = start_worker(APP, executor=executor)
    for text, tick in ended(db, 1):
        assert text == f'"now {tick}"'
    nightly = fetch(db, queries.schedules(name="nightly"))[0]
    worker.stop()

    assert (nightly.origin, nightly.schedule.zone, nightly.runs) == ("code", "Europe/Berlin", 0)
    assert {line["schedule"] for line in worker.logged("Scheduled")} == {"pulse", "nightly"}
    assert {line["schedule"] for line in worker.logged("Ticked")} == {"pulse"}
    assert verify(address).sound


def test_three_workers_have_one_run_for_each_tick(db: Database, start_worker: StartWorker) -> None:
    workers = [start_worker(APP) for _ in range(3)]
    ticks = [tick for _, tick in ended(db, 3)]
    for worker in workers:
        worker.stop()
    told = [line for worker in workers for line in worker.logged("Ticked")]

    assert len(ticks) == len(set(ticks))
    assert len(told) == len({line["run"] for line in told})
    # Announced by all, changed by one of them.
    assert sum(len(worker.logged("Scheduled", schedule="pulse")) for worker in workers) == 1


def test_what_a_person_changed_stays_when_a_worker_starts(
    db: Database, start_worker: StartWorker
) -> None:
    start_worker(APP).stop()
    await_row(db, "select 1 from byrote_periodic_tasks where name = 'nightly'")
    [found] = fetch(db, queries.schedules(name="pulse"))
    fetch(db, queries.pause_schedule("pulse"))
    db.execute("update byrote_periodic_tasks set timing = '0 4 * * *' where name = 'nightly'")
    worker = start_worker(APP)
    await_row(db, "select 1 from byrote_duties where duty = 'beat' and holder = %s", worker.name)
    worker.stop()
    [pulse] = fetch(db, queries.schedules(name="pulse"))
    [nightly] = fetch(db, queries.schedules(name="nightly"))

    assert pulse.paused_at is not None
    assert pulse.runs >= found.runs
    assert nightly.schedule.timing == "0 4 * * *"
    assert worker.logged("Scheduled") == []


def test_an_unreadable_schedule_is_set_aside_and_the_others_go_on(
    db: Database, start_worker: StartWorker
) -> None:
    said = make_schedule("broken", describe("t", 1, [], {}, delivery=Delivery()), every="1h")
    fetch(db, queries.save_schedule(said, next_at=None))
    db.execute("update byrote_periodic_tasks set zone = 'Mars/Base', next_at = now()")
    worker = start_worker(APP)
    ended(db, 1)
    [broken] = fetch(db, queries.schedules(name="broken"))
    worker.stop()

    assert broken.fault is not None
    assert "Mars/Base" in broken.fault
    assert broken.paused_at is not None
    assert len(worker.logged("Troubled", what="schedule broken")) == 1

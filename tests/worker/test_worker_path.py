# SPDX-License-Identifier: MIT
"""The everyday path of a run through a worker process."""

import time
from datetime import timedelta

import pytest

from byrote import Retry
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.support import run_of, until
from tests.worker.harness import (
    Database,
    Marks,
    StartWorker,
    await_calm,
    await_end,
    await_row,
    await_status,
    history,
    send,
    send_one,
    spec,
)

NOW = Retry(attempts=3, backoff="fixed", delay_first=timedelta(0))


@pytest.mark.parametrize(
    "settings",
    [{}, {"listen": False}, {"pooled": True}, {"executor": "inline"}, {"claims": "fast"}],
    ids=lambda settings: " ".join(settings) or "default",
)
def test_runs_of_both_kinds_end_with_their_results(
    db: Database, start_worker: StartWorker, settings: dict[str, object]
) -> None:
    start_worker(**settings)
    ids = send(db, *(spec("a_echo" if n % 2 else "echo", n) for n in range(50)))
    runs = await_end(db, *ids)

    assert [run.result for run in runs] == list(range(50))
    assert {(run.attempts, run.charged, run.status) for run in runs} == {(1, 1, Status.SUCCESSFUL)}


def test_a_notification_wakes_an_idle_worker(db: Database, start_worker: StartWorker) -> None:
    """Polling is slow here, so only the hint can explain the speed."""
    worker = start_worker(poll_interval="60s")
    await_calm(db, worker)
    await_end(db, send_one(db, spec("echo")), within=20.0)


def test_without_notifications_polling_finds_the_work(
    db: Database, start_worker: StartWorker
) -> None:
    worker = start_worker(listen=False, poll_interval="200ms")
    await_row(db, "select 1 from byrote_workers where worker_id = %s and idle", worker.name)

    await_end(db, send_one(db, spec("echo")), within=10.0)


def test_an_idle_worker_polls_ever_more_slowly(db: Database, start_worker: StartWorker) -> None:
    """Without a listener: claims come closely at first, then settle at the poll interval."""
    worker = start_worker(listen=False, poll_interval="500ms")
    await_row(db, "select 1 from byrote_workers where worker_id = %s and idle", worker.name)
    claims = "select query_start from pg_stat_activity where application_name like %s"
    seen = set()

    def look() -> bool:
        seen.update(db.execute(claims, (f"%{worker.name} claim",)).fetchall())
        return time.monotonic() > ends

    ends = time.monotonic() + 1.5
    until(look)
    seen.clear()
    ends = time.monotonic() + 1.5
    until(look)

    assert 2 <= len(seen) <= 6


def test_a_failing_run_is_retried_and_then_succeeds(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    start_worker()
    run_id = send_one(db, spec("flaky", marks.path, 2, retry=NOW))
    [run] = await_end(db, run_id)

    assert (run.status, run.result, run.attempts, run.charged) == (Status.SUCCESSFUL, 3, 3, 3)
    assert [fault["attempt"] for fault in run.faults] == [1, 2]
    assert len(marks.words) == 3


def test_retries_wait_for_the_delay_of_the_policy(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    start_worker()
    policy = Retry(attempts=3, delay_first=timedelta(seconds=0.4), factor=2.0, jitter=False)
    await_end(db, send_one(db, spec("flaky", marks.path, 2, retry=policy)))
    first, second, third = map(float, marks.words)

    assert 0.4 <= second - first < 1.0
    assert 0.8 <= third - second < 1.4


def test_a_run_out_of_attempts_is_dead_with_every_fault(
    db: Database, start_worker: StartWorker
) -> None:
    start_worker()
    [run] = await_end(db, send_one(db, spec("boom", "no luck", retry=NOW)))

    assert (run.status, run.attempts, run.charged) == (Status.FAILED, 3, 3)
    assert [fault["message"] for fault in run.faults] == ["no luck"] * 3
    assert db.execute("select count(*) from byrote_dead").fetchone() == (1,)


def test_fatal_ends_a_run_at_its_first_attempt(db: Database, start_worker: StartWorker) -> None:
    start_worker()
    [run] = await_end(db, send_one(db, spec("fatal", retry=NOW)))

    assert (run.status, run.attempts) == (Status.FAILED, 1)


def test_a_snooze_costs_nothing(db: Database, start_worker: StartWorker) -> None:
    start_worker()
    run_id = send_one(db, spec("snooze", 30))
    run = await_status(db, run_id, Status.WAITING)

    assert (run.wait_reason, run.attempts, run.charged) == ("snooze", 1, 0)


def test_asking_again_at_once_many_times_loses_no_lease(
    db: Database, start_worker: StartWorker
) -> None:
    """A settled lease must not take the run's next lease along."""
    start_worker(lease="30s")
    policy = Retry(attempts=1_000)
    ids = send(db, *(spec("restless", 150, retry=policy) for _ in range(8)))
    runs = await_end(db, *ids, within=20.0)

    assert [(run.result, run.losses) for run in runs] == [(151, 0)] * 8


def test_p6_nothing_runs_before_it_is_due(db: Database, start_worker: StartWorker) -> None:
    """P6: by the wall clock of the same machine, no run began before its moment."""
    start_worker()
    ids = send(db, *(spec("moment", run_after=f"{100 * n}ms") for n in range(1, 11)))
    runs = await_end(db, *ids)
    late = [run.result - run.run_after.timestamp() for run in runs]

    assert min(late) >= 0.0
    assert max(late) < 1.0
    assert all(run.started_at >= run.run_after for run in runs)


def test_unknown_tasks_stay_ready_for_workers_that_know_them(
    db: Database, start_worker: StartWorker
) -> None:
    start_worker()
    unknown = send_one(db, spec("whoami_else"))
    await_end(db, send_one(db, spec("echo")))

    assert (run_of(db, unknown).status, run_of(db, unknown).attempts) == (Status.READY, 0)


def test_a_paused_queue_is_left_alone_until_it_is_resumed(
    db: Database, start_worker: StartWorker
) -> None:
    fetch(db, queries.pause("slow-lane"))
    start_worker(queues="slow-lane,default", poll_interval="60s")
    paused = send_one(db, spec("echo", 1, queue="slow-lane"))
    await_end(db, send_one(db, spec("echo", 2)))
    assert run_of(db, paused).status is Status.READY
    fetch(db, queries.resume("slow-lane"))

    await_end(db, paused, within=15.0)


def test_weighted_queues_share_by_their_weights(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    for queue in ("many", "few"):
        send(db, *(spec("mark", marks.path, queue, 0.005, queue=queue) for _ in range(120)))
    start_worker(queues="many=3,few=1", drain=True).wait(30)
    claimed = db.execute(
        "select queue_name from byrote_event_log join byrote_runs using (result_id)"
        " where kind = 'Claimed' order by seq"
    ).fetchall()
    first = [queue for (queue,) in claimed[:120]]

    assert first.count("few") == pytest.approx(30, abs=4)
    assert sorted(marks.words) == ["few"] * 120 + ["many"] * 120


def test_a_draining_worker_ends_when_nothing_is_due(
    db: Database, start_worker: StartWorker
) -> None:
    ids = send(db, *(spec("a_echo", n) for n in range(30)))
    later = send_one(db, spec("echo", run_after="1h"))
    unknown = send_one(db, spec("whoami_else"))
    worker = start_worker(drain=True, ready=False)

    assert worker.wait() == 0
    assert {run.status for run in await_end(db, *ids)} == {Status.SUCCESSFUL}
    assert run_of(db, later).status is Status.WAITING
    assert run_of(db, unknown).status is Status.READY


def test_a_draining_worker_does_not_wait_for_a_paused_queue(
    db: Database, start_worker: StartWorker
) -> None:
    fetch(db, queries.pause("default"))
    run_id = send_one(db, spec("echo"))

    assert start_worker(drain=True, ready=False).wait(5.0) == 0
    assert run_of(db, run_id).status is Status.READY


def test_a_flood_on_standard_output_does_no_harm(db: Database, start_worker: StartWorker) -> None:
    start_worker(lease="1s")
    flood, quick = send(db, spec("shout", 100), spec("a_echo", 1))
    runs = await_end(db, flood, quick)

    assert [(run.result, run.attempts) for run in runs] == [(100, 1), (1, 1)]


def test_the_event_log_has_the_path_of_a_run(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    worker = start_worker()
    run_id = send_one(db, spec("flaky", marks.path, 1, retry=NOW))
    await_end(db, run_id)

    assert history(db, run_id) == [
        ("Enqueued", 0, None),
        ("Claimed", 1, worker.name),
        ("Retried", 1, worker.name),
        ("Claimed", 2, worker.name),
        ("Succeeded", 2, worker.name),
    ]

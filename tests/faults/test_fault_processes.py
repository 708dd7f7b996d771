# SPDX-License-Identifier: MIT
"""Faults 1, 2, 3, 5, 6, 8, 9 and 46: processes killed, frozen, stuck, and left behind."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from byrote import Retry
from byrote.core.state import Status
from tests.faults.proxy import Proxy, proxied
from tests.faults.test_fault_lost_answers import WORDS
from tests.support import run_of, until
from tests.worker.harness import (
    Database,
    Marks,
    StartWorker,
    alive,
    await_calm,
    await_end,
    await_row,
    await_status,
    history,
    send,
    send_one,
    spec,
)

CRASHES = "tests.tasks.crashes:app"
NOW = Retry(attempts=3, backoff="fixed", delay_first=timedelta(0))


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with proxied(url) as made:
        yield made


def overlaps(db: Database) -> int:
    """How often, by the database's clock, a run was claimed while an earlier lease still held."""
    row = db.execute(
        """
        with told as (
          select result_id, move, kind, at, leased_until,
            lag(leased_until) over (partition by result_id order by move) as before,
            lag(kind) over (partition by result_id order by move) as after
          from byrote_event_log
          where kind in ('Claimed', 'Renewed', 'Succeeded', 'Retried', 'Released', 'Crashed')
        )
        select count(*) from told
        where kind = 'Claimed' and after in ('Claimed', 'Renewed') and at < before
        """
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_fault_01_a_killed_supervisor_takes_its_hands_along_and_its_run_is_rerun(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    """Within the lease plus two seconds, with every hand gone at once."""
    first = start_worker(CRASHES, lease="1s", hands=2)
    until(lambda: len(first.hands) == 2)
    run_id = send_one(db, spec("slow", marks.path, 30))
    marks.await_words(1)
    hands = first.hands
    second = start_worker(CRASHES, lease="1s")
    killed_at = time.monotonic()
    first.signal(signal.SIGKILL)
    until(lambda: not any(map(alive, hands)), 1.0, "hands outlive their supervisor")
    marks.await_words(2, within=4.0)

    assert time.monotonic() - killed_at < 1.0 + 2.0
    run = run_of(db, run_id)
    assert (run.leased_by, run.attempts, run.charged, run.losses) == (second.name, 2, 0, 1)
    assert run.faults[0]["kind"] == "lost"


def test_every_run_of_a_killed_worker_is_claimed_again_within_the_lease_and_two_seconds(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    """However many it held; by the database's clock, which also has the time of the kill."""
    first = start_worker(CRASHES, lease="2s", concurrency=600)
    held = send(db, *[spec("a_quick", marks.path, "word", 120.0) for _ in range(600)])
    running = "select 1 from byrote_task_runs where status = 'RUNNING' having count(*) = %s"
    await_row(db, running, len(held))
    start_worker(CRASHES, lease="30s", concurrency=600)
    first.signal(signal.SIGKILL)
    [[killed_at]] = db.execute("select clock_timestamp()").fetchall()
    again = """select max(at) from byrote_event_log
               where kind = 'Claimed' and attempt = 2 having count(*) = %s"""
    [last] = await_row(db, again, len(held))

    assert (last - killed_at).total_seconds() < 2.0 + 2.0
    marks.await_words(2 * len(held))


def test_fault_02_a_killed_hand_is_in_the_row_in_under_a_second(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    worker = start_worker(CRASHES)
    run_id = send_one(db, spec("slow", marks.path, 30))
    [pid] = marks.await_words(1)
    killed_at = time.monotonic()
    os.kill(int(pid), signal.SIGKILL)
    run = await_status(db, run_id, Status.FAILED, within=2.0)

    assert time.monotonic() - killed_at < 1.0
    [fault] = run.faults
    assert (fault["kind"], fault["signal"]) == ("crashed", "SIGKILL")
    assert "was killed by SIGKILL" in fault["message"]
    assert worker.await_log("HandEnded", pid=int(pid))["reason"] == "was killed by SIGKILL"
    await_end(db, send_one(db, spec("whoami")))


@pytest.mark.parametrize("task", ["die", "a_die"])
def test_fault_03_a_poison_pill_dies_after_exactly_its_attempts(
    db: Database, start_worker: StartWorker, marks: Marks, task: str
) -> None:
    """And the runs around it are neither charged nor lost."""
    start_worker(CRASHES, hands=2)
    pill = send_one(db, spec(task, "exit", f"{marks.path}-pill", retry=NOW))
    beside = "quick" if task == "die" else "a_quick"
    others = send(db, *(spec(beside, marks.path, str(n)) for n in range(40)))
    [dead] = await_end(db, pill)
    runs = await_end(db, *others)

    executed = Marks(Path(f"{marks.path}-pill")).words
    assert (dead.status, dead.charged, executed) == (Status.FAILED, 3, ["exit"] * 3)
    assert [fault["exit_code"] for fault in dead.faults] == [9, 9, 9]
    assert {(run.status, run.charged) for run in runs} == {(Status.SUCCESSFUL, 1)}
    assert set(marks.words) == {str(n) for n in range(40)}


def test_fault_03_a_crash_with_two_suspects_charges_none_and_they_run_apart(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    """A sync pill beside busy async tasks: what is not proven is a loss, at most once."""
    start_worker(CRASHES, hands=2)
    pill = send_one(db, spec("die", "exit", f"{marks.path}-pill", retry=NOW))
    others = send(db, *(spec("a_quick", marks.path, str(n), 0.3) for n in range(20)))
    [dead] = await_end(db, pill)
    runs = await_end(db, *others)

    executed = len(Marks(Path(f"{marks.path}-pill")).words)
    assert (dead.status, dead.charged, executed) == (Status.FAILED, 3, 3 + dead.losses)
    assert dead.losses <= 1
    assert {(run.status, run.charged) for run in runs} == {(Status.SUCCESSFUL, 1)}


def test_p3_a_frozen_workers_finish_is_refused(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    """P3 and fault 5: it slept through its lease, another ran the run, its word comes too late."""
    frozen = start_worker(lease="1s")
    run_id = send_one(db, spec("a_mark", marks.path, "x", 0.5))
    marks.await_words(1)
    frozen.signal(signal.SIGSTOP)
    second = start_worker(lease="1s")
    [run] = await_end(db, run_id)
    frozen.signal(signal.SIGCONT)

    assert frozen.await_log("LeaseRefused", run=run_id)["attempt"] == 1
    assert run_of(db, run_id) == run
    assert (run.worker_ids[-1], run.attempts, run.charged) == (second.name, 2, 1)
    assert not frozen.logged("Succeeded", run=run_id)
    await_end(db, send_one(db, spec("echo")))


def test_fault_05_a_worker_frozen_with_its_hands_drops_the_task(
    db: Database, start_worker: StartWorker, marks: Marks, tmp_path: Path
) -> None:
    frozen = start_worker(lease="1s")
    gate = f"{tmp_path}/gate"
    run_id = send_one(db, spec("hold", marks.path, gate))
    [pid] = marks.await_words(1)
    frozen.signal(signal.SIGSTOP)
    os.kill(int(pid), signal.SIGSTOP)
    second = start_worker(lease="1s")
    marks.await_words(2)
    frozen.signal(signal.SIGCONT)
    with contextlib.suppress(ProcessLookupError):  # Its supervisor may have killed it by now.
        os.kill(int(pid), signal.SIGCONT)
    until(lambda: not alive(int(pid)), 3.0, "the task of a lost lease runs on")
    Path(gate).touch()
    [run] = await_end(db, run_id)

    assert (run.worker_ids[-1], run.attempts, run.losses) == (second.name, 2, 1)
    assert frozen.await_log("LeaseRefused", run=run_id)


def test_fault_06_a_claim_that_arrives_after_its_lease_is_not_begun(
    db: Database, proxy: Proxy, start_worker: StartWorker, marks: Marks
) -> None:
    """The worker froze between claim and start; when it resumes, another worker has the run."""
    frozen = start_worker(url=proxy.url, lease="1s", poll_interval="60s")
    await_end(db, send_one(db, spec("echo")))
    await_calm(db, frozen)
    fault = proxy.plan(WORDS["claim"], "hold", lambda: frozen.signal(signal.SIGSTOP))
    run_id = send_one(db, spec("mark", marks.path, "x"))
    await_status(db, run_id, Status.RUNNING)
    second = start_worker(lease="1s")
    [run] = await_end(db, run_id)
    fault.let_go.set()
    frozen.signal(signal.SIGCONT)
    await_row(db, "select 1 where clock_timestamp() > %s + interval '1 s'", run.finished_at)
    ids = send(db, *(spec("echo", n) for n in range(20)))
    await_end(db, *ids)

    assert marks.words == ["x"]
    assert run_of(db, run_id).worker_ids == [frozen.name, second.name]
    assert run_of(db, run_id).result_hash == run.result_hash


@pytest.mark.parametrize("task", ["holds_the_gil", "slow"])
def test_fault_08_a_task_that_holds_the_gil_three_leases_long_runs_once(
    db: Database, start_worker: StartWorker, marks: Marks, task: str
) -> None:
    start_worker(CRASHES, lease="1s")
    start_worker(CRASHES, lease="1s")
    [run] = await_end(db, send_one(db, spec(task, marks.path, 3.0)))

    assert (run.status, run.attempts, run.losses) == (Status.SUCCESSFUL, 1, 0)
    assert len(marks.words) == 1


def test_fault_09_a_blocking_call_in_an_async_task_keeps_its_lease(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    """The others of that hand are late, and nothing else."""
    start_worker(lease="1s")
    start_worker(lease="1s")
    blocking = send_one(db, spec("a_blocking", marks.path, 3.0))
    marks.await_words(1)
    ids = [blocking, *send(db, *(spec("a_echo", n) for n in range(10)))]
    runs = await_end(db, *ids)

    assert {(run.status, run.losses) for run in runs} == {(Status.SUCCESSFUL, 0)}
    assert (runs[0].attempts, len(marks.words)) == (1, 1)
    assert {run.charged for run in runs} == {1}


@pytest.mark.parametrize("new_session", [False, True], ids=["forked", "daemonised"])
def test_fault_46_no_grandchild_is_left_after_a_stop(
    db: Database, start_worker: StartWorker, marks: Marks, new_session: bool
) -> None:
    worker = start_worker(CRASHES)
    await_end(db, send_one(db, spec("orphan", marks.path, new_session)))
    [sleeper] = marks.await_words(1)
    try:
        assert worker.stop() == 0
        until(lambda: not alive(int(sleeper)), 1.0, "a grandchild outlives the worker")
    finally:
        if alive(int(sleeper)):
            os.kill(int(sleeper), signal.SIGKILL)


def test_p2_never_two_holders_at_once(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    """P2: one of three is frozen, one killed; by the database's clock no two leases overlap."""
    workers = [start_worker(lease="1s", hands=1) for _ in range(3)]
    ids = send(db, *(spec("a_mark", marks.path, str(n), 0.3) for n in range(150)))
    marks.await_words(20)
    workers[0].signal(signal.SIGSTOP)
    workers[1].signal(signal.SIGKILL)
    await_row(db, "select 1 from byrote_event_log where kind = 'Lost'")
    workers[0].signal(signal.SIGCONT)
    runs = await_end(db, *ids, within=20.0)

    assert {run.status for run in runs} == {Status.SUCCESSFUL}
    assert overlaps(db) == 0
    assert max(run.attempts for run in runs) >= 2
    for run in runs:
        ends = [kind for kind, _, _ in history(db, run.id) if kind == "Succeeded"]
        assert ends == ["Succeeded"]


def test_a_lease_renewed_at_the_last_moment_is_not_held_for_ever(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    """The worker gave the attempt up by its own clock, but the database let the renewal pass."""
    start_worker(lease="2s", grace="1s")
    run_id = send_one(db, spec("a_mark", marks.path, "x", 3.0))
    marks.await_words(1)
    with db.transaction():
        db.execute("lock table byrote_task_runs in access exclusive mode")
        until_expiry = "select 1 where clock_timestamp() > %s - interval '80 ms'"
        await_row(db, until_expiry, run_of(db, run_id).leased_until)
    [run] = await_end(db, run_id, within=8.0)

    assert (run.status, run.charged) == (Status.SUCCESSFUL, 1)

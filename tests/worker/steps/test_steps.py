# SPDX-License-Identifier: MIT
"""Durable steps in worker processes: what was done is not done again."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from byrote import App, Retry, Status
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.support import run_of, until
from tests.worker.harness import (
    EXECUTORS,
    Database,
    Marks,
    StartWorker,
    WorkerProcess,
    alive,
    await_end,
    await_row,
    await_status,
    history,
    send,
    send_one,
    spec,
)

STEPS = "tests.tasks.steps:app"
NOW = Retry(attempts=3, backoff="fixed", delay_first="0s")
KINDS = pytest.mark.parametrize("kind", ["", "a_"], ids=["sync", "async"])


@pytest.fixture(params=EXECUTORS)
def worker(request: pytest.FixtureRequest, start_worker: StartWorker) -> WorkerProcess:
    """A worker of each executor that can do steps."""
    return start_worker(STEPS, executor=request.param)


def ledger(db: Database, run_id: str) -> list[tuple[int, str, bool]]:
    rows = fetch(db, queries.steps([run_id]))
    return [(row.sequence, row.name, row.open) for row in rows if row.kind != "raised"]


@KINDS
def test_a_retry_resumes_after_the_last_finished_step(
    db: Database, worker: WorkerProcess, marks: Marks, kind: str
) -> None:
    run_id = send_one(db, spec(f"{kind}three", marks.path, retry=NOW))
    [run] = await_end(db, run_id)

    assert (run.status, run.attempts) == (Status.SUCCESSFUL, 2)
    assert run.result == [{"n": 1.0}, None, [3]]
    assert marks.words == ["one", "two", "three"]
    assert ledger(db, run_id) == [(1, "one", False), (2, "two", False), (3, "three", False)]


def test_a_hand_killed_between_two_steps_loses_neither(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    start_worker(STEPS)
    [run] = await_end(db, send_one(db, spec("killed", marks.path, retry=NOW)))

    assert (run.result, [fault["kind"] for fault in run.faults]) == (2, ["crashed"])
    assert marks.words == ["one", "two"]


def test_a_changed_step_ends_the_run_and_is_named(
    db: Database, worker: WorkerProcess, marks: Marks
) -> None:
    [run] = await_end(db, send_one(db, spec("changed", marks.path, retry=NOW)))
    fault = run.faults[-1]

    assert (run.status, run.attempts) == (Status.FAILED, 2)
    assert (fault["kind"], fault["type"]) == (
        "nondeterminism",
        "byrote.core.errors.NonDeterminism",
    )
    assert "Step 1 was step 'step1'" in fault["message"]
    assert "is step 'step2' now" in fault["message"]
    assert marks.words == ["step1"]


@KINDS
@pytest.mark.parametrize("count", [0, 1])
def test_a_task_that_returns_before_its_recorded_steps_took_another_way(
    db: Database, worker: WorkerProcess, marks: Marks, *, kind: str, count: int
) -> None:
    [run] = await_end(db, send_one(db, spec(f"{kind}fewer", marks.path, count, retry=NOW)))
    fault = run.faults[-1]

    assert (run.status, run.attempts, fault["kind"]) == (Status.FAILED, 2, "nondeterminism")
    assert f"Step {count + 1} was step 'step{count}'" in fault["message"]
    assert "is the end of the task now" in fault["message"]


@KINDS
def test_a_task_that_comes_to_its_recorded_steps_and_no_more_is_well(
    db: Database, worker: WorkerProcess, marks: Marks, *, kind: str
) -> None:
    [run] = await_end(db, send_one(db, spec(f"{kind}fewer", marks.path, 2, retry=NOW)))

    assert run.result == "went on"
    assert marks.words == ["step0", "step1"]


def test_a_task_that_catches_its_nondeterminism_gets_no_further(
    db: Database, worker: WorkerProcess
) -> None:
    [run] = await_end(db, send_one(db, spec("changed_quietly", retry=NOW)))

    assert run.status is Status.FAILED
    assert "was step 'one' in an earlier attempt and is a sleep now" in run.faults[-1]["message"]


@pytest.mark.parametrize("how", ["raise", "return"])
def test_a_task_cannot_cover_up_that_it_took_another_way(
    db: Database, worker: WorkerProcess, how: str
) -> None:
    [run] = await_end(db, send_one(db, spec("changed_silently", how, retry=NOW)))

    assert (run.status, run.attempts) == (Status.FAILED, 2)
    assert run.faults[-1]["kind"] == "nondeterminism"


@pytest.mark.parametrize(
    ("task", "args", "said"),
    [
        ("unstorable", [], "The result of step 'odd' cannot be stored"),
        ("nested", [], "is inside another step"),
        ("a_blocks", [], "await ctx.astep"),
        ("nameless", [""], "1 to 200 printable characters"),
        ("nameless", ["a\x00b"], "1 to 200 printable characters"),
    ],
)
def test_what_cannot_be_a_step_is_refused(
    db: Database, worker: WorkerProcess, *, task: str, args: list[Any], said: str
) -> None:
    run_id = send_one(db, spec(task, *args))
    [run] = await_end(db, run_id)

    assert run.status is Status.FAILED
    assert said in run.faults[-1]["message"]
    assert ledger(db, run_id) == []


def test_a_coroutine_that_was_not_awaited_is_refused_as_a_result(
    db: Database, worker: WorkerProcess, marks: Marks
) -> None:
    [run] = await_end(db, send_one(db, spec("forgotten_await", marks.path)))

    assert run.faults[-1]["type"] == "byrote.core.errors.BadPayload"
    assert "never awaited" not in worker.text
    assert marks.words == []


def test_a_step_after_the_lease_was_lost_is_refused(
    db: Database, start_worker: StartWorker, marks: Marks, tmp_path: Path
) -> None:
    """The lease is taken away behind the worker's back; its step and its outcome are dropped."""
    start_worker(STEPS)
    run_id = send_one(db, spec("held", marks.path, str(tmp_path / "gate"), retry=NOW))
    marks.await_words(1)
    db.execute("update byrote_task_runs set leased_until = clock_timestamp() - interval '1 s'")
    await_row(db, "select 1 from byrote_event_log where kind = 'Lost' and result_id = %s", run_id)
    (tmp_path / "gate").touch()
    [run] = await_end(db, run_id)

    assert run.result == "by 2"
    assert [row.attempt for row in fetch(db, queries.steps([run_id]))] == [2]
    assert (run.status, run.charged, run.losses) == (Status.SUCCESSFUL, 1, 1)


def test_a_worker_that_slept_through_its_lease_stores_nothing(
    db: Database, start_worker: StartWorker, marks: Marks, tmp_path: Path
) -> None:
    frozen = start_worker(STEPS, lease="2s")
    gate = tmp_path / "gate"
    run_id = send_one(db, spec("held", marks.path, str(gate), retry=NOW))
    marks.await_words(1)
    frozen.signal(signal.SIGSTOP)
    start_worker(STEPS)
    [run] = await_end(db, run_id)
    # Only now does the first attempt reach its step; its supervisor wakes up after that.
    gate.touch()
    marks.await_words(4)
    frozen.signal(signal.SIGCONT)
    until(lambda: frozen.logged("LeaseRefused", run=run_id), what="the loss was not noticed")

    assert run.result == "by 2"
    assert sorted(marks.words) == ["attempt1", "attempt2", "called1", "called2"]
    assert [row.attempt for row in fetch(db, queries.steps([run_id]))] == [2]
    assert run_of(db, run_id) == run


@KINDS
def test_a_sleep_releases_the_slot_and_goes_on_afterwards(
    db: Database, worker: WorkerProcess, marks: Marks, kind: str
) -> None:
    run_id = send_one(db, spec(f"{kind}sleeper", marks.path, 2.0))
    asleep = await_status(db, run_id, Status.WAITING)
    [other] = await_end(db, send_one(db, spec("echo", 1)))
    [run] = await_end(db, run_id)

    assert asleep.wait_reason == "sleep"
    assert (other.finished_at or run.enqueued_at) < asleep.run_after
    assert marks.words == ["before", "after"]
    assert (run.result, run.attempts, run.charged) == (2, 2, 1)
    assert [kind for kind, _, _ in history(db, run_id)] == [
        "Enqueued", "Claimed", "Snoozed", "Promoted", "Claimed", "Succeeded",
    ]  # fmt: skip


def test_a_sleep_outlives_its_worker(db: Database, start_worker: StartWorker, marks: Marks) -> None:
    first = start_worker(STEPS)
    run_id = send_one(db, spec("sleeper", marks.path, 3600))
    asleep = await_status(db, run_id, Status.WAITING)
    assert first.stop() == 0
    start_worker(STEPS)
    # An hour passes: for the row that is promoted, and for the ledger that is asked.
    db.execute("update byrote_task_runs set run_after = clock_timestamp()")
    db.execute("update byrote_steps set wake_at = clock_timestamp() where kind = 'sleep'")
    [run] = await_end(db, run_id)

    assert (asleep.run_after - asleep.enqueued_at).total_seconds() >= 3600
    assert (run.result, len(set(run.worker_ids))) == (2, 2)
    assert marks.words == ["before", "after"]


def test_a_run_woken_too_early_goes_back_to_sleep(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    start_worker(STEPS)
    run_id = send_one(db, spec("sleeper", marks.path, 3600))
    asleep = await_status(db, run_id, Status.WAITING)
    db.execute("update byrote_task_runs set run_after = clock_timestamp()")
    until(lambda: len(history(db, run_id)) >= 6)
    run = run_of(db, run_id)

    assert (run.status, run.wait_reason) == (Status.WAITING, "sleep")
    assert abs((run.run_after - asleep.run_after).total_seconds()) < 1
    assert marks.words == ["before"]


@pytest.fixture
def sender(url: str) -> Iterator[App]:
    app = App(url)
    yield app
    app.close()


@KINDS
@pytest.mark.parametrize("early", [True, False], ids=["before", "after"])
def test_a_signal_reaches_its_wait_whether_it_comes_before_or_after(
    db: Database, worker: WorkerProcess, sender: App, *, kind: str, early: bool
) -> None:
    run_id = send_one(db, spec(f"{kind}waiter", 1, run_after="300ms" if early else None))
    if not early:
        await_row(db, "select 1 from byrote_task_runs where wait_reason = 'event'")
    assert sender.signal(run_id, "other", "x")
    assert sender.signal(run_id, "paid", {"cents": 5})
    [run] = await_end(db, run_id)

    assert run.result == [{"cents": 5}]
    assert (run.attempts, run.charged) == ((1, 1) if early else (2, 1))
    assert not sender.signal(run_id, "paid")


def test_many_runs_receive_all_their_signals_in_order(
    db: Database, start_worker: StartWorker, sender: App
) -> None:
    """Signals arrive while runs go to wait and come back, on two workers at once."""
    for _ in range(2):
        start_worker(STEPS, concurrency=20)
    ids = send(db, *(spec("a_waiter", 3) for _ in range(30)))

    def send_all(n: int) -> None:
        for run_id in ids:
            sender.signal(run_id, "paid", n)

    for n in range(3):
        thread = threading.Thread(target=send_all, args=(n,))
        thread.start()
        thread.join()
    runs = await_end(db, *ids, within=60)

    assert {tuple(run.result) for run in runs} == {(0, 1, 2)}
    assert {run.charged for run in runs} == {1}


def test_a_wait_times_out_with_an_error_or_a_default(
    db: Database, worker: WorkerProcess, marks: Marks
) -> None:
    ids = send(db, spec("impatient", marks.path), spec("a_content"))
    runs = await_end(db, *ids)

    assert [run.result for run in runs] == ["No signal 'paid' came in time.", "nothing"]
    assert marks.words == ["timeout"]


def test_a_wait_inside_a_task_group_releases_the_slot_too(
    db: Database, worker: WorkerProcess, sender: App
) -> None:
    run_id = send_one(db, spec("a_grouped"))
    run = await_status(db, run_id, Status.WAITING)
    assert (run.wait_reason, run.run_after.year - run.enqueued_at.year >= 99) == ("event", True)
    sender.signal(run_id, "paid", 1)

    assert await_end(db, run_id)[0].result == 1


def test_steps_side_by_side_in_one_run_keep_their_numbers(
    db: Database, worker: WorkerProcess, marks: Marks
) -> None:
    run_id = send_one(db, spec("a_gathered", marks.path, 20))
    [run] = await_end(db, run_id)

    assert run.result == list(range(20))
    assert ledger(db, run_id) == [(n + 1, f"s{n}", False) for n in range(20)]


@pytest.mark.parametrize("executor", ["hand", "inline"])
def test_steps_of_many_runs_at_once_do_not_mix(
    db: Database, start_worker: StartWorker, marks: Marks, executor: str
) -> None:
    start_worker(STEPS, executor=executor)
    ids = send(db, *(spec("a_chain", marks.path, me, 5, retry=NOW) for me in range(40)))
    runs = await_end(db, *ids, within=60)

    assert [run.result for run in runs] == [[[me, n] for n in range(5)] for me in range(40)]
    assert set(Counter(marks.words).values()) == {1}
    assert len(marks.words) == 200


def test_steps_outlive_the_connection_they_are_stored_over(
    db: Database, start_worker: StartWorker, marks: Marks
) -> None:
    """The scribe's connection is cut again and again; no step is lost, none is stored twice."""
    start_worker(STEPS)
    cut = """select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and application_name like %s"""
    ids = send(db, *(spec("a_chain", marks.path, me, 20, retry=NOW) for me in range(10)))
    ended = "select count(*) from byrote_runs where status = 'SUCCESSFUL'"

    def over() -> bool:
        db.execute(cut, ("%steps",))
        return db.execute(ended).fetchone() == (10,)

    until(over, within=60, every=0.1)

    assert [run_of(db, run_id).result[-1] for run_id in ids] == [[me, 19] for me in range(10)]
    assert set(Counter(marks.words).values()) == {1}
    assert len(marks.words) == 200


@KINDS
@pytest.mark.parametrize("crash", [True, False], ids=["before the commit", "after the commit"])
def test_an_effect_in_the_same_database_is_done_once(
    db: Database, worker: WorkerProcess, url: str, *, kind: str, crash: bool
) -> None:
    db.execute("drop table if exists payments; create table payments (run uuid)")
    [run] = await_end(db, send_one(db, spec(f"{kind}payer", url, crash, retry=NOW)))
    paid = [str(found) for (found,) in db.execute("select run from payments")]
    db.execute("drop table payments")

    assert (run.result, run.attempts) == (crash, 2)
    assert paid == [run.id]


def test_a_supervisor_killed_between_steps_is_survived(
    db: Database, start_worker: StartWorker, marks: Marks, tmp_path: Path
) -> None:
    first = start_worker(STEPS, lease="2s")
    run_id = send_one(db, spec("held", marks.path, str(tmp_path / "gate"), retry=NOW))
    marks.await_words(1)
    [hand] = first.hands
    os.kill(first.pid, signal.SIGKILL)
    until(lambda: not alive(hand))
    start_worker(STEPS)
    [run] = await_end(db, run_id)

    assert (run.result, run.losses) == ("by 2", 1)

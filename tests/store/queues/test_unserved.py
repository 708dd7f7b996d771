# SPDX-License-Identifier: MIT
"""Runs of tasks that no live worker knows: noted, and ended when their queue has waited."""

from datetime import timedelta

import pytest

from byrote.core.state import Status
from byrote.core.unserved import Standing, UnservedTask, nearest
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.store.verify import verify, verify_on
from byrote.testing import FakeClock
from tests.support import Db, claim, enqueue, history, register, row_of, run_of

DAY = timedelta(hours=24)


def note(db: Db) -> list[UnservedTask]:
    return fetch(db, queries.note_unserved())


def fail(db: Db, limit: int = 100) -> list[str]:
    return [run.id for run in fetch(db, queries.fail_unserved(limit=limit))]


def live_on(db: Db, clock: FakeClock, hours: float, *queues: str, look: bool = True) -> list[str]:
    """Let time pass while a worker that knows t@1 lives, with a check every half minute."""
    ended: list[str] = []
    for _ in range(int(hours * 120)):
        clock.advance(seconds=30)
        register(db, "w", *(queues or ("default",)))
        if look:
            note(db)
            ended += fail(db)
    return ended


def test_the_runs_of_an_unknown_version_are_counted_and_known_versions_named(db: Db) -> None:
    enqueue(db, 3, task="t", version=9)
    enqueue(db, 2)
    register(db, "w", "default")
    [noted] = note(db)

    assert (noted.key, noted.runs) == ("t@9", 3)
    assert nearest("t@9", ["s@1", "t@1", "t@2"]) == "t@1, t@2"


@pytest.fixture
def short(db: Db) -> None:
    """The queue waits for half an hour, so that a test has not to live through a day."""
    fetch(db, queries.set_unserved("default", after=timedelta(minutes=30)))


def test_a_task_that_no_live_worker_knows_is_noted_once(db: Db, clock: FakeClock) -> None:
    enqueue(db, 3, task="gone")
    enqueue(db, task="t", version=2)
    enqueue(db, task="t")
    assert note(db) == []
    register(db, "w", "default")

    found = note(db)
    assert [(one.queue, one.key, one.nearest) for one in found] == [
        ("default", "gone@1", ""),
        ("default", "t@2", "t@1"),
    ]
    clock.advance(seconds=10)
    assert note(db) == []
    listed = fetch(db, queries.unserved_tasks())
    assert [(one.key, one.waited_s, one.unserved_for) for one in listed] == [
        ("gone@1", 10.0, DAY),
        ("t@2", 10.0, DAY),
    ]


@pytest.mark.usefixtures("short")
def test_it_ends_failed_after_its_queue_has_waited(
    db: Db, address: DatabaseAddress, clock: FakeClock
) -> None:
    [run_id] = enqueue(db, task="gone")
    [mine] = enqueue(db)
    early = live_on(db, clock, 0.45)
    ended = live_on(db, clock, 0.1)

    assert (early, ended) == ([], [run_id])
    run = run_of(db, run_id)
    assert (run.status, run.attempts, run.charged, run.losses) == (Status.FAILED, 0, 0, 0)
    [fault] = run.faults
    assert (fault["kind"], fault["type"]) == ("unknown_task", "UnknownTask")
    assert "No live worker of the queue default knew gone@1 for 00:30:00" in fault["message"]
    assert history(db, run_id) == ["Enqueued", "Failed"]
    assert run_of(db, mine).status is Status.READY
    assert verify(address).sound


@pytest.mark.usefixtures("short")
def test_a_requeued_one_waits_again(db: Db, address: DatabaseAddress, clock: FakeClock) -> None:
    [run_id] = enqueue(db, task="gone")
    assert live_on(db, clock, 0.6) == [run_id]
    fetch(db, queries.retry([run_id]))
    assert live_on(db, clock, 0.4) == []
    assert run_of(db, run_id).status is Status.READY
    assert live_on(db, clock, 0.2) == [run_id]
    assert verify(address).sound


@pytest.mark.usefixtures("short")
def test_a_run_that_came_later_waits_as_long(db: Db, clock: FakeClock) -> None:
    [first] = enqueue(db, task="gone")
    live_on(db, clock, 0.4)
    [second] = enqueue(db, task="gone")

    assert live_on(db, clock, 0.2) == [first]
    assert live_on(db, clock, 0.4) == [second]


@pytest.mark.usefixtures("short")
def test_time_without_any_worker_does_not_count(db: Db, clock: FakeClock) -> None:
    """A backlog survives a weekend, though the wrong worker is the first to be back."""
    [run_id] = enqueue(db, task="gone")
    live_on(db, clock, 0.25)
    clock.advance(hours=60)
    note(db)
    assert fail(db) == []
    register(db, "w", "default")

    assert (note(db), fail(db)) == ([], [])
    assert live_on(db, clock, 0.1) == []
    assert run_of(db, run_id).status is Status.READY


@pytest.mark.usefixtures("short")
def test_a_worker_that_knows_the_task_sets_the_clock_back(db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db, task="gone")
    live_on(db, clock, 0.4)
    register_knowing(db, "gone@1")
    note(db)

    assert fetch(db, queries.unserved_tasks()) == []
    assert live_on(db, clock, 0.4) == []
    assert run_of(db, run_id).status is Status.READY


@pytest.mark.usefixtures("short")
def test_a_task_that_is_executed_is_known(db: Db, clock: FakeClock) -> None:
    """A worker over HTTP need not be in the list of workers."""
    enqueue(db, 2, task="gone")
    claim(db, tasks=["gone@1"], lease_for=timedelta(days=2))

    assert live_on(db, clock, 0.6) == []
    assert fetch(db, queries.unserved_tasks()) == []


@pytest.mark.parametrize("how", ["paused", "never", "other queue", "waiting"])
@pytest.mark.usefixtures("short")
def test_what_never_ends_so(db: Db, clock: FakeClock, how: str) -> None:
    queue = "other" if how == "other queue" else "default"
    after = timedelta(hours=2) if how == "waiting" else timedelta(0)
    [run_id] = enqueue(db, task="gone", queue=queue, run_after=after)
    if how == "paused":
        fetch(db, queries.pause("default"))
    if how == "never":
        fetch(db, queries.set_unserved("default", after=None))

    assert live_on(db, clock, 1) == []
    assert run_of(db, run_id).status in {Status.READY, Status.WAITING}


@pytest.mark.usefixtures("short")
def test_what_was_attempted_before_keeps_its_record(
    db: Db, address: DatabaseAddress, clock: FakeClock
) -> None:
    """An old version's retry that no worker knows any more."""
    [run_id] = enqueue(db, task="gone")
    claim(db, tasks=["gone@1"], lease_for=timedelta(seconds=10))
    clock.advance(minutes=1)
    fetch(db, queries.sweep())
    assert live_on(db, clock, 0.6) == [run_id]
    row = row_of(db, run_id)

    assert (row["status"], row["attempts"], row["losses"]) == ("FAILED", 1, 1)
    assert [fault["kind"] for fault in row["errors_json"]] == ["lost", "unknown_task"]
    assert verify(address).sound


def wait_it_out(db: Db, clock: FakeClock) -> None:
    """Let the queue's half hour pass, so that the next look would end its runs."""
    for _ in range(64):
        clock.advance(seconds=30)
        register(db, "w", "default")
        note(db)


def register_knowing(db: Db, task: str) -> None:
    knows = {"worker": "new", "pid": 1, "hands": 1, "concurrency": 1, "host": "h"}
    more = {"version": "0", "python": "3", "queues": ["default"], "tasks": [task]}
    fetch(db, queries.register(knows | more))


@pytest.mark.parametrize("what", ["known", "paused", "not looked at"])
@pytest.mark.usefixtures("short")
def test_what_has_changed_since_the_last_look_keeps_a_run(
    db: Db, clock: FakeClock, what: str
) -> None:
    """The statement that ends runs does not rely on what was noted before."""
    [run_id] = enqueue(db, task="gone")
    wait_it_out(db, clock)
    if what == "known":
        register_knowing(db, "gone@1")
    if what == "paused":
        fetch(db, queries.pause("default"))
    if what == "not looked at":
        clock.advance(hours=2)
        register(db, "w", "default")

    assert fail(db) == []
    assert run_of(db, run_id).status is Status.READY


@pytest.mark.usefixtures("short")
def test_a_shadow_run_is_left_alone(db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db, task="gone")
    [shadow] = enqueue(db, task="gone")
    db.execute("update byrote_task_runs set shadow = true where result_id = %s", (shadow,))
    wait_it_out(db, clock)

    assert fail(db) == [run_id]


def test_a_task_of_a_paused_queue_is_not_noted(db: Db) -> None:
    enqueue(db, task="gone")
    register(db, "w", "default")
    fetch(db, queries.pause("default"))

    assert note(db) == []
    fetch(db, queries.resume("default"))
    assert [one.key for one in note(db)] == ["gone@1"]


def test_one_that_is_executed_sets_the_clock_back(db: Db, clock: FakeClock) -> None:
    """By a worker over HTTP that is not in the list."""
    enqueue(db, 2, task="gone")
    live_on(db, clock, 0.1)
    assert fetch(db, queries.unserved_tasks()) != []
    claim(db, tasks=["gone@1"])
    note(db)

    assert fetch(db, queries.unserved_tasks()) == []


def test_a_clock_that_is_set_back_takes_no_waiting_away(db: Db, clock: FakeClock) -> None:
    enqueue(db, task="gone")
    live_on(db, clock, 0.1)
    [before] = fetch(db, queries.unserved_tasks())
    clock.advance(minutes=-10)
    register(db, "w", "default")
    note(db)
    [after] = fetch(db, queries.unserved_tasks())

    assert after.waited_s == before.waited_s > 0


@pytest.mark.usefixtures("short")
def test_many_are_ended_in_steps(db: Db, clock: FakeClock) -> None:
    ids = enqueue(db, 5, task="gone")
    live_on(db, clock, 0.45)
    for _ in range(8):
        clock.advance(seconds=30)
        register(db, "w", "default")
        note(db)

    assert [len(fail(db, 2)) for _ in range(4)] == [2, 2, 1, 0]
    assert {run_of(db, run_id).status for run_id in ids} == {Status.FAILED}


def standing(db: Db, run_id: str) -> Standing:
    return fetch(db, queries.why_waiting(run_id))[0]


def test_the_position_of_a_run_has_the_reason_it_waits(db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db, task="t", version=2)
    [later] = enqueue(db, run_after=timedelta(hours=1))
    assert standing(db, run_id).why == "No live worker serves the queue default."
    register(db, "w", "default")
    why = standing(db, run_id).why
    assert why.startswith("No live worker of the queue default knows t@2; the nearest that is")
    assert why.endswith("t@1. It ends FAILED (unknown_task) once that has been so for 1d.")
    fetch(db, queries.pause("default"))
    assert "paused" in standing(db, run_id).why
    assert standing(db, later).why.startswith("It waits (due, due 20")
    fetch(db, queries.resume("default"))
    [mine] = enqueue(db)
    assert "waits for a free worker" in standing(db, mine).why
    claim(db)
    assert standing(db, mine).why == ""
    clock.advance(seconds=60)
    assert standing(db, run_id).why == "No live worker serves the queue default."


def found(db: Db) -> list[tuple[str, str | None]]:
    """What is wrong with runs, by the clock of this session."""
    with db.transaction():
        return [(one.check, one.run) for one in verify_on(db).findings if one.run is not None]


@pytest.mark.usefixtures("short")
def test_a_run_that_should_have_ended_so_is_found_stuck(db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db, task="gone")
    live_on(db, clock, 0.25)
    assert not found(db)
    for _ in range(60):
        clock.advance(seconds=30)
        register(db, "w", "default")
        note(db)

    assert found(db) == [("stuck", run_id)]
    assert fail(db) == [run_id]
    assert not found(db)

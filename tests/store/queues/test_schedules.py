# SPDX-License-Identifier: MIT
"""Periodic tasks in the store: one run for each tick, with any number of beats."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import msgspec
import pytest

from byrote.assembly.identity import new_id
from byrote.core.policy import Retry
from byrote.core.ports.script import run_script
from byrote.core.schedule.schedule import (
    Schedule,
    StoredSchedule,
    TickResult,
    make_schedule,
    next_tick,
    turn_of,
)
from byrote.core.spec import Delivery, describe
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.queries.enqueue import enqueue_unique, until_accepted
from byrote.store.runners.sync import fetch
from byrote.store.verify import verify
from byrote.testing import FakeClock
from tests.support import (
    Db,
    claim,
    count,
    finish,
    history,
    run_of,
    success,
    until,
)

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


@pytest.fixture
def noon(clock: FakeClock) -> FakeClock:
    """The database's clock at noon."""
    clock.advance(seconds=(NOON - clock.now).total_seconds())
    return clock


def made(name: str = "s", how: Delivery | None = None, **timing: Any) -> Schedule:
    spec = describe("t", 1, [], {"b": 1.0, "a": 2}, delivery=how or Delivery())
    return make_schedule(name, spec, **timing or {"every": "1m"})


def keep(db: Db, said: Schedule, **options: Any) -> bool:
    """Keep a schedule as of the database's clock; whether that changed anything."""
    [now] = fetch(db, queries.now())
    following = next_tick(said, after=now)
    return bool(fetch(db, queries.save_schedule(said, next_at=following, **options)))


def known(db: Db, name: str = "s") -> StoredSchedule:
    [found] = fetch(db, queries.schedules(name=name))
    return found


def beat(db: Db) -> list[TickResult]:
    """One turn of a beat."""
    due = fetch(db, queries.schedules(due=True))
    return fetch(db, queries.tick(list(map(turn_of, due)))) if due else []


def end(db: Db) -> None:
    finish(db, [success(lease) for lease in claim(db, 100)])


def test_a_tick_becomes_a_run_with_all_options_of_its_schedule(
    db: Db, address: DatabaseAddress, noon: FakeClock
) -> None:
    how = Delivery(
        queue="q", priority=5, timeout=timedelta(seconds=9), retry=Retry(attempts=3),
        labels={"team": "a"},
    )  # fmt: skip
    keep(db, made(how=how, cron="0 3 * * *", zone="Europe/Berlin"))
    assert beat(db) == []
    noon.advance(hours=14, seconds=1)
    [ticked] = beat(db)
    run = run_of(db, ticked.id)

    assert (run.status, run.queue, run.priority, run.max_attempts) == (Status.READY, "q", 5, 3)
    assert run.spec_json == made().spec_json
    assert run.spec_hash == made().spec_hash
    assert run.run_after == NOON + timedelta(hours=14) == ticked.at
    assert run.timeout == how.timeout
    assert run.labels == {"team": "a", "schedule": "s", "tick": "2026-11-17T02:00:00Z"}
    assert msgspec.json.decode(run.retry_json or "", type=Retry) == how.retry
    assert history(db, ticked.id) == ["Enqueued"]
    state = known(db)
    assert (state.next_at, state.last_at, state.last_run, state.runs) == (
        NOON + timedelta(hours=38), ticked.at, ticked.id, 1,
    )  # fmt: skip
    assert beat(db) == []
    assert verify(address).sound


def test_a_tick_with_jitter_waits_for_its_moment(
    db: Db, address: DatabaseAddress, noon: FakeClock
) -> None:
    keep(db, made(every="1h", jitter="30m"))
    noon.advance(hours=1)
    [ticked] = beat(db)
    run = run_of(db, ticked.id)

    assert run.status is Status.WAITING
    assert NOON + timedelta(hours=1) < run.run_after < NOON + timedelta(minutes=90)
    assert verify(address).sound


def test_no_run_is_made_while_an_earlier_one_is_unfinished(db: Db, noon: FakeClock) -> None:
    keep(db, made())
    noon.advance(minutes=1)
    [first] = beat(db)
    noon.advance(minutes=1)
    [second] = beat(db)

    assert (first.made, second.made, count(db, "byrote_runs")) == (True, False, 1)
    state = known(db)
    assert (state.runs, state.skipped, state.last_run) == (1, 1, first.id)
    assert state.next_at == NOON + timedelta(minutes=3)

    end(db)
    noon.advance(minutes=1)
    assert [ticked.made for ticked in beat(db)] == [True]


def test_runs_that_may_overlap_do(db: Db, noon: FakeClock) -> None:
    keep(db, made(every="1m", overlap=True, catch_up="all"))
    noon.advance(minutes=3)

    assert [ticked.made for ticked in beat(db)] == [True] * 3
    assert known(db).last_at == NOON + timedelta(minutes=3)


def test_five_beats_at_once_make_one_run_of_each_tick(db: Db, address: DatabaseAddress) -> None:
    names = [f"s{n}" for n in range(20)]
    for name in names:
        keep(db, made(name, every="1h", overlap=True))
    db.execute("update byrote_periodic_tasks set next_at = date_trunc('hour', now())")
    gate = threading.Barrier(5)

    def turn(connection: Db) -> list[TickResult]:
        due = fetch(connection, queries.schedules(due=True))
        gate.wait()
        return fetch(connection, queries.tick(list(map(turn_of, due))))

    with ExitStack() as stack, ThreadPoolExecutor(5) as pool:
        beats = [stack.enter_context(address.open(f"beat{n}")) for n in range(5)]
        told = [ticked for part in pool.map(turn, beats) for ticked in part]

    assert sorted(ticked.name for ticked in told) == sorted(names)
    assert count(db, "byrote_runs") == 20
    assert db.execute("select distinct runs from byrote_periodic_tasks").fetchall() == [(1,)]


def test_a_beat_that_meets_another_leaves_the_tick_alone(db: Db, address: DatabaseAddress) -> None:
    keep(db, made(every="1h"))
    db.execute("update byrote_periodic_tasks set next_at = date_trunc('hour', now())")
    turns = list(map(turn_of, fetch(db, queries.schedules(due=True))))
    with address.open("one") as one, address.open("two") as two:
        with one.transaction():
            assert len(fetch(one, queries.tick(turns))) == 1
            assert fetch(two, queries.tick(turns)) == []
        assert fetch(two, queries.tick(turns)) == []

    assert (count(db, "byrote_runs"), known(db).runs) == (1, 1)


def test_a_beat_that_dies_before_its_commit_takes_tick_and_run_with_it(
    db: Db, address: DatabaseAddress
) -> None:
    keep(db, made(every="1h"))
    db.execute("update byrote_periodic_tasks set next_at = date_trunc('hour', now())")
    before = known(db)
    turns = list(map(turn_of, fetch(db, queries.schedules(due=True))))
    with address.open("dying") as dying:
        dying.execute("begin")
        fetch(dying, queries.tick(turns))
        session = dying.info.backend_pid
        dying.close()
    # Until the server has seen that it is gone, its row is locked and a tick leaves it out.
    ended = "select 1 where not exists (select from pg_stat_activity where pid = %s)"
    until(lambda: db.execute(ended, (session,)).fetchone())
    assert (count(db, "byrote_runs"), known(db).next_at) == (0, before.next_at)

    [ticked] = fetch(db, queries.tick(turns))
    assert ticked.id == turns[0].ticks[0].id
    assert fetch(db, queries.tick(turns)) == []


def test_a_tick_wakes_idle_workers(db: Db, address: DatabaseAddress) -> None:
    db.execute(
        "insert into byrote_workers (worker_id, queues, tasks, idle, seen_at, started_at, host, "
        "pid, version, python, hands, concurrency) values ('w', '{default}', '{}', true, now(), "
        "now(), 'h', 1, '0', '3', 1, 1)"
    )
    keep(db, made(every="1h"))
    db.execute("update byrote_periodic_tasks set next_at = date_trunc('hour', now())")
    with address.open("listener") as listener:
        listener.execute("listen byrote_ready")
        beat(db)

        assert [n.payload for n in listener.notifies(timeout=5, stop_after=1)] == ["default"]


def test_a_paused_schedule_does_not_tick_and_makes_nothing_up(db: Db, noon: FakeClock) -> None:
    keep(db, made())
    fetch(db, queries.pause_schedule("s"))
    paused = known(db).paused_at
    noon.advance(minutes=10)
    fetch(db, queries.pause_schedule("s"))
    assert (beat(db), known(db).paused_at) == ([], paused)

    following = next_tick(known(db).schedule, after=noon.now)
    fetch(db, queries.resume_schedule("s", next_at=following))
    assert (beat(db), known(db).next_at) == ([], NOON + timedelta(minutes=11))


def test_resuming_what_is_not_paused_loses_no_tick(db: Db, noon: FakeClock) -> None:
    keep(db, made())
    noon.advance(minutes=5)
    fetch(db, queries.resume_schedule("s", next_at=NOON + timedelta(hours=9)))

    assert [ticked.at for ticked in beat(db)] == [NOON + timedelta(minutes=5)]


def test_a_tick_of_a_schedule_that_was_paused_meanwhile_is_left_alone(
    db: Db, noon: FakeClock
) -> None:
    keep(db, made())
    noon.advance(minutes=1)
    turns = list(map(turn_of, fetch(db, queries.schedules(due=True))))
    fetch(db, queries.pause_schedule("s"))

    assert fetch(db, queries.tick(turns)) == []
    assert count(db, "byrote_runs") == 0


def test_an_app_changes_a_schedule_only_if_its_definition_changed(db: Db, noon: FakeClock) -> None:
    said = made(cron="0 3 * * *")
    assert keep(db, said, code=said.digest)
    assert not keep(db, said, code=said.digest)
    # A person chooses another time; the app's next worker stores the same as before.
    assert keep(db, made(cron="0 4 * * *"), replace=True)
    assert not keep(db, said, code=said.digest)
    assert (known(db).schedule.timing, known(db).origin) == ("0 4 * * *", "code")

    changed = made(cron="0 5 * * *")
    assert keep(db, changed, code=changed.digest)
    state = known(db)
    assert state.schedule.timing == "0 5 * * *"
    assert state.next_at == NOON + timedelta(hours=17)


def test_a_person_replaces_a_schedule_only_on_purpose(db: Db, noon: FakeClock) -> None:
    assert keep(db, made(every="1m"))
    assert not keep(db, made(every="2m"))
    assert known(db).schedule.timing == "every 1m"
    assert keep(db, made(every="2m"), replace=True)
    assert known(db).schedule.timing == "every 2m"


def test_a_change_of_something_else_forgets_no_tick_that_is_due(db: Db, noon: FakeClock) -> None:
    keep(db, made(every="1m"))
    noon.advance(minutes=1)
    keep(db, made(how=Delivery(queue="q"), every="1m"), replace=True)
    [ticked] = beat(db)

    assert (ticked.at, run_of(db, ticked.id).queue) == (NOON + timedelta(minutes=1), "q")


def test_what_was_set_aside_goes_on_when_it_is_mended(db: Db, noon: FakeClock) -> None:
    keep(db, made(every="1m"))
    fetch(db, queries.pause_schedule("s", fault="no such zone"))
    assert known(db).fault == "no such zone"

    keep(db, made(every="2m"), replace=True)
    assert (known(db).fault, known(db).paused_at) == (None, None)


def test_a_schedule_that_is_removed_leaves_its_runs(db: Db, noon: FakeClock) -> None:
    keep(db, made())
    noon.advance(minutes=1)
    [ticked] = beat(db)

    assert fetch(db, queries.delete_schedule("s")) == [False]
    assert fetch(db, queries.delete_schedule("s")) == []
    assert fetch(db, queries.schedules()) == []
    assert run_of(db, ticked.id).status is Status.READY


def test_the_same_tick_after_the_schedule_was_made_anew_has_no_second_run(
    db: Db, noon: FakeClock
) -> None:
    keep(db, made(every="1m", overlap=True))
    noon.advance(minutes=1)
    beat(db)
    fetch(db, queries.delete_schedule("s"))
    said = made(every="1m", overlap=True)
    fetch(db, queries.save_schedule(said, next_at=noon.now))

    assert [ticked.made for ticked in beat(db)] == [False]
    assert count(db, "byrote_runs") == 1


def test_a_run_started_by_hand_counts_as_one_of_the_schedules(db: Db, noon: FakeClock) -> None:
    keep(db, made())
    spec = known(db).schedule.spec
    settled = run_script(until_accepted(enqueue_unique([(new_id(), spec)])), partial(fetch, db))
    noon.advance(minutes=1)

    assert settled.instead == {}
    assert [ticked.made for ticked in beat(db)] == [False]
    [run] = fetch(db, queries.runs(labels={"schedule": "s"}))
    assert run.spec_hash == spec.digest.hex()

# SPDX-License-Identifier: MIT
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from byrote.assembly.identity import new_id
from byrote.core.json.codec import pack
from byrote.core.run import Leased
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.store.steps.test_step import HOUR_US, leased, ledger, note, wait
from tests.support import (
    Db,
    claim,
    count,
    enqueue,
    finish,
    history,
    register,
    row_of,
    run_of,
    until,
    verdict,
    waits_for_a_lock,
)


def signal(db: Db, run_id: str, event: str = "paid", payload: Any = None) -> list[str]:
    return fetch(db, queries.signal(run_id, new_id(), event, pack(payload)))


def park(db: Db, lease: Leased, event: str = "paid", us: int = HOUR_US) -> list[str]:
    """Finish as waiting for an event."""
    return finish(db, [verdict(lease, "Z", delay_us=us, wait="event", event=event)])


def test_a_run_waits_for_its_event_until_the_timeout(db: Db, clock: FakeClock) -> None:
    lease = leased(db)
    [noted] = note(db, wait(lease, 1, "event", "paid"))
    park(db, lease)
    run = run_of(db, lease.id)

    assert (noted.open, noted.left_us) == (True, HOUR_US)
    assert (run.status, run.wait_reason, run.charged) == (Status.WAITING, "event", 0)
    clock.advance(hours=1)
    fetch(db, queries.promote())
    [timed_out] = note(db, wait(claim(db)[0], 1, "event", "paid"))
    assert (timed_out.open, timed_out.result_json) == (False, None)


def test_a_wait_that_timed_out_receives_no_later_signal(db: Db, clock: FakeClock) -> None:
    lease = leased(db)
    note(db, wait(lease, 1, "event", "paid", us=0))
    signal(db, lease.id)
    [noted] = note(db, wait(lease, 1, "event", "paid", us=0))

    assert (noted.open, noted.result_json) == (False, None)


def test_a_signal_makes_a_waiting_run_ready_at_once_in_its_due_place(
    db: Db, clock: FakeClock
) -> None:
    lease = leased(db)
    before = row_of(db, lease.id)
    note(db, wait(lease, 1, "event", "paid"))
    park(db, lease)
    clock.advance(seconds=10)
    assert signal(db, lease.id, payload={"cents": 5}) == ["READY"]
    after = row_of(db, lease.id)

    assert (after["run_after"], after["wait_reason"]) == (clock.now, None)
    assert after["rank"] - before["rank"] == 10_000_000
    [noted] = note(db, wait(claim(db)[0], 1, "event", "paid"))
    assert (noted.open, noted.result_json) == (False, '{"cents":5}')
    assert history(db, lease.id) == ["Enqueued", "Claimed", "Snoozed", "Signalled", "Claimed"]


@pytest.mark.parametrize("how", ["another event", "a plain snooze", "a sleep"])
def test_a_signal_wakes_only_runs_that_wait_for_it(db: Db, clock: FakeClock, how: str) -> None:
    lease = leased(db)
    if how == "another event":
        note(db, wait(lease, 1, "event", "other"))
        park(db, lease, "other")
    else:
        more = {"wait": "sleep"} if how == "a sleep" else {}
        finish(db, [verdict(lease, "Z", delay_us=HOUR_US, **more)])

    assert signal(db, lease.id) == ["WAITING"]
    assert claim(db) == []


def test_a_signal_wakes_an_idle_worker(db: Db, address: DatabaseAddress) -> None:
    register(db, "w", "default")
    fetch(db, queries.idle(worker="w", idle=True))
    lease = leased(db)
    note(db, wait(lease, 1, "event", "paid"))
    park(db, lease)
    with address.open("listener") as listener:
        listener.execute("listen byrote_ready")
        signal(db, lease.id)

        assert [n.payload for n in listener.notifies(timeout=5, stop_after=1)] == ["default"]


def test_a_signal_sent_before_the_wait_is_found_by_it(db: Db) -> None:
    [run_id] = enqueue(db)
    signal(db, run_id, payload=7)
    [noted] = note(db, wait(claim(db)[0], 1, "event", "paid"))

    assert (noted.open, noted.result_json) == (False, "7")


def test_each_signal_is_received_by_one_wait_in_order(db: Db) -> None:
    lease = leased(db)
    for n in range(3):
        signal(db, lease.id, payload=n)
    # Two waits in one statement, then one more.
    note(db, *(wait(lease, n, "event", "paid") for n in (1, 2)))
    note(db, wait(lease, 3, "event", "paid"))
    [last] = note(db, wait(lease, 4, "event", "paid"))

    assert ledger(db, lease.id) == [(n + 1, "paid", str(n)) for n in range(3)] + [(4, "paid", None)]
    assert last.open


def test_a_wait_asked_again_after_a_lost_answer_takes_no_second_signal(db: Db) -> None:
    lease = leased(db)
    for n in range(2):
        signal(db, lease.id, payload=n)
    answers = [note(db, wait(lease, 1, "event", "paid"))[0].result_json for _ in range(2)]

    assert answers == ["0", "0"]
    assert note(db, wait(lease, 2, "event", "paid"))[0].result_json == "1"


def test_a_signal_sent_again_after_a_lost_answer_is_kept_once(db: Db) -> None:
    [run_id] = enqueue(db)
    query = queries.signal(run_id, new_id(), "paid", pack(1))
    fetch(db, query)
    fetch(db, query)

    assert count(db, "byrote_signals") == 1


@pytest.mark.parametrize("letter", "SFC")
def test_a_run_that_has_ended_takes_no_signals(db: Db, letter: str) -> None:
    lease = leased(db)
    finish(db, [verdict(lease, letter)])

    assert signal(db, lease.id) == []
    assert count(db, "byrote_signals") == 0


def test_a_signal_between_the_look_and_the_wait_lets_the_run_go_on(db: Db) -> None:
    lease = leased(db)
    note(db, wait(lease, 1, "event", "paid"))
    assert signal(db, lease.id) == ["RUNNING"]
    before = row_of(db, lease.id)
    park(db, lease)
    after = row_of(db, lease.id)

    assert (after["status"], after["wait_reason"]) == ("READY", None)
    assert (after["rank"], after["run_after"]) == (before["rank"], before["run_after"])


def test_a_finish_that_waited_for_a_signal_under_way_notices_it(
    db: Db, address: DatabaseAddress
) -> None:
    """The finish began before the signal was there, and looks again when it gets the row."""
    lease = leased(db)
    note(db, wait(lease, 1, "event", "paid"))
    with address.open("finisher") as finisher, address.open("sender") as sender:
        pool = ThreadPoolExecutor(1)
        with sender.transaction():
            signal(sender, lease.id)
            parked = pool.submit(park, finisher, lease)
            until(lambda: waits_for_a_lock(db, finisher))
        assert parked.result() == [lease.id]
        pool.shutdown()

    assert run_of(db, lease.id).status is Status.READY


def test_a_signal_that_waited_for_a_finish_under_way_wakes_the_run(
    db: Db, address: DatabaseAddress
) -> None:
    """Even one that began before the wait was in the ledger."""
    lease = leased(db)
    with address.open("finisher") as finisher, address.open("sender") as sender:
        pool = ThreadPoolExecutor(1)
        with finisher.transaction():
            note(finisher, wait(lease, 1, "event", "paid"))
            park(finisher, lease)
            sent = pool.submit(signal, sender, lease.id)
            until(lambda: waits_for_a_lock(db, sender))
        assert sent.result() == ["READY"]
        pool.shutdown()

    assert run_of(db, lease.id).status is Status.READY


def test_no_signal_is_slept_through_however_the_two_meet(db: Db, address: DatabaseAddress) -> None:
    """Hundreds of runs go to wait while their signals arrive: none is left waiting."""
    runs = 400
    enqueue(db, runs)
    leases = claim(db, runs)
    together = Barrier(2)

    def go_waiting() -> None:
        with address.open("finisher") as finisher:
            for lease in leases:
                together.wait(30)
                note(finisher, wait(lease, 1, "event", "paid"))
                park(finisher, lease)

    def send() -> None:
        with address.open("sender") as sender:
            for n, lease in enumerate(leases):
                together.wait(30)
                # From before the look to after the wait.
                sender.execute("select pg_sleep(%s)", (n % 20 * 0.0002,))
                signal(sender, lease.id)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(go_waiting), pool.submit(send)]:
            done.result()
    text = """select count(*) from byrote_task_runs as run
              where status = 'WAITING' and exists (select 1 from byrote_signals as signal
                where signal.result_id = run.result_id and taken_by is null)"""
    [[asleep]] = db.execute(text).fetchall()

    assert asleep == 0
    assert count(db, "byrote_signals") == runs


def test_a_cancelled_run_does_not_go_waiting(db: Db) -> None:
    lease = leased(db)
    fetch(db, queries.cancel([lease.id]))
    park(db, lease)

    assert run_of(db, lease.id).status is Status.CANCELLED
    assert run_of(db, lease.id).finished_at is not None


def test_a_retry_ends_a_wait_now_as_its_timeout_would(db: Db) -> None:
    lease = leased(db)
    note(db, wait(lease, 1, "event", "paid"))
    park(db, lease)
    fetch(db, queries.retry([lease.id]))
    [noted] = note(db, wait(claim(db)[0], 1, "event", "paid"))

    assert (noted.open, noted.result_json) == (False, None)

# SPDX-License-Identifier: MIT
"""Async tasks share a bounded number of database sessions, and wait for one instead of failing."""

from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from byrote.django.backend.policy import faults
from byrote.django.worker.async_threads import AsyncThreads, Seat, share_of
from byrote.executors.runtime import async_hands
from byrote.executors.runtime.async_hands import HAND_COUNT
from tests.django.driving import drain, working
from tests.django.shop import tasks
from tests.django.shop.models import Note
from tests.support import until

type Shop = dict[str, str]

SESSIONS = """
select pid from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and application_name = ''
"""


def sessions() -> set[int]:
    """The sessions of tasks; those of earlier tests may still be there."""
    with connection.cursor() as cursor:
        cursor.execute(SESSIONS)
        return {pid for (pid,) in cursor.fetchall()}


def finished(results: list[Any]) -> bool:
    for result in results:
        result.refresh()
    return all(result.is_finished for result in results)


def test_async_tasks_use_no_more_sessions_than_they_may(shop: Shop, tmp_path: Path) -> None:
    lingering = [tasks.linger.enqueue(str(tmp_path), f"linger{n}") for n in range(12)]
    earlier = sessions()
    with working(shop, SHOP_ASYNC="3"):
        until(lambda: len(list(tmp_path.glob("linger*.begun"))) == 3, within=60)
        others = [tasks.arrive.enqueue(str(tmp_path), f"other{n}") for n in range(30)]
        # Those without the ORM do not wait for a session.
        until(lambda: len(list(tmp_path.glob("other*.begun"))) == 30, within=60)
        taken = sessions() - earlier
        begun = len(list(tmp_path.glob("linger*.begun")))
        (tmp_path / "go").touch()
        until(lambda: finished([*lingering, *others]), within=60)

    assert (begun, len(taken)) == (3, 3)
    assert {str(result.status) for result in lingering} == {"SUCCESSFUL"}
    assert Note.objects.count() == 12


def test_waiting_for_a_session_counts_towards_the_timeout(shop: Shop, tmp_path: Path) -> None:
    first = tasks.linger.enqueue(str(tmp_path), "first")
    with working(shop, SHOP_ASYNC="1"):
        until((tmp_path / "first.begun").exists, within=60)
        late = tasks.hurry.enqueue("too late")
        until(lambda: finished([late]), within=60)
        (tmp_path / "go").touch()
        until(lambda: finished([first]), within=60)
        after = tasks.hurry.enqueue("in time")
        until(lambda: finished([after]), within=60)

    assert late.errors[0].exception_class.__name__ == "TaskTimedOut"
    assert [first.status, after.status] == ["SUCCESSFUL", "SUCCESSFUL"]


def test_a_session_in_another_thread_of_the_loop_is_tidied_as_well(shop: Shop) -> None:
    """One task after the other, so that each has the thread of the one before."""
    results = [tasks.soil_elsewhere.enqueue() for _ in range(5)]
    drain(shop, "--concurrency", "1", SHOP_CONN_MAX_AGE="600")

    assert finished(results)
    assert {result.return_value for result in results} == {False}


def test_the_processes_of_a_worker_share_its_number_of_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(HAND_COUNT, "4")

    assert [share_of(number) for number in (8, 9, 2)] == [2, 2, 1]


def test_the_share_follows_the_number_of_hands_with_async_tasks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(async_hands, "_sent", [])
    monkeypatch.setenv(HAND_COUNT, "4")
    before = share_of(20)
    async_hands.note_async_hands(1)

    assert (before, share_of(20)) == (5, 20)


def test_a_thread_beyond_a_smaller_share_ends_with_its_attempt() -> None:
    share = [2]
    threads = AsyncThreads(lambda: share[0])
    first, second, third = (Seat(threads) for _ in range(3))
    done = [seat.submit(lambda: None) for seat in (first, second)]
    share[0] = 1
    ending = first.thread
    threads.leave(first)
    waiting = third.submit(lambda: None)

    assert third.thread is None
    threads.leave(second)
    for future in (*done, waiting):
        future.result(30)
    assert ending is not None
    ending.join(30)
    threads.leave(third)


@pytest.mark.parametrize("value", [0, "8", True, None])
def test_the_number_of_connections_is_checked(value: Any) -> None:
    [fault] = faults({"ASYNC_CONNECTIONS": value})
    assert "whole number from 1" in fault

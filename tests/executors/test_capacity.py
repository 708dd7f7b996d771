# SPDX-License-Identifier: MIT
import pytest

from byrote.executors.capacity import BUFFER_MAX, BUFFER_S, CapacityPlanner, Throughput
from byrote.executors.runtime.job import TaskMode

pytestmark = pytest.mark.pure

STEP = 0.025
SYNC, ASYNC = TaskMode.SYNC, TaskMode.ASYNC


def steady(rate: float, seconds: float = 2.0) -> tuple[Throughput, float]:
    """A tempo that has seen this many completions a second, and its last moment."""
    tempo, steps = Throughput(0.0), int(seconds / STEP)
    for n in range(1, steps + 1):
        tempo.count(int(rate * STEP * n) - int(rate * STEP * (n - 1)), n * STEP)
    return tempo, steps * STEP


def buffer(rate: float, later: float = 0.0) -> int:
    tempo, now = steady(rate)
    return tempo.buffer(now + later)


def test_a_worker_that_has_done_nothing_holds_nothing_in_reserve() -> None:
    assert Throughput(0.0).buffer(0.0) == 0


def test_slow_tasks_leave_their_work_to_others() -> None:
    assert buffer(1.0, later=0.5) == 0


def test_quick_tasks_are_held_for_as_long_as_a_round_trip_takes() -> None:
    assert buffer(10_000) == pytest.approx(10_000 * BUFFER_S, rel=0.3)


def test_the_reserve_is_bounded() -> None:
    assert buffer(1e9) == BUFFER_MAX


def test_when_tasks_become_slow_the_reserve_goes() -> None:
    tempo, now = steady(10_000)
    for n in range(20):
        tempo.count(1, now + n + 1)

    assert tempo.buffer(now + 20) == 0


def test_a_rate_that_nothing_confirms_fades() -> None:
    assert buffer(10_000, later=1_000.0) == 0


KINDS = {"s@1": SYNC, "a@1": ASYNC}


def test_room_is_what_both_kinds_have_left() -> None:
    tempos = CapacityPlanner(lambda: 0.0)
    at_once = {SYNC: 6, ASYNC: 300}
    empty = tempos.room(KINDS, {SYNC: 0, ASYNC: 0}, at_once)

    assert sorted(empty.tasks) == ["a@1", "s@1"]
    assert 0 < empty.limit <= 306
    full = tempos.room(KINDS, {SYNC: 6, ASYNC: 300}, at_once)
    assert (full.limit, list(full.tasks)) == (0, [])


def test_a_kind_without_room_leaves_its_tasks_out() -> None:
    tempos = CapacityPlanner(lambda: 0.0)
    room = tempos.room(KINDS, {SYNC: 1, ASYNC: 4}, {SYNC: 1, ASYNC: 10})

    assert list(room.tasks) == ["a@1"]
    assert 0 < room.limit <= 6


def test_without_hands_the_capacity_is_zero() -> None:
    none = {SYNC: 0, ASYNC: 0}

    assert CapacityPlanner(lambda: 0.0).room(KINDS, none, none).limit == 0


def test_a_kind_without_hands_is_not_claimed_for_its_buffer() -> None:
    now = [0.0]
    tempos = CapacityPlanner(lambda: now[0])
    for _ in range(20):
        now[0] += STEP
        tempos.count({SYNC: 1_000, ASYNC: 0})
    room = tempos.room(KINDS, {SYNC: 0, ASYNC: 0}, {SYNC: 0, ASYNC: 5})

    assert list(room.tasks) == ["a@1"]


def test_what_the_queues_hold_is_learnt_in_a_few_claims() -> None:
    tempos = CapacityPlanner(lambda: 0.0)
    limits = []
    for _ in range(12):
        limits.append(tempos.room(KINDS, {SYNC: 0, ASYNC: 0}, {SYNC: 1, ASYNC: 100}).limit)
        tempos.note({SYNC: 0, ASYNC: limits[-1]})

    assert limits[0] == 1
    assert limits[-1] >= 30
    for _ in range(12):
        tempos.note({SYNC: 1, ASYNC: 0})
    assert tempos.room(KINDS, {SYNC: 0, ASYNC: 0}, {SYNC: 1, ASYNC: 100}).limit <= 2

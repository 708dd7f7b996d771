# SPDX-License-Identifier: MIT
"""The size of claims in simulated workers: the bounds and promises of `claim_size.py`."""

import heapq
from collections import Counter, deque
from collections.abc import Iterator
from random import Random

import pytest

from byrote.core.ports.executor import Capacity
from byrote.executors.capacity import CapacityPlanner, CommandShare
from byrote.executors.runtime.job import TaskMode, none_of_each
from byrote.worker.claiming.claim_size import ASIDE_S, UNWRITTEN_MAX, ClaimSize
from byrote.worker.claiming.watermark import Watermark

pytestmark = pytest.mark.pure

SYNC, ASYNC = TaskMode.SYNC, TaskMode.ASYNC
MODES = {"s@1": SYNC, "a@1": ASYNC}
STEP_S = 0.01
PATIENCE_S = 1.0
"""Runs that have waited this long in a hand are given back, as `Roster` does it."""
ENDLESS = 1 << 40


class World:
    """A worker with hands, its queues, and time; everything follows from the seed."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.now = 0.0
        self.hands = random.randint(1, 8)
        self.limits = {SYNC: random.randint(1, 4), ASYNC: random.randint(1, 100)}
        self.took_s = {mode: random.choice([0.0002, 0.001, 0.01, 0.1, 2.0]) for mode in TaskMode}
        self.async_share = random.choice([0.0, 0.02, 0.5, 0.9, 1.0])
        self.weights = {f"q{n}": random.randint(1, 50) for n in range(random.randint(1, 5))}
        self.queued = {queue: {SYNC: 0, ASYNC: 0} for queue in self.weights}
        self.claimed: Counter[str] = Counter()
        self.limits_seen: list[int] = []
        self.idle_s = 0.0
        """How long a slot was free while a queue had a run for it."""
        self._executing: dict[TaskMode, list[float]] = {SYNC: [], ASYNC: []}
        self._waiting: dict[TaskMode, deque[float]] = {SYNC: deque(), ASYNC: deque()}
        self.planner = CapacityPlanner(self._clock)
        self.size = ClaimSize(self.weights, Watermark(), clock=self._clock, poll_s=1.0)

    def _clock(self) -> float:
        return self.now

    @property
    def held(self) -> dict[TaskMode, int]:
        return {k: len(self._executing[k]) + len(self._waiting[k]) for k in TaskMode}

    def slots(self, mode: TaskMode) -> int:
        return self.limits[mode] * self.hands

    def whole(self, mode: TaskMode) -> int:
        """How many runs the worker may hold now: slots, and the buffer for quick tasks."""
        return self.slots(mode) + self.planner._of[mode].buffer(self.now)

    def fill(self, count: int = ENDLESS) -> None:
        """Enqueue runs of both modes, by the share of async tasks."""
        for queue in self.queued.values():
            queue[ASYNC] += int(count * self.async_share)
            queue[SYNC] += count - int(count * self.async_share)

    # -- The executor ----------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Let time pass: runs end, others begin, and those that waited too long are given back."""
        self.now += seconds
        done = none_of_each()
        for mode in TaskMode:
            executing, waiting = self._executing[mode], self._waiting[mode]
            while executing and executing[0] <= self.now:
                freed = heapq.heappop(executing)
                done[mode] += 1
                if waiting:
                    waiting.popleft()
                    heapq.heappush(executing, freed + self.took_s[mode])
            while waiting and waiting[0] < self.now - PATIENCE_S:
                waiting.popleft()
        self.planner.count(done)

    def _submit(self, mode: TaskMode) -> None:
        if len(self._executing[mode]) < self.slots(mode):
            heapq.heappush(self._executing[mode], self.now + self.took_s[mode])
        else:
            self._waiting[mode].append(self.now)

    # -- The claimer -----------------------------------------------------------------------------

    def turn(self) -> int:
        """One turn of the claimer. Returns how many runs it claimed."""
        room = self.planner.room(MODES, self.held, {mode: self.slots(mode) for mode in TaskMode})
        free = {mode for mode in TaskMode if self.held[mode] < self.slots(mode)}
        assert bool(free) <= (room.limit >= room.worth >= 1)
        most = sum(max(self.whole(mode) - self.held[mode], 0) for mode in TaskMode)
        assert room.limit <= max(sum(self.whole(mode) for mode in TaskMode) // 2, 1)
        wanted = any(queue[mode] for queue in self.queued.values() for mode in free)
        found = self._claim(room)
        self.idle_s = self.idle_s + STEP_S if wanted and not found else 0.0
        assert found <= most
        return found

    def _claim(self, room: Capacity) -> int:
        partial = len(room.tasks) < len(MODES)
        if self.size.pause(room, unwritten=0, partial=partial) is not None:
            return 0
        self.limits_seen.append(room.limit)
        turn, found = self.size.turn(room), none_of_each()
        while quotas := turn.quotas():
            assert sum(quotas.values()) + sum(found.values()) <= room.limit
            claimed = Counter[str]()
            for queue, quota in quotas.items():
                for mode in self._from(queue, quota, {MODES[task] for task in room.tasks}):
                    claimed[queue] += 1
                    found[mode] += 1
                    self._submit(mode)
            turn.note(quotas, claimed)
            self.claimed.update(claimed)
        self.planner.note(found)
        if partial:
            self.size.end_partial(turn)
        return sum(found.values())

    def _from(self, name: str, quota: int, modes: set[TaskMode]) -> Iterator[TaskMode]:
        queue = self.queued[name]
        for _ in range(quota):
            there = [mode for mode in modes if queue[mode]]
            if not there:
                return
            mode = ASYNC if self.random.random() < self.async_share else SYNC
            mode = mode if mode in there else there[0]
            queue[mode] -= 1
            yield mode

    def live(self, seconds: float) -> None:
        for _ in range(int(seconds / STEP_S)):
            self.turn()
            self.advance(STEP_S)


@pytest.mark.parametrize("seed", range(40))
def test_a_worker_with_enough_to_do_keeps_its_bounds_and_serves_every_queue(seed: int) -> None:
    world = World(seed)
    world.fill()
    world.live(2.0)

    assert world.idle_s == 0.0
    total = world.claimed.total()
    for queue, weight in world.weights.items():
        fair = total * weight / sum(world.weights.values())
        assert abs(world.claimed[queue] - fair) <= len(world.weights) + 1


@pytest.mark.parametrize("seed", range(40))
def test_bursts_are_claimed_to_the_last_run_without_idle_slots(seed: int) -> None:
    world = World(seed)
    expected = 0
    for _ in range(20):
        count = world.random.choice([0, 1, 7, 60])
        world.fill(count)
        expected += count * len(world.weights)
        for _ in range(world.random.randint(1, 30)):
            world.turn()
            assert world.idle_s <= ASIDE_S + STEP_S
            world.advance(STEP_S)
    world.took_s = dict.fromkeys(TaskMode, 0.001)
    world.live(8.0)

    assert world.claimed.total() == expected


@pytest.mark.parametrize("seed", range(20))
def test_a_worker_learns_in_ten_claims_that_tasks_are_quick(seed: int) -> None:
    world = World(seed)
    world.took_s = dict.fromkeys(TaskMode, 0.001)
    world.fill()
    world.live(2.0)

    steady = sorted(world.limits_seen[50:])[len(world.limits_seen[50:]) // 2]
    assert max(world.limits_seen[:10]) >= steady // 2


@pytest.mark.parametrize("seed", range(20))
def test_a_worker_whose_tasks_become_slow_stops_holding_more_than_it_executes(seed: int) -> None:
    world = World(seed)
    world.took_s = dict.fromkeys(TaskMode, 0.001)
    world.fill()
    world.live(1.0)
    world.took_s = dict.fromkeys(TaskMode, 5.0)
    world.live(12.0)

    slots = sum(world.slots(mode) for mode in TaskMode)
    assert sum(world.whole(mode) for mode in TaskMode) <= slots * 1.1 + 1


# -- One rule at a time --------------------------------------------------------------------------


def size_at(moment: list[float]) -> ClaimSize:
    return ClaimSize({"q": 1}, Watermark(), clock=lambda: moment[0], poll_s=5.0)


def test_nothing_is_claimed_without_room_or_while_results_wait_to_be_written() -> None:
    size = size_at([0.0])

    assert size.pause(Capacity(3, ("t",), 4), unwritten=0, partial=False) == 5.0
    assert size.pause(Capacity(9, ("t",), 4), unwritten=UNWRITTEN_MAX + 1, partial=False) == 5.0
    assert size.pause(Capacity(9, ("t",), 4), unwritten=UNWRITTEN_MAX, partial=False) is None


def test_after_a_partial_turn_that_found_too_little_the_next_one_waits() -> None:
    moment, room = [10.0], Capacity(4, ("t",))
    size = size_at(moment)
    assert size.pause(room, unwritten=0, partial=True) is None
    turn = size.turn(room)
    turn.note(turn.quotas(), Counter(q=1))
    moment[0] = 10.01
    size.end_partial(turn)

    assert size.pause(room, unwritten=0, partial=True) == pytest.approx(0.19)
    assert size.pause(room, unwritten=0, partial=False) is None
    moment[0] = 10.2
    assert size.pause(room, unwritten=0, partial=True) is None


def test_after_a_partial_turn_that_was_filled_the_next_one_does_not_wait() -> None:
    size, room = size_at([10.0]), Capacity(4, ("t",))
    size.pause(room, unwritten=0, partial=True)
    turn = size.turn(room)
    turn.note(turn.quotas(), Counter(q=4))
    size.end_partial(turn)

    assert turn.filled
    assert size.pause(room, unwritten=0, partial=True) is None


HANDS, FEW = Capacity(100, ("h@1",), 10), Capacity(2, ("c@1",))


def test_commands_bound_a_claim_by_their_share_of_recent_ones() -> None:
    share = CommandShare()
    assert share.room(HANDS, FEW) == (100, ["h@1", "c@1"], 10)
    share.note(10, 100)
    assert share.room(HANDS, FEW) == (20, ["h@1", "c@1"], 10)
    for _ in range(10):
        share.note(0, 100)

    assert share.room(HANDS, FEW).limit == 100


def test_a_side_without_room_leaves_the_claim_to_the_other() -> None:
    share = CommandShare()

    assert share.room(HANDS, Capacity(0, ())) == HANDS
    assert share.room(Capacity(0, ()), FEW) == FEW


@pytest.mark.parametrize("seed", range(20))
def test_commands_without_room_are_rare_and_some_always_fit(seed: int) -> None:
    random, share, excess = Random(seed), CommandShare(), 0
    part = random.random()
    for turn in range(200):
        free = random.randint(1, 8)
        limit = share.room(HANDS, Capacity(free, ("c@1",))).limit
        assert 1 <= limit <= HANDS.limit
        commands = sum(random.random() < part for _ in range(limit))
        excess += max(commands - free, 0) if turn else 0
        share.note(commands, limit)

    assert excess <= 200

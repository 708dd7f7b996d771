# SPDX-License-Identifier: MIT
"""Which hand takes a run, where an app has tasks of both kinds."""

from collections import Counter
from random import Random

import pytest

from byrote.executors.hands.placement import Placement
from byrote.executors.runtime.job import TaskMode

pytestmark = pytest.mark.pure

SYNC, ASYNC = TaskMode.SYNC, TaskMode.ASYNC


class Hand:
    """A hand as far as placement is concerned."""

    def __init__(self, sync: int = 0, not_sync: int = 0, *, free: int = 100) -> None:
        self.running = {SYNC: sync, ASYNC: not_sync}
        self.free = range(free)


def place(
    kinds: list[TaskMode], *able: Hand, hands: int = 2, concurrency: int = 10, mixed: bool = True
) -> list[int | None]:
    placement = Placement(able, mixed=mixed, hands=hands, concurrency=concurrency)
    return [placement.choose(kind) for kind in kinds]


def test_a_hand_takes_only_the_kind_that_it_executes() -> None:
    assert place([SYNC, ASYNC, SYNC], Hand(sync=1), Hand(not_sync=1)) == [0, 1, 0]


def test_a_kind_without_a_hand_is_not_placed() -> None:
    assert place([ASYNC, SYNC], Hand(sync=1)) == [None, 0]


def test_a_kind_waits_only_while_other_hands_are_there() -> None:
    def lacks(*able: Hand) -> bool:
        return Placement(able, mixed=True, hands=2, concurrency=10).lacks(ASYNC)

    assert lacks(Hand(sync=1))
    assert not lacks()
    assert not lacks(Hand())
    assert not lacks(Hand(sync=1), Hand(not_sync=1, free=0))


def test_one_kind_leaves_the_last_hand_to_the_other() -> None:
    assert place([SYNC] * 3 + [ASYNC], Hand(), Hand(), Hand()) == [0, 1, 0, 2]


def test_sync_tasks_spread_and_async_ones_fill_a_hand_first() -> None:
    assert place([SYNC, SYNC], Hand(), Hand(), Hand()) == [0, 1]
    assert place([ASYNC] * 10, Hand(), Hand(), Hand()) == [0] * 10


def test_async_tasks_beyond_the_concurrency_use_another_hand() -> None:
    places = place([ASYNC] * 40, Hand(), Hand(), Hand())

    assert Counter(places) == {0: 20, 1: 20}


def test_with_tasks_of_one_kind_every_hand_takes_every_run() -> None:
    assert place([ASYNC] * 4, Hand(), Hand(sync=1), mixed=False) == [0, 1, 0, 1]


def test_a_hand_without_free_slots_takes_nothing() -> None:
    assert place([SYNC] * 3, Hand(free=2), hands=1) == [0, 0, None]


def test_a_hand_that_executes_a_suspect_counts_as_one_of_its_kind() -> None:
    kept = Hand(sync=1)
    placement = Placement([Hand(), Hand()], mixed=True, hands=2, concurrency=10, kept=[kept])

    assert [placement.choose(SYNC), placement.choose(SYNC), placement.choose(ASYNC)] == [0, 0, 1]


@pytest.mark.parametrize("seed", range(60))
def test_both_kinds_always_find_a_hand_and_never_share_one(seed: int) -> None:
    """Runs begin and end at random; there is one hand more than one kind may use."""
    random = Random(seed)
    hands = random.randint(1, 6)
    able = [Hand() for _ in range(hands + 1)]
    for _ in range(200):
        kinds = random.choices([SYNC, ASYNC], k=random.randint(1, 12))
        for kind, number in zip(kinds, place(kinds, *able, hands=hands), strict=True):
            assert number is not None
            able[number].running[kind] += 1
        for hand in able:
            assert not all(hand.running.values())
            for kind, count in hand.running.items():
                hand.running[kind] = random.randint(0, count)


@pytest.mark.parametrize("seed", range(60))
def test_what_may_be_claimed_can_be_placed(seed: int) -> None:
    random = Random(seed)
    hands = random.randint(1, 6)
    able = [Hand(*random.choice([(0, 0), (1, 0), (0, 3)])) for _ in range(random.randint(1, 7))]
    placement = Placement(able, mixed=True, hands=hands, concurrency=10)
    at_once = placement.at_once({SYNC: 1, ASYNC: 5})
    kind = random.choice([SYNC, ASYNC])

    assert (placement.choose(kind) is not None) == (at_once[kind] > 0)

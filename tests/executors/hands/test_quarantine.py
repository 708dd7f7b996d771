# SPDX-License-Identifier: MIT
"""Runs that were lost before are executed alone where that does not delay them."""

from typing import Any

from byrote.core.run import Leased
from byrote.executors.hands.quarantine import ALONE_S, PATIENCE_S, Quarantine
from tests.core.leases import leased


class Hand:
    """A hand as far as suspects are concerned."""

    def __init__(self, *jobs: Leased) -> None:
        self.jobs = dict(enumerate(jobs))
        self.free = [0] * 10
        self.killed = False
        self.reserved = False
        self.reads = True

    @property
    def takes_runs(self) -> bool:
        return self.reads and not self.killed

    @property
    def able(self) -> bool:
        return self.takes_runs and not self.reserved


class Room:
    """Some hands, and suspects that are seated in them."""

    def __init__(self, *hands: Hand) -> None:
        self.hands = hands
        self.now = 0.0
        self.of_other_kind: list[Hand] = []
        self.suspects = Quarantine()

    def come(self, count: int = 1) -> None:
        for _ in range(count):
            self.suspects.add(leased(), self.now)
        self.reserve_hands()

    def reserve_hands(self, after: float = 0.0) -> bool:
        self.now += after
        hands: Any = self.hands
        return self.suspects.reserve_hands(hands, self.now, self._give, self.fits)

    def fits(self, hand: Any, _run: Leased) -> bool:
        return hand not in self.of_other_kind

    def _give(self, hand: Any, run: Leased) -> None:
        hand.jobs[len(hand.jobs)] = run

    @property
    def loads(self) -> list[int]:
        return [len(hand.jobs) for hand in self.hands]


def test_a_suspect_has_an_empty_hand_to_itself_until_it_ends() -> None:
    room = Room(Hand(leased()), Hand())
    room.come()

    assert room.loads == [1, 1]
    assert [hand.able for hand in room.hands] == [True, False]
    assert not room.reserve_hands(after=100.0)
    room.hands[1].jobs.clear()
    assert room.reserve_hands()
    assert room.hands[1].able


def test_a_busy_hand_of_several_is_emptied_for_a_suspect() -> None:
    room = Room(Hand(leased()), Hand(leased(), leased()))
    room.come()

    assert [hand.able for hand in room.hands] == [False, True]
    room.hands[0].jobs.clear()
    room.reserve_hands(after=PATIENCE_S / 2)
    assert room.loads == [1, 2]


def test_a_suspect_that_has_waited_long_enough_shares_a_hand() -> None:
    room = Room(Hand(leased()), Hand(leased(), leased()))
    room.come()
    room.reserve_hands(after=PATIENCE_S)

    assert room.loads == [1, 3]
    assert room.reserve_hands()
    assert all(hand.able for hand in room.hands)


def test_the_only_hand_is_kept_for_a_suspect_for_a_moment_only() -> None:
    """Or a run of two minutes would keep a thousand others waiting."""
    room = Room(Hand())
    room.come()

    assert not room.hands[0].able
    assert room.reserve_hands(after=ALONE_S)
    assert room.hands[0].able


def test_the_only_hand_is_not_emptied_for_a_suspect() -> None:
    room = Room(Hand(leased()))
    room.come()

    assert room.hands[0].able
    assert room.loads == [1]
    room.reserve_hands(after=PATIENCE_S)
    assert room.loads == [2]


def test_all_that_have_waited_share_at_once() -> None:
    room = Room(Hand(), Hand(leased()))
    room.come(8)
    assert room.loads == [1, 1]
    room.reserve_hands(after=PATIENCE_S)

    assert room.loads == [1, 8]


def test_a_kept_hand_that_dies_is_forgotten() -> None:
    room = Room(Hand(), Hand())
    room.come()
    room.hands[0].killed = True

    assert room.reserve_hands()
    room.come()
    assert room.loads == [1, 1]


def test_a_suspect_is_not_sent_to_a_hand_that_does_not_read() -> None:
    room = Room(Hand(leased()), Hand(leased(), leased()))
    room.come()
    room.hands[0].reads = False
    room.hands[0].jobs.clear()
    room.reserve_hands(after=PATIENCE_S / 2)

    assert room.loads == [0, 2]
    room.hands[0].reads = True
    room.reserve_hands()
    assert room.loads == [1, 2]


def test_a_suspect_takes_no_hand_that_is_left_to_the_other_kind() -> None:
    room = Room(Hand(), Hand(leased()))
    room.of_other_kind = [room.hands[0]]
    room.come()
    assert room.loads == [0, 1]
    room.reserve_hands(after=PATIENCE_S)

    assert room.loads == [0, 2]


def test_a_hand_is_not_kept_longer_because_one_of_the_other_kind_is_free() -> None:
    room = Room(Hand(leased()), Hand())
    room.of_other_kind = [room.hands[0]]
    room.come()
    assert room.loads == [1, 1]

    assert room.reserve_hands(after=ALONE_S)
    assert not room.hands[1].reserved

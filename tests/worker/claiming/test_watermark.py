# SPDX-License-Identifier: MIT
import pytest

from byrote.core.run import Leased
from byrote.worker.claiming.watermark import EXPECTED_S, LASTS, LASTS_S, Watermark
from tests.core.leases import leased

pytestmark = pytest.mark.pure

SLOW = 5 * EXPECTED_S
QUICK = EXPECTED_S / 2
FOUND = [leased(queue="a", rank=70), leased(queue="a", rank=50), leased(queue="b", rank=9)]


class Hand:
    """A watermark, and claims of a given duration."""

    def __init__(self) -> None:
        self.now = 100.0
        self.mark = Watermark()

    def claim(self, took: float, found: list[Leased] = FOUND, *, short: bool = False) -> None:
        floors = self.mark.floors(self.now)
        began = self.now
        self.now += took
        self.mark.note(found, floors, began=began, ended=self.now, short=short)


def test_two_slow_claims_raise_the_mark_to_where_they_found_something() -> None:
    hand = Hand()
    hand.claim(SLOW)
    assert not hand.mark.raised
    hand.claim(SLOW)

    assert hand.mark.floors(hand.now) == {"a": 50, "b": 9}


def test_quick_claims_start_from_the_very_front() -> None:
    hand = Hand()
    for took in (SLOW, QUICK, SLOW, QUICK):
        hand.claim(took)

    assert hand.mark.floors(hand.now) == {}


def test_the_mark_lasts_in_proportion_to_what_it_saves() -> None:
    """A run of higher priority that came later is passed by only for that long."""
    hand = Hand()
    hand.claim(SLOW)
    hand.claim(SLOW)
    for lasts in (LASTS * SLOW, LASTS_S):
        raised = hand.now
        assert hand.mark.floors(raised + lasts * 0.99)
        assert hand.mark.floors(raised + lasts * 1.01) == {}
        assert not hand.mark.raised
        hand.claim(SLOW)


def test_a_claim_that_was_held_up_for_long_raises_the_mark_for_two_seconds_at_most() -> None:
    """What is behind the mark must not wait for twenty times a stall of the network."""
    hand = Hand()
    hand.claim(30.0)
    hand.claim(30.0)

    assert hand.mark.floors(hand.now + LASTS_S * 0.99)
    assert hand.mark.floors(hand.now + LASTS_S * 1.01) == {}


def test_runs_that_come_back_lower_the_mark() -> None:
    hand = Hand()
    hand.claim(SLOW)
    hand.claim(SLOW)
    floors = hand.mark.floors(hand.now)
    hand.mark.lower()
    hand.mark.note(FOUND, floors, began=hand.now, ended=hand.now, short=False)

    assert hand.mark.floors(hand.now) == {}


def test_the_mark_moves_on_with_the_claims() -> None:
    """Or they would walk over all that was claimed since it was raised."""
    hand = Hand()
    hand.claim(SLOW)
    hand.claim(SLOW)
    hand.claim(QUICK, [leased(queue="a", rank=90), leased(queue="a", rank=80)])

    assert hand.mark.floors(hand.now) == {"a": 80, "b": 9}


def test_while_the_front_is_slow_one_claim_is_enough_to_notice() -> None:
    hand = Hand()
    hand.claim(SLOW)
    hand.claim(SLOW)
    hand.now += 60.0
    hand.claim(SLOW)
    assert hand.mark.raised

    hand.now += 60.0
    hand.claim(QUICK)
    hand.claim(SLOW)
    assert not hand.mark.raised


def test_if_claims_from_the_mark_are_as_slow_the_front_is_not_slow() -> None:
    """A slow disk: nothing is won by passing runs by."""
    hand = Hand()
    hand.claim(SLOW)
    hand.claim(SLOW)
    while hand.mark.floors(hand.now):
        hand.claim(SLOW)
    for _ in range(5):
        hand.claim(SLOW)

    assert not hand.mark.raised


def test_a_short_answer_from_the_mark_sends_the_next_claim_to_the_front() -> None:
    hand = Hand()
    hand.claim(SLOW)
    hand.claim(SLOW)
    hand.claim(QUICK, FOUND[:1], short=True)

    assert hand.mark.floors(hand.now) == {}


def test_a_slow_claim_of_an_empty_queue_is_ignored() -> None:
    hand = Hand()
    for _ in range(5):
        hand.claim(SLOW, [], short=True)

    assert not hand.mark.raised


def test_a_large_batch_may_take_longer() -> None:
    hand = Hand()
    for _ in range(5):
        hand.claim(2 * EXPECTED_S, [leased(rank=n) for n in range(200)])

    assert not hand.mark.raised

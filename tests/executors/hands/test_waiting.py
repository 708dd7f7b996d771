# SPDX-License-Identifier: MIT
"""Runs that wait for a hand of their kind."""

import pytest

from byrote.executors.hands.waiting import HAND_STARTS_S, WaitingRuns
from tests.core.leases import leased

pytestmark = pytest.mark.pure


def test_a_run_is_given_back_when_no_hand_of_its_kind_has_started() -> None:
    waiting = WaitingRuns()
    first, second = (leased(id=name, deadline=1_000.0) for name in "ab")
    waiting.add(first, 0.0)
    waiting.add(second, 1.0)

    assert waiting.take_late(HAND_STARTS_S) == []
    assert waiting.take_late(HAND_STARTS_S + 0.5) == [first]
    assert waiting.runs == [second]


def test_a_run_does_not_wait_longer_than_its_lease() -> None:
    waiting = WaitingRuns()
    run = leased(deadline=2.0)
    waiting.add(run, 0.0)

    assert waiting.take_late(2.5) == [run]
    assert not waiting


def test_cancelled_runs_are_taken_out_and_the_others_wait_on() -> None:
    waiting = WaitingRuns()
    runs = [leased(id=name) for name in "abc"]
    for run in runs:
        waiting.add(run, 0.0)

    assert waiting.take({id(runs[1])}) == [runs[1]]
    assert waiting.runs == [runs[0], runs[2]]
    assert waiting.take() == [runs[0], runs[2]]

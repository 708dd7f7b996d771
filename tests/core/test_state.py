# SPDX-License-Identifier: MIT
import pytest

from byrote.core.state import FINAL, MOVES, Status

pytestmark = pytest.mark.pure


def test_every_status_has_its_moves_and_none_leads_nowhere_known() -> None:
    assert set(MOVES) == set(Status)
    assert all(target in Status for targets in MOVES.values() for target in targets)


def test_no_status_moves_to_itself() -> None:
    assert not any(status in targets for status, targets in MOVES.items())


def test_from_everywhere_an_end_can_be_reached() -> None:
    """P4: no run is caught in a circle without an exit."""
    reached = set(FINAL)
    for _ in Status:
        reached |= {status for status, targets in MOVES.items() if targets & reached}

    assert reached == set(Status)


def test_only_a_person_brings_a_final_run_back_and_only_a_dead_one() -> None:
    assert {status: MOVES[status] for status in FINAL} == {
        Status.SUCCESSFUL: frozenset(),
        Status.FAILED: {Status.READY},
        Status.CANCELLED: frozenset(),
    }


def test_a_status_is_the_word_the_database_uses() -> None:
    assert [str(status) for status in Status] == [status.name for status in Status]

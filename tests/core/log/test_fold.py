# SPDX-License-Identifier: MIT
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from byrote.core.log.fold import BLANK, fold, fold_all
from byrote.core.log.record import LogEntry, upcast

pytestmark = pytest.mark.pure

NOON = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


def told(kind: str, move: int = 1, attempt: int = 0, **more: Any) -> LogEntry:
    return LogEntry(
        kind=kind, at=NOON + timedelta(seconds=move), move=move, attempt=attempt, **more
    )


@pytest.mark.parametrize("kind", ["Enqueued", "Signalled"])
def test_facts_missing_from_an_old_event_stay_unknown(kind: str) -> None:
    assert fold(BLANK, told(kind)).status is None


def test_an_old_retry_is_read_as_a_new_one() -> None:
    old = told("Retried", 3, 1, data={"delay_us": 5_000_000, "kind": "raised", "type": "E"})
    state = fold(BLANK, old)

    assert (state.status, state.wait_reason, state.charged) == ("WAITING", "retry", 1)
    assert state.due == NOON + timedelta(seconds=8)


@pytest.mark.parametrize(
    ("data", "charged", "losses"),
    [
        ({"delay_us": 5, "kind": "raised"}, 1, 0),
        ({"delay_us": None, "kind": "crashed"}, 0, 1),
        ({"delay_us": None, "kind": None}, 0, 0),
    ],
    ids=["retry", "crash", "cancel"],
)
def test_an_old_cancellation_counts_what_it_overruled(
    data: dict[str, Any], charged: int, losses: int
) -> None:
    state = fold(BLANK, told("Cancelled", 3, 1, worker="w", data=data))

    assert (state.status, state.charged, state.losses) == ("CANCELLED", charged, losses)


def test_an_event_of_the_newest_form_is_left_as_it_is() -> None:
    new = told("Retried", schema=2, data={"status": "READY", "reported": "R"})

    assert upcast(new) == new


def test_a_kind_from_a_newer_version_is_folded_by_its_status() -> None:
    story = [told("Enqueued", 1, schema=2), told("Held", 2, data={"status": "WAITING"})]
    assert fold_all(story).status == "WAITING"

    assert fold_all([*story, told("Mystery", 3)]).status is None


def test_unlogged_moves_leave_the_state_unknown_until_the_next_event() -> None:
    story = [told("Enqueued", 1, schema=2), told("Retried", 5, 1, schema=2, data={})]
    assert fold_all(story).status is None

    assert fold_all([*story, told("Claimed", 6, 2, worker="w")]).status == "RUNNING"


def test_a_moment_beyond_what_python_can_hold_is_unknown() -> None:
    waits = {"status": "WAITING", "reported": "Z", "wait": "sleep", "delay_us": 2**62}

    assert fold(BLANK, told("Snoozed", 3, 1, schema=2, data=waits)).due is None

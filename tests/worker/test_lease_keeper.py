# SPDX-License-Identifier: MIT
"""What a keeper makes of the answers to its renewals, without a database."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest

from byrote.core.ports.replies import LOCKED
from byrote.core.run import Leased
from byrote.worker.claiming.claimer import DEADLINE_MARGIN
from byrote.worker.context import WorkerContext
from byrote.worker.lease_keeper import LeaseKeeper
from byrote.worker.leases import HeldLeases
from tests.core.leases import leased

NOW = 100.0
LEASE_S = 30.0
RENEWED = NOW + LEASE_S * DEADLINE_MARGIN
"""The deadline after a renewal."""


class Scene:
    """A registry with a given answer, and an executor that records its calls."""

    def __init__(self, answer: Mapping[str, bool | str]) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.cancelled: list[str] = []
        self.forgotten: list[str] = []

    def renew(self, leases: Sequence[Leased], *, lease_for: timedelta) -> Mapping[str, bool | str]:
        assert lease_for.total_seconds() == LEASE_S
        self.asked += [run.id for run in leases]
        return self.answer

    def cancel(self, runs: Sequence[Leased]) -> None:
        self.cancelled += [run.id for run in runs]

    def forget(self, runs: Sequence[Leased]) -> None:
        self.forgotten += [run.id for run in runs]


def renew(scene: Scene, *runs: Leased) -> HeldLeases:
    """One round of renewals; what is held after it."""
    held = HeldLeases()
    held.add(runs)
    context = WorkerContext("w", lambda: NOW, lambda: 0.0, lambda: "token", lambda _events: None)
    keeper = LeaseKeeper(
        scene,  # type: ignore[arg-type]
        scene,  # type: ignore[arg-type]
        held=held,
        lease_for=timedelta(seconds=LEASE_S),
        context=context,
        description=dict,
        load=dict,
    )
    keeper._renew()
    return held


@pytest.mark.parametrize(
    ("answer", "deadline", "kept"),
    [
        ({"a": False}, RENEWED, True),
        ({"a": True}, RENEWED, True),
        ({"a": LOCKED}, NOW + 1, True),
        ({}, NOW + 1, False),
    ],
    ids=["renewed", "to be cancelled", "locked", "lost"],
)
def test_a_lease_is_believed_for_as_long_as_the_answer_allows(
    answer: Mapping[str, bool | str], deadline: float, *, kept: bool
) -> None:
    """One whose row is locked is neither renewed nor lost, nor is its run to be cancelled."""
    run = leased(id="a", deadline=NOW + 1)
    scene = Scene(answer)
    held = renew(scene, run)

    assert scene.asked == ["a"]
    assert (run.deadline, run in held) == (deadline, kept)
    assert scene.cancelled == (["a"] if answer.get("a") is True else [])
    assert scene.forgotten == ([] if kept else ["a"])


def test_an_attempt_whose_end_is_being_written_is_renewed_later_than_others() -> None:
    """Most are written by then; but one that waits keeps its lease."""
    horizon = LEASE_S * DEADLINE_MARGIN
    soon, later = NOW + horizon * 0.45, NOW + horizon * 0.6
    runs = [
        leased(id="ends", deadline=soon, settling=True),
        leased(id="ends, fresh", deadline=later, settling=True),
        leased(id="runs", deadline=later),
    ]
    scene = Scene({run.id: False for run in runs})
    renew(scene, *runs)

    assert scene.asked == ["ends", "runs"]


@pytest.mark.parametrize(("over_s", "kept"), [(LEASE_S * 0.05, True), (LEASE_S * 0.15, False)])
def test_an_end_that_cannot_be_written_is_given_up_when_the_lease_is_over(
    over_s: float, *, kept: bool
) -> None:
    """Its row is locked: a tenth of the lease after the deadline it would not be accepted."""
    run = leased(id="a", deadline=NOW - over_s, settling=True)
    scene = Scene({"a": LOCKED})
    held = renew(scene, run)

    assert (run in held, scene.forgotten) == (kept, [] if kept else ["a"])

# SPDX-License-Identifier: MIT
# ruff: noqa: ARG002 -- the store below has the signatures of the real one.
"""Duties that runs wait for are not delayed by those they do not wait for."""

import itertools
from collections.abc import Mapping
from datetime import timedelta

from byrote.core.log.cursor import BEGINNING, Cursor
from byrote.core.ports.replies import Archived, Duty, Promotion, ReclaimedRun
from byrote.worker.context import WorkerContext
from byrote.worker.upkeep.maintenance import EVERY, SWEEP_MAX, Maintenance


class Slow:
    """A store whose long duties take a second for each step, on its own clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self.done: list[tuple[str, float]] = []
        self.expired = 0
        self.forgotten = 0
        self._next = dict.fromkeys(EVERY, 0.0)

    def clock(self) -> float:
        return self.now

    def due(self, *, worker: str, every: Mapping[str, timedelta]) -> list[Duty]:
        found = [name for name in reversed(every) if self._next[name] <= self.now]
        for name in found:
            self._next[name] = self.now + every[name].total_seconds()
        return [Duty(name, None) for name in found]

    def _did(self, duty: str, took: float = 0.0) -> None:
        self.done.append((duty, self.now))
        self.now += took

    def sweep(self, *, limit: int) -> list[ReclaimedRun]:
        self._did("sweep")
        found, self.expired = min(self.expired, limit), max(self.expired - limit, 0)
        return [ReclaimedRun("id", "READY", 1, "w")] * found

    def promote(self, *, limit: int) -> Promotion:
        self._did("promote")
        return Promotion(0, 0, None)

    def forget(self, *, limit: int) -> int:
        self._did("forget", 1.0)
        self.forgotten += 1
        return limit if self.forgotten < 10 else 0

    def archive(self, *, after: str, limit: int) -> Archived:
        self._did("archive", 1.0)
        return Archived(0, 0, None, None)

    def due_schedules(self, *, limit: int) -> list[object]:
        return []

    def prune(self) -> None:
        self._did("prune")

    def prune_stats(self) -> None:
        pass

    def begin_counting(self) -> Cursor | None:
        return BEGINNING

    def count(self, cursor: Cursor, *, limit: int) -> tuple[int, Cursor | None]:
        del cursor, limit
        return 0, None

    def recount(self, cursor: Cursor, *, most: int) -> None:
        pass

    def note_unserved(self) -> list[object]:
        return []

    def fail_unserved(self, *, limit: int) -> list[object]:
        return []

    def partition(self) -> None:
        pass

    def prune_artifacts(self, after: str) -> Archived:
        return Archived(0, 0, None, None)

    def prune_blobs(self, after: str) -> Archived:
        return Archived(0, 0, None, None)

    def bookmark(self, duty: str, cursor: str) -> None:
        pass


def one_turn(slow: Slow) -> Slow:
    context = WorkerContext("w", slow.clock, lambda: 0.0, lambda: "token", lambda _events: None)
    Maintenance(slow, context, idle=lambda: False).turn()  # type: ignore[arg-type]
    return slow


def test_sweeping_goes_on_while_a_long_duty_is_under_way() -> None:
    """Ten seconds of forgetting do not keep a dead worker's runs from coming back."""
    slow = one_turn(Slow())
    swept = [at for duty, at in slow.done if duty == "sweep"]

    assert slow.forgotten == 10
    assert max(later - at for at, later in itertools.pairwise(swept)) <= 1.0


def test_what_runs_wait_for_comes_first() -> None:
    slow = one_turn(Slow())

    assert {duty for duty, _ in slow.done[:2]} == {"sweep", "promote"}


def test_one_turn_takes_back_all_that_has_expired() -> None:
    slow = Slow()
    slow.expired = 3 * SWEEP_MAX
    one_turn(slow)

    assert [duty for duty, _ in slow.done if duty != "promote"][:4] == ["sweep"] * 4

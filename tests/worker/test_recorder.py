# SPDX-License-Identifier: MIT
"""What a recorder makes of a store's replies, without a database."""

from collections.abc import Sequence
from itertools import count

import pytest

from byrote.core.outcome import Succeeded
from byrote.core.ports.replies import LOCKED
from byrote.core.run import Leased
from byrote.core.verdict import Judged
from byrote.worker.context import WorkerContext
from byrote.worker.leases import HeldLeases
from byrote.worker.recorder import Recorder
from tests.core.leases import leased

pytestmark = pytest.mark.pure


class LockedAtFirst:
    """A store that finds the rows of the first write locked; another run ends meanwhile."""

    def __init__(self, first: Leased, later: Leased) -> None:
        held, ticks = HeldLeases(), count()
        held.add([first, later])
        self.later = later
        context = WorkerContext("w", lambda: float(next(ticks)), float, str, lambda _events: None)
        self.recorder = Recorder(self, held, context)
        self.backlogs: list[int] = []

    def report(self, run: Leased) -> None:
        self.recorder.report([(run, Succeeded("1", "00"))])

    def finish(self, judged: Sequence[Judged]) -> dict[str, str]:
        self.backlogs.append(self.recorder.backlog)
        if len(self.backlogs) == 1:
            self.report(self.later)
            return dict.fromkeys([run.id for run, _, _ in judged], LOCKED)
        self.recorder.close()
        return {run.id: "S" for run, _, _ in judged}

    def close(self) -> None:
        """Nothing is open."""


def test_verdicts_put_aside_count_as_unwritten() -> None:
    """Otherwise a worker goes on claiming while rows are locked, and holds ever more results."""
    first = leased(id="first", deadline=1e9)
    store = LockedAtFirst(first, leased(id="later", deadline=1e9))
    store.report(first)
    store.recorder.run()

    assert store.backlogs == [0, 1, 0]
    assert store.recorder.finished == 2

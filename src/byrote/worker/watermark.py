# SPDX-License-Identifier: MIT
"""Keeps claims flat while an old snapshot elsewhere stops vacuum.

Dead entries pile up at the front of the index and every claim walks over them: 7 ms became 31 ms in
half a minute. So when claims from the very front turn out slow, the next ones start where the last
one found something. That could pass by a run of higher priority that came later, so it lasts only a
while, twenty times what the slow claim took, and a claim from the mark that comes back short is
followed by one from the front.
"""

from collections.abc import Sequence

from byrote.core.ports import Clock
from byrote.core.run import Leased

EXPECTED_S = 0.010
EXPECTED_EACH_S = 100e-6
LASTS = 20


class Watermark:
    """Where to start claiming in each queue."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._marks: dict[str, int] = {}
        self._until = 0.0
        self._slow = 0

    @property
    def raised(self) -> bool:
        """Whether claims start from a mark just now."""
        return bool(self._marks)

    def floors(self, now: float) -> dict[str, int]:
        """The ranks to start from; nothing means from the very front."""
        if self._marks and now > self._until:
            self._marks = {}
        return dict(self._marks)

    def note(
        self,
        found: Sequence[Leased],
        floors: dict[str, int],
        *,
        began: float,
        ended: float,
        short: bool,
    ) -> None:
        """Learn from a claim how long it took and where it found what it found."""
        if floors:
            if short:
                self._marks = {}
            return
        took = ended - began
        slow = took > EXPECTED_S + EXPECTED_EACH_S * len(found)
        # Twice in a row: a single slow claim is a busy disk, not an old snapshot.
        self._slow = self._slow + 1 if slow and not short else 0
        if self._slow >= 2:
            self._slow = 0
            self._until = ended + LASTS * took
            for run in found:
                self._marks[run.queue] = min(run.rank, self._marks.get(run.queue, run.rank))

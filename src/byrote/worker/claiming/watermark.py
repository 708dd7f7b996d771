# SPDX-License-Identifier: MIT
"""Keeps claims flat while an old snapshot elsewhere stops vacuum.

Dead entries pile up at the front of the index and every claim walks over them: 7 ms became 31 ms in
half a minute. So when claims from the front are slow, the next ones start at the rank where the
last one found a run, and the mark moves on with them: behind it are the runs they have claimed.
That could skip a run of higher priority that came later, or one that was taken back from a dead
worker, so a mark lasts only for a while: twenty times what the slow claim took, but two seconds at
most, and at least once it is sure. A claim from the mark that comes back short is followed by one
from the front, and so is the notification that a sweep has put runs back.

Claims from the mark show what is slow: on a machine where they take as long, it was not the walk.
"""

from collections.abc import Sequence

from byrote.core.run import Leased

EXPECTED_S = 0.005
EXPECTED_EACH_S = 30e-6
SLOW = 1.5
"""A claim is slow if it takes this many times as long as usual."""
USUAL_MIN = 0.5
"""The least usual time, as a share of the expected one: shorter times vary by a factor of two."""
LEARN = 0.1
LASTS = 20
LASTS_S = 2.0
"""The maximum lifetime of a mark: a claim that the network delayed does not measure the index. It
is also the minimum once slowness is confirmed: slow claims must be rarer than one in a hundred."""
TWICE = 2
"""Slow claims in succession: a single one is a busy disk, not an old snapshot."""


class Watermark:
    """Where to start claiming in each queue."""

    def __init__(self) -> None:
        self._marks: dict[str, int] = {}
        self._until = 0.0
        self._slow = 0
        self._enough = TWICE
        self._usual = 1.0

    @property
    def raised(self) -> bool:
        """Whether claims start from a mark now."""
        return bool(self._marks)

    def floors(self, now: float) -> dict[str, int]:
        """The ranks to start from; empty: from the front."""
        if self._marks and now > self._until:
            self._marks = {}
        return dict(self._marks)

    def lower(self) -> None:
        """Start from the front again: runs have returned to an earlier rank."""
        self._marks = {}

    def note(
        self,
        found: Sequence[Leased],
        floors: dict[str, int],
        *,
        began: float,
        ended: float,
        short: bool,
    ) -> None:
        """Learn from a claim how long it took, and from which ranks its runs came."""
        took = ended - began
        cost = took / (EXPECTED_S + EXPECTED_EACH_S * len(found))
        if floors and short:
            self._marks = {}
        elif floors:
            self._usual = max(self._usual + (cost - self._usual) * LEARN, USUAL_MIN)
            # Unless another thread lowered it during the claim.
            self._marks = self._marks and self._marks | _firsts(found)
        elif short or cost <= SLOW * self._usual:
            self._slow, self._enough = 0, TWICE
        else:
            self._slow += 1
            if self._slow >= self._enough:
                sure = self._enough == 1
                self._until = ended + (LASTS_S if sure else min(LASTS * took, LASTS_S))
                self._marks = _firsts(found)
                # While it lasts, the next claim from the front is enough to show it.
                self._slow, self._enough = 0, 1


def _firsts(found: Sequence[Leased]) -> dict[str, int]:
    """The first rank that was found in each queue."""
    firsts: dict[str, int] = {}
    for run in found:
        firsts[run.queue] = min(run.rank, firsts.get(run.queue, run.rank))
    return firsts

# SPDX-License-Identifier: MIT
"""Runs that wait for a hand of their mode, while all hands execute tasks of the other mode."""

from collections.abc import Collection

from byrote.core.run import Leased

HAND_STARTS_S = 10.0
"""How long a run waits for a hand to start before it is given back for other workers."""


class WaitingRuns:
    """Runs without a hand, since when they wait. Guarded by the roster's lock.

    At most the runs of one claim and of one crash: none is claimed for a mode without a hand.
    """

    def __init__(self) -> None:
        self._since: dict[int, tuple[float, Leased]] = {}

    def __len__(self) -> int:
        return len(self._since)

    def add(self, run: Leased, now: float) -> None:
        """Let a run wait."""
        self._since.setdefault(id(run), (now, run))

    @property
    def runs(self) -> list[Leased]:
        """The runs, in the order in which they came."""
        return [run for _, run in self._since.values()]

    def take(self, wanted: Collection[int] | None = None) -> list[Leased]:
        """Remove and return runs: all, or those whose `id()` is in `wanted`."""
        keys = [key for key in self._since if wanted is None or key in wanted]
        return [self._since.pop(key)[1] for key in keys]

    def take_late(self, now: float) -> list[Leased]:
        """Remove and return runs that have waited too long, or whose lease is over."""
        late = {
            key
            for key, (since, run) in self._since.items()
            if now > min(since + HAND_STARTS_S, run.deadline)
        }
        return self.take(late)

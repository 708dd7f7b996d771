# SPDX-License-Identifier: MIT
"""The leases a worker holds, from the claim's answer until the database has settled them."""

from collections.abc import Iterable, Sequence

from byrote.core.run import Leased


class HeldLeases:
    """Leases by run id. Single operations on a dict are atomic, so threads share it unlocked."""

    def __init__(self) -> None:
        self._leases: dict[str, Leased] = {}
        self.lease_of = self._leases.get
        """The lease held on the run of this id, or None."""

    def __len__(self) -> int:
        return len(self._leases)

    def __contains__(self, run: Leased) -> bool:
        # The same lease: the run may have been claimed again meanwhile.
        return self._leases.get(run.id) is run

    def add(self, runs: Sequence[Leased]) -> None:
        """Add leases that were claimed."""
        self._leases.update([(run.id, run) for run in runs])

    def drop(self, runs: Iterable[Leased]) -> None:
        """Remove leases that are settled or lost."""
        leases, lease_of = self._leases, self.lease_of
        for run in runs:
            if lease_of(run.id) is run:
                del leases[run.id]

    def find(self, ids: Iterable[str]) -> list[Leased]:
        """Which of these are held here."""
        return [run for run_id in ids if (run := self._leases.get(run_id)) is not None]

    def ageing(self, before: float, *, unwritten: float) -> list[Leased]:
        """Leases that must not be trusted after `before` unless they are renewed.

        Of attempts whose end is being written, those that must not be after `unwritten`: most are
        written before their leases have to be renewed.
        """
        held = list(self._leases.values())
        return [run for run in held if run.deadline < (unwritten if run.settling else before)]

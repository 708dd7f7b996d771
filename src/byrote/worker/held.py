# SPDX-License-Identifier: MIT
"""The leases a worker holds, from the claim's answer until the database has settled them."""

from collections.abc import Iterable, Sequence

from byrote.core.run import Leased


class Held:
    """Leases by run id. Single operations on a dict are atomic, so threads share it unlocked."""

    def __init__(self) -> None:
        self._leases: dict[str, Leased] = {}

    def __len__(self) -> int:
        return len(self._leases)

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._leases

    def add(self, runs: Sequence[Leased]) -> None:
        """These were claimed."""
        self._leases.update([(run.id, run) for run in runs])

    def drop(self, ids: Iterable[str]) -> None:
        """These are settled or lost."""
        for run_id in ids:
            self._leases.pop(run_id, None)

    def ageing(self, before: float) -> list[Leased]:
        """Leases that must not be believed after `before` unless they are renewed."""
        return [run for run in list(self._leases.values()) if run.deadline < before]

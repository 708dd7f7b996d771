# SPDX-License-Identifier: MIT
"""Divides room between queues by weight: none starves, none waits for an empty one.

A queue is entitled to its share of the runs that were claimed, not of those that were requested: a
claim that comes back empty, because the tasks with room are not those that wait, changes nothing.
"""

from collections.abc import Mapping, Sequence


class Shares:
    """Weighted shares of a number of queues."""

    def __init__(self, weights: Mapping[str, int]) -> None:
        self._weights = dict(weights)
        self._owed = dict.fromkeys(weights, 0.0)

    @property
    def queues(self) -> list[str]:
        """The queues, in the order given."""
        return list(self._weights)

    def add(self, queue: str) -> None:
        """Add a queue, if it is not there yet."""
        if queue not in self._weights:
            # Before the weights: another thread may be reading them at this moment.
            self._owed = {**self._owed, queue: 0.0}
            self._weights = {**self._weights, queue: 1}

    def split(self, limit: int, among: Sequence[str]) -> dict[str, int]:
        """Quotas that add up to `limit`, corrected by each queue's balance from earlier claims."""
        wanted = {
            queue: self._owed[queue] + limit * part for queue, part in self._parts(among).items()
        }
        quotas = {queue: max(int(share), 0) for queue, share in wanted.items()}
        left = limit - sum(quotas.values())
        for queue in sorted(wanted, key=lambda name: quotas[name] - wanted[name]):
            if left > 0:
                quotas[queue] += 1
                left -= 1
        while sum(quotas.values()) > limit:
            quotas[max(quotas, key=lambda name: quotas[name])] -= 1
        return {queue: quota for queue, quota in quotas.items() if quota}

    def note_claims(
        self, claimed: Mapping[str, int], dry: Sequence[str], among: Sequence[str]
    ) -> None:
        """Record what a claim returned: queues with enough runs even out their rounding."""
        busy = [queue for queue in among if queue not in dry]
        total = sum(claimed.get(queue, 0) for queue in busy)
        for queue, part in self._parts(busy).items():
            self._owed[queue] += total * part - claimed.get(queue, 0)

    def _parts(self, queues: Sequence[str]) -> dict[str, float]:
        total = sum(self._weights[queue] for queue in queues)
        return {queue: self._weights[queue] / total for queue in queues}

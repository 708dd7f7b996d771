# SPDX-License-Identifier: MIT
"""Divides room between queues by weight: none starves, none waits for an empty one."""

from collections.abc import Mapping, Sequence


class Shares:
    """Weighted shares of a number of queues."""

    def __init__(self, weights: Mapping[str, int]) -> None:
        self._weights = dict(weights)
        self._credit = dict.fromkeys(weights, 0.0)

    @property
    def queues(self) -> list[str]:
        """The queues, in the order given."""
        return list(self._weights)

    def split(self, limit: int, among: Sequence[str] | None = None) -> dict[str, int]:
        """Quotas that add up to `limit`; what rounding keeps from a queue it gets next time."""
        queues = self.queues if among is None else list(among)
        if len(queues) == 1:
            return {queues[0]: limit}
        total = sum(self._weights[queue] for queue in queues)
        for queue in queues:
            self._credit[queue] += limit * self._weights[queue] / total
        quotas = {queue: max(int(self._credit[queue]), 0) for queue in queues}
        left = limit - sum(quotas.values())
        for queue in sorted(queues, key=lambda name: quotas[name] - self._credit[name]):
            if left > 0:
                quotas[queue] += 1
                left -= 1
        while sum(quotas.values()) > limit:
            quotas[max(quotas, key=lambda name: quotas[name])] -= 1
        for queue in queues:
            self._credit[queue] -= quotas[queue]
        return {queue: quota for queue, quota in quotas.items() if quota}

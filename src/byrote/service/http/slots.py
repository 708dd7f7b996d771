# SPDX-License-Identifier: MIT
"""Slots for requests, counted by token, so that no token takes them all.

A token may take a slot while it has fewer than are still free: alone it gets half of them, `n`
greedy tokens together leave one part in `n + 1` to the next. Slots are counted when they are taken,
before anything is awaited.
"""

import contextlib
from collections.abc import Iterator
from typing import Self

from byrote.wire.problems import Unavailable


class Slots:
    """A number of slots, and the tokens that hold them."""

    def __init__(self, limit: int, what: str, *, retry_after_s: float = 1) -> None:
        self.limit = limit
        self._what = what
        self._retry_after_s = retry_after_s
        self._held: dict[str, int] = {}
        self.used = 0

    def take(self, token: str) -> "Slot":
        """Take a slot for this token; raises Unavailable if it holds its share already."""
        held = self._held.get(token, 0)
        if held >= self.limit - self.used:
            raise Unavailable(
                f"{self._what}: {held} are this token's, of {self.limit}.",
                retry_after_s=self._retry_after_s,
            )
        return Slot(self, token)

    def count(self, token: str, change: int) -> None:
        """Add to the slots of a token."""
        self.used += change
        held = self._held.get(token, 0) + change
        if held:
            self._held[token] = held
        else:
            self._held.pop(token, None)


class Slot:
    """One slot, held until it is released."""

    def __init__(self, slots: Slots, token: str) -> None:
        self._slots = slots
        self._token = token
        self._taken = False
        self._over = False
        self._count(taken=True)

    def _count(self, *, taken: bool) -> None:
        if taken != self._taken and not (taken and self._over):
            self._taken = taken
            self._slots.count(self._token, 1 if taken else -1)

    def leave(self) -> None:
        """Release the slot."""
        self._count(taken=False)

    @contextlib.contextmanager
    def left(self) -> Iterator[None]:
        """Release the slot meanwhile; it is taken again afterwards even if none is free."""
        self._count(taken=False)
        try:
            yield
        finally:
            self._count(taken=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        # A handler that was cancelled may still return from `left`.
        self._over = True
        self.leave()

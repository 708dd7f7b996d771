# SPDX-License-Identifier: MIT
"""How many hands execute the async tasks of a worker, as this hand knows it.

What async tasks share, such as database sessions, is divided by this number. At first it is the
number of hands; in a worker with sync and async tasks the supervisor sends it when it changes.
"""

import os

HAND_COUNT = "BYROTE_HAND_COUNT"
"""Environment variable with the number of hands of the worker."""

_sent: list[int] = []


def async_hands() -> int:
    """The number of hands that execute async tasks."""
    return _sent[-1] if _sent else int(os.environ.get(HAND_COUNT, "1"))


def note_async_hands(hands: int) -> None:
    """Record the number that the supervisor has sent."""
    _sent[:] = [hands]

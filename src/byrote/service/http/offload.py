# SPDX-License-Identifier: MIT
"""Reads large JSON on a thread, so that the event loop continues to answer requests.

The canonical form of a value is made in Python, at about 2 µs for each value in it: a body of
1,000,000 values takes seconds. Tokens take turns: each has one job under way.
"""

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final
from weakref import WeakValueDictionary

from byrote.wire.problems import TooLarge

LARGE: Final = 64 * 1024
"""Bytes above which a body is read on the thread, however few values it has."""
MANY: Final = 2_000
"""Values above which it is, however short: about 5 ms."""

_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class Offload:
    """The thread, and the tokens that wait for it."""

    def __init__(self) -> None:
        # One: more would only take the interpreter from the event loop.
        self._thread = ThreadPoolExecutor(1, "byrote-values")
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run[T](self, token: str, work: Callable[[], T]) -> T:
        """Return the result of `work`, called when it is this token's turn."""
        turn = self._turns.get(token)
        if turn is None:
            turn = self._turns[token] = asyncio.Lock()
        async with turn:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """Start no more jobs."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def is_heavy(raw: bytes) -> bool:
    """Whether a body is to be read on the thread."""
    return len(raw) > LARGE or (len(raw) > 2 * MANY and _separators(raw) > MANY)


def check_values(raw: bytes, limit: int) -> None:
    """Refuse a body with more JSON values than the limit; strings may hold any number of commas."""
    if _separators(raw) < limit:
        return
    found = _separators(_STRINGS.sub(b"", raw)) + 1
    if found > limit:
        raise TooLarge(
            f"A request has at most {limit:,} JSON values; this one has about {found:,}. "
            "Send less at once, or store the value elsewhere and send a reference to it."
        )


def _separators(raw: bytes) -> int:
    """Commas and opening brackets: one less than the number of values if no string has any."""
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{")

# SPDX-License-Identifier: MIT
"""Shows the demo while it goes on: a block that is redrawn on a terminal, plain lines elsewhere."""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from byrote.core.run import Run
from byrote.core.state import FINAL, Status

_PLAIN_EVERY_S = 1.0
_BAR = 20

type Paint = Callable[[str, str], str]
"""Returns a word (the second argument) in the colour of a status (the first)."""


class Screen:
    """Shows progress on standard output; prints nothing if `silent`."""

    def __init__(self, *, silent: bool, paint: Paint) -> None:
        self._silent = silent
        self._paint = paint
        self._live = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self._drawn = 0
        self._next = 0.0
        self._last = ""

    def announce(self, line: str) -> None:
        """Print one line below the block that was drawn."""
        if not self._silent:
            self._drawn = 0
            self._write(f"{line}\n")

    def watch(self, runs: Sequence[Run]) -> None:
        """Show the status of every run."""
        if self._silent:
            return
        found = counts(runs)
        if self._live:
            self._draw([self._line(name, states) for name, states in found.items()])
        else:
            self._summarise(found, len(runs))

    def _draw(self, lines: Sequence[str]) -> None:
        up = f"\033[{self._drawn}A" if self._drawn else ""
        self._drawn = len(lines)
        self._write(up + "".join(f"\033[K{line}\n" for line in lines))

    def _line(self, name: str, states: Mapping[str, int]) -> str:
        done, whole = ended(states), sum(states.values())
        bar = ("#" * (_BAR * done // whole)).ljust(_BAR, ".")
        shown = "  ".join(
            self._paint(status, f"{states[status]} {status.lower()}")
            for status in Status
            if states.get(status)
        )
        return f"  {name:<18} {bar} {done:>3}/{whole:<3}  {shown}"

    def _summarise(self, found: Mapping[str, Mapping[str, int]], whole: int) -> None:
        done = sum(map(ended, found.values()))
        going = [name for name, states in found.items() if ended(states) < sum(states.values())]
        line = f"  {done} of {whole} ended" + (
            f"; still going: {', '.join(going)}" if going else ""
        )
        now = time.monotonic()
        if line != self._last and (now >= self._next or done == whole):
            self._next, self._last = now + _PLAIN_EVERY_S, line
            self._write(f"{line}\n")

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def counts(runs: Sequence[Run]) -> dict[str, Counter[str]]:
    """For each kind how many runs are in which state, the first sent first."""
    found: dict[str, Counter[str]] = {}
    for run in reversed(runs):
        found.setdefault(run.labels["kind"], Counter())[run.status.value] += 1
    return found


def ended(states: Mapping[str, int]) -> int:
    """How many of these have ended."""
    return sum(count for status, count in states.items() if status in FINAL)

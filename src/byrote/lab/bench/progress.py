# SPDX-License-Identifier: MIT
"""Says on standard error what is going on: a line redrawn on a terminal, plain lines elsewhere."""

import sys
import time

_REDRAW_S = 0.1


class BenchProgress:
    """The line that says what is being done now."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._next = 0.0

    def say(self, text: str) -> None:
        """A new step begins."""
        self._write(f"\r\033[K{text}" if self._live else f"{text}\n")

    def part(self, text: str, done: int, whole: int) -> None:
        """A step has come so far; only terminals are told."""
        now = time.monotonic()
        if self._live and (now >= self._next or done >= whole):
            self._next = now + _REDRAW_S
            self.say(f"{text}: {done:,} of {whole:,} ({done / whole:.0%})")

    def end(self) -> None:
        """Take the line away."""
        if self._live:
            self._write("\r\033[K")

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

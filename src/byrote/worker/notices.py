# SPDX-License-Identifier: MIT
"""Reports trouble with the store, and what a stopping worker waits for."""

from datetime import timedelta

from byrote.core import events
from byrote.core.ports.executor import Emit


class Notices:
    """Emits one event when trouble begins and one when it ends, however often it was retried."""

    def __init__(self, worker: str, emit: Emit) -> None:
        self._worker = worker
        self._emit = emit
        self._troubled: set[str] = set()

    def __call__(self, what: str, error: str | None) -> None:
        """Receive the error of one purpose, or None when it works again."""
        if error is None:
            if what in self._troubled:
                self._troubled.discard(what)
                self._emit([events.Recovered(self._worker, what)])
        elif what not in self._troubled:
            self._troubled.add(what)
            self._emit([events.Troubled(self._worker, what, error)])


def stopping_note(running: int, grace: timedelta, reason: str) -> str:
    """Describe the runs a stopping worker waits for, and a second signal; empty without runs."""
    if not running:
        return ""
    runs = "1 run" if running == 1 else f"{running} runs"
    again = "Ctrl-C again" if reason == "SIGINT" else "a second signal"
    seconds = f"{grace.total_seconds():g} s"
    return f"waiting up to {seconds} for {runs}; {again} returns unfinished runs to the queue"

# SPDX-License-Identifier: MIT
"""Orders the events of a start: those of hands follow that of their worker."""

import threading
from collections.abc import Sequence

from byrote.core.events import Event, HandEnded, HandStarted, WorkerStarted
from byrote.core.ports.executor import Emit


class OrderedStart:
    """Holds back events of hands until the worker has started.

    Hands start first: they import the app, which may name the database. A worker that then cannot
    start drops these events, so that its log has the error only.
    """

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._lock = threading.Lock()
        self._started = False
        self._held: list[Event] = []

    def __call__(self, events: Sequence[Event]) -> None:
        """Emit the events; those of hands after the start."""
        if self._started:
            self._emit(events)
            return
        with self._lock:
            if not self._started:
                events = self._sort(events)
        self._emit(events)

    def _sort(self, events: Sequence[Event]) -> list[Event]:
        """Hold back events of hands; returns the others, and all that were held at the start."""
        ready: list[Event] = []
        for event in events:
            (self._held if isinstance(event, HandStarted | HandEnded) else ready).append(event)
        if any(isinstance(event, WorkerStarted) for event in ready):
            self._started = True
            ready += self._held
        return ready

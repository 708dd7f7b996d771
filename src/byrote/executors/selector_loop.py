# SPDX-License-Identifier: MIT
"""The thread behind an executor of processes: it waits for all their descriptors at once.

Others wake it by a nudge. When it breaks, whoever asks for room next fails with what broke it, and
the worker stops loudly.
"""

import os
import selectors
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence

from byrote.core.outcome import Outcome, Released
from byrote.core.ports.executor import ReportOutcomes
from byrote.core.run import Leased

TICK_S = 0.05

type Outcomes = list[tuple[Leased, Outcome]]


class SelectorLoop(ABC):
    """What executors of processes have in common; `_serve` is what each does in its thread."""

    _report: ReportOutcomes

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._thread: threading.Thread | None = None
        self._broken: BaseException | None = None

    def _begin_serving(self, report: ReportOutcomes, name: str) -> None:
        """Start the thread."""
        self._report = report
        self._selector.register(self._wake, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._guard, name=name, daemon=True)
        self._thread.start()

    def _end_serving(self) -> None:
        """Wait until the thread, which was told to, has ended."""
        if self._thread is not None:
            self._nudge()
            self._thread.join()
        self._selector.close()
        os.close(self._wake)

    def _guard(self) -> None:
        try:
            self._serve()
        except BaseException as error:
            self._broken = error
            self._report([])
            raise

    @abstractmethod
    def _serve(self) -> None:
        """Until told to stop."""

    def _check(self) -> None:
        """Raise what broke the thread, if anything has."""
        if self._broken is not None:
            raise self._broken

    def _tell(self, reports: Outcomes) -> None:
        if reports:
            self._report(reports)

    def _release(self, runs: Sequence[Leased]) -> None:
        self._tell([(run, Released()) for run in runs])

    def _nudge(self) -> None:
        os.eventfd_write(self._wake, 1)

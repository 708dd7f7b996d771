# SPDX-License-Identifier: MIT
"""The thread of an executor of processes: it waits for all their descriptors at once.

Other threads wake it through a `Wake`. If it fails, the next call of `room` raises its exception,
and the worker stops with that error.
"""

import selectors
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence

from byrote.core.outcome import Outcome, Released
from byrote.core.ports.executor import ReportOutcomes
from byrote.core.run import Leased
from byrote.system.wake import Wake

TICK_S = 0.05

type Outcomes = list[tuple[Leased, Outcome]]


class SelectorLoop(ABC):
    """Base class of executors of processes; `_serve` is the main function of the thread."""

    _report: ReportOutcomes

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._wake = Wake()
        self._thread: threading.Thread | None = None
        self._broken: BaseException | None = None

    def _begin_serving(self, report: ReportOutcomes, name: str) -> None:
        """Start the thread."""
        self._report = report
        self._selector.register(self._wake.fd, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._guard, name=name, daemon=True)
        self._thread.start()

    def _end_serving(self) -> None:
        """Wake the thread, which was asked to stop, and wait until it has ended."""
        if self._thread is not None:
            self._nudge()
            self._thread.join()
        self._selector.close()
        self._wake.close()

    def _guard(self) -> None:
        try:
            self._serve()
        except BaseException as error:
            self._broken = error
            self._report([])
            raise

    @abstractmethod
    def _serve(self) -> None:
        """Serve until the executor is stopped."""

    def _check(self) -> None:
        """Raise the exception that ended the thread, if there was one."""
        if self._broken is not None:
            raise self._broken

    def _report_ends(self, reports: Outcomes) -> None:
        if reports:
            self._report(reports)

    def _release(self, runs: Sequence[Leased]) -> None:
        self._report_ends([(run, Released()) for run in runs])

    def _nudge(self) -> None:
        self._wake.set()

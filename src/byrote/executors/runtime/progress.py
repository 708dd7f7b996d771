# SPDX-License-Identifier: MIT
"""How far attempts have come, on its way to the worker: the latest word of each, now and then.

A task may report as often as it likes: a report is only put where one thread of the process finds
it, which sends the latest of each attempt and then rests. It also waits until they are written, so
that a slow database is told less often and nothing piles up. Reports of one attempt are sent in
their order. When the attempt ends, what was not sent yet is, and the attempt's end waits for it to
be written, but not for long: a word that is lost does less harm than a result that comes late.
"""

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import Future, wait
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from byrote.core.progress import ProgressReport
from byrote.executors.runtime.asks import AskClient, AskResult

PROGRESS = "progress"
"""The verb of the ask."""
EVERY_S = 0.3
"""How long the thread rests after each round."""
WRITTEN_S = 30.0
"""How long it waits at most until a round is written."""
LAST_S = 1.0
"""How long an attempt's end waits for its last word to be written."""
IDLE_S = 30.0
"""After so long without a word the thread ends; the next word starts another."""


class AttemptProgress:
    """What one attempt reports."""

    def __init__(self, desk: AskClient, slot: int, who: Mapping[str, Any]) -> None:
        self._desk = desk
        self._slot = slot
        self._who = who
        self._reporter = _reporter_of(desk)
        self._lock = threading.Lock()
        self._latest: ProgressReport | None = None
        self._sent: Future[AskResult] | None = None

    def put(self, report: ProgressReport) -> None:
        """Take the place of what was reported before; never waits."""
        self._latest = report
        self._reporter.wake(self)

    def send(self) -> Future[AskResult] | None:
        """Send the latest; what was sent last, if it is not known to be written."""
        with self._lock:
            report, self._latest = self._latest, None
            if report is not None:
                said = {**self._who, **msgspec.structs.asdict(report)}
                self._sent = self._desk.put(self._slot, PROGRESS, said)
            return None if self._sent is None or self._sent.done() else self._sent

    def settle(self) -> None:
        """The attempt ends: wait for its last word."""
        last = self.send()
        if last is not None:
            wait([last], LAST_S)

    async def asettle(self) -> None:
        """The attempt ends: let others work until its last word is written."""
        last = self.send()
        if last is not None:
            await asyncio.wait([asyncio.wrap_future(last)], timeout=LAST_S)


class Reporter:
    """Sends what attempts of one process report, from a thread of its own while there is any."""

    def __init__(self) -> None:
        self._news = threading.Event()
        self._lock = threading.Lock()
        self._waiting: dict[AttemptProgress, None] = {}
        self._alive = False

    def wake(self, reports: AttemptProgress) -> None:
        """One of them has something to say."""
        with self._lock:
            self._waiting[reports] = None
            self._news.set()
            if not self._alive:
                self._alive = True
                threading.Thread(target=self._serve, name="byrote-progress", daemon=True).start()

    def _serve(self) -> None:
        while self._news.wait(IDLE_S) or not self._ends():
            with self._lock:
                self._news.clear()
                some, self._waiting = list(self._waiting), {}
            sent = [last for reports in some if (last := reports.send()) is not None]
            wait(sent, WRITTEN_S)
            threading.Event().wait(EVERY_S)

    def _ends(self) -> bool:
        with self._lock:
            self._alive = self._news.is_set()
            return not self._alive


_reporters: WeakKeyDictionary[AskClient, Reporter] = WeakKeyDictionary()
_making = threading.Lock()


def _reporter_of(desk: AskClient) -> Reporter:
    with _making:
        return _reporters.setdefault(desk, Reporter())

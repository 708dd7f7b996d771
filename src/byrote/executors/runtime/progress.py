# SPDX-License-Identifier: MIT
"""Sends the progress reports of attempts to the worker: the latest of each, at intervals.

A task may report as often as it likes: a report only replaces the one before it. One thread of the
process sends the latest report of each attempt and then pauses. It also waits until they are
written, so that a slow database receives fewer reports and no backlog builds up. Reports of one
attempt are sent in order. When the attempt ends, an unsent report is sent, and the attempt's end
waits for it to be written, but not for long: losing a report does less harm than delaying a result.
"""

import asyncio
import threading
import time
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
"""How long the thread pauses after each round."""
WRITTEN_S = 30.0
"""How long it waits at most until a round is written."""
LAST_S = 1.0
"""How long an attempt's end waits for its last report to be written."""
IDLE_S = 30.0
"""Seconds without a report after which the thread ends; the next report starts another."""


class AttemptProgress:
    """The progress reports of one attempt."""

    def __init__(self, ask_client: AskClient, slot: int, who: Mapping[str, Any]) -> None:
        self._ask_client = ask_client
        self._slot = slot
        self._who = who
        self._reporter = _reporter_of(ask_client)
        self._lock = threading.Lock()
        self._latest: ProgressReport | None = None
        self._sent: Future[AskResult] | None = None

    def put(self, report: ProgressReport) -> None:
        """Replace the report that was not sent yet; never waits."""
        self._latest = report
        self._reporter.wake(self)

    def send(self) -> Future[AskResult] | None:
        """Send the latest report. Returns the last one sent if it is not known to be written."""
        with self._lock:
            report, self._latest = self._latest, None
            if report is not None:
                payload = {**self._who, **msgspec.structs.asdict(report)}
                self._sent = self._ask_client.put(self._slot, PROGRESS, payload)
            return None if self._sent is None or self._sent.done() else self._sent

    def send_last(self) -> None:
        """The attempt ends: wait until its last report is written."""
        last = self.send()
        if last is not None:
            wait([last], LAST_S)

    async def asend_last(self) -> None:
        """The attempt ends: await the writing of its last report."""
        last = self.send()
        if last is not None:
            await asyncio.wait([asyncio.wrap_future(last)], timeout=LAST_S)


class Reporter:
    """Sends the reports of one process from a thread that runs while there are any."""

    def __init__(self) -> None:
        self._news = threading.Event()
        self._lock = threading.Lock()
        self._waiting: dict[AttemptProgress, None] = {}
        self._alive = False

    def wake(self, reports: AttemptProgress) -> None:
        """Schedule an attempt's report to be sent; starts the thread if it has ended."""
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
            time.sleep(EVERY_S)

    def _ends(self) -> bool:
        with self._lock:
            self._alive = self._news.is_set()
            return not self._alive


_reporters: WeakKeyDictionary[AskClient, Reporter] = WeakKeyDictionary()
_making = threading.Lock()


def _reporter_of(ask_client: AskClient) -> Reporter:
    with _making:
        return _reporters.setdefault(ask_client, Reporter())

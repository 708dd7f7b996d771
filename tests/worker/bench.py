# SPDX-License-Identifier: MIT
"""An executor on the bench: leases without a database, outcomes as they are reported."""

import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from byrote.assembly.clock import monotonic
from byrote.assembly.identity import new_id, new_token
from byrote.core.outcome import Outcome
from byrote.core.ports.executor import Asks, Emit, Executor
from byrote.core.run import Leased
from byrote.core.spec import Delivery, describe
from byrote.executors.hands.options import HandOptions
from byrote.executors.hands.pool import Hands
from byrote.executors.inline import Inline
from tests.support import until
from tests.tasks import fates
from tests.worker.harness import ROOT


class Bench:
    """An executor, and what it reported."""

    folder: Path
    events: list[Any]

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.reports: dict[str, list[Outcome]] = {}
        self._lock = threading.Lock()
        executor.start(self._take)

    def _take(self, ended: Sequence[tuple[Leased, Outcome]]) -> None:
        with self._lock:
            for run, outcome in ended:
                self.reports.setdefault(run.id, []).append(outcome)

    def lease(self, task: str, *args: Any, timeout_ms: int | None = None) -> Leased:
        """A run of this task as a claim would give it."""
        spec = describe(task, 1, list(args), {}, delivery=Delivery(), limit=1 << 24)
        return Leased(
            id=new_id(), queue="default", task=task, version=1, spec_json=spec.text, attempt=1,
            charged=0, losses=0, max_attempts=1, timeout_ms=timeout_ms, retry_json=None,
            labels_json='{"order":"42"}', traceparent=None, spec_hash=spec.digest, rank=0,
            age_us=0, as_of_us=0, token=new_token(), deadline=monotonic() + 60,
        )  # fmt: skip

    def outcomes_of(self, runs: Sequence[Leased], within: float = 10.0) -> dict[str, Any]:
        """Execute these runs and return the outcome of each."""
        self.executor.submit(runs)
        return {run.id: self.outcome(run, within) for run in runs}

    def outcome(self, run: Leased, within: float = 10.0) -> Any:
        """The outcome of a submitted run."""
        until(lambda: run.id in self.reports, within, f"no report of {run.task}")
        return self.reports[run.id][0]

    def next_run(self, task: str, *args: Any) -> Any:
        """Execute one task as soon as there is room for it, as a claimer would."""
        until(lambda: self.executor.room().limit > 0)
        return self.run(task, *args)

    def run(self, task: str, *args: Any) -> Any:
        """Execute one task and give its outcome."""
        run = self.lease(task, *args)
        return self.outcomes_of([run])[run.id]

    def close(self) -> None:
        """End the executor and whatever it still does."""
        self.executor.give_back()
        self.executor.kill()
        self.executor.stop()


def make_hands(
    app: str = "tests.tasks.fates:app", *, emit: Emit = lambda _events: None, **options: Any
) -> Hands:
    """A pool of two hands, or as asked."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("environment", {})}
    asks: Asks | None = options.pop("asks", None)
    defaults = {"hands": 2, "concurrency": 100}
    wanted = HandOptions(app=app, python=sys.executable, **defaults | options)
    return Hands(wanted, worker="w", clock=monotonic, emit=emit, environment=environment, asks=asks)


def make_inline() -> Inline:
    """An executor in this process."""
    return Inline(fates.app.registry, concurrency=100, worker="w", clock=monotonic)

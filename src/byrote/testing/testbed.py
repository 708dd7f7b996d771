# SPDX-License-Identifier: MIT
"""A worker for tests: the statements and policy of a worker, on one connection, in this thread."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from queue import SimpleQueue
from typing import Any, cast

import psycopg
from psycopg.pq import TransactionStatus

from byrote.assembly.app import App
from byrote.assembly.clock import monotonic
from byrote.assembly.identity import jitter, new_token
from byrote.core.artifact import INLINE_MAX
from byrote.core.outcome import Failed, Outcome
from byrote.core.policy import Fail, Verdict, judge
from byrote.core.ports.executor import Ask, Asks
from byrote.core.replay.provenance import Provenance
from byrote.core.run import Leased
from byrote.core.verdict import row_of
from byrote.executors.runtime import call
from byrote.executors.runtime.asks import AskResult
from byrote.executors.runtime.provenance.environment import memos_of
from byrote.store import queries
from byrote.store.maintenance import MaintenanceStore
from byrote.store.query import Query
from byrote.store.runners.link import WorkerConnection
from byrote.store.runners.sync import fetch
from byrote.store.worker import ArtifactRows, StepStore
from byrote.testing.attempt import execute
from byrote.testing.clock import settable
from byrote.testing.hooks import report
from byrote.worker.asks.artifacts import artifact_answers
from byrote.worker.asks.ask_server import AskServer
from byrote.worker.asks.ledger_server import LedgerServer
from byrote.worker.context import WorkerContext
from byrote.worker.upkeep.scheduler import Scheduler

WORKER = "test"
LEASE = timedelta(days=1)
KEEP_EVENTS = timedelta(days=30)


class _TestLink:
    """Stands in for a `WorkerConnection`: runs queries once, on the test's connection."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def run(self, query: Query[Any]) -> list[Any]:
        return fetch(self._connection, query)

    def drop(self) -> None:
        """Do nothing: the connection belongs to the test."""


class AppTestbed:
    """Executes the runs of one app, attempt by attempt."""

    def __init__(self, app: App, connection: psycopg.Connection[Any], *, queue: str | None) -> None:
        self._app = app
        self._connection = connection
        self._queue = queue
        self._tasks = [task.key for task in app.registry if task.command is None]
        # Without a document: nothing is recorded of the environment, but results are reused.
        self._provenance = Provenance("", "", memos=memos_of(app.registry))
        link = cast("WorkerConnection", _TestLink(connection))
        self._steps, self._artifacts = StepStore(link), ArtifactRows(link)
        means = WorkerContext(WORKER, monotonic, jitter, new_token, lambda _events: None)
        duties = MaintenanceStore(link, threading.Event(), keep_events=KEEP_EVENTS)
        self._scheduler = Scheduler(duties, means, schedules=app.schedules)
        self._answers = artifact_answers(None, INLINE_MAX)
        self._done: dict[str, None] = {}
        self.attempts = 0
        self.error: BaseException | None = None
        """The error of the last run that failed for good."""

    # -- Time ------------------------------------------------------------------------------------

    @contextmanager
    def time(self, now: datetime | None) -> Iterator[None]:
        """Set the database time of this connection; restores what it was afterwards."""
        [before] = self._connection.execute(
            "select coalesce(current_setting('byrote.now', true), '')"
        ).fetchone() or [""]
        if now is not None:
            self._set_clock(now.isoformat())
        try:
            yield
        finally:
            if self._connection.info.transaction_status != TransactionStatus.INERROR:
                self._set_clock(before)

    def _set_clock(self, text: str) -> None:
        if text:
            self._connection.execute(settable())
        self._connection.execute("select set_config('byrote.now', %s, false)", (text,))

    def move_on(self, *, include_deferred: bool) -> bool:
        """Advance the time to when the next run becomes due; False if there is none."""
        args = {"tasks": self._tasks, "queue": self._queue, "deferred": include_deferred}
        [due] = self._connection.execute(_next_due(), args).fetchone() or [None]
        if due is None:
            return False
        self._set_clock(due.isoformat())
        return True

    # -- Work ------------------------------------------------------------------------------------

    def beat(self) -> None:
        """Store the app's schedules, as a worker does when it starts, and make due ticks runs."""
        self._scheduler.announce()
        self._scheduler.turn()

    def round(self, raise_at: Callable[[], bool]) -> bool:
        """Execute the runs that are due now, one by one; returns whether there was one.

        Stops early when `raise_at` returns true.
        """
        fetch(self._connection, queries.promote())
        before = self.attempts
        for queue, ready in self._ready().items():
            for _ in range(ready):
                leased = self._claim(queue)
                if not leased:
                    break  # The rest is of other apps, or the queue is paused.
                self._attempt(leased[0])
                if raise_at():
                    return True
        return self.attempts > before

    def _ready(self) -> Mapping[str, int]:
        """How many runs are ready in each queue."""
        rows = fetch(self._connection, queries.depths(tasks=None))
        return {row.queue: row.ready for row in rows if self._queue in {None, row.queue}}

    def _claim(self, queue: str) -> list[Leased]:
        query = queries.claim(
            quotas={queue: 1},
            tasks=self._tasks,
            worker=WORKER,
            token=new_token(),
            lease_for=LEASE,
        )
        return fetch(self._connection, query)

    def _attempt(self, run: Leased) -> None:
        self.attempts += 1
        self._done[run.id] = None
        task = self._app.registry.find(run.task, run.version)
        with self._usable():
            error, result = execute(task, run, lambda *ask: self._answer(run, *ask))
        run.provenance = self._provenance
        outcome = call.outcome_of(result, run.attempt, WORKER)
        verdict = self._store(run, outcome)
        if isinstance(verdict, Fail) and isinstance(outcome, Failed):
            message = f"{run.task} failed: {outcome.fault.message}"
            self.error = error or AssertionError(message)
        report(self._app, (run, outcome, verdict), error)

    def _store(self, run: Leased, outcome: Outcome) -> Verdict:
        """Write the verdict, and return it."""
        verdict = judge(run, outcome)
        fetch(self._connection, queries.finish([row_of(run, outcome, verdict)]))
        return verdict

    def _answer(self, run: Leased, verb: str, payload: Mapping[str, Any]) -> AskResult:
        """Answer an ask of a task as a worker's threads do."""
        replies: list[AskResult] = []
        asks: Asks = SimpleQueue()
        others: Asks = SimpleQueue()
        asks.put(Ask(run, verb, payload, lambda ok, found: replies.append(AskResult(ok, found))))
        asks.put(None)
        LedgerServer(self._steps, asks, others).run()
        AskServer(self._artifacts, others, self._answers).run()
        return replies[0]

    @contextmanager
    def _usable(self) -> Iterator[None]:
        """Protect the test's transaction with a savepoint from statements that fail in a task."""
        if self._connection.info.transaction_status == TransactionStatus.IDLE:
            yield
            return
        with self._connection.transaction() as savepoint:
            yield
            if self._connection.info.transaction_status == TransactionStatus.INERROR:
                raise psycopg.Rollback(savepoint)

    @property
    def done(self) -> list[str]:
        """The ids of all executed runs, in order."""
        return list(self._done)


@cache
def _next_due() -> bytes:
    return files("byrote.testing").joinpath("next_due.sql").read_bytes()

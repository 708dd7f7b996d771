# SPDX-License-Identifier: MIT
"""Judges outcomes and writes the verdicts, in the batch that has formed since the last write.

One at idle, hundreds under load: nothing waits for a timer, and no finished run waits for more than
one write. A verdict that is not accepted lost its lease: it is dropped, and an event reports it. A
verdict whose row another transaction has locked is postponed and sent again until the row is free;
no other verdict waits for it.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from byrote.core import events
from byrote.core.errors import StoreRefused, ValueRefused
from byrote.core.outcome import Crashed, Failed, Fault, Outcome, Succeeded, brief
from byrote.core.policy import (
    Cancel,
    GiveBackCrashed,
    Release,
    RetryIn,
    SnoozeFor,
    judge,
)
from byrote.core.ports.executor import ReportStored
from byrote.core.ports.replies import LOCKED
from byrote.core.ports.store import FinishPort
from byrote.core.run import Leased
from byrote.core.verdict import Judged
from byrote.worker.context import WorkerContext
from byrote.worker.leases import HeldLeases

BATCH_MAX = 500
ASIDE_S = 0.25
"""How long to wait before a verdict whose row was locked is sent again."""
CHARS_MAX = 8 * 1024 * 1024
"""Characters of output after which a batch is full."""

COMES_BACK = frozenset({RetryIn, SnoozeFor, Release, GiveBackCrashed})
"""Verdicts after which the run may be claimed again at once."""


class Recorder:
    """Writes the verdicts of the worker; `report` may be called from any thread."""

    def __init__(self, verdicts: FinishPort, held: HeldLeases, context: WorkerContext) -> None:
        self._verdicts = verdicts
        self._held = held
        self._context = context
        self._ended: deque[tuple[Leased, Outcome]] = deque()
        self._aside: list[tuple[Leased, Outcome]] = []
        self._again_at = 0.0
        self._news = threading.Event()
        self._closing = False
        self.finished = 0
        self.released = 0
        self.describe: Callable[[Fault], str] = brief
        """Describes a fault in events."""
        self.on_report: Callable[[], None] = lambda: None
        self.on_finished: ReportStored | None = None

    @property
    def backlog(self) -> int:
        """Attempts that ended and are not written yet, postponed ones included.

        It bounds both lists: the claimer claims nothing while it is above `UNWRITTEN_MAX`.
        """
        return len(self._ended) + len(self._aside)

    def report(self, ended: Sequence[tuple[Leased, Outcome]]) -> None:
        """Add attempts that have ended."""
        self._ended.extend(ended)
        if ended and not self._news.is_set():
            self._news.set()
        self.on_report()

    def run(self) -> None:
        """Write until closed and nothing is left."""
        while True:
            self._news.wait(ASIDE_S if self._aside else None)
            self._news.clear()
            while self._ended:
                self._write(self._batch())
            if self._aside and self._context.clock() >= self._again_at:
                self._write_aside()
            if self._closing and not (self._ended or self._aside):
                return

    def _write_aside(self) -> None:
        aside, self._aside = self._aside, []
        if self._closing:
            # Not waited for: the database would reject it by now.
            now, worker = self._context.clock(), self._context.worker
            late = [run for run, _ in aside if run.deadline < now and run in self._held]
            self._held.drop(late)
            self._context.emit(
                [
                    events.LeaseRefused(run.id, run.task, run.queue, run.attempt, worker)
                    for run in late
                ]
            )
        for start in range(0, len(aside), BATCH_MAX):
            self._write(aside[start : start + BATCH_MAX])

    def _batch(self) -> list[tuple[Leased, Outcome]]:
        """Return the next batch to write: many small outcomes, or a few large ones."""
        batch: list[tuple[Leased, Outcome]] = []
        size = 0
        while self._ended and len(batch) < BATCH_MAX and size < CHARS_MAX:
            ended = self._ended.popleft()
            batch.append(ended)
            output = ended[1].output
            if output is not None:
                size += len(output.stdout) + len(output.stderr)
        return batch

    def close(self) -> None:
        """Write the rest and end."""
        self._closing = True
        self._news.set()

    def _write(self, ended: Sequence[tuple[Leased, Outcome]]) -> None:
        # A lease that was given up meanwhile (lost, forgotten) is not written.
        lease_of = self._held.lease_of
        judged = [
            (run, outcome, judge(run, outcome)) for run, outcome in ended if lease_of(run.id) is run
        ]
        if not judged:
            return
        for run, _, _ in judged:
            run.settling = True
        try:
            accepted = self._verdicts.finish(judged)
        except StoreRefused as error:
            self._write_apart(ended, error)
            return
        if LOCKED in accepted.values():
            judged = self._set_aside(judged, accepted)
        if self.on_finished is not None:
            # Before they are dropped: a worker that holds nothing more lets its hands go.
            self.on_finished(judged, accepted)
        self._held.drop([run for run, _, _ in judged])
        self._emit(judged, accepted)
        if not self._held:
            self.on_report()  # A worker that drains waits for the last of them.

    def _set_aside(self, judged: Sequence[Judged], accepted: Mapping[str, str]) -> list[Judged]:
        """Postpone verdicts whose rows are locked; returns the others."""
        locked = [accepted.get(run.id) == LOCKED for run, _, _ in judged]
        pairs = list(zip(judged, locked, strict=True))
        self._aside += [(run, outcome) for (run, outcome, _), later in pairs if later]
        self._again_at = self._context.clock() + ASIDE_S
        return [entry for entry, later in pairs if not later]

    def _write_apart(self, ended: Sequence[tuple[Leased, Outcome]], error: StoreRefused) -> None:
        """Send each verdict alone: one that the store refuses must not hold back the others."""
        if len(ended) > 1:
            for entry in ended:
                self._write([entry])
            return
        [(run, outcome)] = ended
        if isinstance(error, ValueRefused) and isinstance(outcome, Succeeded):
            # If dropped, the run would be executed again after its lease, and refused again.
            fault = Fault(
                "bad_result", "byrote.ValueRefused", str(error),
                attempt=run.attempt, worker=self._context.worker,
            )  # fmt: skip
            self._write([(run, Failed(fault, final=True, output=outcome.output))])
            return
        self._held.drop([run])
        what = f"finish of {run.id}"
        self._context.emit([events.Troubled(self._context.worker, what, str(error), run.id)])

    def _emit(self, judged: Sequence[Judged], accepted: Mapping[str, str]) -> None:
        now, worker = self._context.clock(), self._context.worker
        stored = [type(verdict) for run, _, verdict in judged if run.id in accepted]
        released = stored.count(Release)
        self.released += released
        self.finished += len(stored) - released
        self._context.emit(
            [
                event_of(entry, accepted.get(entry[0].id), worker, now, describe=self.describe)
                for entry in judged
            ]
        )
        back = [run.id for run, _, verdict in judged if type(verdict) in COMES_BACK]
        if any(run_id in accepted for run_id in back):
            self.on_report()


def event_of(  # noqa: PLR0911 -- one fact per verdict.
    judged: Judged,
    accepted_as: str | None,
    worker: str,
    now: float,
    *,
    describe: Callable[[Fault], str],
) -> events.Event:
    """The event of a verdict that was written."""
    run, outcome, verdict = judged
    if accepted_as == "S":
        took_s = int((now - run.claimed_at) * 1e6) / 1e6
        return events.Succeeded(run.id, run.task, run.queue, run.attempt, worker, took_s)
    who = (run.id, run.task, run.queue, run.attempt, worker)
    if accepted_as is None:
        return events.LeaseRefused(*who)
    if accepted_as == "C":
        return events.Cancelled(*who)
    if accepted_as == "F":
        return events.Failed(*who, error=_error_of(outcome, describe))
    match verdict:
        case RetryIn(delay=delay):
            return events.Retried(
                *who, after_s=delay.total_seconds(), error=_error_of(outcome, describe)
            )
        case Cancel():
            return events.Cancelled(*who)
        case SnoozeFor(delay=delay):
            return events.Snoozed(*who, after_s=delay.total_seconds())
        case Release():
            return events.Released(*who)
        case _:
            return events.Crashed(*who, error=_error_of(outcome, describe))


def _error_of(outcome: Outcome, describe: Callable[[Fault], str]) -> str:
    return describe(outcome.fault) if isinstance(outcome, Failed | Crashed) else ""

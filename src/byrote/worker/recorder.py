# SPDX-License-Identifier: MIT
"""Judges outcomes and writes the verdicts, in whatever batch has formed since the last write.

One at idle, hundreds under load: nothing waits for a timer, and no finished run waits for more than
one write. When the answer to a write is lost, the database is asked which of its verdicts were
accepted, and only the rest is sent again. A verdict that is not accepted lost its lease: it is
dropped, and said so.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import psycopg

from byrote.core import event
from byrote.core.duration import micros
from byrote.core.outcome import Disrupted, Failed, Outcome, Succeeded
from byrote.core.policy import (
    Cancel,
    Fail,
    Release,
    RetryIn,
    Salvage,
    SnoozeFor,
    Succeed,
    Verdict,
    judge,
)
from byrote.core.run import Leased
from byrote.store import queries
from byrote.store.query import Query
from byrote.store.sync import Interrupted, Link
from byrote.worker.held import Held
from byrote.worker.means import Means

BATCH_MAX = 500
CHARS_MAX = 8 * 1024 * 1024
"""Characters of output after which a batch is full."""

type Judged = tuple[Leased, Outcome, Verdict]

LETTERS: dict[type, str] = {
    Succeed: "S",
    RetryIn: "R",
    Fail: "F",
    Cancel: "C",
    SnoozeFor: "Z",
    Release: "L",
    Salvage: "X",
}

COMES_BACK = frozenset({RetryIn, SnoozeFor, Release, Salvage})
"""Verdicts after which the run may be claimed again at once."""


class Recorder:
    """The worker's writing hand; `report` may be called from any thread."""

    def __init__(self, link: Link, held: Held, means: Means) -> None:
        self._link = link
        self._held = held
        self._means = means
        self._ended: deque[tuple[Leased, Outcome]] = deque()
        self._news = threading.Event()
        self._closing = False
        self.finished = 0
        self.released = 0
        self.on_report: Callable[[], None] = lambda: None

    @property
    def backlog(self) -> int:
        """Attempts that ended and are not written yet."""
        return len(self._ended)

    def report(self, ended: Sequence[tuple[Leased, Outcome]]) -> None:
        """Take attempts that have come to an end."""
        self._ended.extend(ended)
        if ended and not self._news.is_set():
            self._news.set()
        self.on_report()

    def run(self) -> None:
        """Write until closed and nothing is left."""
        while True:
            self._news.wait()
            self._news.clear()
            while self._ended:
                self._write(self._batch())
            if self._closing and not self._ended:
                return

    def _batch(self) -> list[tuple[Leased, Outcome]]:
        """What is written in one go: many small ones, or a few that have much to say."""
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
        """Write what is left and end."""
        self._closing = True
        self._news.set()

    def _write(self, ended: Sequence[tuple[Leased, Outcome]]) -> None:
        # A lease given up meanwhile (lost, forgotten) has nothing more to say.
        judged = [
            (run, outcome, judge(run, outcome)) for run, outcome in ended if run in self._held
        ]
        if not judged:
            return
        for run, _, _ in judged:
            run.settling = True
        try:
            self._register(judged)
            accepted = self._send(judged)
        except psycopg.Error as error:
            self._write_apart(ended, error)
            return
        self._held.drop([run for run, _, _ in judged])
        self._tell(judged, accepted)

    def _register(self, judged: Sequence[Judged]) -> None:
        """Have numbers for the environments that are spoken of for the first time."""
        for run, _, _ in judged:
            found = run.provenance
            if found is not None and found.id is None:
                query = queries.register_provenance(digest=found.digest, doc=found.text)
                [found.id] = self._link.run(query)

    def _send(self, judged: Sequence[Judged]) -> dict[str, str]:
        """The ids that were accepted, and as what."""
        accepted: dict[str, str] = {}
        while True:
            left = [entry for entry in judged if entry[0].id not in accepted]
            try:
                rows = self._link.ask(_finish(left))
                return accepted | dict(rows)
            except Interrupted:
                known = set(self._link.run(queries.settled([run for run, _, _ in left])))
                accepted |= {run.id: LETTERS[type(v)] for run, _, v in left if run.id in known}
                if len(accepted) == len(judged):
                    return accepted

    def _write_apart(self, ended: Sequence[tuple[Leased, Outcome]], error: psycopg.Error) -> None:
        """One verdict the database will not take must not hold back the others."""
        if len(ended) > 1:
            for entry in ended:
                self._write([entry])
            return
        run = ended[0][0]
        self._held.drop([run])
        self._means.emit(
            [
                event.Troubled(
                    self._means.worker, f"finish of {run.id}", " ".join(str(error).split())[:300]
                )
            ]
        )

    def _tell(self, judged: Sequence[Judged], accepted: Mapping[str, str]) -> None:
        now, worker = self._means.clock(), self._means.worker
        self.finished += len(accepted)
        self.released += sum(isinstance(verdict, Release) for _, _, verdict in judged)
        self._means.emit([told(entry, accepted.get(entry[0].id), worker, now) for entry in judged])
        if not accepted.keys().isdisjoint(run.id for run, _, v in judged if type(v) in COMES_BACK):
            self.on_report()


def _finish(judged: Sequence[Judged]) -> Query[tuple[str, str]]:
    """The statement that settles these; what executed most of them is said once for all."""
    rows = [row_of(*entry) for entry in judged]
    common = judged[0][0].provenance
    for (run, _, _), row in zip(judged, rows, strict=True):
        if run.provenance is not common:
            number = 0 if run.provenance is None else run.provenance.id
            row["more"] = {**row.get("more", {}), "provenance": number}
    return queries.finish(rows, provenance=None if common is None else common.id)


def row_of(run: Leased, outcome: Outcome, verdict: Verdict) -> dict[str, Any]:
    """A verdict as finish.sql reads it."""
    row: dict[str, Any] = {"id": run.id, "token": run.token, "verdict": LETTERS[type(verdict)]}
    match outcome:
        case Succeeded(text=text, digest=digest):
            row["result"], row["hash"] = text, digest
        case Failed(fault=fault) | Disrupted(fault=fault):
            row["error"] = msgspec.to_builtins(fault)
    if outcome.output is not None:
        row["output"] = msgspec.to_builtins(outcome.output)
    if outcome.usage is not None:
        row["more"] = {"usage": {"attempt": run.attempt, **outcome.usage}}
    if isinstance(verdict, RetryIn | SnoozeFor):
        row["delay_us"] = micros(verdict.delay)
    if isinstance(verdict, SnoozeFor) and verdict.wait is not None:
        row["wait"], row["event"] = verdict.wait, verdict.event
    return row


def told(  # noqa: PLR0911 -- one fact per verdict.
    judged: Judged, heard: str | None, worker: str, now: float
) -> event.Event:
    """The fact that a verdict became when it was written."""
    run, outcome, verdict = judged
    who = (run.id, run.task, run.queue, run.attempt, worker)
    if heard is None:
        return event.LeaseLost(*who)
    if heard == "C":
        return event.Cancelled(*who)
    error = _error_of(outcome)
    match verdict:
        case Succeed():
            return event.Succeeded(*who, took_s=round(now - run.claimed_at, 6))
        case RetryIn(delay=delay):
            return event.Retried(*who, after_s=delay.total_seconds(), error=error)
        case Fail():
            return event.Failed(*who, error=error)
        case Cancel():
            return event.Cancelled(*who)
        case SnoozeFor(delay=delay):
            return event.Snoozed(*who, after_s=delay.total_seconds())
        case Release():
            return event.Released(*who)
        case Salvage():
            return event.Salvaged(*who, error=error)


def _error_of(outcome: Outcome) -> str:
    match outcome:
        case Failed(fault=fault) | Disrupted(fault=fault):
            # The class only: a message may quote what the task was given.
            return f"{fault.kind} {fault.type}"
        case _:
            return ""

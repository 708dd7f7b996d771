# SPDX-License-Identifier: MIT
"""An executor of shadow runs: each attempt is shown as the last attempt of the original run.

A replay repeats the attempt whose outcome counts, so the task sees the original's run id, queue and
number of that attempt. Its asks carry the original's id, too, for which this worker has no lease
token: the database would reject a misdirected write. The leases, and the rows written about the
attempts, belong to the shadow runs.

A shadow run has one attempt and never waits: an outcome that would requeue it ends it.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, cast

import msgspec

from byrote.core.outcome import Failed, Fault, Outcome, Printing, Snoozed
from byrote.core.ports.executor import Capacity, Executor, ReportOutcomes
from byrote.core.run import Leased


class ShownAs(NamedTuple):
    """The run id, queue and attempt number that a replayed attempt sees."""

    id: str
    queue: str
    attempt: int


class Guise:
    """A shadow run's lease with the original's id, queue and attempt; all else is delegated."""

    __slots__ = ("attempt", "id", "leased", "queue")

    def __init__(self, leased: Leased, part: ShownAs) -> None:
        self.leased = leased
        self.id, self.queue, self.attempt = part

    def __getattr__(self, name: str) -> Any:
        return getattr(self.leased, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in Guise.__slots__:
            object.__setattr__(self, name, value)
        else:
            # Attributes that executors set on an attempt belong to the lease.
            setattr(self.leased, name, value)


class ReplayExecutor:
    """An executor in front of another, for shadow runs only."""

    def __init__(self, inner: Executor) -> None:
        self._inner = inner
        self._guises: dict[str, Guise] = {}
        self.cast: dict[str, ShownAs] = {}
        """The identity to show for each shadow run, by its id; set before it can be claimed."""

    def start(self, report: ReportOutcomes) -> None:
        """Start the inner executor."""
        self._report = report
        self._inner.start(self._told)

    def _told(self, ended: Sequence[tuple[Leased, Outcome]]) -> None:
        reports = []
        for guise, outcome in ended:
            leased: Leased = cast("Any", guise).leased
            self._guises.pop(leased.id, None)
            reports.append((leased, _final(outcome, leased.attempt)))
        self._report(reports)

    @property
    def tasks(self) -> Sequence[str]:
        """The tasks of the inner executor."""
        return self._inner.tasks

    def room(self) -> Capacity:
        """How much may be claimed now, of which tasks."""
        return self._inner.room()

    def submit(self, runs: Sequence[Leased]) -> None:
        """Execute shadow runs under the identity of their originals."""
        for run in runs:
            self._guises[run.id] = Guise(run, self.cast[run.id])
        self._inner.submit(self._dressed(runs))

    def _dressed(self, runs: Collection[Leased]) -> list[Leased]:
        return [cast("Leased", self._guises[run.id]) for run in runs if run.id in self._guises]

    def cancel(self, runs: Collection[Leased]) -> None:
        """Stop these attempts; they are reported as cancelled."""
        self._inner.cancel(self._dressed(runs))

    def forget(self, runs: Collection[Leased]) -> None:
        """Stop these attempts, whose leases are lost; nothing is reported."""
        self._inner.forget(self._dressed(runs))

    def printed(self, run: Leased) -> Printing | None:
        """The output of a running attempt so far, if it is known."""
        guise = self._guises.get(run.id)
        return None if guise is None else self._inner.printed(cast("Leased", guise))

    def give_back(self) -> None:
        """Start no more runs; report those that have not begun as released."""
        self._inner.give_back()

    def kill(self) -> None:
        """Stop everything now; runs that were under way are reported as released."""
        self._inner.kill()

    def stop(self) -> None:
        """Stop the inner executor; no attempt may be running."""
        self._inner.stop()


def _final(outcome: Outcome, attempt: int) -> Outcome:
    match outcome:
        case Failed(fault=fault):
            own = msgspec.structs.replace(fault, attempt=attempt)
            return msgspec.structs.replace(outcome, fault=own, after=None, final=True)
        case Snoozed(after=after, output=output, usage=usage):
            return Failed(_stepped_aside(after, attempt), final=True, output=output, usage=usage)
        case _:
            return outcome


def _stepped_aside(after: timedelta, attempt: int) -> Fault:
    message = f"The replay stepped aside for {after.total_seconds():g} s; the original had ended."
    return Fault("snoozed", "Snoozed", message, attempt=attempt)

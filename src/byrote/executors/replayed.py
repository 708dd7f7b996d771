# SPDX-License-Identifier: MIT
"""An executor of shadow runs: each attempt believes that it is the last one of the original.

A replay repeats the attempt whose outcome counts, so the task sees the original's run id, queue and
number of that attempt; its asks carry the original's id, too, and no token of ours holds for that:
whatever went astray would be refused by the database. The leases, and what is written about the
attempts, are the shadow runs' own.

A shadow run has one attempt and never waits: whatever would send it back ends it.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, cast

import msgspec

from byrote.core.outcome import Failed, Fault, Outcome, Printing, Snoozed
from byrote.core.ports.executor import Capacity, Executor, ReportOutcomes
from byrote.core.run import Leased


class ShownAs(NamedTuple):
    """What an attempt is to believe of itself."""

    id: str
    queue: str
    attempt: int


class Guise:
    """A lease of a shadow run that goes by the original's name; all else is the lease's own."""

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
            # What executors note about an attempt is noted of the lease.
            setattr(self.leased, name, value)


class ReplayExecutor:
    """An executor in front of another, for shadow runs only."""

    def __init__(self, inner: Executor) -> None:
        self._inner = inner
        self._guises: dict[str, Guise] = {}
        self.cast: dict[str, ShownAs] = {}
        """Which part each shadow run plays, by its id; to be set before it can be claimed."""

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
        """Dress shadow runs up as their originals, and execute them."""
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
        """What an attempt under way has printed so far, if that is known."""
        guise = self._guises.get(run.id)
        return None if guise is None else self._inner.printed(cast("Leased", guise))

    def give_back(self) -> None:
        """Report what has not begun as released, and begin nothing more."""
        self._inner.give_back()

    def kill(self) -> None:
        """Stop everything now; what was under way is reported as released."""
        self._inner.kill()

    def stop(self) -> None:
        """Leave; nothing may be under way any more."""
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

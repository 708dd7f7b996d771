# SPDX-License-Identifier: MIT
"""An executor of shadow runs: each attempt is shown as the last attempt of the original run.

A replay repeats the attempt whose outcome counts, so the task sees the original's run id, queue and
number of that attempt (`Leased.shown_as`). Leases, asks and the rows written about the attempts
belong to the shadow runs: this worker has no lease token for an original.

A shadow run has one attempt and never waits: an outcome that would requeue it ends it.
"""

from collections.abc import Sequence
from datetime import timedelta

import msgspec

from byrote.core.outcome import Failed, Fault, Outcome, Snoozed
from byrote.core.ports.executor import Executor, ReportOutcomes
from byrote.core.run import Leased, ShownAs


class ReplayExecutor:
    """An executor in front of another, for shadow runs only."""

    def __init__(self, inner: Executor) -> None:
        self._inner = inner
        self.identities: dict[str, ShownAs] = {}
        """The identity to show for each shadow run, by its id; set before it can be claimed."""
        self.room, self.printed = inner.room, inner.printed
        self.cancel, self.forget = inner.cancel, inner.forget
        self.give_back, self.kill, self.stop = inner.give_back, inner.kill, inner.stop

    def start(self, report: ReportOutcomes) -> None:
        """Start the inner executor."""

        def report_final(ended: Sequence[tuple[Leased, Outcome]]) -> None:
            report([(run, _final(outcome, run.attempt)) for run, outcome in ended])

        self._inner.start(report_final)

    @property
    def tasks(self) -> Sequence[str]:
        """The tasks of the inner executor."""
        return self._inner.tasks

    def submit(self, runs: Sequence[Leased]) -> None:
        """Execute shadow runs under the identity of their originals."""
        for run in runs:
            run.shown_as = self.identities[run.id]
        self._inner.submit(runs)


def _final(outcome: Outcome, attempt: int) -> Outcome:
    match outcome:
        case Failed():
            return msgspec.structs.replace(outcome, after=None, final=True)
        case Snoozed(after=after, output=output, usage=usage):
            return Failed(_stepped_aside(after, attempt), final=True, output=output, usage=usage)
        case _:
            return outcome


def _stepped_aside(after: timedelta, attempt: int) -> Fault:
    message = f"The replay stepped aside for {after.total_seconds():g} s; the original had ended."
    return Fault("snoozed", "Snoozed", message, attempt=attempt)

# SPDX-License-Identifier: MIT
"""The port between a worker and the executor of its runs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

from byrote.core.events import Event
from byrote.core.outcome import Outcome, Printing
from byrote.core.run import Leased
from byrote.core.verdict import Judged

type Emit = Callable[[Sequence[Event]], None]
"""Receives events in order."""


type ReportOutcomes = Callable[[Sequence[tuple[Leased, Outcome]]], None]
"""Receives attempts that have ended."""


type ReportStored = Callable[[Sequence[Judged], Mapping[str, str]], None]
"""Receives attempts whose verdicts were written, and by run id the letter of each; a run that is
missing there lost its lease."""


class Ask(NamedTuple):
    """A request of an attempt to its run's ledger, and the callback for the reply."""

    run: Leased
    verb: str
    """`load` reads all steps, `note` writes one, `progress` reports progress."""
    payload: Mapping[str, Any]
    answer: Callable[[bool, Any], None]
    """Receives `(ok, payload)`, on any thread. On failure the payload is the reason, or None if
    the lease was lost."""


type Asks = SimpleQueue[Ask | None]
"""Requests on their way to the part of the worker that has the database; None ends them.

Bounded by the executors: each hand and each command has at most `ASKS_MAX` open requests."""


type OnceStatement = Callable[[str, str], tuple[bytes, Mapping[str, Any]]]
"""The statement that marks an effect (a run's id, a key) as done, and its parameters."""


class Clock(Protocol):
    """Monotonic time of this process, passed in so that tests can set it."""

    def __call__(self) -> float:
        """Seconds that never go back."""


class Capacity(NamedTuple):
    """How many more runs an executor can take, and of which tasks."""

    limit: int
    tasks: Sequence[str]
    worth: int = 1
    """Claims of fewer runs than this are not worth a round trip; more slots will be free soon."""


class Executor(Protocol):
    """Takes leased runs and reports outcomes; never raises because of a task."""

    def start(self, report: ReportOutcomes) -> None:
        """Start; every submitted run is reported exactly once, unless `forget` is called for it."""

    @property
    def tasks(self) -> Sequence[str]:
        """Names and versions of the tasks it can execute."""

    def room(self) -> Capacity:
        """Returns how many runs may be claimed now, and of which tasks."""

    def submit(self, runs: Sequence[Leased]) -> None:
        """Execute these runs as soon as slots are free."""

    def cancel(self, runs: Collection[Leased]) -> None:
        """Stop these attempts; they are reported as cancelled."""

    def forget(self, runs: Collection[Leased]) -> None:
        """Stop these attempts, whose leases are lost; nothing is reported."""

    def printed(self, run: Leased) -> Printing | None:
        """Returns the output of a running attempt so far, if known; callable from any thread."""

    def give_back(self) -> None:
        """Report runs that have not begun as released, and begin no more."""

    def kill(self) -> None:
        """Stop everything now; running attempts are reported as released."""

    def stop(self) -> None:
        """Stop; no attempt may be running any more."""

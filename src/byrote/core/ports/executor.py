# SPDX-License-Identifier: MIT
"""What a worker needs of whatever executes its runs, and what executors are given."""

from collections.abc import Callable, Collection, Mapping, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

from byrote.core.events import Event
from byrote.core.outcome import Outcome, Printing
from byrote.core.run import Leased

type Emit = Callable[[Sequence[Event]], None]
"""Takes facts that have happened, in order."""


type ReportOutcomes = Callable[[Sequence[tuple[Leased, Outcome]]], None]
"""Takes attempts that have come to an end."""


class Ask(NamedTuple):
    """What an attempt wants of its run's ledger, and where the answer goes, from any thread."""

    run: Leased
    verb: str
    """`load` for all of it, `note` for one more line, `progress` for how far it has come."""
    payload: Mapping[str, Any]
    answer: Callable[[bool, Any], None]
    """Whether it was done, and what came of it; of what was not, why, None for a lost lease."""


type Asks = SimpleQueue[Ask | None]
"""Asks on their way to whoever has the database; None is the last."""


type OnceStatement = Callable[[str, str], tuple[bytes, Mapping[str, Any]]]
"""The statement that marks an effect (a run's id, a key) as done, and its parameters."""


class Clock(Protocol):
    """Monotonic time of this process, and the only way to get it."""

    def __call__(self) -> float:
        """Seconds that never go back."""


class Capacity(NamedTuple):
    """How many more runs an executor wants, and of which tasks."""

    limit: int
    tasks: Sequence[str]
    worth: int = 1
    """Fewer than this are not worth a round trip now; more room will come in a moment."""


class Executor(Protocol):
    """Leased runs in, outcomes out; never raises for what a task does."""

    def start(self, report: ReportOutcomes) -> None:
        """Get ready; every submitted run is reported exactly once, unless it is forgotten."""

    @property
    def tasks(self) -> Sequence[str]:
        """Names and versions of the tasks it can execute."""

    def room(self) -> Capacity:
        """How much may be claimed now, of which tasks."""

    def submit(self, runs: Sequence[Leased]) -> None:
        """Execute these runs as soon as there is room."""

    def cancel(self, runs: Collection[Leased]) -> None:
        """Stop these attempts; they are reported as cancelled."""

    def forget(self, runs: Collection[Leased]) -> None:
        """Stop these attempts, whose leases are lost; nothing is reported."""

    def printed(self, run: Leased) -> Printing | None:
        """What an attempt under way has printed so far, if that is known; from any thread."""

    def give_back(self) -> None:
        """Report what has not begun as released, and begin nothing more."""

    def kill(self) -> None:
        """Stop everything now; what was under way is reported as released."""

    def stop(self) -> None:
        """Leave; nothing may be under way any more."""

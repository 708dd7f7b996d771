# SPDX-License-Identifier: MIT
"""One executor that combines two: for tasks that are commands, and for all others.

Hands take hundreds of runs at a time, commands a few. A claim is one statement for both, so it may
return more commands than have room; those are released at once, uncharged. `CommandShare` keeps
this rare.

Where the system cannot execute commands (macOS), the worker starts without them: their runs stay
READY for a worker on Linux.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from byrote.core.command import Command
from byrote.core.errors import BadOption
from byrote.core.events import CommandsLeftOut
from byrote.core.outcome import Printing, Released
from byrote.core.ports.executor import Capacity, Emit, Executor, ReportOutcomes
from byrote.core.run import Leased
from byrote.executors.capacity import CommandShare
from byrote.executors.commands.launcher import supported
from byrote.executors.commands.pool import Commands


class RoutedExecutor:
    """An executor that sends each run to the right one of two."""

    def __init__(
        self,
        inner: Executor,
        commands: Commands,
        plans: Callable[[], Mapping[str, Command]],
        surroundings: Callable[[], Mapping[str, Any]] = dict,
        *,
        worker: str,
        emit: Emit,
    ) -> None:
        self._worker, self._emit = worker, emit
        self._inner = inner
        self._commands = commands
        self._plans = plans
        self._surroundings = surroundings
        self._known: frozenset[str] = frozenset()
        self._share = CommandShare()

    def start(self, report: ReportOutcomes) -> None:
        """Start the inner executor, which knows the tasks, then the commands if there are any."""
        self._report = report
        self._inner.start(report)
        plans = self._plans()
        if plans and not supported():
            self._leave_out(plans)
            return
        self._known = frozenset(plans)
        if plans:
            self._commands.learn(plans)
            self._commands.surroundings = self._surroundings()
            self._commands.start(report)

    def _leave_out(self, plans: Mapping[str, Command]) -> None:
        """Serve the other tasks only, and report it; BadOption if there are no others."""
        if not self._inner.tasks:
            raise BadOption(
                f"Commands need Linux, and all tasks of this app are commands ({min(plans)}); "
                "run this worker on Linux."
            )
        note = "commands need Linux; their runs wait for a worker there"
        self._emit([CommandsLeftOut(self._worker, ", ".join(sorted(plans)), note)])

    @property
    def tasks(self) -> Sequence[str]:
        """The tasks of both."""
        return sorted({*self._inner.tasks, *self._known})

    def room(self) -> Capacity:
        """Return the capacity for tasks and commands, or for one of them if the other is full."""
        room = self._inner.room()
        if not self._known:
            return room
        return self._share.room(room, self._commands.room())

    def submit(self, runs: Sequence[Leased]) -> None:
        """Send each run to its executor; release commands that have no room."""
        if not self._known:
            self._inner.submit(runs)
            return
        commands, others = self._parted(runs)
        self._share.note(len(commands), len(runs))
        taken = max(self._commands.free, 0)
        if others:
            self._inner.submit(others)
        if commands[:taken]:
            self._commands.submit(commands[:taken])
        if commands[taken:]:
            self._report([(run, Released()) for run in commands[taken:]])

    def _parted(self, runs: Collection[Leased]) -> tuple[list[Leased], list[Leased]]:
        commands: list[Leased] = []
        others: list[Leased] = []
        for run in runs:
            (commands if f"{run.task}@{run.version}" in self._known else others).append(run)
        return commands, others

    def cancel(self, runs: Collection[Leased]) -> None:
        """Stop these attempts wherever they are; they are reported as cancelled."""
        commands, others = self._parted(runs)
        if others:
            self._inner.cancel(others)
        if commands:
            self._commands.cancel(commands)

    def forget(self, runs: Collection[Leased]) -> None:
        """Stop these attempts wherever they are; nothing is reported."""
        commands, others = self._parted(runs)
        if others:
            self._inner.forget(others)
        if commands:
            self._commands.forget(commands)

    def printed(self, run: Leased) -> Printing | None:
        """The output of a running attempt so far."""
        commands, _ = self._parted([run])
        return (self._commands if commands else self._inner).printed(run)

    def give_back(self) -> None:
        """Start no more runs; report those that have not begun as released."""
        self._inner.give_back()
        self._commands.give_back()

    def kill(self) -> None:
        """Stop everything now; runs that were under way are reported as released."""
        self._inner.kill()
        self._commands.kill()

    def stop(self) -> None:
        """Stop both executors; no attempt may be running."""
        self._inner.stop()
        self._commands.stop()

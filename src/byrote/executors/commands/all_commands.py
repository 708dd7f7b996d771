# SPDX-License-Identifier: MIT
"""Every task as a command: no hands at all, the worker never imports the app."""

import subprocess
from collections.abc import Collection, Sequence

import msgspec

from byrote.core.command import Command, Container
from byrote.core.errors import BadOption
from byrote.core.outcome import Printing
from byrote.core.ports.executor import Capacity, ReportOutcomes
from byrote.core.run import Leased
from byrote.core.schedule.schedule import Schedule
from byrote.executors.commands.pool import CommandOptions, Commands
from byrote.executors.shared.messages import Introduction

PATIENCE_S = 60.0


class AllCommands:
    """Commands that learn from `python -m byrote.executor --describe` which tasks there are."""

    def __init__(
        self, commands: Commands, options: CommandOptions, container: Container | None = None
    ) -> None:
        self._commands = commands
        self._options = options
        self._plain = Command(container=container)
        self.url: str | None = None
        """The database the app itself names, if it does."""
        self.ignores: dict[str, list[str]] = {}
        """For each task, the parts of its results that a replay does not compare."""
        self.schedules: list[Schedule] = []
        """The schedules that the app declares."""
        self.queues: list[str] = []
        """The queues of the app's tasks and schedules, served unless the operator names others."""

    def start(self, report: ReportOutcomes) -> None:
        """Read the app's tasks and start; BadOption when the app cannot be imported."""
        intro = describe(self._options.python, self._options.app)
        self._commands.learn(dict.fromkeys(intro.tasks, self._plain) | intro.commands)
        self._commands.surroundings = intro.provenance
        self.url = intro.url
        self.ignores = intro.ignores
        self.schedules, self.queues = intro.schedules, intro.queues
        self._commands.start(report)

    @property
    def tasks(self) -> Sequence[str]:
        """Every task of the app."""
        return self._commands.tasks

    def room(self) -> Capacity:
        """How much may be claimed now, of which tasks."""
        return self._commands.room()

    def submit(self, runs: Sequence[Leased]) -> None:
        """Start a command for each, as soon as there is room."""
        self._commands.submit(runs)

    def cancel(self, runs: Collection[Leased]) -> None:
        """Stop these attempts; they are reported as cancelled."""
        self._commands.cancel(runs)

    def forget(self, runs: Collection[Leased]) -> None:
        """Stop these attempts, whose leases are lost; nothing is reported."""
        self._commands.forget(runs)

    def printed(self, run: Leased) -> Printing | None:
        """The output of a running attempt so far."""
        return self._commands.printed(run)

    def give_back(self) -> None:
        """Start no more runs; report those that have not begun as released."""
        self._commands.give_back()

    def kill(self) -> None:
        """Kill every command; runs that were under way are reported as released."""
        self._commands.kill()

    def stop(self) -> None:
        """Stop the commands' executor; no attempt may be running."""
        self._commands.stop()


def describe(python: str, app: str) -> Introduction:
    """The introduction of an app, which a separate process imports."""
    argv = [python, "-m", "byrote.executor", "--app", app, "--describe"]
    try:
        asked = subprocess.run(argv, capture_output=True, check=False, timeout=PATIENCE_S)  # noqa: S603 -- our own module.
    except OSError as error:
        raise BadOption(f"{python} cannot be started: {error.strerror}.") from None
    except subprocess.TimeoutExpired:
        raise BadOption(f"Importing {app} took longer than {PATIENCE_S:g} s.") from None
    if asked.returncode != 0:
        errors = asked.stderr.decode("utf-8", "backslashreplace").strip()
        raise BadOption(errors.splitlines()[-1] if errors else f"{app} cannot be imported.")
    try:
        return msgspec.json.decode(asked.stdout.splitlines()[-1], type=Introduction)
    except (IndexError, msgspec.DecodeError):
        raise BadOption(
            f"{' '.join(argv)} did not print what it must; does {app} print or end on import?"
        ) from None

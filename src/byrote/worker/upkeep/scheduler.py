# SPDX-License-Identifier: MIT
"""The beat: each due tick of a schedule becomes one run. Any number of workers may beat at once."""

from collections.abc import Sequence

from byrote.core import events
from byrote.core.errors import BadOption
from byrote.core.ports.store import MaintenancePort
from byrote.core.schedule.schedule import (
    Schedule,
    ScheduleMove,
    StoredSchedule,
    TickResult,
    turn_of,
)
from byrote.worker.context import WorkerContext

TURN_MAX = 100
"""Schedules that one statement advances."""


class Scheduler:
    """Enqueues the ticks of schedules, on the connection of the maintenance thread."""

    def __init__(
        self, duties: MaintenancePort, context: WorkerContext, *, schedules: Sequence[Schedule] = ()
    ) -> None:
        self._duties = duties
        self._context = context
        self._schedules = schedules
        """The schedules that the worker's app defines."""

    def announce(self) -> None:
        """Store the app's schedules; a manual change stays until the app's definition changes."""
        for name in self._duties.announce(self._schedules):
            self._context.emit([events.Scheduled(name)])

    def turn(self) -> None:
        """Enqueue every tick that is due."""
        ticked: list[TickResult] | None = None
        # Bounded: schedules whose rows are locked stay due.
        while ticked is None or ticked:
            due = self._duties.due_schedules(limit=TURN_MAX)
            turns = [turn for turn in map(self._turn_of, due) if turn is not None]
            ticked = list(self._duties.tick(turns)) if turns else []
            if ticked:
                self._context.emit(
                    [
                        events.Ticked(one.name, one.at.isoformat(), one.id)
                        if one.made
                        else events.TickSkipped(one.name, one.at.isoformat())
                        for one in ticked
                    ]
                )
            if len(due) < TURN_MAX:
                return

    def _turn_of(self, planned: StoredSchedule) -> ScheduleMove | None:
        try:
            return turn_of(planned)
        except BadOption as error:
            # Stored without checks, or this machine lacks its time zone: a person must fix it.
            name = planned.schedule.name
            self._duties.set_aside(name, str(error))
            self._context.emit(
                [events.Troubled(self._context.worker, f"schedule {name}", str(error))]
            )
            return None

# SPDX-License-Identifier: MIT
"""Housekeeping and the beat, on their own connection."""

import threading
from collections.abc import Mapping, Sequence
from datetime import timedelta

from byrote.core.errors import RowLocked
from byrote.core.log.cursor import BEGINNING, Cursor
from byrote.core.outcome import Printing
from byrote.core.ports.replies import Archived, Duty, Promotion, ReclaimedRun, Walked
from byrote.core.run import Leased
from byrote.core.schedule.schedule import Schedule, ScheduleMove, StoredSchedule, TickResult
from byrote.core.unserved import UnservedEnd, UnservedTask
from byrote.store import locks, queries
from byrote.store.runners.link import OnConnection, WorkerConnection

AROUND = 100
"""Pages to archive around locked rows after one was met: it may be met again."""


class MaintenanceStore(OnConnection):
    """Housekeeping, statement by statement."""

    def __init__(
        self, link: WorkerConnection, watch: threading.Event, *, keep_events: timedelta
    ) -> None:
        super().__init__(link)
        self._watch = watch
        self._keep_events = keep_events
        self._around = 0
        """How many more pages to archive around locked rows."""

    def watch_asked(self) -> bool:
        """Whether a client has begun to watch a run of this worker since the last call."""
        requested = self._watch.is_set()
        self._watch.clear()
        return requested

    def watched(self) -> list[str]:
        """The runs that a client watches now."""
        return self._link.run(queries.watched())

    def live_output(self, run: Leased, printed: Printing) -> None:
        """Store the output of an attempt so far for the clients that watch its run."""
        self._link.run(queries.live_output(run, printed))

    def due(self, *, worker: str, every: Mapping[str, timedelta]) -> list[Duty]:
        """Take every duty that is due."""
        return self._link.run(queries.duties(worker=worker, every=every))

    def promote(self, *, limit: int) -> Promotion:
        """Make due runs READY, oldest first."""
        return self._link.run(queries.promote(limit=limit))[0]

    def sweep(self, *, limit: int) -> list[ReclaimedRun]:
        """Take back runs whose lease has expired."""
        return self._link.run(queries.sweep(limit=limit))

    def note_unserved(self) -> list[UnservedTask]:
        """Note the tasks that no live worker of their queue knows; returns those that are new."""
        return self._link.run(queries.note_unserved())

    def fail_unserved(self, *, limit: int) -> list[UnservedEnd]:
        """End runs whose task was unknown for as long as their queue waits."""
        return self._link.run(queries.fail_unserved(limit=limit))

    def archive(self, *, after: str, limit: int) -> Archived:
        """Move finished runs after a cursor to the archive, around locked ones."""
        if not self._around:
            try:
                return self._link.run(queries.archive(after=after, limit=limit))[0]
            except RowLocked:
                self._around = AROUND
        self._around -= 1
        return self._link.run(locks.archive_around(after=after, limit=limit))[0]

    def partition(self) -> None:
        """Create the partitions of the coming days."""
        self._link.once(queries.partition())

    def prune(self) -> None:
        """Delete what is past its retention."""
        self._link.once(queries.prune(keep_events=self._keep_events))

    def prune_stats(self) -> None:
        """Delete counts by minute that are past their retention."""
        self._link.once(queries.prune_stats())

    def begin_counting(self) -> Cursor | None:
        """Begin to count at the end of the log; None if another process has begun."""
        end = next(iter(self._link.once(queries.cursor(back=0))), BEGINNING)
        return end if self._link.once(queries.begin_stats(end)) else None

    def count(self, cursor: Cursor, *, limit: int) -> tuple[int, Cursor | None]:
        """Count events after a cursor; returns how many were read, and the new cursor."""
        return self._link.once(queries.count_stats(cursor, limit=limit))[0]

    def recount(self, cursor: Cursor, *, most: int) -> None:
        """Correct the depths as of a cursor, unless there are more than `most` runs."""
        self._link.once(queries.recount(cursor, most=most))

    def chain(self, *, limit: int) -> int:
        """Add a link to the chain of the log; returns how many events it has."""
        return sum(self._link.run(queries.chain(limit=limit)))

    def forget(self, *, limit: int) -> int:
        """Delete one batch of orphaned rows; returns the largest count per table."""
        counts = self._link.run(queries.delete_orphans(limit=limit))[0]
        return max(*counts, *self._link.run(queries.prune_memos(limit=limit)))

    def prune_artifacts(self, after: str) -> Walked:
        """Delete a page of artifacts whose runs were pruned."""
        return self._link.once(queries.prune_artifacts(after=after))[0]

    def prune_blobs(self, after: str) -> Walked:
        """Delete a page of small contents that no artifact refers to."""
        return self._link.once(queries.prune_blobs(after=after))[0]

    def announce(self, wanted: Sequence[Schedule]) -> list[str]:
        """Store the schedules that an app defines; returns the names of those that changed."""
        if not wanted:
            return []
        [now] = self._link.run(queries.now())
        return [name for one in wanted for name in self._link.run(queries.announce(one, now))]

    def due_schedules(self, *, limit: int) -> list[StoredSchedule]:
        """Schedules that are due, the longest due first."""
        return self._link.run(queries.schedules(due=True, limit=limit))

    def tick(self, turns: Sequence[ScheduleMove]) -> list[TickResult]:
        """Move schedules on, and accept the runs of their ticks."""
        # A second try after a lost answer finds them moved already.
        return self._link.run(queries.tick(turns))

    def set_aside(self, name: str, fault: str) -> None:
        """Pause a schedule that cannot continue."""
        self._link.run(queries.pause_schedule(name, fault=fault))

    def bookmark(self, duty: str, cursor: str) -> None:
        """Store how far a duty has come."""
        self._link.run(queries.save_cursor(duty=duty, cursor=cursor))

# SPDX-License-Identifier: MIT
"""Counts the events of the log into byrote_stats and byrote_depths, as a duty of any process.

The cursor of the duty `stats` is the authority: the statement that adds counts moves the cursor in
the same transaction, and only from where its caller saw it. So any number of workers and services
count every event exactly once, and nothing is counted on the path of a run.

Depths are corrected from the rows themselves when counting begins, and then every ten minutes while
there are few runs. This is done only at the end of the log: from a position far behind, the changes
of all later events would have to be subtracted.
"""

from collections.abc import Callable

from byrote.core.errors import StoreRefused
from byrote.core.log.cursor import Cursor
from byrote.core.ports.executor import Clock
from byrote.core.ports.store import MaintenancePort

COUNT_MIN, COUNT_MAX = 8, 512
"""Statements counted in one batch. Each may have events of a thousand runs, so the size adapts."""
BATCH_S = 0.05
"""How long a batch should take: promoting and sweeping wait for it."""
RECOUNT_MAX = 100_000
"""Depths are corrected from the rows while there are at most this many runs."""
BUSY_S = 0.3
"""How long one turn may count."""
BUSY_EVERY_S = 5.0
"""The pause between turns of a worker that executes runs. Counting takes 3 to 6 µs of the server
per run, and a turn every second slowed a drain by inline workers to 0.85 of its speed."""
REFUSED_S = 5.0
"""The pause after a refused statement: one that meets a locked row waits for it for a second."""


class EventCounter:
    """The duties `stats` and `depths`; `keep_up` is called between batches."""

    def __init__(
        self,
        duties: MaintenancePort,
        clock: Clock,
        *,
        keep_up: Callable[[], None],
        idle: Callable[[], bool] = lambda: True,
    ) -> None:
        self._duties = duties
        self._idle = idle
        self._counted_at = clock()
        self._clock = clock
        self._keep_up = keep_up
        self._recount_due = False
        self._batch = COUNT_MIN
        self._resume_at = 0.0

    def request_recount(self) -> None:
        """Correct the depths at the next turn that reaches the end of the log."""
        self._recount_due = True

    def turn(self, cursor: str | None) -> None:
        """Count the events after the duty's cursor; without one, those from now on."""
        now = self._clock()
        if now < self._resume_at or not (self._idle() or now >= self._counted_at + BUSY_EVERY_S):
            return
        self._counted_at = now
        try:
            self._turn(cursor)
        except StoreRefused:
            self._resume_at = self._clock() + REFUSED_S
            raise

    def _turn(self, cursor: str | None) -> None:
        begin = self._duties.begin_counting() if cursor is None else Cursor.parse(cursor)
        if begin is None:
            return
        self._recount_due |= cursor is None
        end = self._count_from(begin)
        if end is not None and self._recount_due:
            self._duties.recount(end, most=RECOUNT_MAX)
            self._recount_due = False

    def _count_from(self, cursor: Cursor) -> Cursor | None:
        """Return the end of the log; None if it is far, or another process counts."""
        deadline = self._clock() + BUSY_S
        while (began := self._clock()) < deadline:
            limit = self._batch
            events, moved = self._duties.count(cursor, limit=limit)
            if events < limit:
                return cursor if events == 0 else moved
            if moved is None:
                return None
            cursor = moved
            self._adapt(self._clock() - began)
            self._keep_up()
        return None

    def _adapt(self, took_s: float) -> None:
        wanted = self._batch // 2 if took_s > BATCH_S else self._batch * 2
        self._batch = min(max(wanted, COUNT_MIN), COUNT_MAX)

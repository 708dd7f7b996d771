# SPDX-License-Identifier: MIT
"""How many runs a worker claims next, from which queues, and when it does not claim at all.

A claim that is too small costs a round trip per run. One that is too large makes runs wait in this
worker while another is idle. Nothing here affects correctness: a lease protects each run whatever
the size of its claim, and runs that cannot begin are given back uncharged.

Five rules decide, in this order. Each is a pure class that takes time as a number.

1. How much fits: `CapacityPlanner` (`executors/capacity.py`), the executor's rule. Free slots, and
   a buffer of what was completed in the last 0.1 s (`BUFFER_S`, at most `BUFFER_MAX`). A claim
   takes at most half of all that may be held, so that one half executes while the other is claimed.
   The share of sync and async tasks in recent claims bounds it further. A kind that no hand takes
   at the moment is left out (`executors/hands/placement.py`). `Capacity.worth` is the
   smallest claim that is worth a round trip, a quarter of the buffer.
   If it is wrong: the rate follows in windows of 20 ms, and fades without completions; hands give
   back runs that wait longer than a second.
2. How many commands fit: `CommandShare` (same file). A claim is one statement for tasks in hands
   and for commands, so commands without room may come back. Their share of recent claims bounds the
   next one. If it is wrong: they are released at once; the share follows an increase in one claim
   and halves with each claim that has fewer.
3. Whether to claim now: `ClaimSize.pause`. Not while `UNWRITTEN_MAX` ended attempts wait to be
   written, nor while less than `worth` fits. If only some tasks have room, the database may walk
   past everything that waits for the others before it finds nothing; after such a claim the next
   waits `ASIDE_S`, or `ASIDE_FACTOR` times as long as it took. If it is wrong: a task with room
   starts that much later; any claim that finds enough ends the wait.
4. From which queues: `Shares`. The limit is divided by weight; the unused part of an empty queue
   goes to the others in the same turn, and the next claim makes up for rounding. If it is wrong: no
   queue is off by more than the rounding of one claim.
5. From where in each queue: `Watermark`. While dead index entries slow claims down, they start at
   the last rank that was found. A claim from a mark that comes back short does not prove that the
   queue is dry, so the turn counts as one with more to come. If it is wrong: a mark lasts two
   seconds at most.

Bounds that hold whatever the rules learnt: a turn never claims more than `Capacity.limit`, which is
never more than the free slots and the free part of the buffer; while a slot is free and a queue has
work for it, a turn claims at least one run, or does so after the wait of rule 3.
`tests/worker/claiming/test_claim_size.py` simulates workloads.
"""

from collections import Counter
from collections.abc import Mapping

from byrote.core.ports.executor import Capacity, Clock
from byrote.worker.claiming.shares import Shares
from byrote.worker.claiming.watermark import Watermark

UNWRITTEN_MAX = 5_000
"""Ended attempts that may wait to be written before no more runs are claimed."""
ASIDE_S, ASIDE_FACTOR = 0.05, 20
"""How long not to claim again for some of the tasks after a claim that found too few of them."""


class ClaimTurn:
    """The claims of one turn: queues that returned their whole share are asked for the rest."""

    def __init__(self, room: Capacity, shares: Shares, watermark: Watermark) -> None:
        self.tasks = room.tasks
        self._limit = self._left = room.limit
        self._unasked = shares.queues
        self._shares = shares
        self._watermark = watermark

    @property
    def filled(self) -> bool:
        """Whether as many runs were claimed as there was room for."""
        return self._left == 0

    @property
    def more(self) -> bool:
        """Whether the queues may have more."""
        return self.filled or (self._left < self._limit and self._watermark.raised)

    def quotas(self) -> dict[str, int]:
        """How many runs to claim next from each queue; empty at the end of the turn."""
        if self._left < 1 or not self._unasked:
            return {}
        return self._shares.split(self._left, self._unasked)

    def note(self, quotas: Mapping[str, int], claimed: Counter[str]) -> None:
        """Record what a claim with these quotas returned from each queue."""
        # A queue that returned its whole share may have more; one without a share was not asked.
        dry = [queue for queue, quota in quotas.items() if claimed[queue] < quota]
        self._shares.note_claims(claimed, dry, self._unasked)
        self._left -= claimed.total()
        self._unasked = [queue for queue in self._unasked if queue not in dry]


class ClaimSize:
    """Decides when the claimer claims, how much, and from which queues."""

    def __init__(
        self, weights: Mapping[str, int], watermark: Watermark, *, clock: Clock, poll_s: float
    ) -> None:
        self._shares = Shares(weights)
        self._watermark = watermark
        self._clock = clock
        self._poll_s = poll_s
        self._aside_until = 0.0
        self._began = 0.0
        """When the last claim for some of the tasks began."""

    @property
    def queues(self) -> list[str]:
        """The queues that are served."""
        return self._shares.queues

    def add(self, queue: str) -> None:
        """Serve one queue more."""
        self._shares.add(queue)

    def pause(self, room: Capacity, *, unwritten: int, partial: bool) -> float | None:
        """How long to wait for room; None to claim now. `partial`: not all tasks have room."""
        if unwritten > UNWRITTEN_MAX or room.limit < room.worth:
            return self._poll_s
        if partial:
            self._began = self._clock()
            if self._began < self._aside_until:
                return min(self._aside_until - self._began, self._poll_s)
        return None

    def turn(self, room: Capacity) -> ClaimTurn:
        """Begin a turn of claims."""
        return ClaimTurn(room, self._shares, self._watermark)

    def end_partial(self, turn: ClaimTurn) -> None:
        """End a turn for some of the tasks: if it found too few, the next one waits."""
        if not turn.more:
            took = self._clock() - self._began
            self._aside_until = self._began + max(ASIDE_S, took * ASIDE_FACTOR)

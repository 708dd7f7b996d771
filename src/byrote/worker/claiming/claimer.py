# SPDX-License-Identifier: MIT
"""Claims runs while there is room for them, and waits when there is nothing to claim.

Polling is the contract, NOTIFY a hint. A worker whose claim comes back short registers as `idle`,
and from then on enqueues wake it. An enqueue that read the list of workers before that, and commits
after the worker's claim, wakes no worker: so the worker claims again a few milliseconds later,
before it polls at its slow interval.

How many runs a claim asks for, and from which queues, is decided in `claim_size.py`.

A claim whose answer is lost is asked for again by its token, by the store itself: those runs belong
to this worker, and no other could claim them until their lease expired.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

import msgspec

from byrote.core import events
from byrote.core.outcome import Released
from byrote.core.ports.executor import Capacity, Executor
from byrote.core.ports.replies import Remainder
from byrote.core.ports.store import ClaimPort, ClaimRequest
from byrote.core.run import Leased
from byrote.system.wake import Wake
from byrote.worker.claiming.claim_size import ClaimSize, ClaimTurn
from byrote.worker.claiming.watermark import Watermark
from byrote.worker.context import WorkerContext
from byrote.worker.leases import HeldLeases
from byrote.worker.recorder import Recorder

LOOKS_S = (0.005, 0.05)
"""When to claim again after registering as idle, before polling slowly."""
LOOK_AROUND_S = 1.0
DEADLINE_MARGIN = 0.9
"""The share of a lease that the worker relies on; the rest allows for clock drift."""


class ClaimOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a claimer: queues, limits and waits."""

    weights: Mapping[str, int]
    lease_for: timedelta
    poll_s: float
    drain: bool


class Claimer:
    """The worker's claiming loop, on its own thread and connection."""

    def __init__(
        self,
        leases: ClaimPort,
        executor: Executor,
        *,
        recorder: Recorder,
        held: HeldLeases,
        options: ClaimOptions,
        context: WorkerContext,
        watermark: Watermark,
    ) -> None:
        self._leases = leases
        self._executor = executor
        self._recorder = recorder
        self._held = held
        self._options = options
        self._context = context
        self._watermark = watermark
        self._size = ClaimSize(
            options.weights, watermark, clock=context.clock, poll_s=options.poll_s
        )
        self._wake = Wake()
        self._asleep = False
        self._stopping = False
        self.idle = False
        self._look_around_at = 0.0
        self.left: Remainder | None = None
        """The runs left in the queues when no more could be claimed."""
        self.look_around: Callable[[], bool] = lambda: False
        """Looks for tasks to serve before the queues are called dry; whether it found any."""
        self.withheld: frozenset[str] = frozenset()
        """Tasks that the executor knows and that are left to other workers."""
        recorder.on_report = self.nudge

    @property
    def tasks(self) -> list[str]:
        """The tasks whose runs are claimed."""
        return [task for task in self._executor.tasks if task not in self.withheld]

    @property
    def queues(self) -> list[str]:
        """The queues that are served."""
        return self._size.queues

    def serve(self, queue: str) -> None:
        """Serve another queue."""
        self._size.add(queue)

    def nudge(self) -> None:
        """Wake the claimer: there may be room again, or another reason to claim."""
        if self._asleep:
            self._asleep = False
            self._wake.set()

    def stop(self) -> None:
        """Stop claiming."""
        self._stopping = True
        self._asleep = True
        self.nudge()

    def run(self) -> None:
        """Claim until stopped or, when draining, until the queues are empty."""
        looks = 0
        while not self._stopping:
            room = self._room()
            partial = len(room.tasks) < len(self._executor.tasks)
            unwritten = self._recorder.backlog
            pause = self._size.pause(room, unwritten=unwritten, partial=partial)
            if pause is not None:
                self._wait(pause, for_room=True)
                continue
            turn = self._size.turn(room)
            more = self._claim(turn)
            if partial:
                self._size.end_partial(turn)
                continue
            if more:
                looks = 0
                continue
            if self._options.drain and self._look_further():
                looks = 0
                continue
            if self._options.drain and self._dry():
                return
            self._announce_idle(idle=True)
            # A draining worker claims again when an attempt has ended: it may have been the last.
            self._wait(self._next_look(looks), for_room=self._options.drain)
            looks += 1

    def _room(self) -> Capacity:
        # Registered before the claim, so that room that is freed meanwhile ends the wait.
        self._asleep = True
        return self._executor.room()

    def _next_look(self, looks: int) -> float:
        if looks < len(LOOKS_S):
            return LOOKS_S[looks]
        if self._leases.listening:
            return self._options.poll_s * (0.75 + 0.5 * self._context.jitter())
        backoff: float = LOOKS_S[-1] * 2 ** min(looks - len(LOOKS_S), 10)
        return min(backoff, self._options.poll_s) * (0.75 + 0.5 * self._context.jitter())

    def _claim(self, turn: ClaimTurn) -> bool:
        """Claim what there is room for. Returns whether there may be more."""
        while quotas := turn.quotas():
            found = self._lease(quotas, turn.tasks)
            turn.note(quotas, Counter([run.queue for run in found]))
        if turn.filled:
            self._announce_idle(idle=False)
        return turn.more

    def _lease(self, quotas: Mapping[str, int], tasks: Sequence[str]) -> list[Leased]:
        found = None
        while found is None:
            wanted = self._wanted(quotas, tasks)
            found = [] if self._stopping else self._leases.claim(wanted)
        floors, before = dict(wanted.floors), wanted.claimed_at
        if len(found) > sum(quotas.values()):
            raise RuntimeError(
                f"The claim gave {len(found)} runs where {sum(quotas.values())} were asked for."
            )
        self._watermark.note(
            found,
            floors,
            began=before,
            ended=self._context.clock(),
            short=len(found) < sum(quotas.values()),
        )
        self._take(found)
        return found

    def _wanted(self, quotas: Mapping[str, int], tasks: Sequence[str]) -> ClaimRequest:
        token, before = self._context.token(), self._context.clock()
        if self.withheld:
            tasks = [task for task in tasks if task not in self.withheld]
        deadline = before + self._options.lease_for.total_seconds() * DEADLINE_MARGIN
        floors = self._watermark.floors(before)
        lease_for, worker = self._options.lease_for, self._context.worker
        return ClaimRequest(quotas, tasks, worker, token, lease_for, deadline, before, floors)

    def _take(self, found: Sequence[Leased]) -> None:
        if not found:
            return
        self._held.add(found)
        if self._context.clock() < found[0].deadline:
            self._executor.submit(found)
        else:
            # The process was frozen: the answer is older than the lease, which may have expired.
            self._recorder.report([(run, Released()) for run in found])
        worker = self._context.worker
        self._context.emit(
            [
                events.Claimed(run.id, run.task, run.queue, run.attempt, worker, run.age_us / 1e6)
                for run in found
            ]
        )

    def _announce_idle(self, *, idle: bool) -> None:
        if idle != self.idle:
            self._leases.idle(worker=self._context.worker, idle=idle)
            self.idle = idle

    def _look_further(self) -> bool:
        """Look for more tasks to serve while others are executed, once a second."""
        now = self._context.clock()
        if now < self._look_around_at:
            return False
        self._look_around_at = now + LOOK_AROUND_S
        return self.look_around()

    def _dry(self) -> bool:
        if self._held or self._recorder.backlog:
            return False
        left = self._leases.unfinished(queues=self._size.queues, tasks=self.tasks)
        if left.due or self.look_around():
            return False
        self.left = left
        return True

    def _wait(self, seconds: float, *, for_room: bool = False) -> None:
        """Sleep up to `seconds`, until woken or until the connection is notified of work."""
        self._leases.rest(self._wake.fd, seconds if self._asleep else 0, for_room=for_room)

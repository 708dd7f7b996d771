# SPDX-License-Identifier: MIT
"""Which hand has which run: the pool's memory, behind one lock.

A run handed over is in its hand's `jobs` until it is reported, taken back, or buried with the hand.
The board says what has begun; only what has not can be taken back.
"""

import threading
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from byrote.core.outcome import Outcome
from byrote.core.ports import Clock, Room
from byrote.core.run import Leased
from byrote.executors import call
from byrote.executors.child import Child, job_of
from byrote.executors.tempo import Tempos

STOP_GRACE_S = 1.0
"""How long an async task may take to heed a cancellation before its hand is killed."""

type Reports = list[tuple[Leased, Outcome]]


class Roster:
    """The hands of a pool and the runs they were given."""

    def __init__(self, *, limits: dict[bool, int], worker: str, clock: Clock) -> None:
        self._limits = limits
        self._worker = worker
        self._clock = clock
        self._tempos = Tempos(clock)
        self.lock = threading.RLock()
        self.children: list[Child] = []
        self.kinds: dict[str, bool] = {}
        """Task by task, whether it is async."""

    def kind(self, run: Leased) -> bool:
        """Whether the run's task is async; one nobody registered fails in a sync thread."""
        return self.kinds.get(f"{run.task}@{run.version}", False)

    def room(self) -> Room:
        """How much may be claimed now, of which tasks."""
        with self.lock:
            live = [child for child in self.children if child.able]
            slots = sum(len(child.free) for child in live)
            free = {kind: self._free(live, kind) for kind in set(self.kinds.values())}
        return self._tempos.room(self.kinds, free, slots)

    def _free(self, live: Sequence[Child], kind: bool) -> int:
        each = self._limits[kind] + self._tempos.buffer(kind) // max(len(live), 1)
        return sum(max(each - child.running[kind], 0) for child in live)

    def place(self, runs: Sequence[Leased]) -> tuple[list[Leased], bool]:
        """Give runs to the least busy hands; what none could take, and whether a socket is full."""
        now = self._clock()
        batches: dict[Child, list[list[Any]]] = {}
        with self.lock:
            able = [child for child in self.children if child.able]
            for place, run in enumerate(runs):
                kind = self.kind(run)
                child = min(able, key=lambda c: c.running[kind], default=None)
                if child is None or not child.free:
                    homeless = list(runs[place:])
                    break
                slot = child.take(run, is_async=kind, now=now)
                batches.setdefault(child, []).append(job_of(slot, run))
            else:
                homeless = []
            for child, jobs in batches.items():
                child.send(["work", jobs])
            return homeless, any(child.unsent for child in batches)

    def settle(self, child: Child, results: Sequence[list[Any]]) -> tuple[Reports, list[Leased]]:
        """Read a hand's results: what to report, and what it declined and must go elsewhere."""
        reports: Reports = []
        again: list[Leased] = []
        counts = {False: 0, True: 0}
        with self.lock:
            for result in results:
                slot = result[0]
                if result[1] == call.DECLINED:
                    again += self._declined(child, slot)
                    continue
                kind = child.kinds[slot]
                run = child.drop(slot)
                child.free.append(slot)
                child.finished += 1
                counts[kind] += 1
                if child.fates and child.fates.pop(slot, ...) is None:
                    continue
                reports.append((run, call.outcome_of(result, run.attempt, self._worker)))
        self._tempos.count(counts)
        return reports, again

    def _declined(self, child: Child, slot: int) -> list[Leased]:
        child.free.append(slot)
        child.revoked.discard(slot)
        if slot not in child.jobs:
            return []
        # Both sides saw each other: we left it to the hand and the hand left it to us.
        return [child.drop(slot)]

    def take_back(self, child: Child, slots: Iterable[int]) -> list[Leased]:
        """Runs of these slots that had not begun; they are the caller's again."""
        back = []
        for slot in slots:
            if slot not in child.revoked and child.board.take_back(slot):
                child.revoked.add(slot)
                back.append(child.drop(slot))
        return back

    def take_back_all(self) -> list[Leased]:
        """Every run that has not begun."""
        with self.lock:
            return [
                run for child in self.children for run in self.take_back(child, list(child.jobs))
            ]

    def end(self, runs: Collection[Leased], fate: Outcome | None) -> Reports:
        """Stop these attempts; gives reports of those that had not even begun."""
        reports: Reports = []
        wanted = {id(run) for run in runs}
        with self.lock:
            for child in self.children:
                for slot in [slot for slot, run in child.jobs.items() if id(run) in wanted]:
                    back = self.take_back(child, [slot])
                    if not back:
                        self.end_begun(child, slot, fate)
                    elif fate is not None:
                        reports.append((back[0], fate))
        return reports

    def end_begun(self, child: Child, slot: int, fate: Outcome | None) -> None:
        """Stop an attempt under way: ask an async one, take the hand down for a sync one."""
        if slot in child.stopping:
            return
        child.fates[slot] = fate
        if child.kinds[slot]:
            child.stopping[slot] = self._clock() + STOP_GRACE_S
            child.send(["cancel", [slot]])
        else:
            child.kill()

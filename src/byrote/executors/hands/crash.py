# SPDX-License-Identifier: MIT
"""Resolves the crash of a hand: which of its runs are charged, and which are given back."""

import signal
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from byrote.core.outcome import Crashed, Failed, Fault, Outcome, Printing, Released
from byrote.core.run import Leased
from byrote.executors.hands.process import HandProcess
from byrote.executors.hands.roster import Roster
from byrote.executors.runtime.output import with_output
from byrote.executors.shared.spool import printings, serial_of


class ExitReason(NamedTuple):
    """How a hand ended."""

    code: int
    """Its return code; negative for a signal."""
    ours: bool
    """The supervisor killed it, to stop one run or at the end of the grace period."""
    out_of_memory: bool
    """The kernel ran out of memory at about the same time."""

    @property
    def reason(self) -> str:
        """The cause in words."""
        if self.code >= 0:
            return f"exited with code {self.code}"
        name = signal.Signals(-self.code).name
        return f"was killed by {name}" + (" (out of memory)" if self.out_of_memory else "")


class CrashResolution(NamedTuple):
    """Outcomes to report by slot, and slots whose runs may be executed elsewhere."""

    outcomes: dict[int, Outcome]
    elsewhere: list[int]


def resolve_crash(
    jobs: Mapping[int, Leased],
    *,
    begun: AbstractSet[int],
    executing: AbstractSet[int],
    fates: Mapping[int, Outcome | None],
    death: ExitReason,
    worker: str,
) -> CrashResolution:
    """Decide for every run the hand still had. Only a proven cause is charged."""
    outcomes: dict[int, Outcome] = {}
    elsewhere = []
    suspects = executing & jobs.keys()
    for slot, run in jobs.items():
        if slot in fates:
            fate = fates[slot]
            if fate is not None:
                outcomes[slot] = fate
        elif slot not in begun:
            elsewhere.append(slot)
        elif death.ours:
            outcomes[slot] = Released()
        elif suspects == {slot}:
            outcomes[slot] = Failed(crash_fault(death, run, worker))
        elif suspects and slot not in suspects:
            # It was only waiting when the code of another one ran.
            outcomes[slot] = Released()
        else:
            outcomes[slot] = Crashed(crash_fault(death, run, worker))
    return CrashResolution(outcomes, elsewhere)


def crash_fault(death: ExitReason, run: Leased, worker: str) -> Fault:
    """Return the fault of an attempt whose process crashed."""
    return Fault(
        kind="oom" if death.out_of_memory else "crashed",
        type="HandCrashed",
        message=f"The process running the task {death.reason}.",
        signal=signal.Signals(-death.code).name if death.code < 0 else None,
        exit_code=death.code if death.code >= 0 else None,
        attempt=run.attempt,
        worker=worker,
    )


def take_leave(
    roster: Roster, child: HandProcess, death: ExitReason, *, worker: str
) -> CrashResolution:
    """Remove a dead hand from the roster; returns the outcomes of its runs with their output."""
    with roster.lock:
        roster.children.remove(child)
        verdict = resolve_crash(
            child.jobs,
            begun={slot for slot in child.jobs if child.board.begun(slot) is not None},
            executing=_suspects(child, death),
            fates=child.fates,
            death=death,
            worker=worker,
        )
    printed = printings(child.spool.copy())
    for slot, outcome in verdict.outcomes.items():
        run = child.jobs[slot]
        run.provenance = child.provenance
        output = printed.get(serial_of(run.shown.id, run.shown.attempt))
        verdict.outcomes[slot] = with_output(outcome, output)
    return verdict


def _suspects(child: HandProcess, death: ExitReason) -> set[int]:
    """Slots whose code may have ended the hand; only one if that is known."""
    culprit = None if death.ours else child.culprit
    return child.board.executing() if culprit is None else {culprit}


def printed_by(roster: Roster, run: Leased) -> Printing | None:
    """The output so far of a run that a hand is executing."""
    with roster.lock:
        # Under the lock: a hand is removed from the roster before its memory is unmapped.
        hand = next((c for c in roster.children if any(run is r for r in c.jobs.values())), None)
        content = b"" if hand is None else hand.spool.copy()
    return printings(content).get(serial_of(run.shown.id, run.shown.attempt))

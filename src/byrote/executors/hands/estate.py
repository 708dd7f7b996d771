# SPDX-License-Identifier: MIT
"""What a hand leaves behind: verdicts on the runs it still had, and what those had printed."""

from byrote.core.outcome import Printing
from byrote.core.run import Leased
from byrote.executors.hands.crash import CrashResolution, ExitReason, bury
from byrote.executors.hands.process import HandProcess
from byrote.executors.hands.roster import Roster
from byrote.executors.runtime.output import with_output
from byrote.executors.shared.spool import printings, serial_of


def take_leave(
    roster: Roster, child: HandProcess, death: ExitReason, *, worker: str
) -> CrashResolution:
    """Strike a dead hand off the roster; what becomes of its runs, with all that is known."""
    with roster.lock:
        roster.children.remove(child)
        verdict = bury(
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
        said = printed.get(serial_of(run.id, run.attempt))
        verdict.outcomes[slot] = with_output(outcome, said)
    return verdict


def _suspects(child: HandProcess, death: ExitReason) -> set[int]:
    """Slots whose code may have ended the hand: the one that did, where that is known."""
    culprit = None if death.ours else child.culprit
    return child.board.executing() if culprit is None else {culprit}


def printed_by(roster: Roster, run: Leased) -> Printing | None:
    """What a run that some hand is executing has printed so far."""
    with roster.lock:
        # Under the lock: a hand is struck off the roster before its memory is given back.
        home = next((c for c in roster.children if any(run is r for r in c.jobs.values())), None)
        content = b"" if home is None else home.spool.copy()
    return printings(content).get(serial_of(run.id, run.attempt))

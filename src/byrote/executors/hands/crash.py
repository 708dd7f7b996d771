# SPDX-License-Identifier: MIT
"""What becomes of the runs of a hand that went down: who is charged, who is given back."""

import signal
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

from byrote.core.outcome import Crashed, Failed, Fault, Outcome, Released
from byrote.core.run import Leased


class ExitReason(NamedTuple):
    """How a hand went down."""

    code: int
    """Its return code; negative for a signal."""
    ours: bool
    """We killed it, for one run's sake or at the very end."""
    out_of_memory: bool
    """The kernel ran out of memory at about that time."""

    @property
    def reason(self) -> str:
        """In words."""
        if self.code >= 0:
            return f"exited with code {self.code}"
        name = signal.Signals(-self.code).name
        return f"was killed by {name}" + (" (out of memory)" if self.out_of_memory else "")


class CrashResolution(NamedTuple):
    """Slots and what is reported of them, and slots whose runs may simply be executed elsewhere."""

    outcomes: dict[int, Outcome]
    elsewhere: list[int]


def bury(
    jobs: Mapping[int, Leased],
    *,
    begun: AbstractSet[int],
    executing: AbstractSet[int],
    fates: Mapping[int, Outcome | None],
    death: ExitReason,
    worker: str,
) -> CrashResolution:
    """Decide for every run the hand still had. Only a proven culprit is charged."""
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
            # It was only waiting for something when another one's code ran.
            outcomes[slot] = Released()
        else:
            outcomes[slot] = Crashed(crash_fault(death, run, worker))
    return CrashResolution(outcomes, elsewhere)


def crash_fault(death: ExitReason, run: Leased, worker: str) -> Fault:
    """What is recorded of an attempt whose process went down under it."""
    return Fault(
        kind="oom" if death.out_of_memory else "crashed",
        type="HandCrashed",
        message=f"The process running the task {death.reason}.",
        signal=signal.Signals(-death.code).name if death.code < 0 else None,
        exit_code=death.code if death.code >= 0 else None,
        attempt=run.attempt,
        worker=worker,
    )


def oom_kills() -> int:
    """How often the kernel has killed something for want of memory since the machine started."""
    try:
        lines = Path("/proc/vmstat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)

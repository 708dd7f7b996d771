# SPDX-License-Identifier: MIT
import signal
from typing import Any

import pytest

from byrote.core.outcome import Cancelled, Crashed, Failed, Outcome, Released
from byrote.executors.hands.crash import CrashResolution, ExitReason, resolve_crash
from tests.core.leases import leased

pytestmark = pytest.mark.pure

CRASH = ExitReason(-signal.SIGSEGV, ours=False, out_of_memory=False)
JOBS = {slot: leased(id=f"run{slot}", attempt=slot + 1) for slot in range(4)}


def buried(**facts: Any) -> CrashResolution:
    plain: dict[str, Any] = {"begun": set(JOBS), "executing": set(), "fates": {}, "death": CRASH}
    return resolve_crash(JOBS, worker="w", **(plain | facts))


def kinds(burial: CrashResolution) -> dict[int, type[Outcome]]:
    return {slot: type(outcome) for slot, outcome in burial.outcomes.items()}


def test_the_one_that_was_executing_is_charged_and_its_neighbours_are_not() -> None:
    burial = buried(executing={2})

    assert kinds(burial) == {0: Released, 1: Released, 2: Failed, 3: Released}
    failed = burial.outcomes[2]
    assert isinstance(failed, Failed)
    assert (failed.fault.kind, failed.fault.signal) == ("crashed", "SIGSEGV")
    assert (failed.fault.attempt, failed.fault.worker) == (3, "w")
    assert not failed.final


def test_what_had_not_begun_is_executed_elsewhere() -> None:
    burial = buried(begun={2}, executing={2})

    assert burial.elsewhere == [0, 1, 3]
    assert kinds(burial) == {2: Failed}


def test_without_a_single_culprit_no_run_is_charged() -> None:
    assert set(kinds(buried(executing=set())).values()) == {Crashed}
    assert kinds(buried(executing={1, 2})) == {
        0: Released,
        1: Crashed,
        2: Crashed,
        3: Released,
    }


def test_a_hand_that_we_killed_charges_no_other_run() -> None:
    fate = Cancelled()
    burial = buried(
        executing={1},
        fates={1: fate, 3: None},
        death=ExitReason(-9, ours=True, out_of_memory=False),
    )

    assert burial.outcomes[1] is fate
    assert kinds(burial) == {0: Released, 1: Cancelled, 2: Released}
    assert burial.elsewhere == []


def test_a_suspect_that_is_long_done_proves_nothing() -> None:
    """The board still shows slot 9, whose result had already been delivered."""
    assert set(kinds(buried(executing={9})).values()) == {Crashed}


def test_the_reason_of_an_exit_is_text() -> None:
    assert ExitReason(3, ours=False, out_of_memory=False).reason == "exited with code 3"
    assert ExitReason(-9, ours=False, out_of_memory=False).reason == "was killed by SIGKILL"
    assert "out of memory" in ExitReason(-9, ours=False, out_of_memory=True).reason


def test_out_of_memory_has_its_own_kind_of_error() -> None:
    burial = buried(executing={0}, death=ExitReason(-9, ours=False, out_of_memory=True))
    failed = burial.outcomes[0]

    assert isinstance(failed, Failed)
    assert failed.fault.kind == "oom"

# SPDX-License-Identifier: MIT
"""The kinds of runs the demo sends: what each does, and how it must end."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from byrote.assembly.handles import TaskHandle
from byrote.core.run import Run
from byrote.demo import tasks

type Fate = Callable[[Run, Sequence[Run]], str]
"""Describes how one run ended; the second argument is every run of the demo."""


def _status(run: Run) -> str:
    return run.status.value.lower()


def _tries(number: int) -> str:
    return f"{number} try" if number == 1 else f"{number} tries"


def _tried(run: Run, _all: Sequence[Run]) -> str:
    return f"{_status(run)}, {_tries(run.charged)}"


def _stepped_aside(run: Run, _all: Sequence[Run]) -> str:
    return f"{_status(run)}, {run.attempts} claims, {_tries(run.charged)}"


def _dead(run: Run, _all: Sequence[Run]) -> str:
    kinds = ", ".join(sorted({str(fault.get("kind")) for fault in run.faults}))
    return f"{_status(run)}, {run.charged} of {_tries(run.max_attempts)}: {kinds}"


def _struck(run: Run, everything: Sequence[Run]) -> str:
    how = run.faults[0].get("signal") if run.faults else None
    return f"{_tried(run, everything)}, the first hit by {how}"


def _on_time(run: Run, _all: Sequence[Run]) -> str:
    late = run.started_at is not None and run.started_at >= run.run_after
    return f"{_status(run)}, started {'when' if late else 'before it was'} due"


def _first(run: Run, everything: Sequence[Run]) -> str:
    rivals = [other.started_at for other in everything if other.labels["kind"] == "low priority"]
    started = [at for at in rivals if at is not None]
    began = run.started_at
    ahead = began is not None and len(started) == len(rivals) and began <= min(started)
    return f"{_status(run)}, started {'before' if ahead else 'after'} every low one"


def _cancelled(run: Run, _all: Sequence[Run]) -> str:
    return f"{_status(run)}, {'never started' if run.started_at is None else 'while running'}"


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that are sent to meet the same fate."""

    name: str
    count: int
    task: TaskHandle[..., Any]
    about: str
    expected: str = "successful, 1 try"
    fate: Fate = _tried
    act: int = 1
    """The second act begins when the first is over; only there do processes go down."""


KINDS = (
    Kind(
        name="quick",
        count=120,
        task=tasks.quick,
        about="async, returns at once",
    ),
    Kind(
        name="quick sync",
        count=60,
        task=tasks.quick_sync,
        about="the same without async",
    ),
    Kind(
        name="low priority",
        count=30,
        task=tasks.quick.using(priority=-50),
        about="waits for everything else",
    ),
    Kind(
        name="high priority",
        count=20,
        task=tasks.quick.using(priority=50),
        about="sent after low, starts before it",
        expected="successful, started before every low one",
        fate=_first,
    ),
    Kind(
        name="retried",
        count=15,
        task=tasks.flaky,
        about="raises twice, then succeeds",
        expected="successful, 3 tries",
    ),
    Kind(
        name="invoice",
        count=5,
        task=tasks.invoice,
        about="asks for a tax rate in a step that is stored",
    ),
    Kind(
        name="snoozed",
        count=5,
        task=tasks.polite,
        about="steps aside twice, uncharged",
        expected="successful, 3 claims, 1 try",
        fate=_stepped_aside,
    ),
    Kind(
        name="fatal",
        count=5,
        task=tasks.hopeless,
        about="raises Fatal, so it is not retried",
        expected="failed, 1 of 5 tries: raised",
        fate=_dead,
    ),
    Kind(
        name="cancelled waiting",
        count=5,
        task=tasks.quick.using(run_after="1h"),
        about="cancelled before it was due",
        expected="cancelled, never started",
        fate=_cancelled,
    ),
    Kind(
        name="cancelled running",
        count=3,
        task=tasks.sleeper,
        about="cancelled in the middle of a sleep",
        expected="cancelled, while running",
        fate=_cancelled,
    ),
    Kind(
        name="slow",
        count=20,
        task=tasks.slow,
        about="takes half a second beside crashing neighbours",
        act=2,
    ),
    Kind(
        name="scheduled",
        count=10,
        task=tasks.quick.using(run_after="1s"),
        about="due 1 s after it was sent",
        expected="successful, started when due",
        fate=_on_time,
        act=2,
    ),
    Kind(
        name="timeout",
        count=1,
        task=tasks.endless,
        about="never returns, killed after 300 ms",
        expected="failed, 1 of 1 try: timeout",
        fate=_dead,
        act=2,
    ),
    Kind(
        name="poison",
        count=1,
        task=tasks.poison,
        about="takes its process down every time",
        expected="failed, 3 of 3 tries: crashed",
        fate=_dead,
        act=2,
    ),
    Kind(
        name="killed hand",
        count=1,
        task=tasks.struck,
        about="kill -9 of its process from outside",
        expected="successful, 2 tries, the first hit by SIGKILL",
        fate=_struck,
        act=2,
    ),
)

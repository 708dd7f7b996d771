# SPDX-License-Identifier: MIT
"""A shadow run is shown to its task as its original; everything that is stored is its own."""

from collections.abc import Sequence
from datetime import timedelta
from queue import SimpleQueue
from typing import Any

import pytest

from byrote.core.command import Command
from byrote.core.outcome import Failed, Fault, Outcome, Snoozed
from byrote.core.run import Leased, ShownAs
from byrote.executors.commands.attempt import environment
from byrote.executors.replayed import ReplayExecutor
from byrote.executors.runtime.asks import pass_on
from byrote.executors.runtime.job import job_of
from tests.core.leases import leased

pytestmark = pytest.mark.pure
ORIGINAL = ShownAs("original", "mail", 3)


class Inner:
    """An executor that reports a certain outcome for every run at once."""

    tasks = ("t@1",)

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.room = self.printed = self.cancel = self.forget = self.start
        self.give_back = self.kill = self.stop = self.start

    def start(self, report: Any) -> None:
        self.report = report

    def submit(self, runs: Sequence[Leased]) -> None:
        self.report([(run, self.outcome) for run in runs])


def replay(run: Leased, outcome: Outcome) -> Any:
    """Execute a shadow run. Returns its outcome."""
    inner: Any = Inner(outcome)
    executor, ended = ReplayExecutor(inner), list[tuple[Leased, Outcome]]()
    executor.start(ended.extend)
    executor.identities[run.id] = ORIGINAL
    executor.submit([run])
    [(reported, final)] = ended
    assert reported is run
    return final


def test_the_task_sees_the_original() -> None:
    run = leased(shown_as=ORIGINAL)
    job, variables = job_of(7, run), environment(run, Command(), {})

    assert (job.slot, job.id, job.queue, job.attempt) == (7, *ORIGINAL)
    assert (job.spec_json, job.deadline) == (run.spec_json, run.deadline)
    names = ("BYROTE_RUN_ID", "BYROTE_QUEUE", "BYROTE_ATTEMPT")
    assert [variables[name] for name in names] == ["original", "mail", "3"]
    assert run.id != "original"


def test_asks_are_recognised_by_what_the_task_sees_and_carry_the_shadows_lease() -> None:
    run, asks, refused = leased(shown_as=ORIGINAL), SimpleQueue[Any](), list[Any]()
    for who in ({"run": "original", "attempt": 3}, {"run": run.id, "attempt": run.attempt}):
        pass_on(asks, run, ("load", who), lambda *answer: refused.append(answer))

    assert asks.qsize() == 1
    ask = asks.get()
    assert (ask.run, ask.payload["run"]) == (run, "original")
    assert refused == [(False, None)]


def test_a_run_that_is_not_a_replay_is_shown_as_itself() -> None:
    run = leased()

    assert run.shown is run
    assert job_of(0, run).id == run.id


def test_a_shadow_run_ends_with_its_only_attempt() -> None:
    fault = Fault("raised", "X", "", attempt=1)
    run = leased(max_attempts=5)
    failed = replay(run, Failed(fault, after=timedelta(seconds=5)))
    snoozed = replay(run, Snoozed(timedelta(seconds=9)))

    assert run.shown_as == ORIGINAL
    assert (failed.fault, failed.after, failed.final) == (fault, None, True)
    assert (snoozed.fault.kind, snoozed.fault.attempt, snoozed.final) == ("snoozed", 1, True)
    assert "9 s" in snoozed.fault.message

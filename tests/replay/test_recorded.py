# SPDX-License-Identifier: MIT
"""What a replay is answered from the record: steps, sleeps, signals, marks, artifacts."""

from pathlib import Path

import pytest

from byrote import App, Differs, NotReplayable, Same, Status
from byrote.core.json.diff import Change
from byrote.core.spec import describe
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.replay.conftest import Execute, drain
from tests.support import Db, count, run_of
from tests.tasks.replayed import NOW
from tests.worker.harness import Marks, send_one

LARGE = 2 * 1024 * 1024


@pytest.fixture
def stepped(url: str, db: Db, *, here: App, marks: Marks, tmp_path: Path) -> str:
    """A run of steps, a sleep and a signal, over four attempts."""
    how = here.registry.find("steps", 1).delivery
    run_id = send_one(db, describe("steps", 1, [marks.path], {}, delivery=how))
    here.signal(run_id, "paid", {"cents": 5})
    for _ in range(2):
        drain(url, tmp_path)
    fetch(db, queries.retry([run_id]))
    drain(url, tmp_path)
    run = run_of(db, run_id)
    assert run.result == [{"id": 7}, {"cents": 5}, "shipped"], run
    return run_id


def test_recorded_steps_sleeps_and_signals_are_not_repeated(
    db: Db, stepped: str, here: App, marks: Marks
) -> None:
    before, steps = list(marks.words), count(db, "byrote_steps")
    verdict = here.replay(stepped)

    assert isinstance(verdict, Same)
    assert marks.words == before
    assert run_of(db, verdict.replay).attempts == 1
    assert count(db, "byrote_steps") == steps


def test_live_steps_are_executed_again_and_noted_with_the_shadow(
    db: Db, stepped: str, *, here: App, changed: App, marks: Marks
) -> None:
    before = list(marks.words)
    verdict = here.replay(stepped, live_steps=True)
    reordered = changed.replay(stepped, live_steps=True)

    assert isinstance(verdict, Same)
    assert isinstance(reordered, Same)
    assert marks.words == [*before, "charge", "ship", "ship", "charge"]
    names = [step.name for step in fetch(db, queries.steps([verdict.replay]))]
    assert names == ["charge", "ship"]
    assert isinstance(changed.replay(stepped), NotReplayable)


def test_async_steps_are_answered_from_the_record(
    url: str, execute: Execute, *, here: App, marks: Marks, tmp_path: Path
) -> None:
    [run] = execute(("a_steps", [marks.path]))
    while not here.run(run.id).refresh().finished:
        drain(url, tmp_path)

    assert isinstance(here.replay(run.id), Same)
    assert marks.words == ["charge"]


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("more_steps", "Step 2 is step 'audit' now"),
        ("fewer_steps", "Step 2 was step 'two'"),
        ("other_steps", "Step 1 was step 'one' in an earlier attempt and is step 'uno' now"),
    ],
)
def test_another_way_through_the_steps_is_named_and_nothing_is_called(
    execute: Execute, changed: App, marks: Marks, *, task: str, said: str
) -> None:
    [run] = execute((task, [marks.path]))
    before = list(marks.words)
    verdict = changed.replay(run.id)

    assert isinstance(verdict, NotReplayable)
    assert verdict.why == "steps"
    assert said in verdict.reason
    assert marks.words == before


@pytest.mark.parametrize("task", ["breaks", "a_breaks"])
def test_an_error_does_not_hide_which_recorded_steps_were_not_come_to(
    execute: Execute, changed: App, marks: Marks, task: str
) -> None:
    [run] = execute((task, [marks.path]))
    verdict = changed.replay(run.id)

    assert isinstance(verdict, Differs)
    assert verdict.status == (Status.SUCCESSFUL, Status.FAILED)
    assert verdict.steps.changes == [Change("/2", "removed", "step 'two'")]
    assert marks.words == ["one", "two"]


def test_the_same_error_after_fewer_steps_differs(
    execute: Execute, here: App, changed: App, marks: Marks
) -> None:
    [run] = execute(("refuses", [marks.path]))
    verdict = changed.replay(run.id)

    assert isinstance(here.replay(run.id), Same)
    assert isinstance(verdict, Differs)
    assert not verdict.result
    assert [change.path for change in verdict.steps.changes] == ["/2"]


def test_steps_that_only_an_earlier_attempt_came_to_are_not_missed(
    execute: Execute, here: App, marks: Marks
) -> None:
    [run] = execute(("uneven", [marks.path]), retry=NOW)

    assert (run.attempts, marks.words) == (2, ["one", "two"])
    assert isinstance(here.replay(run.id), Same)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("covers", "Step 1 was step 'one'"),
        ("swallows", "Step 1 was step 'one'"),
        ("plain", "Step 1 was step 'one' in an earlier attempt and is the end of the task now"),
    ],
)
def test_another_way_is_named_even_if_the_task_covers_it_up(
    execute: Execute, changed: App, marks: Marks, *, task: str, said: str
) -> None:
    """By its own error, by continuing, or by having no context any more."""
    [run] = execute((task, [marks.path]))
    verdict = changed.replay(run.id)

    assert isinstance(verdict, NotReplayable)
    assert (verdict.why, said in verdict.reason) == ("steps", True)
    assert marks.words == ["one"]


def test_a_command_is_answered_from_the_record_like_a_hand(
    db: Db, execute: Execute, *, here: App, changed: App, marks: Marks
) -> None:
    [run] = execute(("commanded", [marks.path]))
    verdict = here.replay(run.id)
    other = changed.replay(run.id)

    assert run.faults == []
    assert isinstance(verdict, Same)
    assert isinstance(other, NotReplayable)
    assert "is step 'pay' now" in other.reason
    assert marks.words == ["charge"]
    assert isinstance(here.replay(run.id, live_steps=True), Same)
    assert marks.words == ["charge", "charge"]
    assert count(db, "byrote_artifacts") == 1


def test_a_program_without_a_ledger_does_not_pass_for_one_that_met_its_steps(
    execute: Execute, changed: App, marks: Marks
) -> None:
    [run] = execute(("ported", [marks.path]))
    verdict = changed.replay(run.id)

    assert isinstance(verdict, NotReplayable)
    assert (verdict.why, verdict.replay) == ("steps", None)
    assert isinstance(changed.replay(run.id, live_steps=True), Same)


def test_a_step_that_failed_raises_its_error_again_and_is_called_only_live(
    execute: Execute, here: App, marks: Marks
) -> None:
    [run] = execute(("failing_step", [marks.path]))

    assert isinstance(here.replay(run.id), Same)
    assert marks.words == ["charge", "refused"]
    assert isinstance(here.replay(run.id, live_steps=True), Same)
    assert marks.words == ["charge", "refused"] * 2


def test_a_step_that_would_be_called_with_other_arguments_differs(
    execute: Execute, here: App, changed: App, marks: Marks
) -> None:
    """Arguments that are not JSON are not compared."""
    [run] = execute(("amount", [marks.path, 5]))
    verdict = changed.replay(run.id)

    assert isinstance(here.replay(run.id), Same)
    assert isinstance(verdict, Differs)
    assert not verdict.result
    [change] = verdict.steps.changes
    assert (change.path, change.new) == ("/1/arguments", "step 'charge' with others")
    assert marks.words == ["charge"]


@pytest.mark.parametrize("executor", ["inline", "command"])
def test_an_argument_of_another_type_is_another_argument(
    execute: Execute, here: App, changed: App, marks: Marks, *, executor: str
) -> None:
    """`5` and `5.0` have one canonical form, but the step's function can distinguish them."""
    [run] = execute(("rate", [marks.path, 5]), executor=executor)
    verdict = changed.replay(run.id)

    assert isinstance(here.replay(run.id), Same)
    assert isinstance(verdict, Differs)
    assert [change.path for change in verdict.steps.changes] == ["/1/arguments"]


@pytest.mark.parametrize("executor", ["inline", "command"])
def test_a_step_that_raised_and_was_caught_raises_the_same_again(
    execute: Execute, here: App, changed: App, marks: Marks, *, executor: str
) -> None:
    """By its class and its arguments, wherever the step is not called again."""
    runs = execute(("caught", [marks.path]), ("uncaught", [marks.path]), executor=executor)
    before = list(marks.words)

    assert runs[0].result == [7, 1]
    assert [type(here.replay(run.id)) for run in runs] == [Same, Same]
    assert marks.words == before
    verdict = changed.replay(runs[0].id)
    assert isinstance(verdict, Differs)
    assert verdict.status == (Status.SUCCESSFUL, Status.FAILED)


@pytest.mark.parametrize("task", ["drawn", "a_drawn"])
def test_chance_after_a_step_is_the_same_whether_the_step_is_called_or_not(
    execute: Execute, here: App, task: str
) -> None:
    [run] = execute((task, []))
    numbers = [value for part in run.result for value in part]

    assert len(set(numbers)) == len(numbers)
    assert isinstance(here.replay(run.id), Same)
    assert isinstance(here.replay(run.id, live_steps=True), Same)


def test_an_effect_done_once_is_not_done_again_not_even_live(
    url: str, db: Db, execute: Execute, *, here: App, changed: App
) -> None:
    db.execute("create table if not exists payments (run text); truncate payments")
    [run] = execute(("effect", [url]))
    other = changed.replay(run.id)

    assert isinstance(here.replay(run.id), Same)
    assert isinstance(here.replay(run.id, live_steps=True), Same)
    assert isinstance(other, NotReplayable)
    assert "'pay twice'" in other.reason
    assert count(db, "payments") == 1
    assert count(db, "byrote_once") == 1
    db.execute("drop table payments")


def test_artifacts_are_compared_by_hash_and_stored_once(
    db: Db, execute: Execute, *, here: App, changed: App, tmp_path: Path
) -> None:
    [run] = execute(("report", [LARGE]))
    files = sorted((tmp_path / "kept").rglob("*"))
    verdict = here.replay(run.id)
    other = changed.replay(run.id)

    assert isinstance(verdict, Same)
    assert isinstance(other, Differs)
    found = [(change.path, change.kind) for change in other.artifacts.changes]
    assert found == [("/large.bin", "removed"), ("/small.txt", "changed")]
    assert sorted((tmp_path / "kept").rglob("*")) == files
    assert count(db, "byrote_artifacts") == 2
    assert count(db, "byrote_artifact_blobs") == 1


def test_what_an_artifact_is_refused_for_it_is_refused_for_again(
    execute: Execute, here: App
) -> None:
    taken, stored = execute(("stored_twice", []), ("a_report", []))

    assert taken.faults[-1]["type"] == "byrote.core.artifact.ArtifactRefused"
    assert isinstance(here.replay(taken.id), Same)
    assert isinstance(here.replay(stored.id), Same)


def test_retries_of_the_original_are_not_repeated(db: Db, execute: Execute, here: App) -> None:
    [run] = execute(("identity", []), retry=NOW)
    verdict = here.replay(run.id)

    assert isinstance(verdict, Same)
    assert (run.attempts, run_of(db, verdict.replay).attempts) == (3, 1)

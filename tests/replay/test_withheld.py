# SPDX-License-Identifier: MIT
"""A replayed task that enqueues, signals or cancels has no effect; the verdict lists the calls."""

from typing import Any

import pytest

from byrote import App, Differs, Same
from byrote.core.replay.withholding import WithheldCall, aligned, withheld_id
from tests.cli.console import byrote
from tests.replay.conftest import APP, Execute
from tests.support import Db, count, run_of
from tests.tasks import replayed
from tests.worker.harness import Marks

SENT = [
    WithheldCall("cancel", "a run it enqueued", 1),
    WithheldCall("enqueue", f"{replayed.__name__}.child", 3),
    WithheldCall("enqueue", f"{replayed.__name__}.price", 1),
    WithheldCall("signal", "go", 1),
]


def runs(db: Db) -> int:
    """How many runs there are that are not shadows."""
    return count(db, "byrote_runs where shadow is not true")


@pytest.mark.parametrize("executor", ["inline", "hand"])
def test_a_replay_sends_nothing_by_any_door_and_lists_what_it_would_have(
    url: str, db: Db, execute: Execute, here: App, *, marks: Marks, executor: str
) -> None:
    """The result holds the ids of other runs than the original's, and is the same all the same."""
    [run] = execute(("parent", [marks.path, url]))
    assert run.result["told"] == [True, True, True], run.faults
    before, signals = runs(db), count(db, "byrote_signals")
    if executor == "inline":
        verdict = here.replay(run.id)
        assert isinstance(verdict, Same), verdict
        assert verdict.withheld == SENT
    else:
        told = byrote("replay", run.id, "--verify", "--app", APP, "--json", url=url).object
        assert (told["verdict"], len(told["withheld"])) == ("same", 4)
        shown = byrote("replay", run.id, "--verify", "--app", APP, url=url).out
        assert (
            "not sent    cancel a run it enqueued, enqueue tests.tasks.replayed.child, 3" in shown
        )

    assert len(marks.words) > 1
    assert (runs(db), count(db, "byrote_signals")) == (before, signals)


def test_an_async_replay_sends_nothing_either(
    db: Db, execute: Execute, here: App, marks: Marks
) -> None:
    [run] = execute(("a_parent", [marks.path]))
    before = runs(db)
    verdict = here.replay(run.id)

    assert isinstance(verdict, Same)
    assert verdict.withheld == [
        WithheldCall("enqueue", f"{replayed.__name__}.child", 3),
        WithheldCall("signal", "go", 1),
    ]
    assert (len(marks.words), runs(db)) == (2, before)


@pytest.mark.parametrize("task", ["threaded_parent", "commanded_parent"])
def test_a_thread_that_a_replayed_task_starts_sends_nothing(
    url: str, db: Db, execute: Execute, task: str
) -> None:
    """In hands and in commands, which execute nothing but the replay."""
    [run] = execute((task, [url]))
    before = runs(db)
    told = byrote("replay", run.id, "--verify", "--app", APP, url=url)

    assert (run.result, told.code) == (1, 0), told
    assert runs(db) == before == 2


def test_waiting_for_a_run_that_was_not_enqueued_fails_at_once(
    db: Db, execute: Execute, here: App, marks: Marks
) -> None:
    [run] = execute(("impatient", [marks.path]))
    verdict = here.replay(run.id)

    assert isinstance(verdict, Differs)
    error = run_of(db, verdict.replay).faults[-1]
    assert error["type"] == "byrote.core.errors.WithheldInReplay"
    assert "was not enqueued, since this is a replay" in error["message"]


def test_any_other_statement_that_writes_is_refused(db: Db, execute: Execute, here: App) -> None:
    [run] = execute(("meddles", []))
    db.execute("update byrote_queues set paused_at = null")
    verdict = here.replay(run.id)

    assert isinstance(verdict, Differs)
    assert "the statement 'pause' was not sent" in run_of(db, verdict.replay).faults[-1]["message"]
    assert count(db, "byrote_queues where paused_at is not null") == 0


def test_ids_of_runs_that_were_not_enqueued_may_go_into_steps(
    execute: Execute, here: App, marks: Marks
) -> None:
    [run] = execute(("steps_with_ids", [marks.path]))

    assert isinstance(here.replay(run.id), Same)
    live = here.replay(run.id, live_steps=True)
    assert isinstance(live, Same)
    assert live.withheld == [WithheldCall("enqueue", f"{replayed.__name__}.child", 2)]


ONE, TWO, OTHER = (withheld_id("r", number) for number in range(3))
REAL = "01932c4e-8d5b-7a90-b1c2-3d4e5f607182"
REAL_TOO = "01932c4e-8d5b-7a90-b1c2-3d4e5f607183"


@pytest.mark.parametrize(
    ("old", "new", "alike"),
    [
        (REAL, ONE, True),
        ({"a": [REAL, f"x {REAL_TOO} y"]}, {"a": [ONE, f"x {TWO} y"]}, True),
        ([REAL, REAL], [ONE, ONE], True),
        ([REAL, REAL], [ONE, TWO], False),
        ([REAL, REAL_TOO], [ONE, ONE], False),
        (f"a {REAL}", f"b {ONE}", False),
        ("not an id", ONE, False),
        (REAL, OTHER, False),
        ([REAL], [ONE, TWO], False),
        (None, ONE, False),
    ],
)
def test_only_ids_of_runs_that_were_not_enqueued_stand_for_others(
    old: Any, new: Any, alike: bool
) -> None:
    assert (aligned(old, new, {ONE, TWO}) == old) is alike

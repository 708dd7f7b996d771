# SPDX-License-Identifier: MIT
"""What every executor promises, run on each of them."""

import math
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from byrote.core.json.codec import unpack
from byrote.core.outcome import Cancelled, Failed, Released, Snoozed, Succeeded
from byrote.executors.commands.pool import Commands
from tests.executors.commands.commands import make_commands, make_containers, require_bubbles
from tests.support import until
from tests.worker.bench import Bench, make_hands, make_inline

VALUES = [
    None, True, False, 0, -1, 2**70, 1.0, -0.0, 5e-324, 1e16, "", "a\x00b", "\U0001f600", "é",
    [], [[]], {}, {"b": 1, "a": [None, {"c": 1.5}]},
]  # fmt: skip
MODES = pytest.mark.parametrize("mode", ["", "a_"], ids=["sync", "async"])
pytestmark = pytest.mark.xdist_group("executors")
EXECUTORS = {
    "hands": make_hands,
    "inline": make_inline,
    "commands": make_commands,
    "containers": make_containers,
}


def bench_of(executor: str) -> Bench:
    """A bench for one of them, where it can be had."""
    if executor == "containers":
        require_bubbles()
    return Bench(EXECUTORS[executor]())


@pytest.fixture(scope="module", params=EXECUTORS)
def shared(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """Each executor in turn, for all tests of a module."""
    made = bench_of(request.param)
    yield made
    made.close()


@pytest.fixture
def bench(shared: Bench, tmp_path: Path) -> Bench:
    """An executor that others have used and will use."""
    shared.folder = tmp_path
    return shared


@pytest.fixture(params=EXECUTORS)
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """Each executor in turn, for this test alone: it may be broken or closed."""
    made = bench_of(request.param)
    made.folder = tmp_path
    yield made
    made.close()


@MODES
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_back_with_its_type(bench: Bench, mode: str, value: object) -> None:
    outcome = bench.run(f"{mode}echo", value)

    assert isinstance(outcome, Succeeded)
    returned = unpack(outcome.text)
    assert (type(returned), returned) == (type(value), value)
    assert not isinstance(value, float) or math.copysign(1, returned) == math.copysign(1, value)


@MODES
def test_key_order_is_kept(bench: Bench, mode: str) -> None:
    outcome = bench.run(f"{mode}echo", {"b": 1, "a": 2})

    assert list(unpack(outcome.text)) == ["b", "a"]


@MODES
def test_an_exception_is_a_fault_with_type_message_and_traceback(bench: Bench, mode: str) -> None:
    outcome = bench.run(f"{mode}boom", "no luck")

    assert isinstance(outcome, Failed)
    fault = outcome.fault
    assert (fault.kind, fault.type, fault.message) == ("raised", "ValueError", "no luck")
    assert fault.traceback is not None
    assert "in boom" in fault.traceback
    assert "byrote/executors" not in fault.traceback
    assert (fault.attempt, fault.worker) == (1, "w")
    assert not outcome.final


@MODES
def test_a_traceback_holds_no_values_of_variables(bench: Bench, mode: str) -> None:
    outcome = bench.run(f"{mode}unstorable", "canary-in-an-argument")

    assert outcome.fault.type == "KeyError"
    assert "canary" not in outcome.fault.traceback.replace("KeyError: 'canary-in-an-argument'", "")


@MODES
@pytest.mark.parametrize("task", ["evil_text", "evil_type"])
def test_text_no_database_takes_is_escaped(fresh: Bench, mode: str, task: str) -> None:
    outcome = fresh.run(f"{mode}{task}")

    assert isinstance(outcome, Failed)
    told = f"{outcome.fault.type}{outcome.fault.message}{outcome.fault.traceback}"
    assert r"a\x00b\ud800c" in told
    assert "\x00" not in told
    assert told.encode("utf-8")


@MODES
@pytest.mark.parametrize("task", ["unspeakable", "unstoppable"])
def test_an_exception_without_words_is_still_a_fault(fresh: Bench, mode: str, task: str) -> None:
    outcome = fresh.run(f"{mode}{task}")

    assert isinstance(outcome, Failed)
    assert outcome.fault.type == f"tests.tasks.fates.{task.capitalize()}"


@MODES
@pytest.mark.parametrize(
    ("which", "name"),
    [
        ("exit", "SystemExit"),
        ("interrupt", "KeyboardInterrupt"),
        ("base", "tests.tasks.fates.Odd"),
        ("cancelled", "asyncio.exceptions.CancelledError"),
        ("generator_exit", "GeneratorExit"),
        ("stop", "StopAsyncIteration"),
        ("memory", "MemoryError"),
    ],
)
def test_whatever_a_task_raises_is_its_own_outcome(
    bench: Bench, mode: str, which: str, name: str
) -> None:
    outcome = bench.run(f"{mode}raises", which)

    assert isinstance(outcome, Failed)
    assert outcome.fault.kind == "raised"
    assert outcome.fault.type in {name, "RuntimeError"}  # A coroutine may not raise StopIteration.
    assert bench.run(f"{mode}echo", 1).text == bench.run(f"{mode}echo", 1).text


@MODES
def test_retry_later_carries_the_delay_it_asks_for(bench: Bench, mode: str) -> None:
    assert bench.run(f"{mode}later", 90).after == timedelta(seconds=90)
    assert bench.run(f"{mode}later", None).after is None
    assert not bench.run(f"{mode}later", 0).final


@MODES
def test_fatal_is_final(bench: Bench, mode: str) -> None:
    outcome = bench.run(f"{mode}fatal")

    assert (outcome.final, outcome.fault.message) == (True, "never")


@MODES
def test_snooze_steps_aside(bench: Bench, mode: str) -> None:
    outcome = bench.run(f"{mode}snooze", 2.5)

    assert isinstance(outcome, Snoozed)
    assert (outcome.after, outcome.wait) == (timedelta(seconds=2.5), None)


@MODES
@pytest.mark.parametrize(
    "which",
    ["object", "set", "bytes", "nan", "surrogate", "key", "generator", "deep", "large"],
)
def test_a_result_that_cannot_be_stored_is_refused(bench: Bench, mode: str, which: str) -> None:
    outcome = bench.run(f"{mode}unstorable", which)

    assert isinstance(outcome, Failed)
    assert outcome.fault.kind == "bad_result"
    assert outcome.fault.message.startswith("The task returned a value that cannot be stored: ")
    assert which != "large" or "the limit is" in outcome.fault.message


def test_an_unknown_task_is_a_fault_and_nothing_else_suffers(fresh: Bench) -> None:
    outcome = fresh.run("nobody_knows_me")

    assert isinstance(outcome, Failed)
    assert outcome.fault.type == "byrote.core.errors.UnknownTask"
    assert isinstance(fresh.run("echo", 1), Succeeded)


@MODES
def test_arguments_that_do_not_fit_are_a_fault(bench: Bench, mode: str) -> None:
    outcome = bench.run(f"{mode}echo", 1, 2, 3)

    assert (outcome.fault.type, "argument" in outcome.fault.message) == ("TypeError", True)


@MODES
def test_a_task_learns_about_its_attempt(bench: Bench, mode: str) -> None:
    run = bench.lease(f"{mode}about", timeout_ms=5_000)
    told = unpack(bench.outcomes_of([run])[run.id].text)

    assert told == {
        "run": run.id, "attempt": 1, "task": f"{mode}about", "queue": "default",
        "labels": {"order": "42"}, "hurried": True,
    }  # fmt: skip


def test_many_of_both_kinds_are_each_reported_exactly_once(bench: Bench) -> None:
    many = 20 if isinstance(bench.executor, Commands) else 400  # A fresh process takes its time.
    runs = [bench.lease("a_echo" if n % 2 else "echo", n) for n in range(many)]
    outcomes = bench.outcomes_of(runs, within=60.0)

    assert [int(outcomes[run.id].text) for run in runs] == list(range(many))
    assert {len(bench.reports[run.id]) for run in runs} == {1}


def test_async_tasks_run_side_by_side(bench: Bench) -> None:
    gate, marks = bench.folder / "gate", bench.folder / "marks"
    runs = [bench.lease("a_hold", str(marks), str(gate)) for _ in range(10)]
    bench.executor.submit(runs)
    until(lambda: marks.exists() and len(marks.read_text().split()) == 10)
    gate.touch()

    assert all(isinstance(bench.outcome(run), Succeeded) for run in runs)


def test_every_async_attempt_has_its_own_task_and_context(bench: Bench) -> None:
    runs = [bench.lease("a_alone", waits) for waits in (False, False, True, True, False)]
    outcomes = bench.outcomes_of(runs, within=30.0)

    found = [unpack(outcomes[run.id].text) for run in runs]
    assert found == [[0, 0], [0, 0], [0, 0, 1], [0, 0, 1], [0, 0]]


def test_an_async_task_past_its_timeout_is_stopped(bench: Bench) -> None:
    run = bench.lease("a_mark", str(bench.folder / "m"), "x", 30.0, timeout_ms=100)
    outcome = bench.outcomes_of([run], within=10.0)[run.id]

    assert (outcome.fault.kind, outcome.fault.type) == ("timeout", "TimedOut")
    assert "0.1 s" in outcome.fault.message


def test_a_cancelled_async_attempt_is_reported_as_cancelled(bench: Bench) -> None:
    marks = bench.folder / "marks"
    run = bench.lease("a_mark", str(marks), "x", 30.0)
    bench.executor.submit([run])
    until(marks.exists)
    bench.executor.cancel([run])

    assert isinstance(bench.outcome(run, within=10.0), Cancelled)


def test_a_forgotten_attempt_reports_nothing(bench: Bench) -> None:
    marks = bench.folder / "marks"
    run = bench.lease("a_mark", str(marks), "x", 30.0)
    bench.executor.submit([run])
    until(marks.exists)
    bench.executor.forget([run])

    assert isinstance(bench.run("a_echo", 1), Succeeded)
    assert run.id not in bench.reports


def test_what_has_not_begun_is_given_back(fresh: Bench) -> None:
    """One thread a hand: the first sync task of each runs on, those behind it come back."""
    gate, marks = fresh.folder / "gate", fresh.folder / "marks"
    runs = [fresh.lease("hold", str(marks), str(gate)) for _ in range(12)]
    fresh.executor.submit(runs)
    until(marks.exists)
    fresh.executor.give_back()
    until(lambda: len(fresh.reports) >= 12 - len(marks.read_text().split()))
    gate.touch()

    outcomes = [fresh.outcome(run) for run in runs]
    begun = len(marks.read_text().split())
    assert outcomes.count(Released()) == 12 - begun
    assert sum(isinstance(outcome, Succeeded) for outcome in outcomes) == begun
    assert {len(fresh.reports[run.id]) for run in runs} == {1}


def test_what_is_killed_is_reported_as_released(fresh: Bench) -> None:
    marks = fresh.folder / "marks"
    runs = [fresh.lease("a_mark", str(marks), "x", 30.0) for _ in range(3)]
    fresh.executor.submit(runs)
    until(lambda: marks.exists() and len(marks.read_text().split()) == 3)
    fresh.executor.give_back()
    fresh.executor.kill()

    assert [fresh.outcome(run) for run in runs] == [Released()] * 3

# SPDX-License-Identifier: MIT
"""What hands promise beyond the contract: they may be killed, and only the culprit pays."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from byrote.assembly.clock import monotonic
from byrote.core.errors import BadOption
from byrote.core.events import HandEnded, HandStarted
from byrote.core.outcome import Cancelled, Crashed, Failed, Released, Succeeded
from tests.support import until
from tests.worker.bench import Bench, make_hands
from tests.worker.harness import Marks, alive

CRASHES = "tests.tasks.crashes:app"
MakeBench = Callable[..., Bench]


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[MakeBench]:
    """Makes pools of hands that import the crashing tasks; ends them with the test."""
    made: list[Bench] = []

    def make(**options: Any) -> Bench:
        events: list[Any] = []
        bench = Bench(make_hands(CRASHES, emit=events.extend, **options))
        bench.folder, bench.events = tmp_path, events
        made.append(bench)
        until(lambda: len(hands_of(bench)) == options.get("hands", 2))
        return bench

    yield make
    for bench in made:
        bench.close()


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    return Marks(tmp_path / "marks")


def hands_of(bench: Bench) -> list[int]:
    return [e.pid for e in bench.events if isinstance(e, HandStarted) and alive(e.pid)]


@pytest.mark.parametrize("kind", ["", "a_"], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("how", "number", "code", "words"),
    [
        ("exit", None, 9, "exited with code 9"),
        ("abort", "SIGABRT", None, "was killed by SIGABRT"),
        ("segfault", "SIGSEGV", None, "was killed by SIGSEGV"),
        ("SIGKILL", "SIGKILL", None, "was killed by SIGKILL"),
    ],
)
def test_a_crash_is_reported_with_its_reason(
    pool: MakeBench, *, kind: str, how: str, number: str | None, code: int | None, words: str
) -> None:
    bench = pool(hands=1)
    fault = bench.run(f"{kind}die", how).fault

    assert (fault.kind, fault.signal, fault.exit_code) == ("crashed", number, code)
    assert words in fault.message
    assert isinstance(bench.next_run("whoami"), Succeeded)


def test_a_kill_from_outside_is_reported_in_under_a_second(pool: MakeBench, marks: Marks) -> None:
    bench = pool(hands=1)
    run = bench.lease("slow", marks.path, 30)
    bench.executor.submit([run])
    [pid] = marks.await_words(1)
    before = monotonic()
    os.kill(int(pid), signal.SIGKILL)
    outcome = bench.outcome(run)

    assert monotonic() - before < 1.0
    assert (outcome.fault.kind, outcome.fault.signal) == ("crashed", "SIGKILL")


def test_only_the_async_task_that_was_running_is_charged(pool: MakeBench, marks: Marks) -> None:
    """Its sleeping neighbours in the same hand are given back."""
    bench = pool(hands=1)
    neighbours = [bench.lease("a_quick", marks.path, "n", 30) for _ in range(5)]
    bench.executor.submit(neighbours)
    marks.await_words(5)
    culprit = bench.lease("a_die", "exit")

    assert isinstance(bench.outcomes_of([culprit])[culprit.id], Failed)
    assert [bench.outcome(run) for run in neighbours] == [Released()] * 5


def test_no_run_is_charged_if_none_was_running(pool: MakeBench, marks: Marks) -> None:
    bench = pool(hands=1)
    runs = [bench.lease("a_quick", marks.path, "n", 30) for _ in range(3)]
    bench.executor.submit(runs)
    marks.await_words(3)
    os.kill(hands_of(bench)[0], signal.SIGKILL)

    assert all(isinstance(bench.outcome(run), Crashed) for run in runs)


def test_what_waits_behind_a_crash_is_executed_elsewhere(pool: MakeBench, marks: Marks) -> None:
    bench = pool(hands=2)
    runs = [bench.lease("die", "exit")]
    runs += [bench.lease("quick", marks.path, str(n)) for n in range(20)]
    outcomes = bench.outcomes_of(runs)

    assert isinstance(outcomes[runs[0].id], Failed)
    done = [run for run in runs[1:] if isinstance(outcomes[run.id], Succeeded)]
    assert len(marks.words) == len(set(marks.words)) == len(done)
    assert all(outcomes[run.id] == Released() for run in runs[1:] if run not in done)


def test_what_had_ended_before_a_crash_is_not_executed_again(pool: MakeBench, marks: Marks) -> None:
    """The process goes down microseconds later, before its results have left it."""
    bench = pool(hands=1)
    runs = []
    for n in range(40):
        runs.append(bench.lease("quick", marks.path, str(n)))
        if n % 5 == 4:
            runs.append(bench.lease("die", "exit"))
    outcomes = bench.outcomes_of(runs)

    ended = [run for run in runs if isinstance(outcomes[run.id], Succeeded)]
    assert len(marks.words) == len(set(marks.words)) == len(ended)


@pytest.mark.parametrize("how", ["exit", "abort", "segfault", "SIGKILL"])
def test_the_culprit_among_threads_is_known(pool: MakeBench, marks: Marks, how: str) -> None:
    """It is tried once, at any concurrency; its neighbours are given back."""
    bench = pool(hands=1, threads=4)
    neighbours = [bench.lease("slow", marks.path, 30) for _ in range(3)]
    bench.executor.submit(neighbours)
    marks.await_words(3)
    culprit = bench.lease("die", how)

    assert isinstance(bench.outcomes_of([culprit])[culprit.id], Failed)
    assert [bench.outcome(run) for run in neighbours] == [Released()] * 3


def test_a_process_that_a_task_forks_is_not_taken_for_the_hand(
    pool: MakeBench, marks: Marks
) -> None:
    """Its end names no culprit: the hand is killed from outside later."""
    bench = pool(hands=1, threads=2)
    runs = [bench.lease("fork_and_wait", marks.path, 30) for _ in range(2)]
    bench.executor.submit(runs)
    marks.await_words(2)
    os.kill(hands_of(bench)[0], signal.SIGKILL)

    assert all(isinstance(bench.outcome(run), Crashed) for run in runs)


@pytest.mark.parametrize("task", ["slow", "stuck_in_c"])
def test_a_sync_task_past_its_timeout_is_killed(pool: MakeBench, marks: Marks, task: str) -> None:
    bench = pool(hands=1)
    args = (30,) if task == "slow" else ()
    run = bench.lease(task, marks.path, *args, timeout_ms=200)
    before = monotonic()
    fault = bench.outcomes_of([run])[run.id].fault

    assert (fault.kind, fault.type) == ("timeout", "TimedOut")
    assert 0.2 <= monotonic() - before < 10
    assert isinstance(bench.next_run("whoami"), Succeeded)


def test_a_timeout_does_not_charge_the_neighbours(pool: MakeBench, marks: Marks) -> None:
    bench = pool(hands=1, threads=4)
    neighbours = [bench.lease("slow", marks.path, 30) for _ in range(3)]
    bench.executor.submit(neighbours)
    marks.await_words(3)
    stuck = bench.lease("slow", marks.path, 30, timeout_ms=100)

    assert bench.outcomes_of([stuck])[stuck.id].fault.kind == "timeout"
    assert [bench.outcome(run) for run in neighbours] == [Released()] * 3


def test_a_timeout_of_a_sync_task_does_not_end_async_ones(pool: MakeBench, marks: Marks) -> None:
    bench = pool(hands=1)
    neighbours = [bench.lease("a_quick", marks.path, "n", 30) for _ in range(3)]
    bench.executor.submit(neighbours)
    marks.await_words(3)
    until(lambda: "slow@1" in bench.executor.room().tasks)
    stuck = bench.lease("slow", marks.path, 30, timeout_ms=100)

    assert bench.outcomes_of([stuck])[stuck.id].fault.kind == "timeout"
    assert list(bench.reports) == [stuck.id]


def test_a_run_waits_for_a_hand_of_its_kind_and_is_executed_once(
    pool: MakeBench, marks: Marks
) -> None:
    bench = pool(hands=1)
    bench.executor.submit([bench.lease("a_quick", str(bench.folder / "held"), "n", 30)])
    until((bench.folder / "held").exists)
    sync = [bench.lease("quick", marks.path, str(n)) for n in range(3)]
    outcomes = bench.outcomes_of(sync, within=30.0)

    assert all(isinstance(outcome, Succeeded) for outcome in outcomes.values())
    assert sorted(marks.words) == ["0", "1", "2"]


def test_a_run_that_waits_for_a_hand_can_be_given_back(pool: MakeBench, marks: Marks) -> None:
    bench = pool(hands=1)
    waiting = bench.lease("slow", marks.path, 30)
    bench.executor.submit([bench.lease("a_quick", marks.path, "n", 30), waiting])
    bench.executor.give_back()

    assert bench.outcome(waiting) == Released()


def test_a_timeout_takes_the_children_of_the_task_along(pool: MakeBench, marks: Marks) -> None:
    bench = pool(hands=1)
    run = bench.lease("waits_with_child", marks.path, timeout_ms=300)

    assert bench.outcomes_of([run])[run.id].fault.kind == "timeout"
    [child] = marks.words
    until(lambda: not alive(int(child)), 2.0)


@pytest.mark.parametrize("task", ["slow", "stuck_in_c"])
def test_a_cancelled_sync_attempt_ends_at_once(pool: MakeBench, marks: Marks, task: str) -> None:
    bench = pool(hands=1)
    run = bench.lease(task, marks.path, *((30,) if task == "slow" else ()))
    bench.executor.submit([run])
    [pid] = marks.await_words(1)
    bench.executor.cancel([run])

    assert bench.outcome(run, within=10.0) == Cancelled()
    assert not alive(int(pid))


def test_a_slow_sync_task_does_not_hold_back_quick_ones(pool: MakeBench, marks: Marks) -> None:
    """Those queued behind it in the same hand are taken back and run in the other."""
    bench = pool(hands=2)
    slow = bench.lease("slow", str(bench.folder / "slow"), 30)
    bench.executor.submit([slow])
    until((bench.folder / "slow").exists)
    quick = [bench.lease("quick", marks.path, str(n)) for n in range(20)]
    outcomes = bench.outcomes_of(quick, within=15.0)

    assert all(isinstance(outcome, Succeeded) for outcome in outcomes.values())
    assert sorted(map(int, marks.words)) == list(range(20))
    assert slow.id not in bench.reports


def test_what_waits_too_long_is_given_back_for_other_workers(pool: MakeBench, marks: Marks) -> None:
    bench = pool(hands=1)
    runs = [bench.lease("slow", marks.path, 30) for _ in range(3)]
    bench.executor.submit(runs)

    assert bench.outcome(runs[2], within=2.5) == Released()
    assert bench.outcome(runs[1], within=2.5) == Released()
    assert runs[0].id not in bench.reports


def test_hands_are_replaced_after_so_many_tasks(pool: MakeBench, marks: Marks) -> None:
    bench = pool(hands=2, max_tasks=10)
    runs = [bench.lease("quick", marks.path, str(n)) for n in range(100)]
    for start in range(0, 100, 10):
        outcomes = bench.outcomes_of(runs[start : start + 10])
        assert all(isinstance(outcome, Succeeded) for outcome in outcomes.values())
        until(lambda: bench.executor.room().limit > 0)

    assert sorted(map(int, marks.words)) == list(range(100))
    until(lambda: sum(isinstance(event, HandEnded) for event in bench.events) >= 4)
    assert {len(reports) for reports in bench.reports.values()} == {1}


def test_a_hand_that_has_grown_too_large_is_replaced(pool: MakeBench) -> None:
    bench = pool(hands=1, max_rss=200 * 1024 * 1024)
    grown = int(bench.run("eat", 250).text)
    until(lambda: not alive(grown), 5.0)
    until(lambda: len(hands_of(bench)) == 1)

    assert int(bench.next_run("whoami").text) != grown


def test_a_hand_that_closes_its_descriptors_is_a_crash(pool: MakeBench, marks: Marks) -> None:
    """Fault 49: the run is charged, the hand replaced, and the next task runs."""
    bench = pool(hands=1)
    fault = bench.run("close_everything", marks.path).fault

    assert fault.kind == "crashed"
    assert isinstance(bench.next_run("whoami"), Succeeded)


def test_a_task_may_close_standard_output(pool: MakeBench) -> None:
    bench = pool(hands=1)

    assert isinstance(bench.run("close_stdout"), Succeeded)
    assert isinstance(bench.next_run("whoami"), Succeeded)


def test_an_async_task_that_ignores_cancellation_is_killed(tmp_path: Path, marks: Marks) -> None:
    bench = Bench(make_hands(hands=1))
    run = bench.lease("a_deaf", marks.path, 30)
    bench.executor.submit([run])
    pid = int(marks.await_words(1)[0])
    bench.executor.cancel([run])

    assert bench.outcome(run, within=3.0) == Cancelled()
    assert not alive(pid)
    bench.close()


def test_an_async_task_that_ignores_its_timeout_is_killed(tmp_path: Path, marks: Marks) -> None:
    bench = Bench(make_hands(hands=1))
    run = bench.lease("a_deaf", marks.path, 30, timeout_ms=100)

    assert bench.outcomes_of([run], within=3.0)[run.id].fault.kind == "timeout"
    bench.close()


@pytest.mark.parametrize("app", ["tests.tasks.nowhere:app", "tests.tasks.crashes:nothing", "1x:y"])
def test_an_app_that_is_not_there_is_refused_at_once(app: str) -> None:
    hands = make_hands(app)
    with pytest.raises(BadOption, match=r"module|not a Byrote app|names no app|names a file"):
        hands.start(lambda _ended: None)


def test_an_app_that_cannot_be_imported_is_refused_with_the_reason(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    hands = make_hands(CRASHES, environment={"BYROTE_TEST_BROKEN": str(broken)})
    with pytest.raises(BadOption, match="ImportError: broken on purpose"):
        hands.start(lambda _ended: None)


def test_hands_come_back_when_a_broken_import_heals(pool: MakeBench, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    bench = pool(hands=1, environment={"BYROTE_TEST_BROKEN": str(broken)})
    broken.touch()
    assert isinstance(bench.run("die", "exit"), Failed)
    until(lambda: sum(isinstance(e, HandEnded) for e in bench.events) >= 3)
    assert bench.executor.room().limit == 0
    broken.unlink()
    until(lambda: bench.executor.room().limit > 0)

    assert isinstance(bench.next_run("whoami"), Succeeded)

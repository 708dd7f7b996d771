# SPDX-License-Identifier: MIT
"""A hand that stops reading gets no more work and is killed in the end; a slow one is not."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from byrote.assembly.clock import monotonic
from byrote.core.events import HandEnded, HandStarted, Troubled
from byrote.core.outcome import Crashed, Failed, Released, Succeeded
from byrote.core.run import Leased
from byrote.executors.hands import pool, send_buffer
from byrote.executors.hands.send_buffer import STALLED_S, UNSENT_MAX, SendBuffer
from tests.support import until
from tests.worker.bench import Bench, make_hands
from tests.worker.harness import Marks, alive

MIB = 1 << 20


class Link:
    """A socket that accepts a number of bytes, and then no more."""

    def __init__(self) -> None:
        self.room = 0

    def send(self, piece: bytes) -> int:
        accepted = min(self.room, len(piece))
        self.room -= accepted
        if not accepted:
            raise BlockingIOError
        return accepted


def buffer_of(size: int) -> tuple[SendBuffer, Link]:
    link: Any = Link()
    buffer = SendBuffer(link)
    assert not buffer.stalled(0.0)
    buffer.send(bytes(size))
    return buffer, link


def test_a_full_buffer_that_accepts_nothing_is_stalled() -> None:
    buffer, _ = buffer_of(UNSENT_MAX + 1)

    assert buffer.full
    assert not buffer.stalled(STALLED_S)
    assert buffer.stalled(STALLED_S + 0.1)


def test_a_buffer_within_its_limit_is_never_stalled() -> None:
    buffer, _ = buffer_of(UNSENT_MAX)

    assert not buffer.full
    assert not buffer.stalled(1_000.0)


def test_a_byte_accepted_starts_the_wait_anew() -> None:
    buffer, link = buffer_of(UNSENT_MAX + 100)
    for turn in range(1, 10):
        link.room = 1
        assert not buffer.stalled(turn * STALLED_S)

    assert buffer.full
    assert not buffer.stalled(10 * STALLED_S)
    assert buffer.stalled(10 * STALLED_S + 0.1)


def test_a_supervisor_that_was_frozen_offers_the_bytes_before_it_judges() -> None:
    buffer, link = buffer_of(UNSENT_MAX + 100)
    link.room = 50

    assert not buffer.stalled(1_000.0)


def test_a_hand_that_has_gone_leaves_nothing_to_send() -> None:
    buffer, link = buffer_of(10)

    def gone(_piece: bytes) -> int:
        raise BrokenPipeError

    link.send = gone  # type: ignore[method-assign]
    buffer.send_more()
    assert len(buffer) == 0


# -- Real hands ------------------------------------------------------------------------------------


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    return Marks(tmp_path / "marks")


@pytest.fixture
def bench_of() -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(hands: int, app: str = "tests.tasks.crashes:app", **options: Any) -> Bench:
        events: list[Any] = []
        bench = Bench(make_hands(app, hands=hands, emit=events.extend, **options))
        bench.events = events
        made.append(bench)
        until(lambda: len(pids(bench)) == hands)
        return bench

    yield make
    for bench in made:
        bench.close()


def pids(bench: Bench) -> list[int]:
    return [event.pid for event in bench.events if isinstance(event, HandStarted)]


def large(bench: Bench, marks: Marks, count: int) -> list[Leased]:
    return [bench.lease("a_quick", marks.path, f"{n}" + "x" * MIB) for n in range(count)]


def test_a_hand_that_stops_reading_is_killed_as_a_crash(
    bench_of: Callable[..., Bench], marks: Marks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send_buffer, "UNSENT_MAX", 2 * MIB)
    monkeypatch.setattr(send_buffer, "STALLED_S", 0.3)
    bench = bench_of(hands=1)
    begun = [bench.lease("a_quick", marks.path, "n", 30) for _ in range(3)]
    bench.executor.submit(begun)
    marks.await_words(3)
    [pid] = pids(bench)
    os.kill(pid, signal.SIGSTOP)
    waiting = large(bench, marks, 8)
    bench.executor.submit(waiting)

    assert all(isinstance(bench.outcome(run), Crashed) for run in begun)
    assert {type(bench.outcome(run)) for run in waiting} <= {Released, Succeeded}
    assert not alive(pid)
    assert [e for e in bench.events if isinstance(e, Troubled) and "does not read" in e.what]
    assert isinstance(bench.next_run("a_quick", marks.path, "after"), Succeeded)
    assert {len(reports) for reports in bench.reports.values()} == {1}


def test_a_task_that_blocks_the_reader_is_charged(
    bench_of: Callable[..., Bench], marks: Marks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send_buffer, "UNSENT_MAX", 2 * MIB)
    monkeypatch.setattr(send_buffer, "STALLED_S", 0.3)
    bench = bench_of(hands=1)
    culprit = bench.lease("a_block", marks.path, 30.0, 1)
    bench.executor.submit([culprit])
    marks.await_words(1)
    bench.executor.submit(large(bench, marks, 8))

    outcome = bench.outcome(culprit)
    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.fault.signal) == ("crashed", "SIGKILL")


def test_a_hand_that_is_slow_but_reads_is_not_killed(
    bench_of: Callable[..., Bench], marks: Marks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its loop is blocked almost all the time, for much longer than the limit in total."""
    monkeypatch.setattr(send_buffer, "UNSENT_MAX", MIB)
    monkeypatch.setattr(send_buffer, "STALLED_S", 1.0)
    bench = bench_of(hands=1)
    blocker = bench.lease("a_block", marks.path, 0.05, 60)
    bench.executor.submit([blocker])
    marks.await_words(1)
    bench.executor.submit(large(bench, marks, 12))

    assert isinstance(bench.outcome(blocker, within=30.0), Succeeded)
    assert not [event for event in bench.events if isinstance(event, HandEnded)]


def test_a_hand_over_the_limit_gets_no_more_work_until_it_reads(
    bench_of: Callable[..., Bench], marks: Marks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send_buffer, "UNSENT_MAX", 2 * MIB)
    bench = bench_of(hands=1)
    [pid] = pids(bench)
    os.kill(pid, signal.SIGSTOP)
    bench.executor.submit(large(bench, marks, 8))

    assert bench.executor.room().limit == 0
    assert bench.run("a_quick", marks.path, "refused") == Released()
    os.kill(pid, signal.SIGCONT)
    assert isinstance(bench.next_run("a_quick", marks.path, "after"), Succeeded)
    assert pids(bench) == [pid]


def test_a_frozen_hand_does_not_keep_the_pool_from_stopping(
    bench_of: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "LEAVE_S", 0.2)
    bench = Bench(make_hands("tests.tasks.crashes:app", hands=1, emit=(events := []).extend))
    bench.events = events
    [pid] = until(lambda: pids(bench))
    os.kill(pid, signal.SIGSTOP)
    began = monotonic()
    bench.executor.stop()

    assert monotonic() - began < 5.0
    assert not alive(pid)


def test_a_hand_with_too_many_open_asks_is_refused_more(
    bench_of: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "ASKS_MAX", 10)
    asks: SimpleQueue[Any] = SimpleQueue()
    bench = bench_of(hands=1, app="tests.executors.hands.malformed:app", asks=asks)

    assert isinstance(bench.run("ask_often", 25), Succeeded)
    assert asks.qsize() == 10
    for _ in range(10):
        asks.get().answer(True, None)
    assert isinstance(bench.run("ask_often", 3), Succeeded)
    assert asks.qsize() == 3

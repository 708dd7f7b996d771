# SPDX-License-Identifier: MIT
"""What attempts print: bounded, the end kept, and each attempt its own."""

import asyncio
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byrote.core.outcome import OUTPUT_MAX, Output, Succeeded
from byrote.executors.runtime.job import CancelledResult
from byrote.executors.runtime.output import AttemptScope, Tail, Tee, open_scope, output_of
from tests.worker.bench import Bench, make_hands


@given(st.lists(st.binary(max_size=20)), st.integers(1, 50))
def test_a_tail_is_the_end_and_counts_the_rest(chunks: list[bytes], limit: int) -> None:
    tail = Tail(limit)
    for chunk in chunks:
        tail.add(chunk)
    whole = b"".join(chunks)

    assert tail.kept == whole[-limit:]
    assert tail.dropped == max(len(whole) - limit, 0)
    assert (tail.kept, tail.dropped) == (whole[-limit:], max(len(whole) - limit, 0))


def test_a_cut_through_a_character_leaves_no_rubbish() -> None:
    out = Tail(5)
    out.add("ééé".encode())

    assert output_of(out, Tail()) == Output("éé", "", stdout_dropped=1)


def test_what_no_database_takes_is_escaped() -> None:
    out = Tail()
    out.add(b"a\x00b\xffc")

    assert output_of(out, Tail()) == Output("a\\x00b\\xffc")


def printed_in(scope: AttemptScope) -> str:
    output = scope.close_with(CancelledResult(1)).output
    assert output is not None
    return output.stdout


def test_a_closed_tray_takes_nothing_more() -> None:
    scope, real = AttemptScope(), io.StringIO()
    open_scope(scope)
    stream = Tee(real, 0)
    stream.write("in time")

    assert scope.close_with(CancelledResult(1)) == CancelledResult(1, output=Output("in time"))
    stream.write(", late")
    assert real.getvalue() == "in time, late"
    assert printed_in(scope) == "in time"


def test_coroutines_that_take_turns_keep_their_prints_apart() -> None:
    stream, trays = Tee(io.StringIO(), 0), {word: AttemptScope() for word in "ab"}

    async def speak(word: str) -> None:
        open_scope(trays[word])
        for _ in range(3):
            print(word, end="", file=stream)
            await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(speak("a"), asyncio.create_task(speak("b")))

    asyncio.run(both())
    assert [printed_in(trays[word]) for word in "ab"] == ["aaa", "bbb"]


@pytest.fixture(scope="module")
def hands() -> Bench:
    """A pool of hands whose tasks print."""
    made = Bench(make_hands("tests.executors.runtime.printing:app", threads=2))
    yield made
    made.close()


@pytest.mark.xdist_group("executors")
@pytest.mark.parametrize("kind", ["", "a_"], ids=["sync", "async"])
def test_what_a_task_in_a_hand_prints_comes_with_its_outcome(hands: Bench, kind: str) -> None:
    runs = [hands.lease(f"{kind}say", f"word {n}") for n in range(20)]
    outcomes = hands.outcomes_of(runs)

    for n, run in enumerate(runs):
        output = outcomes[run.id].output
        assert (output.stdout, output.stderr) == (f"word {n}\n", f"error word {n}\n")


@pytest.mark.xdist_group("executors")
def test_a_task_that_raises_has_printed_too(hands: Bench) -> None:
    outcome = hands.run("fail")

    assert (outcome.fault.type, outcome.output.stdout) == ("ValueError", "so far\n")


@pytest.mark.xdist_group("executors")
def test_bytes_and_log_lines_are_output_too(hands: Bench) -> None:
    output = hands.run("speak_otherwise").output

    assert output.stdout == "bytes\nthread\n"
    assert '"message":"logged"' in output.stderr.replace(" ", "") or "logged" in output.stderr


@pytest.mark.xdist_group("executors")
def test_a_flood_is_bounded_in_a_hand(hands: Bench) -> None:
    outcome = hands.run("flood", 3 * OUTPUT_MAX)

    assert isinstance(outcome, Succeeded)
    assert outcome.output is not None
    assert outcome.output.stdout == "x" * OUTPUT_MAX
    assert outcome.output.stdout_dropped == 2 * OUTPUT_MAX


@pytest.mark.xdist_group("executors")
def test_a_silent_task_has_no_output(hands: Bench) -> None:
    assert hands.run("silent").output is None

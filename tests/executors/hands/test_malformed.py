# SPDX-License-Identifier: MIT
"""A hand that sends a malformed message is killed; the worker and all others continue."""

from collections.abc import Iterator
from typing import Any

import pytest

from byrote.core.events import HandEnded, Troubled
from byrote.core.outcome import Failed, Succeeded
from byrote.core.state import Status
from tests.support import until
from tests.worker.bench import Bench, make_hands
from tests.worker.harness import (
    Database,
    StartWorker,
    await_end,
    send_one,
    spec,
)

APP = "tests.executors.hands.malformed:app"
FAULT = {"kind": "raised", "type": "X"}
MESSAGES: dict[str, Any] = {
    "no list": 17,
    "an empty list": [],
    "an unknown word": ["hello", 1],
    "no results": ["done", 5],
    "a result that is none": ["done", [5]],
    "an empty result": ["done", [[]]],
    "an unused slot": ["done", [[0, 1023, "1", "00"]]],
    "a slot that is not a number": ["done", [[0, {}, "1", "00"]]],
    "a value that is not a text": ["done", [[0, "slot", 5, 6]]],
    "an unknown end": ["done", [[77, "slot"]]],
    "a fault that is none": ["done", [[1, "slot", 5, None, False]]],
    "a fault of the wrong shape": ["done", [[1, "slot", {"kind": 5}, None, False]]],
    "a delay that is none": ["done", [[1, "slot", FAULT, "soon", False]]],
    "a wait for nothing": ["done", [[2, "slot", 1, 5, []]]],
    "an output that is none": ["done", [[0, "slot", "1", "00", {"stdout": 5}]]],
    "usage that is none": ["done", [[0, "slot", "1", "00", None, 5]]],
    "an unused slot declined": ["done", [[4, 1023]]],
    "a question that is none": ["ask", 5],
    "a question without a payload": ["ask", ["slot", 1, "load", None]],
    "a question without a verb": ["ask", ["slot", 1, {}, {}]],
    "a second introduction": ["ready", {}],
    "a refusal after all": ["refused", 5],
}
FRAMES = {
    "no MessagePack": "00000001c1",
    "a frame too long to be one": "ffffffff00",
}


@pytest.fixture
def events() -> list[Any]:
    return []


@pytest.fixture
def bench(events: list[Any]) -> Iterator[Bench]:
    made = Bench(make_hands(APP, hands=1, emit=events.extend))
    yield made
    made.close()


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES.keys())
def test_a_hand_that_sends_an_unknown_message_is_killed(
    bench: Bench, events: list[Any], message: Any
) -> None:
    outcome = bench.run("say", message)

    assert isinstance(outcome, Failed)
    assert (outcome.fault.kind, outcome.fault.signal) == ("crashed", "SIGKILL")
    assert any(isinstance(event, HandEnded) for event in events)
    assert any(isinstance(event, Troubled) and "hand" in event.what for event in events)
    assert isinstance(bench.next_run("echo", 1), Succeeded)


@pytest.mark.parametrize("text", FRAMES.values(), ids=FRAMES.keys())
def test_a_hand_that_sends_malformed_bytes_is_killed(bench: Bench, text: str) -> None:
    assert isinstance(bench.run("say_bytes", text), Failed)
    assert isinstance(bench.next_run("echo", 1), Succeeded)


def test_earlier_messages_are_handled_and_every_run_is_reported_once(bench: Bench) -> None:
    """A batch of results with one that is none: the others must not be lost with it."""
    waiting = [bench.lease("wait", 60.0) for _ in range(3)]
    bench.executor.submit(waiting)
    good = [0, "slot", "1", "00" * 32]
    culprit = bench.lease("a_say", ["done", [good, [0, "slot", 1, 1]]])
    bench.executor.submit([culprit])

    assert isinstance(bench.outcome(culprit), Succeeded)
    for run in waiting:
        bench.outcome(run)
    assert {len(reports) for reports in bench.reports.values()} == {1}
    assert isinstance(bench.next_run("echo", 1), Succeeded)


@pytest.mark.parametrize(
    ("verb", "payload"),
    [
        ("note", {}),
        ("note", {"sequence": [], "result": 5}),
        ("note", {"sequence": 1, "kind": {}, "name": 7, "result": [1]}),
        ("nothing.of.the.sort", {}),
        ("artifact.store", {"size": "large"}),
        ("load", {"attempt": "no"}),
    ],
)
def test_an_unknown_request_does_not_stop_the_worker(
    db: Database, start_worker: StartWorker, verb: str, payload: dict[str, Any]
) -> None:
    worker = start_worker(APP)
    [run] = await_end(db, send_one(db, spec("ask", verb, payload)))
    [after] = await_end(db, send_one(db, spec("echo", 1)))

    assert (run.status, run.result) == (Status.SUCCESSFUL, "well")
    assert after.status is Status.SUCCESSFUL
    until(lambda: worker.process.poll() is None)


@pytest.mark.parametrize(
    ("task", "args"),
    [
        ("shout", ["ffffffff00"]),
        ("shout", ["00000001c1"]),
        ("shout", ["00000006" + b"\x91\xa4stop".hex()]),
        ("hang_up", []),
    ],
)
@pytest.mark.needs("commands")
def test_a_command_that_spoils_its_line_loses_the_line_alone(
    db: Database, start_worker: StartWorker, task: str, args: list[str]
) -> None:
    start_worker(APP)
    [run] = await_end(db, send_one(db, spec(task, *args)), within=60)
    [after] = await_end(db, send_one(db, spec("echo", 1)))

    assert run.status is Status.FAILED
    assert run.faults[0]["kind"] == "raised"
    assert after.status is Status.SUCCESSFUL
